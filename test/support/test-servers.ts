import net from "node:net";
import { cleanUps } from "./clean-ups.ts";

type HttpOptions = Partial<Bun.Serve.Options<undefined>>;

/** Gives a test file its maker of HTTP servers on loopback, which end with the test. To be called at the top of the file. */
export function httpServers() {
  const atTestEnd = cleanUps();
  return (fetch: (request: Request) => Response | Promise<Response>, options: HttpOptions = {}) => {
    const where = options.unix === undefined ? { hostname: "127.0.0.1", port: 0, idleTimeout: 0 } : {};
    const server = Bun.serve({ ...where, development: false, fetch, ...options } as Bun.Serve.Options<undefined>);
    atTestEnd(() => server.stop(true));
    return server;
  };
}

interface RawServer {
  port: number;
  /** Resolves with what the next client sent first. */
  request: Promise<string>;
  connections: number;
}

/**
 * Gives a test file its maker of TCP servers on loopback, which do what `onRequest` says once a client has sent something,
 * and end with the test. To be called at the top of the file.
 */
export function rawServers() {
  const atTestEnd = cleanUps();
  return async (onRequest: (socket: net.Socket, text: string) => void): Promise<RawServer> => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const sockets = new Set<net.Socket>();
    const state: RawServer = { port: 0, request: promise, connections: 0 };
    const server = net.createServer((socket) => {
      state.connections++;
      sockets.add(socket);
      socket.on("error", () => {});
      socket.once("data", (data) => {
        const text = data.toString();
        resolve(text);
        onRequest(socket, text);
      });
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    state.port = (server.address() as net.AddressInfo).port;
    atTestEnd(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    return state;
  };
}

/**
 * Below the ports that the kernel gives to clients, so that no connection takes one between the choice and its use; above
 * those of recorded manifests (18053 to 18599), which run at the same time.
 */
const [FIRST_PORT, LAST_PORT] = [19_000, 32_000];

/** Where the next search begins; processes that test at the same time begin far from each other. */
let nextPort = FIRST_PORT + ((process.pid * 509) % (LAST_PORT - FIRST_PORT));

/** Ports that are free on all addresses, and that this process returns only once. */
export function freePorts(count: number): number[] {
  const ports: number[] = [];
  while (ports.length < count) {
    nextPort = nextPort < LAST_PORT ? nextPort + 1 : FIRST_PORT;
    try {
      Bun.listen({ hostname: "0.0.0.0", port: nextPort, socket: { data() {} } }).stop(true);
      ports.push(nextPort);
    } catch {
      // In use: the next one may be free.
    }
  }
  return ports;
}

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

/** A port without a listener. */
export async function closedPort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as net.AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}

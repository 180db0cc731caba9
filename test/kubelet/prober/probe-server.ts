import { afterEach } from "bun:test";
import net from "node:net";

const cleanUps: (() => void | Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

/** Run after the test that is running now. */
export function atTestEnd(cleanUp: () => void | Promise<void>): void {
  cleanUps.push(cleanUp);
}

export interface RawServer {
  port: number;
  /** Resolves with what the next client sent first. */
  request: Promise<string>;
  connections: number;
}

/** A TCP server on loopback that does what `onRequest` says once a client has sent something. */
export async function rawServer(onRequest: (socket: net.Socket, text: string) => void): Promise<RawServer> {
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
}

/** A port without a listener. */
export async function closedPort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as net.AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}

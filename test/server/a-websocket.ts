import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { connect, createServer as createNetServer } from "node:net";
import type { Duplex } from "node:stream";
import { acceptWebSocket } from "../../src/server/websocket.ts";

export const OPCODE = { binary: 2, ping: 9, pong: 10 } as const;

/** A frame as a client sends it, with a mask of zeros. */
export function clientFrame(opcode: number, payload: Uint8Array): Buffer {
  const { length } = payload;
  const header = Buffer.alloc(length < 126 ? 2 : length < 0x1_0000 ? 4 : 10);
  header[0] = 0x80 | opcode;
  header[1] = 0x80 | (length < 126 ? length : length < 0x1_0000 ? 126 : 127);
  if (header.length === 4) header.writeUInt16BE(length, 2);
  if (header.length === 10) header.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([header, Buffer.alloc(4), payload]);
}

const HANDSHAKE = [
  "GET / HTTP/1.1",
  "Host: localhost",
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

/** A WebSocket on the server's side and the bare connection of its client. */
export async function aWebSocket() {
  const upgraded = Promise.withResolvers<[IncomingMessage, Duplex, Buffer]>();
  const http = createServer().on("upgrade", (...all: [IncomingMessage, Duplex, Buffer]) => upgraded.resolve(all));
  const server = createNetServer(
    (socket) =>
      void http.emit(
        "connection",
        socket.on("error", () => {}),
      ),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as { port: number }).port, "127.0.0.1");
  client.on("error", () => {});
  client.write([...HANDSHAKE, "", ""].join("\r\n"));
  const [request, stream, rest] = await upgraded.promise;
  const connection = await acceptWebSocket(request, stream, rest, undefined);
  if (!connection) throw new Error("the handshake was refused");
  await once(client, "data"); // The answer to the handshake.
  const received: Buffer[] = [];
  let isClosed = false;
  client.on("data", (chunk: Buffer) => received.push(chunk));
  client.on("close", () => {
    isClosed = true;
  });
  return {
    client,
    connection,
    /** The connection under it. */
    stream,
    hex: () => Buffer.concat(received).toString("hex"),
    isClosed: () => isClosed,
    close: () => {
      client.destroy();
      server.close();
    },
  };
}

import type { Duplex } from "node:stream";
import type { ByteChannel } from "./spdy-connection.ts";

/** The dictionary of SPDY/3.1, which a library has. */
export async function loadDictionary(): Promise<Buffer> {
  // @ts-expect-error the library has no types
  const loaded = await import("spdy-transport/lib/spdy-transport/protocol/spdy/dictionary.js");
  const module = (loaded.default ?? loaded) as Readonly<Record<string, Buffer>>;
  return module["3.1"]!;
}

/**
 * The newest of the versions that both sides know; "" when the client names none; undefined when there is none in common.
 * @param offered values of `X-Stream-Protocol-Version`
 */
export function chooseStreamProtocol(offered: string | null, known: readonly string[]): string | undefined {
  const names = (offered ?? "")
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  if (names.length === 0) return "";
  return known.find((name) => names.includes(name));
}

/** Answers the handshake and takes the connection. @param head what the client sent behind its request */
export function acceptSpdy(socket: Duplex, head: Buffer, protocol: string): ByteChannel {
  const version = protocol === "" ? "" : `X-Stream-Protocol-Version: ${protocol}\r\n`;
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\n${version}\r\n`);
  return {
    chunks: chunksOf(socket, head),
    write: (data) =>
      new Promise((resolve) => {
        if (!socket.writable || socket.write(data)) return resolve();
        const done = () => {
          socket.off("drain", done);
          socket.off("close", done);
          resolve();
        };
        socket.on("drain", done);
        socket.on("close", done);
      }),
    close: () => void socket.end(),
  };
}

async function* chunksOf(socket: Duplex, head: Buffer): AsyncGenerator<Uint8Array> {
  if (head.length > 0) yield head;
  for await (const chunk of socket as AsyncIterable<Uint8Array>) yield chunk;
}

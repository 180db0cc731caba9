import { connect, type Socket } from "node:net";
import tls from "node:tls";
import type { TestNode } from "../../test/support/test-node.ts";

/** Target of an attack: a node whose kubelet runs a few healthy pods with liveness probes. */
export interface AttackTarget {
  node: TestNode;
  /** Process id of the kubelet. */
  pid: number;
}

/** One attack. Loopback only; it ends on its own after at most a minute, and closes what it opened. */
export interface Attack {
  name: string;
  about: string;
  /** Flags of the kubelet in addition to those of a test node; may write files into the node's directory. */
  flags?: (node: TestNode) => readonly string[];
  /** Why it cannot run on this machine. */
  impossible?: string;
  /** Greatest growth of the resident memory during the attack. */
  maxGrowthMegabytes: number;
  /** @returns further figures, each with its limit */
  run(target: AttackTarget): Promise<readonly Figure[]>;
}

export interface Figure {
  what: string;
  unit: string;
  value: number;
  atMost: number;
}

/** Sends `bytes` on `count` connections at a time and reads the answers until `seconds` are over. */
export async function flood(
  port: number,
  bytes: string,
  { count, seconds, reads = true }: { count: number; seconds: number; reads?: boolean },
): Promise<number> {
  const endMs = performance.now() + seconds * 1_000;
  let received = 0;
  const sockets = new Set<Socket>();
  const open = () => {
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    sockets.add(socket);
    if (reads) socket.on("data", (chunk) => (received += chunk.length));
    else socket.pause();
    socket.on("error", () => {});
    socket.on("close", () => {
      sockets.delete(socket);
      // A kubelet that closes connections must cope with new ones, but a loop without a pause measures only the attacker.
      if (performance.now() < endMs) setTimeout(open, 100);
    });
  };
  for (let i = 0; i < count; i++) open();
  await Bun.sleep(endMs - performance.now());
  for (const socket of sockets) socket.destroy();
  return received;
}

/** Milliseconds of one HTTPS request without a certificate; Infinity without an answer within ten seconds. */
export async function timeHttps(port: number, path: string): Promise<number> {
  const startMs = performance.now();
  try {
    const signal = AbortSignal.timeout(10_000);
    await (await fetch(`https://127.0.0.1:${port}${path}`, { tls: { rejectUnauthorized: false }, signal })).text();
    return performance.now() - startMs;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

const HANDSHAKE = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/** A TLS connection whose WebSocket handshake for `target` was answered with `status`. */
export async function openWebSocket(port: number, target: string): Promise<{ socket: tls.TLSSocket; status: number }> {
  const socket = tls.connect({ host: "127.0.0.1", port, rejectUnauthorized: false });
  socket.on("error", () => {});
  const { promise, resolve } = Promise.withResolvers<number>();
  socket.once("data", (data) => resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(data.toString("latin1"))?.[1] ?? 0)));
  socket.once("close", () => resolve(0));
  socket.write(
    `GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${HANDSHAKE}Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n`,
  );
  return { socket, status: await promise };
}

/** A masked frame as clients send it. */
export function frame(opcode: number, payload: Uint8Array, isFinal = true): Buffer {
  return Buffer.concat([Buffer.from([(isFinal ? 0x80 : 0) | opcode, 0x80 | payload.length, 0, 0, 0, 0]), payload]);
}

/** Writes `bytes` again and again for `seconds`, at most `maxMegabytes` of them, as fast as the other side takes them. */
export async function pour(socket: Socket, bytes: Uint8Array, seconds: number, maxMegabytes: number): Promise<void> {
  const endMs = performance.now() + seconds * 1_000;
  for (
    let sent = 0;
    sent < maxMegabytes * 1e6 && performance.now() < endMs && !socket.destroyed;
    sent += bytes.length
  ) {
    if (socket.write(bytes)) await Bun.sleep(0);
    else await Promise.race([new Promise((done) => socket.once("drain", done)), Bun.sleep(200)]);
    // Otherwise the rest is buffered in this process.
    if (socket.writableLength > 8e6) await Bun.sleep(100);
  }
}

import type { Clock } from "../base/model/clock.ts";
import type { PodConnection } from "../base/model/pod-dialer.ts";
import { type ChannelProtocol, decodeChannel, encodeChannel } from "./channel-protocol.ts";
import { watchIdle } from "./remote-command.ts";
import { type ByteChannel, SpdyConnection, type SpdyStream } from "./spdy.ts";
import type { WebSocketConnection } from "./websocket.ts";

export interface ForwardOptions {
  dial: (port: number, signal: AbortSignal) => Promise<PodConnection>;
  /** `<namespace>/<name>`, for messages. */
  pod: string;
  clock: Clock;
  /** 0 = never. */
  idleTimeoutMs: number;
}

/**
 * `/portForward` over a WebSocket: for the nth port, channel 2n carries its data and 2n+1 what went wrong, each begun by
 * the port's number. One connection for each port; when all have ended, so does the WebSocket. Source: kubelet's
 * `portforward` (websocket.go).
 */
export async function servePortForward(
  socket: WebSocketConnection,
  options: ForwardOptions & { protocol: ChannelProtocol; ports: readonly number[] },
): Promise<void> {
  const { protocol, ports, clock } = options;
  const send = (channel: number, data: Uint8Array) =>
    socket.send(encodeChannel(protocol, channel, data), protocol.isBase64 ? "text" : "binary");
  const idle = watchIdle(clock, options.idleTimeoutMs, () => socket.destroy());
  socket.onActivity = idle.touch;
  const connections = new Map<number, Promise<PodConnection | undefined>>();
  try {
    for (const [index, port] of ports.entries()) {
      const number = Buffer.alloc(2);
      number.writeUInt16LE(port);
      await send(2 * index, number);
      await send(2 * index + 1, number);
    }
    const forwards = ports.map((port, index) => {
      const dialled = options.dial(port, socket.gone);
      const settled = dialled.catch(() => undefined);
      connections.set(2 * index, settled);
      const client = {
        gone: socket.gone,
        write: (chunk: Uint8Array) => send(2 * index, chunk),
        writeError: (data: Uint8Array) => send(2 * index + 1, data),
      };
      return forward(dialled, client, port, options.pod);
    });
    void feed(socket, connections, protocol);
    await Promise.all(forwards);
  } finally {
    idle.end();
    socket.close();
  }
}

async function forward(
  dialled: Promise<PodConnection>,
  client: { gone: AbortSignal; write(chunk: Uint8Array): Promise<void>; writeError(data: Uint8Array): Promise<void> },
  port: number | string,
  pod: string,
): Promise<void> {
  const { gone } = client;
  try {
    const connection = await dialled;
    const close = () => connection.close();
    gone.addEventListener("abort", close, { once: true });
    if (gone.aborted) close();
    try {
      for await (const chunk of connection.chunks()) await client.write(chunk);
    } finally {
      gone.removeEventListener("abort", close);
      close();
    }
  } catch (error) {
    if (gone.aborted) return;
    await client.writeError(Buffer.from(`error forwarding port ${port} to pod ${pod}: ${(error as Error).message}`));
  }
}

async function feed(
  socket: WebSocketConnection,
  connections: ReadonlyMap<number, Promise<PodConnection | undefined>>,
  protocol: ChannelProtocol,
): Promise<void> {
  for await (const payload of socket.messages()) {
    const message = decodeChannel(protocol, payload);
    if (message) await (await connections.get(message.channel))?.write(message.data);
  }
}

export const PORT_FORWARD_PROTOCOL = "portforward.k8s.io";
/** A WebSocket that carries the bytes of SPDY. Source: KEP-4006. */
export const PORT_FORWARD_TUNNEL = "SPDY/3.1+portforward.k8s.io";

/**
 * port-forward over SPDY: for each connection of the client a stream of errors and one of data, which name the port and
 * belong together by their request. Source: kubelet's `portforward` (httpstream.go).
 */
export async function serveSpdyPortForward(channel: ByteChannel, options: ForwardOptions): Promise<void> {
  const pairs = new Map<string, { error?: SpdyStream; data?: SpdyStream }>();
  const connection = new SpdyConnection(channel, (stream) => {
    const type = stream.headers.get("streamtype");
    if (type !== "error" && type !== "data") return stream.end();
    const port = stream.headers.get("port") ?? "";
    // Old clients number no requests: a pair has neighboring ids.
    const request = stream.headers.get("requestid") ?? String(type === "error" ? stream.id : stream.id - 2);
    const pair = pairs.getOrInsert(request, {});
    pair[type] = stream;
    // A client may open one stream of each, and reset it.
    if (pairs.size > 1_000) return connection.close();
    if (!pair.error || !pair.data) return;
    pairs.delete(request);
    void forwardStream(connection, pair.error, pair.data, port, options);
  });
  const idle = watchIdle(options.clock, options.idleTimeoutMs, () => connection.close());
  connection.onActivity = idle.touch;
  await connection.run();
  idle.end();
}

/** How long a program may send nothing to a client that has ended its side. dockershim's socat gives it half a second. */
const HALF_CLOSED_MS = 30_000;

async function forwardStream(
  connection: SpdyConnection,
  error: SpdyStream,
  data: SpdyStream,
  port: string,
  { dial, pod, clock }: ForwardOptions,
): Promise<void> {
  const ended = new AbortController();
  const gone = AbortSignal.any([connection.gone, ended.signal]);
  const number = Number(port);
  const isPort = Number.isInteger(number) && number >= 1 && number <= 65_535;
  const dialled = isPort ? dial(number, gone) : Promise.reject(new Error(`"${port}" is not a port`));
  let idle: ReturnType<typeof watchIdle> | undefined;
  const feedPeer = async (peer: PodConnection) => {
    await send(data, peer);
    if (!gone.aborted) idle = watchIdle(clock, HALF_CLOSED_MS, () => ended.abort());
  };
  void dialled.then(feedPeer).catch(() => {});
  const client = {
    gone,
    write: async (chunk: Uint8Array) => {
      await data.write(chunk);
      idle?.touch();
    },
    writeError: (message: Uint8Array) => error.write(message),
  };
  await forward(dialled, client, port, pod);
  ended.abort();
  idle?.end();
  data.end();
  error.end();
}

async function send(data: SpdyStream, peer: PodConnection): Promise<void> {
  try {
    for await (const chunk of data.chunks()) await peer.write(chunk);
    if (data.isEnded) peer.close();
    else peer.end?.();
  } catch {
    // The peer is gone: its end ends the stream.
  }
}

import type { Clock } from "../../base/model/clock.ts";
import type { PodConnection } from "../../base/model/pod-dialer.ts";
import { watchIdle } from "../idle-watch.ts";
import { type ByteChannel, SpdyConnection, type SpdyStream } from "./spdy-connection.ts";

export const PORT_FORWARD_PROTOCOL = "portforward.k8s.io";
/** A WebSocket that carries the bytes of SPDY. Source: KEP-4006. */
export const PORT_FORWARD_TUNNEL = "SPDY/3.1+portforward.k8s.io";

interface SpdyPortForwardOptions {
  dictionary: Buffer;
  /** Connects to a port of the pod. */
  dial: (port: number, signal: AbortSignal) => Promise<PodConnection>;
  /** `<namespace>/<name>`, for messages. */
  pod: string;
  clock: Clock;
  /** 0 = never. */
  idleTimeoutMs: number;
}

/**
 * port-forward over SPDY: for each connection of the client a stream of errors and one of data, which name the port and
 * belong together by their request. Source: kubelet's `portforward` (httpstream.go).
 */
export async function serveSpdyPortForward(channel: ByteChannel, options: SpdyPortForwardOptions): Promise<void> {
  const pairs = new Map<string, { error?: SpdyStream; data?: SpdyStream }>();
  const connection = new SpdyConnection(channel, options.dictionary, (stream) => {
    const type = stream.headers.get("streamtype");
    if (type !== "error" && type !== "data") return stream.end();
    const port = stream.headers.get("port") ?? "";
    // Old clients number no requests: a pair has neighbouring ids.
    const request = stream.headers.get("requestid") ?? String(type === "error" ? stream.id : stream.id - 2);
    const pair = pairs.get(request) ?? {};
    pair[type] = stream;
    pairs.set(request, pair);
    if (!pair.error || !pair.data) return;
    pairs.delete(request);
    void forward(connection, pair.error, pair.data, port, options);
  });
  const idle = watchIdle(options.clock, options.idleTimeoutMs, () => connection.close());
  connection.onActivity = idle.touch;
  await connection.run();
  idle.end();
}

async function forward(
  connection: SpdyConnection,
  error: SpdyStream,
  data: SpdyStream,
  port: string,
  { dial, pod }: SpdyPortForwardOptions,
): Promise<void> {
  const gone = new AbortController();
  const signal = AbortSignal.any([connection.gone, gone.signal]);
  try {
    const number = Number(port);
    if (!Number.isInteger(number) || number < 1 || number > 65_535) throw new Error(`"${port}" is not a port`);
    const peer = await dial(number, signal);
    const close = () => peer.close();
    signal.addEventListener("abort", close, { once: true });
    if (signal.aborted) close();
    const sending = send(data, peer);
    try {
      for await (const chunk of peer.chunks()) await data.write(chunk);
    } finally {
      close();
    }
    data.end();
    await Promise.race([sending, Promise.resolve()]);
  } catch (problem) {
    const message = `error forwarding port ${port} to pod ${pod}: ${(problem as Error).message}`;
    await error.write(Buffer.from(message));
  } finally {
    gone.abort();
    data.end();
    error.end();
  }
}

async function send(data: SpdyStream, peer: PodConnection): Promise<void> {
  try {
    for await (const chunk of data.chunks()) await peer.write(chunk);
  } catch {
    // The peer is gone: its end ends the stream.
  }
}

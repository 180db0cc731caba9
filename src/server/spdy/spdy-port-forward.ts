import type { PodConnection } from "../../base/model/pod-dialer.ts";
import { watchIdle } from "../idle-watch.ts";
import { type ForwardOptions, forward } from "../port-forward.ts";
import { type ByteChannel, SpdyConnection, type SpdyStream } from "./spdy-connection.ts";

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
    // Old clients number no requests: a pair has neighbouring ids.
    const request = stream.headers.get("requestid") ?? String(type === "error" ? stream.id : stream.id - 2);
    const pair = pairs.get(request) ?? {};
    pair[type] = stream;
    pairs.set(request, pair);
    if (!pair.error || !pair.data) return;
    pairs.delete(request);
    void forwardStream(connection, pair.error, pair.data, port, options);
  });
  const idle = watchIdle(options.clock, options.idleTimeoutMs, () => connection.close());
  connection.onActivity = idle.touch;
  await connection.run();
  idle.end();
}

async function forwardStream(
  connection: SpdyConnection,
  error: SpdyStream,
  data: SpdyStream,
  port: string,
  { dial, pod }: ForwardOptions,
): Promise<void> {
  const ended = new AbortController();
  const gone = AbortSignal.any([connection.gone, ended.signal]);
  const number = Number(port);
  const isPort = Number.isInteger(number) && number >= 1 && number <= 65_535;
  const dialled = isPort ? dial(number, gone) : Promise.reject(new Error(`"${port}" is not a port`));
  void dialled.then((peer) => send(data, peer)).catch(() => {});
  const client = {
    gone,
    write: (chunk: Uint8Array) => data.write(chunk),
    writeError: (message: Uint8Array) => error.write(message),
  };
  await forward(dialled, client, port, pod);
  ended.abort();
  data.end();
  error.end();
}

async function send(data: SpdyStream, peer: PodConnection): Promise<void> {
  try {
    for await (const chunk of data.chunks()) await peer.write(chunk);
  } catch {
    // The peer is gone: its end ends the stream.
  }
}

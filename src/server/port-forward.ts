import type { Clock } from "../base/model/clock.ts";
import type { PodConnection } from "../base/model/pod-dialer.ts";
import { type ChannelProtocol, decodeChannel, encodeChannel } from "./channel-protocol.ts";
import { watchIdle } from "./idle-watch.ts";
import type { WebSocketConnection } from "./websocket.ts";

export interface PortForwardOptions {
  protocol: ChannelProtocol;
  /** Connects to a port of the pod. */
  dial: (port: number, signal: AbortSignal) => Promise<PodConnection>;
  ports: readonly number[];
  /** `<namespace>/<name>`, for messages. */
  pod: string;
  clock: Clock;
  idleTimeoutMs: number;
}

type Send = (channel: number, data: Uint8Array) => Promise<void>;

/**
 * `/portForward` over a WebSocket: for the nth port, channel 2n carries its data and 2n+1 what went wrong, each begun by
 * the port's number. One connection for each port; when all have ended, so does the WebSocket. Source: kubelet's
 * `portforward` (websocket.go).
 */
export async function servePortForward(socket: WebSocketConnection, options: PortForwardOptions): Promise<void> {
  const { protocol, ports, clock } = options;
  const send: Send = (channel, data) =>
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
      connections.set(
        2 * index,
        dialled.catch(() => undefined),
      );
      return forward(dialled, port, index, send, socket.gone, options.pod);
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
  port: number,
  index: number,
  send: Send,
  gone: AbortSignal,
  pod: string,
): Promise<void> {
  try {
    const connection = await dialled;
    const close = () => connection.close();
    gone.addEventListener("abort", close, { once: true });
    if (gone.aborted) close();
    try {
      for await (const chunk of connection.chunks()) await send(2 * index, chunk);
    } finally {
      gone.removeEventListener("abort", close);
      close();
    }
  } catch (error) {
    const message = `error forwarding port ${port} to pod ${pod}: ${(error as Error).message}`;
    await send(2 * index + 1, Buffer.from(message));
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

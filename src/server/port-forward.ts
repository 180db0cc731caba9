import { connect, type Socket } from "node:net";
import type { Clock } from "../model/clock.ts";
import { type ChannelProtocol, decodeChannel, encodeChannel } from "./channel-protocol.ts";
import { watchIdle } from "./idle-watch.ts";
import type { WebSocketConnection } from "./websocket.ts";

export interface PortForwardOptions {
  protocol: ChannelProtocol;
  /** Where the pod is reached from here. */
  host: string;
  ports: readonly number[];
  /** `<namespace>/<name>`, for messages. */
  pod: string;
  clock: Clock;
  idleTimeoutMs: number;
}

const CONNECT_MS = 30_000;

/**
 * `/portForward` over a WebSocket: for the nth port, channel 2n carries its data and 2n+1 what went wrong, each begun by
 * the port's number. One connection for each port; when all have ended, so does the WebSocket. Source: kubelet's
 * `portforward` (websocket.go). [S150 M55]
 */
export async function servePortForward(socket: WebSocketConnection, options: PortForwardOptions): Promise<void> {
  const { protocol, ports, clock } = options;
  const send = (channel: number, data: Uint8Array) =>
    socket.send(encodeChannel(protocol, channel, data), protocol.isBase64 ? "text" : "binary");
  const idle = watchIdle(clock, options.idleTimeoutMs, () => socket.destroy());
  socket.onActivity = idle.touch;
  const connections = new Map<number, Socket>();
  const closeAll = () => {
    for (const connection of connections.values()) connection.destroy();
  };
  socket.gone.addEventListener("abort", closeAll, { once: true });
  try {
    for (const [index, port] of ports.entries()) {
      const number = Buffer.alloc(2);
      number.writeUInt16LE(port);
      await send(2 * index, number);
      await send(2 * index + 1, number);
    }
    const forwards = ports.map((port, index) => {
      const connection = connect({ host: options.host, port, allowHalfOpen: true });
      connections.set(2 * index, connection);
      return forward(connection, port, options, send, index);
    });
    if (socket.gone.aborted) closeAll();
    void feed(socket, connections, protocol);
    await Promise.all(forwards);
  } finally {
    idle.end();
    closeAll();
    socket.close();
  }
}

async function forward(
  connection: Socket,
  port: number,
  { clock, pod }: PortForwardOptions,
  send: (channel: number, data: Uint8Array) => Promise<void>,
  index: number,
): Promise<void> {
  const giveUp = clock.schedule(CONNECT_MS, () => void connection.destroy(new Error("the connection took too long")));
  connection.once("connect", giveUp);
  try {
    for await (const chunk of connection) await send(2 * index, chunk as Uint8Array);
  } catch (error) {
    const message = `error forwarding port ${port} to pod ${pod}: ${(error as Error).message}`;
    await send(2 * index + 1, Buffer.from(message));
  } finally {
    giveUp();
    connection.destroy();
  }
}

async function feed(
  socket: WebSocketConnection,
  connections: ReadonlyMap<number, Socket>,
  protocol: ChannelProtocol,
): Promise<void> {
  for await (const { payload } of socket.messages()) {
    const message = decodeChannel(protocol, payload);
    const connection = message && connections.get(message.channel);
    if (!connection?.writable) continue;
    if (connection.write(message!.data)) continue;
    await new Promise<void>((resolve) => {
      const done = () => {
        connection.off("drain", done);
        connection.off("close", done);
        resolve();
      };
      connection.on("drain", done);
      connection.on("close", done);
    });
  }
}

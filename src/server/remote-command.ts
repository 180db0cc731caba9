import type { Clock } from "../base/model/clock.ts";
import type { ProcessSession, StreamSelection, TerminalSize } from "../base/model/container-access.ts";
import {
  CHANNEL,
  type ChannelProtocol,
  decodeChannel,
  encodeChannel,
  exitStatus,
  failureStatus,
} from "./channel-protocol.ts";
import { watchIdle } from "./idle-watch.ts";
import type { WebSocketConnection } from "./websocket.ts";

export interface RemoteCommandOptions {
  protocol: ChannelProtocol;
  streams: StreamSelection;
  /** @throws Error whose message the client is shown */
  open: () => Promise<ProcessSession>;
  clock: Clock;
  /** The session ends after this time without data; 0 = never. */
  idleTimeoutMs: number;
  /** Between two pings, whose answers count as data; absent: none are sent. */
  pingMs?: number;
}

const NOTHING = new Uint8Array();

/** `/exec` and `/attach` over a WebSocket, until the process or the client ends it. Source: kubelet's `remotecommand`. */
export async function serveRemoteCommand(socket: WebSocketConnection, options: RemoteCommandOptions): Promise<void> {
  const { protocol, streams } = options;
  const send = (channel: number, data: Uint8Array) =>
    socket.send(encodeChannel(protocol, channel, data), protocol.isBase64 ? "text" : "binary");
  const sendError = (text: string) => send(CHANNEL.error, Buffer.from(text));
  // An empty message on the lowest channel that is written shows the client that it is connected.
  await send(streams.stdout ? CHANNEL.stdout : streams.stderr ? CHANNEL.stderr : CHANNEL.error, NOTHING);
  let held: ProcessSession;
  try {
    held = await options.open();
  } catch (error) {
    const problem = `error executing command in container: ${(error as Error).message}`;
    await sendError(protocol.endsWithStatus ? failureStatus(problem) : problem);
    socket.close();
    return;
  }
  const idle = watchIdle(options.clock, options.idleTimeoutMs, () => socket.destroy());
  socket.onActivity = idle.touch;
  const endPings = repeat(options.clock, options.pingMs ?? 0, () => socket.ping());
  try {
    await converse(socket, held, send, sendError, options);
  } finally {
    idle.end();
    endPings();
    await held.close();
    socket.close();
  }
}

/** @param periodMs 0 = never. @returns a function that ends it */
function repeat(clock: Clock, periodMs: number, callback: () => void): () => void {
  if (periodMs === 0) return () => {};
  let cancel = () => {};
  const next = () => {
    cancel = clock.schedule(periodMs, () => {
      callback();
      next();
    });
  };
  next();
  return () => cancel();
}

async function converse(
  socket: WebSocketConnection,
  held: ProcessSession,
  send: (channel: number, data: Uint8Array) => Promise<void>,
  sendError: (text: string) => Promise<void>,
  { protocol }: RemoteCommandOptions,
): Promise<void> {
  const release = () => void held.close();
  if (socket.gone.aborted) return;
  socket.gone.addEventListener("abort", release, { once: true });
  void feed(socket, held, protocol);
  try {
    for await (const { stream, data } of held.output) {
      await send(stream === "stderr" ? CHANNEL.stderr : CHANNEL.stdout, data);
      if (socket.gone.aborted) return;
    }
    if (socket.gone.aborted) return;
    const exitCode = await held.exitCode();
    if (protocol.endsWithStatus) await sendError(exitStatus(exitCode));
    else if (exitCode) await sendError(`command terminated with non-zero exit code: exit status ${exitCode}`);
  } catch (error) {
    const problem = `error executing command in container: ${(error as Error).message}`;
    await sendError(protocol.endsWithStatus ? failureStatus(problem) : problem);
  } finally {
    socket.gone.removeEventListener("abort", release);
  }
}

/** Passes on the client's input until it ends. */
async function feed(socket: WebSocketConnection, held: ProcessSession, protocol: ChannelProtocol): Promise<void> {
  for await (const payload of socket.messages()) {
    const message = decodeChannel(protocol, payload);
    if (message?.channel === CHANNEL.stdin) await held.write(message.data);
    else if (message?.channel === CHANNEL.resize) {
      const size = parseSize(message.data);
      // A process that has just ended has no size; one that has not begun yet gets the next.
      if (size) await held.resize(size).catch(() => {});
    } else if (message?.channel === CHANNEL.close && protocol.closesChannels && message.data[0] === CHANNEL.stdin) {
      held.endInput();
    }
  }
}

/** Source: client-go's `TerminalSize`: `{"Width":80,"Height":24}`. */
export function parseSize(data: Uint8Array): TerminalSize | undefined {
  try {
    const { Width: width, Height: height } = JSON.parse(Buffer.from(data).toString()) as Record<string, unknown>;
    return isLength(width) && isLength(height) ? { width, height } : undefined;
  } catch {
    return undefined;
  }
}

const isLength = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value > 0 && value < 0x1_0000;

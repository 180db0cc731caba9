import type { Clock } from "../base/model/clock.ts";
import type { ProcessSession, StreamSelection, TerminalSize } from "../base/model/container-access.ts";
import { isRecord, jsonIfValid } from "../base/text/json.ts";
import {
  CHANNEL,
  type ChannelProtocol,
  decodeChannel,
  encodeChannel,
  exitStatus,
  failureStatus,
} from "./channel-protocol.ts";
import { type ByteChannel, SpdyConnection, type SpdyStream } from "./spdy.ts";
import type { WebSocketConnection } from "./websocket.ts";

/** A command in a container, and how long its client may be silent. */
export interface CommandOptions {
  streams: StreamSelection;
  /** @throws Error whose message the client is shown */
  open: () => Promise<ProcessSession>;
  clock: Clock;
  /** The session ends after this time without data; 0 = never. */
  idleTimeoutMs: number;
}

interface RemoteCommandOptions extends CommandOptions {
  protocol: ChannelProtocol;
  /** Between two pings, whose responses count as data; absent: none are sent. */
  pingMs?: number;
}

/** The client of a command, over a WebSocket or over SPDY. */
interface CommandClient {
  gone: AbortSignal;
  /** The end of a command is sent as a Status; before version 4 of the protocol only a failure is sent, as plain text. */
  endsWithStatus: boolean;
  write(stream: "stdout" | "stderr", data: Uint8Array): Promise<unknown>;
  writeError(text: string): Promise<unknown>;
  /** Passes on input and sizes until the client ends them. */
  feed(session: ProcessSession): void;
}

/** `/exec` and `/attach`, until the process or the client ends it. Source: kubelet's `remotecommand`. */
async function serveCommand(client: CommandClient, open: CommandOptions["open"]): Promise<void> {
  const { gone, endsWithStatus } = client;
  const writeFailure = (error: unknown) => {
    const problem = `error executing command in container: ${(error as Error).message}`;
    return client.writeError(endsWithStatus ? failureStatus(problem) : problem);
  };
  let session: ProcessSession;
  try {
    session = await open();
  } catch (error) {
    await writeFailure(error);
    return;
  }
  const release = () => void session.close();
  gone.addEventListener("abort", release, { once: true });
  try {
    if (gone.aborted) return;
    client.feed(session);
    for await (const { stream, data } of session.output) {
      await client.write(stream, data);
      if (gone.aborted) return;
    }
    const exitCode = await session.exitCode();
    if (endsWithStatus) await client.writeError(exitStatus(exitCode));
    else if (exitCode) await client.writeError(`command terminated with non-zero exit code: exit status ${exitCode}`);
  } catch (error) {
    await writeFailure(error);
  } finally {
    gone.removeEventListener("abort", release);
    await session.close();
  }
}

export async function serveRemoteCommand(socket: WebSocketConnection, options: RemoteCommandOptions): Promise<void> {
  const { protocol, streams, clock } = options;
  const send = (channel: number, data: Uint8Array) =>
    socket.send(encodeChannel(protocol, channel, data), protocol.isBase64 ? "text" : "binary");
  const idle = watchIdle(clock, options.idleTimeoutMs, () => socket.destroy());
  socket.onActivity = idle.touch;
  const endPings = repeat(clock, options.pingMs ?? 0, () => socket.ping());
  try {
    // An empty message on the lowest channel that is written shows the client that it is connected.
    await send(streams.stdout ? CHANNEL.stdout : streams.stderr ? CHANNEL.stderr : CHANNEL.error, new Uint8Array());
    const client: CommandClient = {
      gone: socket.gone,
      endsWithStatus: protocol.endsWithStatus,
      write: (stream, data) => send(stream === "stderr" ? CHANNEL.stderr : CHANNEL.stdout, data),
      writeError: (text) => send(CHANNEL.error, Buffer.from(text)),
      feed: (session) => void feed(socket, session, protocol),
    };
    await serveCommand(client, options.open);
  } finally {
    idle.end();
    endPings();
    socket.close();
  }
}

/** @param periodMs 0 = never. @returns a function that ends it */
export function repeat(clock: Clock, periodMs: number, callback: () => void): () => void {
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

/**
 * Calls `onIdle` once nothing has been `touched` for `idleMs`; 0 = never. One timer, however often it is touched.
 * @returns `touch`, and `end`, after which nothing happens any more
 */
export function watchIdle(clock: Clock, idleMs: number, onIdle: () => void): { touch: () => void; end: () => void } {
  if (idleMs === 0) return { touch: () => {}, end: () => {} };
  let touchedAtMs = clock.monotonicMs();
  const check = () => {
    const leftMs = touchedAtMs + idleMs - clock.monotonicMs();
    if (leftMs <= 0) onIdle();
    else cancel = clock.schedule(leftMs, check);
  };
  let cancel = clock.schedule(idleMs, check);
  return {
    touch: () => {
      touchedAtMs = clock.monotonicMs();
    },
    end: () => cancel(),
  };
}

async function feed(socket: WebSocketConnection, session: ProcessSession, protocol: ChannelProtocol): Promise<void> {
  for await (const payload of socket.messages()) {
    const message = decodeChannel(protocol, payload);
    if (message?.channel === CHANNEL.stdin) await session.write(message.data);
    else if (message?.channel === CHANNEL.resize) {
      const size = parseSize(message.data);
      // It fails for a process that has just ended, and for one that has not begun, which gets the next size.
      if (size) await session.resize(size).catch(() => {});
    } else if (message?.channel === CHANNEL.close && protocol.closesChannels && message.data[0] === CHANNEL.stdin) {
      session.endInput();
    }
  }
}

/** Source: client-go's `TerminalSize`: `{"Width":80,"Height":24}`. */
export function parseSize(data: Uint8Array): TerminalSize | undefined {
  const size = jsonIfValid(Buffer.from(data).toString());
  const { Width: width, Height: height } = isRecord(size) ? size : {};
  return isLength(width) && isLength(height) ? { width, height } : undefined;
}

const isLength = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value > 0 && value < 0x1_0000;

/** Versions of the protocol of exec and attach, newest first. Source: apimachinery's `remotecommand`. */
export const SPDY_COMMAND_PROTOCOLS = ["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io"] as const;

/** The client opens its streams within this time. Source: kubelet's `--stream-creation-timeout`. */
const STREAMS_WITHIN_MS = 30_000;

/** exec and attach over SPDY: a stream each for errors, input, output and sizes. Source: kubelet's `remotecommand`. */
export async function serveSpdyCommand(
  channel: ByteChannel,
  options: CommandOptions & { protocol: string },
): Promise<void> {
  const { protocol, streams, clock } = options;
  const wanted = ["error", ...(["stdin", "stdout", "stderr"] as const).filter((name) => streams[name])];
  const found = new Map<string, SpdyStream>();
  // A client that asked for no terminal opens none, also where the container has one: nothing waits for this stream.
  const sizes = Promise.withResolvers<SpdyStream>();
  const complete = Promise.withResolvers<boolean>();
  const connection = new SpdyConnection(channel, (stream) => {
    const type = stream.headers.get("streamtype") ?? "";
    if (type === "resize" && streams.tty && protocol !== "v2.channel.k8s.io") return sizes.resolve(stream);
    if (!wanted.includes(type) || found.has(type)) return stream.end();
    found.set(type, stream);
    if (found.size === wanted.length) complete.resolve(true);
  });
  const idle = watchIdle(clock, options.idleTimeoutMs, () => connection.close());
  connection.onActivity = idle.touch;
  connection.gone.addEventListener("abort", () => complete.resolve(false), { once: true });
  const cancel = clock.schedule(STREAMS_WITHIN_MS, () => complete.resolve(false));
  const running = connection.run();
  try {
    const isComplete = await complete.promise;
    cancel();
    const client = {
      gone: connection.gone,
      endsWithStatus: protocol === "v4.channel.k8s.io",
      write: async (stream: string, data: Uint8Array) => found.get(stream)?.write(data),
      writeError: async (text: string) => found.get("error")?.write(Buffer.from(text)),
      feed: (session: ProcessSession) => {
        void feedInput(found.get("stdin"), session);
        void sizes.promise.then((stream) => feedSizes(stream, session));
      },
    };
    if (isComplete) await serveCommand(client, options.open);
  } finally {
    for (const stream of found.values()) stream.end();
    idle.end();
    connection.close();
    await running;
  }
}

async function feedInput(stream: SpdyStream | undefined, session: ProcessSession): Promise<void> {
  if (!stream) return;
  try {
    for await (const chunk of stream.chunks()) await session.write(chunk);
    session.endInput();
  } catch {
    // The process is gone.
  }
}

async function feedSizes(stream: SpdyStream, session: ProcessSession): Promise<void> {
  for await (const chunk of stream.chunks()) {
    for (const text of chunk.toString().split("\n")) {
      const size = text.trim() === "" ? undefined : parseSize(Buffer.from(text));
      // It fails for a process that has just ended.
      if (size) await session.resize(size).catch(() => {});
    }
  }
}

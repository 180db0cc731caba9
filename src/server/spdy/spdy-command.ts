import type { ProcessSession } from "../../base/model/container-access.ts";
import { watchIdle } from "../idle-watch.ts";
import { type CommandOptions, parseSize, serveCommand } from "../remote-command.ts";
import { type ByteChannel, SpdyConnection, type SpdyStream } from "./spdy-connection.ts";

/** Versions of the protocol of exec and attach, newest first. Source: apimachinery's `remotecommand`. */
export const COMMAND_PROTOCOLS = ["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io"] as const;

interface SpdyCommandOptions extends CommandOptions {
  protocol: string;
}

/** The client opens its streams within this time. Source: kubelet's `--stream-creation-timeout`. */
const STREAMS_WITHIN_MS = 30_000;

/** exec and attach over SPDY: a stream each for errors, input, output and sizes. Source: kubelet's `remotecommand`. */
export async function serveSpdyCommand(channel: ByteChannel, options: SpdyCommandOptions): Promise<void> {
  const { protocol, streams, clock } = options;
  const wanted = ["error"];
  if (streams.stdin) wanted.push("stdin");
  if (streams.stdout) wanted.push("stdout");
  if (streams.stderr) wanted.push("stderr");
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
      // A process that has just ended has no size.
      if (size) await session.resize(size).catch(() => {});
    }
  }
}

import type { ProcessSession, TerminalSize } from "../../base/model/container-access.ts";

/** The terminal or pipes of this process. */
interface LocalStreams {
  stdin: NodeJS.ReadStream;
  stdout: NodeJS.WriteStream;
  /** Writes everything before it returns. */
  writeStdout: (data: Uint8Array) => void;
  writeStderr: (data: Uint8Array) => void;
}

/**
 * Connects a process in a container with this process's streams until it ends. With a terminal on both sides the local
 * one is in raw mode: keys such as Ctrl-C reach the container, and its size follows the window.
 * @returns its exit code; undefined when it is not known, as for an attached container
 */
export async function runSession(
  session: ProcessSession,
  { stdin: wantsStdin, tty }: { stdin: boolean; tty: boolean },
  { stdin, stdout, writeStdout, writeStderr }: LocalStreams,
): Promise<number | undefined> {
  const isRaw = tty && wantsStdin && stdin.isTTY === true;
  const onResize = () => {
    // A process that has ended has no terminal any more.
    void session.resize(sizeOf(stdout)).catch(() => {});
  };
  const onSignal = () => {
    void session.close().finally(() => process.exit(130));
  };
  try {
    if (isRaw) stdin.setRawMode(true);
    if (tty && stdout.isTTY) {
      onResize();
      stdout.on("resize", onResize);
    }
    process.once("SIGINT", onSignal);
    process.once("SIGTERM", onSignal);
    if (wantsStdin) void forward(stdin, session);
    else session.endInput();
    for await (const { stream, data } of session.output) {
      if (stream === "stderr") writeStderr(data);
      else writeStdout(data);
    }
    return await session.exitCode();
  } finally {
    stdout.off("resize", onResize);
    process.off("SIGINT", onSignal);
    process.off("SIGTERM", onSignal);
    if (isRaw) stdin.setRawMode(false);
    stdin.pause();
    await session.close();
  }
}

/** Sends input until its end, or until the session has ended. */
async function forward(stdin: NodeJS.ReadStream, session: ProcessSession): Promise<void> {
  try {
    for await (const chunk of stdin) await session.write(chunk as Uint8Array);
    session.endInput();
  } catch {
    // The session reports its own end.
  }
}

const sizeOf = ({ columns, rows }: NodeJS.WriteStream): TerminalSize => ({ width: columns || 80, height: rows || 24 });

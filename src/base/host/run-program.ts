import { messageOf } from "../text/error-message.ts";

export interface RunProgramOptions {
  /** Written to its stdin, which is then closed; absent: /dev/null. */
  input?: string | undefined;
  /** Added to our own environment. */
  env?: Readonly<Record<string, string>> | undefined;
  timeoutMs: number;
  /** Limit of stdout and of stderr. */
  maxBytes: number;
  signal?: AbortSignal | undefined;
}

/** Output is read for this time after the end of a program: other processes that it started may hold it open. */
const LATE_OUTPUT_MS = 1_000;

/**
 * Runs a short-lived program and collects its output. It is killed at the time limit, at the limit of output, and when
 * the signal aborts. Not for programs with streams, those that stay, and those that inherit a descriptor.
 * @throws Error when it cannot be started (with the code `ENOENT` when there is none) or was killed, not for its exit code;
 *   the signal's reason
 */
export async function runProgram(argv: readonly string[], options: RunProgramOptions) {
  options.signal?.throwIfAborted();
  const name = argv[0] ?? "";
  // Bun.spawn would look it up in the PATH that this process began with.
  const path = name.includes("/") ? name : Bun.which(name, { PATH: process.env.PATH ?? "" });
  if (path === null) throw Object.assign(new Error(`${name} was not found in PATH`), { code: "ENOENT" });
  let child: Bun.Subprocess<Uint8Array | "ignore", "pipe", "pipe">;
  try {
    child = Bun.spawn([path, ...argv.slice(1)], {
      stdin: options.input === undefined ? "ignore" : new TextEncoder().encode(options.input),
      stdout: "pipe",
      stderr: "pipe",
      timeout: options.timeoutMs,
      killSignal: "SIGKILL",
      ...(options.signal && { signal: options.signal }),
      maxBuffer: options.maxBytes,
      env: options.env ? { ...process.env, ...options.env } : process.env,
    });
  } catch (cause) {
    throw new Error(`${name} cannot be run: ${messageOf(cause)}`, { cause });
  }
  const stop = new AbortController();
  let timer: Timer | undefined;
  try {
    const [stdout, stderr, exitCode] = await Promise.all([
      readUntil(child.stdout, stop.signal),
      readUntil(child.stderr, stop.signal),
      child.exited.finally(() => (timer = setTimeout(() => stop.abort(), LATE_OUTPUT_MS))),
    ]);
    options.signal?.throwIfAborted();
    if (child.signalCode === "SIGKILL") {
      throw new Error(
        `${name} was killed: it took longer than ${options.timeoutMs / 1000} s or wrote more than ${options.maxBytes} bytes`,
      );
    }
    return { exitCode, stdout, stderr };
  } finally {
    clearTimeout(timer);
  }
}

async function readUntil(stream: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<string> {
  const reader = stream.getReader();
  signal.addEventListener("abort", () => void reader.cancel());
  const chunks: Uint8Array[] = [];
  for (let part = await reader.read(); !part.done; part = await reader.read()) chunks.push(part.value);
  return Buffer.concat(chunks).toString("utf8");
}

/** How this program is started again: a compiled binary by its path, a script by Bun with the script. */
export function ownCommand(): string[] {
  const script = process.argv[1] ?? "";
  return script.startsWith("/$bunfs/") ? [process.execPath] : [process.execPath, script];
}

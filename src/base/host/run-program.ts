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
      maxBuffer: options.maxBytes,
      env: options.env ? { ...process.env, ...options.env } : process.env,
    });
  } catch (cause) {
    throw new Error(`${name} cannot be run: ${messageOf(cause)}`, { cause });
  }
  const kill = () => child.kill("SIGKILL");
  options.signal?.addEventListener("abort", kill, { once: true });
  try {
    const [stdout, stderr, exitCode] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    options.signal?.throwIfAborted();
    if (child.signalCode === "SIGKILL") {
      throw new Error(
        `${name} was killed: it took longer than ${options.timeoutMs / 1000} s or wrote more than ${options.maxBytes} bytes`,
      );
    }
    return { exitCode, stdout, stderr };
  } finally {
    options.signal?.removeEventListener("abort", kill);
  }
}

/** How this program is started again: a compiled binary by its path, a script by Bun with the script. */
export function ownCommand(): string[] {
  const script = process.argv[1] ?? "";
  return script.startsWith("/$bunfs/") ? [process.execPath] : [process.execPath, script];
}

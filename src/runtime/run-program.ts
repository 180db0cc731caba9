/** What a short-lived helper program said. */
export interface ProgramOutcome {
  exitCode: number;
  stdout: string;
  stderr: string;
}

export interface RunProgramOptions {
  /** Written to its stdin, which is then closed. */
  input: string;
  env?: Readonly<Record<string, string>> | undefined;
  timeoutMs: number;
  /** Most that is taken of stdout and of stderr. */
  maxBytes: number;
  signal?: AbortSignal | undefined;
}

/**
 * Runs a program to its end with a text as input. It is killed at the time limit, when the signal aborts and when it says
 * too much.
 * @throws Error when it cannot be started, is too slow or says too much; the signal's reason
 */
export async function runProgram(argv: readonly string[], options: RunProgramOptions): Promise<ProgramOutcome> {
  options.signal?.throwIfAborted();
  const name = argv[0] ?? "";
  // Bun.spawn would look it up in the PATH that this process began with.
  const path = name.includes("/") ? name : Bun.which(name, { PATH: process.env.PATH ?? "" });
  if (path === null) throw new Error(`${name} is not to be found in PATH`);
  let child: Bun.Subprocess<Uint8Array, "pipe", "pipe">;
  try {
    child = Bun.spawn([path, ...argv.slice(1)], {
      stdin: new TextEncoder().encode(options.input),
      stdout: "pipe",
      stderr: "pipe",
      timeout: options.timeoutMs,
      killSignal: "SIGKILL",
      maxBuffer: options.maxBytes,
      env: { ...process.env, ...options.env },
    }) as Bun.Subprocess<Uint8Array, "pipe", "pipe">;
  } catch (cause) {
    throw new Error(`${name} cannot be run: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
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
      throw new Error(`${name} did not end within ${options.timeoutMs / 1000} s or said too much, and was killed`);
    }
    return { exitCode, stdout, stderr };
  } finally {
    options.signal?.removeEventListener("abort", kill);
  }
}

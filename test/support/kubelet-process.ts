import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Subprocess } from "bun";

const ROOT = join(import.meta.dir, "..", "..");

/** The compiled program under test; another one with KUBELET_TS_BINARY. */
export const BINARY = process.env.KUBELET_TS_BINARY ?? join(ROOT, "dist", "kubelet-ts");

/** Why {@link BINARY} cannot be tested: there is none, or a source file is newer. Looked up once per process. */
const notTestableBecause = whyNotTestable();

function whyNotTestable(): string | undefined {
  const builtAtMs = statSync(BINARY, { throwIfNoEntry: false })?.mtimeMs;
  if (builtAtMs === undefined) return `There is no ${BINARY}: run \`npm run build\` first.`;
  if (process.env.KUBELET_TS_BINARY) return undefined;
  const source = join(ROOT, "src");
  const newer = readdirSync(source, { recursive: true, encoding: "utf8" }).find((name) => {
    const file = statSync(join(source, name));
    return file.isFile() && file.mtimeMs > builtAtMs;
  });
  return newer && `${BINARY} is older than src/${newer}: run \`npm run build\` first.`;
}

export interface KubeletExit {
  /** null when a signal ended it. */
  exitCode: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

/** One run of the compiled binary as a child, with everything it writes kept. */
export class KubeletProcess {
  readonly #child: Subprocess<"pipe" | "ignore", "pipe", "pipe">;
  readonly #finished: Promise<KubeletExit>;
  #stdout = "";
  #stderr = "";

  /** @param env the whole environment. @param prefix a command that runs the rest of its arguments, e.g. `env` */
  constructor(
    args: readonly string[],
    env: Record<string, string>,
    cwd: string,
    stdin?: string,
    prefix: readonly string[] = [],
  ) {
    if (notTestableBecause !== undefined) throw new Error(notTestableBecause);
    this.#child = Bun.spawn({
      cmd: [...prefix, BINARY, ...args],
      env,
      cwd,
      stdin: stdin === undefined ? "ignore" : "pipe",
      stdout: "pipe",
      stderr: "pipe",
    });
    if (stdin !== undefined && typeof this.#child.stdin === "object") {
      this.#child.stdin.write(stdin);
      this.#child.stdin.end();
    }
    const reading = Promise.all([
      collect(this.#child.stdout, (text) => (this.#stdout += text)),
      collect(this.#child.stderr, (text) => (this.#stderr += text)),
    ]);
    this.#finished = Promise.all([this.#child.exited, reading]).then(() => ({
      exitCode: this.#child.exitCode,
      signal: this.#child.signalCode as NodeJS.Signals | null,
      stdout: this.#stdout,
      stderr: this.#stderr,
    }));
  }

  get pid(): number {
    return this.#child.pid;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get stdout(): string {
    return this.#stdout;
  }

  /** The log so far: standard error. */
  get log(): string {
    return this.#stderr;
  }

  /** Resolves when it has ended and everything it wrote has been read. */
  finished(): Promise<KubeletExit> {
    return this.#finished;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<KubeletExit> {
    if (this.running) this.#child.kill(signal);
    return await this.#finished;
  }

  kill(): Promise<KubeletExit> {
    return this.stop("SIGKILL");
  }
}

async function collect(stream: ReadableStream<Uint8Array>, take: (text: string) => unknown): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of stream) take(decoder.decode(chunk, { stream: true }));
}

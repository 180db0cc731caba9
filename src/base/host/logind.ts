import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { linesOf, readOutput } from "../files/bounded-stream.ts";
import type { Clock } from "../model/clock.ts";
import type { Logger } from "../model/logger.ts";

type Child = Bun.Subprocess<"pipe", "pipe", "pipe">;

interface LogindOptions {
  clock: Clock;
  logger: Logger;
  /** PATH of the programs, and the bus they use. */
  environment: Readonly<Record<string, string | undefined>>;
  /** Written when logind would not wait long enough; default: {@link DROP_IN}. */
  dropIn?: string;
}

/** Sorts after the distribution's and the administrator's files: the last one wins. Source of the idea: the kubelet. */
const DROP_IN = "/etc/systemd/logind.conf.d/99-kubelet-ts.conf";

const MANAGER = ["org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager"] as const;
const SIGNAL = `type='signal',path='${MANAGER[1]}',interface='${MANAGER[2]}',member='PrepareForShutdown'`;
const HELD = "held";
/** Those of busctl are short. */
const MAX_LINE_CHARACTERS = 64 * 1024;
const RELOAD_TIMEOUT_MS = 5_000;
const RELOAD_POLL_MS = 100;

/**
 * systemd-logind, through systemd's own programs: an inhibitor lock is a file descriptor, which only they can obtain.
 */
export class Logind {
  readonly #options: LogindOptions;

  constructor(options: LogindOptions) {
    this.#options = options;
  }

  /**
   * Takes a lock that delays shutdowns; logind's limit is raised first, as the kubelet does.
   * @throws Error without logind
   */
  async hold(maxSeconds: number, signal: AbortSignal): Promise<{ release(): void; readonly lost: Promise<never> }> {
    await this.#ensureDelay(maxSeconds, signal);
    // `cat` holds the lock until its standard input is closed, which also happens when this process is killed.
    const child = this.#spawn([
      "systemd-inhibit",
      "--what=shutdown",
      "--mode=delay",
      "--who=kubelet-ts",
      "--why=Pods are being stopped",
      "cat",
    ]);
    const stop = () => void child.stdin.end();
    signal.addEventListener("abort", stop, { once: true });
    child.stdin.write(`${HELD}\n`);
    child.stdin.flush();
    const ended = endOf(child, "systemd-inhibit").finally(() => signal.removeEventListener("abort", stop));
    const { promise: held, resolve } = Promise.withResolvers<void>();
    const reading = eachLine(child.stdout, (line) => line === HELD && resolve());
    reading.catch(() => {});
    await Promise.race([held, ended]);
    let isReleased = false;
    const lost = ended.catch((error: Error) => (isReleased ? new Promise<never>(() => {}) : Promise.reject(error)));
    const release = () => {
      isReleased = true;
      child.stdin.end();
    };
    return { release, lost };
  }

  /** Rejects when the bus is gone or the signal aborts. */
  async watch(onChange: (isGoingDown: boolean) => void, signal: AbortSignal): Promise<never> {
    // busctl does not notice that this process has ended: the shell ends it with its own standard input.
    const script = 'exec 3<&0; busctl monitor --match="$0" & it=$!; (cat <&3 >/dev/null; kill $it) & wait $it';
    const child = this.#spawn(["sh", "-c", script, SIGNAL]);
    const stop = () => void child.stdin.end();
    signal.addEventListener("abort", stop, { once: true });
    try {
      const reading = eachLine(child.stdout, readSignals(onChange));
      reading.catch(() => {});
      return await endOf(child, "busctl monitor");
    } finally {
      signal.removeEventListener("abort", stop);
      stop();
    }
  }

  /** Whether systemd is stopping everything; false where there is none. */
  async isStopping(): Promise<boolean> {
    const { stdout } = await this.#run(["systemctl", "is-system-running"]).catch(() => ({ stdout: "" }));
    return stdout.trim() === "stopping";
  }

  async #ensureDelay(maxSeconds: number, signal: AbortSignal): Promise<void> {
    const { clock, logger, dropIn = DROP_IN } = this.#options;
    const before = await this.#readDelaySeconds();
    if (before >= maxSeconds) return;
    const setting = `InhibitDelayMaxSec=${maxSeconds}`;
    try {
      mkdirSync(dirname(dropIn), { recursive: true });
      writeFileSync(dropIn, `# Written by kubelet-ts for its --shutdown-grace-period.\n[Login]\n${setting}\n`);
      await this.#run(["systemctl", "kill", "--signal=HUP", "systemd-logind.service"]);
      for (let waitedMs = 0; waitedMs < RELOAD_TIMEOUT_MS; waitedMs += RELOAD_POLL_MS) {
        if ((await this.#readDelaySeconds()) >= maxSeconds) {
          return logger.info(
            `Shutdowns of the machine may now be delayed for ${maxSeconds} s: ${setting} in ${dropIn}`,
          );
        }
        await clock.sleep(RELOAD_POLL_MS, signal);
      }
      throw new Error("it still has the old value");
    } catch (error) {
      signal.throwIfAborted();
      logger.warn(
        `Shutdowns of the machine are delayed for ${before} s only, not ${maxSeconds} s: cannot set ${setting} of logind.conf: ${(error as Error).message}`,
      );
    }
  }

  async #readDelaySeconds(): Promise<number> {
    const { stdout } = await this.#run(["busctl", "get-property", ...MANAGER, "InhibitDelayMaxUSec"]);
    const [, microseconds] = /^t (\d+)$/.exec(stdout.trim()) ?? [];
    if (microseconds === undefined) throw new Error(`systemd-logind does not say how long it waits: ${stdout.trim()}`);
    return Number(microseconds) / 1_000_000;
  }

  /** @throws Error with what the program wrote when it fails or is not there */
  async #run(command: readonly [string, ...string[]]): Promise<{ stdout: string }> {
    const child = this.#spawn(command);
    child.stdin.end();
    const [stdout, stderr, exitCode] = await Promise.all([
      readOutput(child.stdout),
      readOutput(child.stderr),
      child.exited,
    ]);
    // `systemctl is-system-running` prints a state and exits with an error code, too.
    if (exitCode !== 0 && stdout === "") throw new Error(`${command[0]}: ${stderr.trim() || `ended with ${exitCode}`}`);
    return { stdout };
  }

  #spawn(command: readonly [string, ...string[]]): Child {
    const { environment } = this.#options;
    try {
      const env = { ...environment, LC_ALL: "C", SYSTEMD_COLORS: "0" };
      // Detached: an interrupt from the terminal is for us alone.
      return Bun.spawn([...command], { stdin: "pipe", stdout: "pipe", stderr: "pipe", env, detached: true });
    } catch (error) {
      throw new Error(`${command[0]} is not there (it comes with systemd)`, { cause: error });
    }
  }
}

/** Rejects when the program has ended, for any reason. */
async function endOf(child: Child, name: string): Promise<never> {
  const [exitCode, stderr] = await Promise.all([child.exited, readOutput(child.stderr)]);
  throw new Error(`${name} ended with ${exitCode}${stderr.trim() ? `: ${stderr.trim()}` : ""}`);
}

async function eachLine(stream: ReadableStream<Uint8Array>, take: (line: string) => void): Promise<void> {
  for await (const line of linesOf(stream, MAX_LINE_CHARACTERS)) take(line.trim());
}

/** The messages `busctl monitor` shows, several lines each. A monitor is also shown what its match does not ask for. */
export function readSignals(onChange: (isGoingDown: boolean) => void): (line: string) => void {
  let isOurs = false;
  return (line) => {
    if (/\bMember=/.test(line)) isOurs = /\bMember=PrepareForShutdown\b/.test(line);
    const [, value] = /^BOOLEAN (true|false);$/.exec(line) ?? [];
    if (!isOurs || value === undefined) return;
    isOurs = false;
    onChange(value === "true");
  };
}

import type { CommandOptions, CommandResult, OutputChunk } from "../../base/model/container-access.ts";
import type { ExecInspect } from "./schemas.ts";
import type { Schedule } from "./transport.ts";

/** `killExecProcesses` of base/host, in this thread or another one: a machine may have many processes. */
export type KillExecProcesses = (hostPid: number, containerId: string) => number | Promise<number>;

/** The calls that an exec consists of; `DockerClient` has them. */
interface ExecCalls {
  execCreate(id: string, argv: readonly string[]): Promise<string>;
  execStart(execId: string, options: { signal?: AbortSignal | undefined }): Promise<AsyncIterable<OutputChunk>>;
  execInspect(execId: string): Promise<ExecInspect>;
  readonly killExecProcesses: KillExecProcesses;
}

const DEFAULT_MAX_OUTPUT_BYTES = 1024 * 1024;
/** Pause between, and number of, attempts to read the exit code of an exec that has just ended. */
const SETTLE_PAUSE_MS = 25;
const SETTLE_ATTEMPTS = 400;
/**
 * Longest wait for the end of a killed exec: engines since 28 report it up to 2 s later. The kill continues after it.
 */
const KILL_TIMEOUT_MS = 3000;

/**
 * Runs a command to its end; one that ended but left children that hold its output has its exit code.
 * @throws DockerError 404, 409; TimeoutError when the engine never showed it running
 */
export async function runExec(
  calls: ExecCalls,
  id: string,
  argv: readonly string[],
  options: Partial<CommandOptions>,
  schedule: Schedule,
): Promise<CommandResult> {
  const { signal } = options;
  const maxOutputBytes = options.maxOutputBytes ?? DEFAULT_MAX_OUTPUT_BYTES;
  const stop = new AbortController();
  let timedOut = false;
  let cancelTimer = () => {};
  const startTimer = (timeoutMs: number) => {
    cancelTimer = schedule(timeoutMs, () => {
      timedOut = true;
      stop.abort(new DOMException("the exec's time has elapsed", "TimeoutError"));
    });
  };
  const stopped = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal;

  const kept: Uint8Array[] = [];
  const keptStderr: Uint8Array[] = [];
  let keptBytes = 0;
  const outcome = (exitCode: number | undefined): CommandResult => ({
    exitCode,
    output: new TextDecoder().decode(Buffer.concat(kept)),
    stderr: new TextDecoder().decode(Buffer.concat(keptStderr)),
    timedOut,
  });

  let execId: string | undefined;
  try {
    // Not aborted: creation is quick, and an exec whose id is unknown could not be killed.
    execId = await calls.execCreate(id, argv);
    stopped.throwIfAborted();
    // The command's time begins here, without the time that the engine needed to create the exec.
    if (options.timeoutMs && options.timeoutMs > 0) startTimer(options.timeoutMs);
    for await (const { stream, data } of await calls.execStart(execId, { signal: stopped })) {
      const room = maxOutputBytes - keptBytes;
      if (room > 0) {
        const piece = data.slice(0, room);
        kept.push(piece);
        if (stream === "stderr") keptStderr.push(piece);
        keptBytes += Math.min(room, data.length);
      }
    }
    // It ended in time: an engine that is slow to say how does not make it late.
    cancelTimer();
    return outcome(await exitCodeOf(calls, execId, schedule));
  } catch (error) {
    if (!stopped.aborted) throw error;
    let found: ExecInspect | undefined;
    if (execId !== undefined) {
      const killing = killExec(calls, execId, schedule, (seen) => {
        found ??= seen;
      });
      await Promise.race([killing, pause(schedule, KILL_TIMEOUT_MS)]);
    }
    // The engine (frozen, very busy) never showed the command running: its time-out says nothing about the command.
    if (!timedOut || !found || signal?.aborted) throw error;
    // It had ended; its children kept its output open, and were killed. Or a busy engine had not sent its output.
    timedOut = found.Running || found.ExitCode === null;
    return timedOut ? outcome(undefined) : { ...outcome(found.ExitCode!), isCut: true };
  } finally {
    cancelTimer();
  }
}

/** Reads the exit code; the stream may end a moment before the engine has recorded it. */
export async function exitCodeOf(
  calls: Pick<ExecCalls, "execInspect">,
  execId: string,
  schedule: Schedule,
): Promise<number | undefined> {
  for (let attempt = 0; attempt < SETTLE_ATTEMPTS; attempt++) {
    const seen = await calls.execInspect(execId);
    if (!seen.Running && seen.ExitCode !== null) return seen.ExitCode;
    await pause(schedule, SETTLE_PAUSE_MS);
  }
  return undefined;
}

/** Kills an exec once it runs: a busy engine may start it only after the time-out. Never rejects. */
export async function killExec(
  calls: Pick<ExecCalls, "execInspect" | "killExecProcesses">,
  execId: string,
  schedule: Schedule,
  onSeen: (seen: ExecInspect) => void = () => {},
): Promise<void> {
  try {
    for (let attempt = 0; attempt < SETTLE_ATTEMPTS; attempt++) {
      const seen = await calls.execInspect(execId);
      // A pid of 0: the engine is still starting it, so it is inspected again.
      if (seen.Pid > 0) {
        onSeen(seen);
        await calls.killExecProcesses(seen.Pid, seen.ContainerID);
      }
      if (!seen.Running && seen.ExitCode !== null) return;
      await pause(schedule, SETTLE_PAUSE_MS);
    }
  } catch {
    // The exec is unknown, or the engine unreachable: its container is gone, or the next exec reports the failure.
  }
}

const pause = (schedule: Schedule, ms: number) => new Promise<void>((resolve) => void schedule(ms, resolve));

import type { ExecAction } from "../../base/api/probe.ts";
import {
  type ContainerExec,
  PROBE_OUTPUT_LIMIT_BYTES,
  type ProbeOutcome,
  type ProbeTarget,
} from "../../base/model/prober.ts";

/**
 * One attempt: the exit code decides. A command over its time is killed and fails. Rejects when the engine
 * could not run it.
 */
export async function probeExec(
  action: ExecAction,
  target: ProbeTarget,
  timeoutMs: number,
  exec: ContainerExec,
  signal: AbortSignal,
): Promise<ProbeOutcome> {
  const argv = action.command ?? [];
  const ended = await exec.exec(target.containerId, target.execCommand ?? argv, {
    timeoutMs,
    maxOutputBytes: PROBE_OUTPUT_LIMIT_BYTES,
    signal,
  });
  if (ended.timedOut) {
    const output = `command timed out: "${argv.join(" ")}" timed out after ${timeoutMs / 1000}s`;
    return { result: "failure", output };
  }
  if (ended.exitCode === undefined) return { result: "unknown", output: "the engine reported no exit code" };
  return { result: ended.exitCode === 0 ? "success" : "failure", output: ended.output };
}

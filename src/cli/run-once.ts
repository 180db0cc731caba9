import type { Pod } from "../api/pod.ts";
import type { Kubelet } from "../kubelet/kubelet.ts";
import type { Clock } from "../model/clock.ts";
import { podFullName } from "../model/identity.ts";
import { judgeRunOnce, type RunOnceVerdict } from "../status/run-once-verdict.ts";

/** How one pod came out. */
export interface RunOnceResult {
  pod: Pod;
  name: string;
  verdict: RunOnceVerdict;
}

export interface RunOnceInput {
  kubelet: Kubelet;
  clock: Clock;
  /** 0 = as long as it takes. */
  timeoutMs: number;
  /** Called with every change of any verdict. */
  onProgress: (results: readonly RunOnceResult[]) => void;
  signal: AbortSignal;
}

/**
 * A program that fails at once is seen to: what came up has to stay up for so long. Longer would make every start slower
 * for the sake of those that crash later anyway.
 */
const SETTLE_MS = 250;

/** Waits until every pod has come up or cannot. @throws the signal's reason */
export async function waitForPods({
  kubelet,
  clock,
  timeoutMs,
  onProgress,
  signal,
}: RunOnceInput): Promise<RunOnceResult[]> {
  const startedAtMs = clock.monotonicMs();
  let wake = () => {};
  const unsubscribe = kubelet.onChange(() => wake());
  try {
    for (let last = ""; ; ) {
      signal.throwIfAborted();
      const changed = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const results = judge(kubelet);
      const said = JSON.stringify(results.map(({ verdict }) => verdict));
      if (said !== last) onProgress(results);
      last = said;
      if (isDecided(results)) {
        await pause(clock, SETTLE_MS, signal);
        const settled = judge(kubelet);
        if (isDecided(settled)) return settled;
        continue;
      }
      const leftMs = timeoutMs === 0 ? Number.POSITIVE_INFINITY : startedAtMs + timeoutMs - clock.monotonicMs();
      if (leftMs <= 0) return results.map(toTimedOut);
      await changedOrLate(changed, clock, leftMs, signal);
    }
  } finally {
    unsubscribe();
  }
}

/** Whether a failed pod is waited for no longer, and every other one is up. */
const isDecided = (results: readonly RunOnceResult[]) => results.every(({ verdict }) => verdict.state !== "waiting");

function judge(kubelet: Kubelet): RunOnceResult[] {
  return kubelet.pods().map((pod) => {
    const trouble = kubelet.worker(pod.metadata.uid ?? "")?.startErrors.get("");
    const verdict = kubelet.isSynced
      ? judgeRunOnce(pod, trouble && `${trouble.message}`)
      : { state: "waiting" as const, message: "looking at the engine" };
    return { pod, name: podFullName(pod.metadata), verdict };
  });
}

function toTimedOut(result: RunOnceResult): RunOnceResult {
  if (result.verdict.state !== "waiting") return result;
  return { ...result, verdict: { state: "failed", message: `not up in time: ${result.verdict.message}` } };
}

const pause = (clock: Clock, ms: number, signal: AbortSignal) => clock.sleep(ms, signal);

async function changedOrLate(changed: Promise<void>, clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  const late = Promise.withResolvers<void>();
  const cancel = Number.isFinite(ms) ? clock.schedule(ms, late.resolve) : () => {};
  const onAbort = () => late.resolve();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    await Promise.race([changed, late.promise]);
  } finally {
    cancel();
    signal.removeEventListener("abort", onAbort);
  }
}

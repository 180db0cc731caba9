import type { Pod } from "../api/pod.ts";
import type { Kubelet } from "../kubelet/kubelet.ts";
import type { Clock } from "../model/clock.ts";
import { podFullName } from "../model/identity.ts";
import type { ContainerSnapshot } from "../model/pod-snapshot.ts";
import type { ProcessSample } from "../model/process-sample.ts";
import { hasComeUp, SAMPLE_PERIOD_MS, type TimedSample } from "../status/run-once-settling.ts";
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
  processes: Processes;
  /** 0 = as long as it takes. */
  timeoutMs: number;
  /** Called with every change of any verdict. */
  onProgress: (results: readonly RunOnceResult[]) => void;
  signal: AbortSignal;
}

/** The processes of this machine, as src/host/process-sample.ts sees them. */
export interface Processes {
  sample(mainPids: readonly number[]): ProcessSample[];
  /** Whether a pid the engine gave means a process here. */
  isOfContainer(pid: number, containerId: string): boolean;
}

/** Where processes cannot be looked at, what came up has to stay up for so long. */
const BLIND_SETTLE_MS = 250;

/** Waits until every pod has come up or cannot. @throws the signal's reason */
export async function waitForPods({
  kubelet,
  clock,
  processes,
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
        const settled = await settle(kubelet, clock, processes, signal);
        if (settled) return settled;
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
  const pods = kubelet.pods().filter(({ metadata }) => !metadata.deletionTimestamp);
  return pods.map((pod) => {
    const worker = kubelet.worker(pod.metadata.uid ?? "");
    const facts = { sandboxError: worker?.startErrors.get("")?.message, ...(worker && { rollout: worker.rollout }) };
    const verdict = kubelet.isSynced
      ? judgeRunOnce(pod, facts)
      : { state: "waiting" as const, message: "looking at the engine" };
    return { pod, name: podFullName(pod.metadata), verdict };
  });
}

function toTimedOut(result: RunOnceResult): RunOnceResult {
  if (result.verdict.state !== "waiting") return result;
  return { ...result, verdict: { state: "failed", message: `not up in time: ${result.verdict.message}` } };
}

/**
 * A program that fails at once is seen to. All pods are watched together, however many they are.
 * @returns undefined when one of them turned out to be undecided
 */
async function settle(
  kubelet: Kubelet,
  clock: Clock,
  processes: Processes,
  signal: AbortSignal,
): Promise<RunOnceResult[] | undefined> {
  const sandboxes = kubelet
    .pods()
    .flatMap(({ metadata }) => kubelet.worker(metadata.uid ?? "")?.snapshot.sandboxes[0] ?? []);
  if (!sandboxes.every(({ pid, id }) => pid === 0 || processes.isOfContainer(pid, id))) {
    await clock.sleep(BLIND_SETTLE_MS, signal);
    const results = judge(kubelet);
    return isDecided(results) ? results : undefined;
  }
  for (const samples = new Map<string, TimedSample[]>(); ; await clock.sleep(SAMPLE_PERIOD_MS, signal)) {
    const results = judge(kubelet);
    if (!isDecided(results)) return undefined;
    const running = results.flatMap(runningContainers(kubelet));
    for (const [index, sample] of processes.sample(running.map(({ pid }) => pid)).entries()) {
      const { id } = running[index]!;
      samples.set(id, [...(samples.get(id) ?? []), { ...sample, atMs: clock.monotonicMs() }]);
    }
    if (running.every(({ id }) => hasComeUp(samples.get(id) ?? []))) return results;
  }
}

/** Of a pod that is up. */
const runningContainers =
  (kubelet: Kubelet) =>
  ({ pod, verdict }: RunOnceResult): ContainerSnapshot[] =>
    verdict.state === "up"
      ? (kubelet.worker(pod.metadata.uid ?? "")?.snapshot.containers ?? []).filter(({ state }) => state === "running")
      : [];

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

import { notLive } from "../base/api/meta.ts";
import type { Pod } from "../base/api/pod.ts";
import type { Clock } from "../base/model/clock.ts";
import { podFullName } from "../base/model/pod.ts";
import { type ContainerSnapshot, isRunning, type ProcessSample } from "../base/model/pod-snapshot.ts";
import type { WorkloadManager } from "../controllers/workload-manager.ts";
import type { Kubelet } from "../kubelet/kubelet.ts";
import {
  hasSettled,
  judgeRunOnce,
  type RunOnceVerdict,
  type RunOnceWait,
  SAMPLE_PERIOD_MS,
  type TimedSample,
} from "../plan/status/run-once-verdict.ts";

/** Outcome of one pod. */
export interface RunOnceResult {
  pod: Pod;
  name: string;
  verdict: RunOnceVerdict;
  /** Last lines of the log of the container that failed. */
  log?: readonly string[];
}

interface RunOnceInput {
  kubelet: Kubelet;
  /** While they are not at rest, other pods may be desired than those that are. */
  workloads: Pick<WorkloadManager, "isAtRest" | "syncs">;
  clock: Clock;
  processes: {
    sample(mainPids: readonly number[]): ProcessSample[];
    /** Whether a pid the engine gave means a process here. */
    isOfContainer(pid: number, containerId: string): boolean;
  };
  wait: RunOnceWait;
  /** 0 = as long as it takes. */
  timeoutMs: number;
  /** Called with every change of any verdict; absent: only the end matters. */
  onProgress?: ((results: readonly RunOnceResult[]) => void) | undefined;
  signal: AbortSignal;
}

/** Workloads may come to rest without a change. */
const LOOK_AGAIN_MS = 250;
/** How long a started container must stay up where its processes cannot be inspected. */
const BLIND_SETTLE_MS = 250;

/** Waits until every pod has reached `wait`, or cannot. @throws the signal's reason */
export async function waitForPods(input: RunOnceInput): Promise<RunOnceResult[]> {
  const { kubelet, workloads, clock, wait, timeoutMs, onProgress, signal } = input;
  const startedAtMs = clock.monotonicMs();
  let wake = () => {};
  const unsubscribe = [kubelet.onChange(() => wake()), workloads.syncs.add(() => wake())];
  try {
    for (let lastShown = ""; ; ) {
      signal.throwIfAborted();
      const changed = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const leftMs = timeoutMs === 0 ? Number.POSITIVE_INFINITY : startedAtMs + timeoutMs - clock.monotonicMs();
      const results = judge(kubelet, wait);
      const shown = onProgress ? JSON.stringify(results.map(({ verdict }) => verdict)) : "";
      if (shown !== lastShown) onProgress?.(results);
      lastShown = shown;
      if (isDecided(results, input)) {
        const settled = wait === "none" ? results : await settle(input);
        if (settled) return settled;
        continue;
      }
      if (leftMs <= 0) return results.map((result) => toTimedOut(result, wait, timeoutMs));
      await changedOrLate(changed, clock, Math.min(leftMs, LOOK_AGAIN_MS), signal);
    }
  } finally {
    for (const end of unsubscribe) end();
  }
}

/** No pod is waited for any longer, and none that a rollout has replaced is left. */
const isDecided = (results: readonly RunOnceResult[], { kubelet, workloads }: RunOnceInput) =>
  workloads.isAtRest &&
  results.every(({ verdict }) => verdict.state !== "waiting") &&
  ![...kubelet.workers.values()].some(({ isRemoving }) => isRemoving);

function judge(kubelet: Kubelet, wait: RunOnceWait): RunOnceResult[] {
  const desired = new Set(kubelet.desiredPods.map(({ pod }) => pod.metadata.uid));
  const pods = kubelet.pods().filter(({ metadata }) => desired.has(metadata.uid));
  return pods.map((pod) => ({ pod, name: podFullName(pod.metadata), verdict: judgePod(kubelet, pod, wait) }));
}

function judgePod(kubelet: Kubelet, pod: Pod, wait: RunOnceWait): RunOnceVerdict {
  if (!kubelet.isSynced) return { state: "waiting", message: "inspecting containers" };
  const worker = kubelet.workers.get(pod.metadata.uid ?? "");
  const { reason, message = "" } = notLive(worker?.status) ?? {};
  if (reason === "EditPending" && worker?.rollout !== "pending") return { state: "failed", message };
  const sandboxError = worker?.startErrors.get("")?.message;
  return judgeRunOnce(pod, wait, { sandboxError, ...(worker && { rollout: worker.rollout }) });
}

function toTimedOut(result: RunOnceResult, wait: RunOnceWait, timeoutMs: number): RunOnceResult {
  const { verdict } = result;
  if (verdict.state !== "waiting") return result;
  const goal = wait === "none" ? "started" : wait;
  const message = `not ${goal} within ${timeoutMs / 1000} s: ${verdict.message}`;
  return { ...result, verdict: { ...verdict, state: "failed", message } };
}

/**
 * Samples the processes of all pods together until none can still fail at once.
 * @returns undefined when one of them turned out to be undecided
 */
async function settle(input: RunOnceInput): Promise<RunOnceResult[] | undefined> {
  const { kubelet, clock, processes, wait, signal } = input;
  const sandboxes = kubelet
    .pods()
    .flatMap(({ metadata }) => kubelet.workers.get(metadata.uid ?? "")?.snapshot.sandboxes[0] ?? []);
  if (!sandboxes.every(({ pid, id }) => pid === 0 || processes.isOfContainer(pid, id))) {
    await clock.sleep(BLIND_SETTLE_MS, signal);
    const results = judge(kubelet, wait);
    return isDecided(results, input) ? results : undefined;
  }
  for (const samples = new Map<string, TimedSample[]>(); ; await clock.sleep(SAMPLE_PERIOD_MS, signal)) {
    const results = judge(kubelet, wait);
    if (!isDecided(results, input)) return undefined;
    const running = results.flatMap(runningContainers(kubelet));
    for (const [index, sample] of processes.sample(running.map(({ pid }) => pid)).entries()) {
      const { id } = running[index]!;
      samples.set(id, [...(samples.get(id) ?? []), { ...sample, atMs: clock.monotonicMs() }]);
    }
    if (running.every(({ id }) => hasSettled(samples.get(id) ?? []))) return results;
  }
}

/** Running containers of a pod that is up. */
const runningContainers =
  (kubelet: Kubelet) =>
  ({ pod, verdict }: RunOnceResult): ContainerSnapshot[] =>
    verdict.state === "up"
      ? (kubelet.workers.get(pod.metadata.uid ?? "")?.snapshot.containers ?? []).filter(isRunning)
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

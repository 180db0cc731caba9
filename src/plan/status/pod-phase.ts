import type { Container, ContainerStatus, PodPhase, PodSpec } from "../../base/api/pod.ts";
import { decideRestart, isSidecar } from "../restart-policy.ts";

interface Tally {
  waiting: number;
  running: number;
  stopped: number;
  succeeded: number;
  /** Stopped containers that will be restarted. */
  restarting: number;
  unknown: number;
}

/**
 * The phase of a pod from the states of its containers. A pod is Pending while any container waits for its first start;
 * one in CrashLoopBackOff has started before. Source: the kubelet's getPhase.
 */
export function computePhase(
  spec: PodSpec,
  initStatuses: readonly ContainerStatus[],
  statuses: readonly ContainerStatus[],
): PodPhase {
  const inits = spec.initContainers ?? [];
  const progress = inits.map((container) => initProgress(spec, container, find(initStatuses, container.name)));
  if (progress.includes("failed")) return "Failed";

  const tally = tallyStates(spec, statuses);
  // Once a main container ran, initialization is history, even if the engine forgot the init containers.
  if (progress.some((step) => step !== "done") && tally.running + tally.stopped === 0) return "Pending";
  if (tally.waiting > 0) return "Pending";
  if (tally.running > 0 && tally.unknown === 0) return "Running";
  if (tally.running === 0 && tally.stopped > 0 && tally.unknown === 0) {
    if (tally.restarting > 0) return "Running";
    return tally.stopped === tally.succeeded ? "Succeeded" : "Failed";
  }
  return "Pending";
}

const find = (statuses: readonly ContainerStatus[], name: string) => statuses.find((status) => status.name === name);

/** `failed` = and it will not be retried, by the pod's policy, its own, or its rules. */
function initProgress(
  spec: PodSpec,
  container: Container,
  status: ContainerStatus | undefined,
): "done" | "pending" | "failed" {
  if (isSidecar(container)) return status?.started ? "done" : "pending";
  if (!status) return "pending";
  if (status.state.terminated?.exitCode === 0) return "done";
  const end = status.state.terminated ?? (status.state.waiting && status.lastState.terminated);
  if (!end || end.exitCode === 0) return "pending";
  return decideRestart(spec, container, end.exitCode, { isInit: true }) === "leave" ? "failed" : "pending";
}

function tallyStates(spec: PodSpec, statuses: readonly ContainerStatus[]): Tally {
  const tally: Tally = { waiting: 0, running: 0, stopped: 0, succeeded: 0, restarting: 0, unknown: 0 };
  for (const container of spec.containers) {
    const status = find(statuses, container.name);
    const end = status && (status.state.terminated ?? status.lastState.terminated);
    if (!status) tally.unknown++;
    else if (status.state.running) tally.running++;
    else if (end) {
      tally.stopped++;
      if (status.state.terminated?.exitCode === 0) tally.succeeded++;
      const decision = decideRestart(spec, container, end.exitCode, { isInit: false });
      // A waiting container is about to run again, for any exit code.
      if (status.state.waiting || decision !== "leave") tally.restarting++;
    } else tally.waiting++;
  }
  return tally;
}

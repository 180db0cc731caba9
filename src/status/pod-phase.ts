import type { Container, ContainerStatus, PodPhase, PodSpec } from "../api/pod.ts";
import { isSidecar } from "../plan/restart-policy.ts";

interface Tally {
  waiting: number;
  running: number;
  stopped: number;
  succeeded: number;
  unknown: number;
}

/**
 * The phase of a pod from the states of its containers. A pod is Pending while any container waits for its first start;
 * one in CrashLoopBackOff has started before. Source: the kubelet's getPhase; oracle B 31.
 */
export function computePhase(
  spec: PodSpec,
  initStatuses: readonly ContainerStatus[],
  statuses: readonly ContainerStatus[],
): PodPhase {
  const inits = spec.initContainers ?? [];
  const progress = inits.map((container) => initProgress(container, find(initStatuses, container.name)));
  if (progress.includes("failed") && spec.restartPolicy === "Never") return "Failed";

  const tally = tallyStates(spec.containers, statuses);
  // Once a main container ran, initialization is history, even if the engine forgot the init containers.
  if (progress.some((step) => step !== "done") && tally.running + tally.stopped === 0) return "Pending";
  if (tally.waiting > 0) return "Pending";
  if (tally.running > 0 && tally.unknown === 0) return "Running";
  if (tally.running === 0 && tally.stopped > 0 && tally.unknown === 0) {
    if ((spec.restartPolicy ?? "Always") === "Always" && !spec.containers.every(ownPolicyEnds)) return "Running";
    if (tally.stopped === tally.succeeded) return "Succeeded";
    return spec.restartPolicy === "Never" || spec.containers.every(ownPolicyEnds) ? "Failed" : "Running";
  }
  return "Pending";
}

/** A container whose own policy lets it end, whatever the pod's says [M08]. */
const ownPolicyEnds = ({ restartPolicy }: Container) => restartPolicy === "Never" || restartPolicy === "OnFailure";

const find = (statuses: readonly ContainerStatus[], name: string) => statuses.find((status) => status.name === name);

function initProgress(container: Container, status: ContainerStatus | undefined): "done" | "pending" | "failed" {
  if (isSidecar(container)) return status?.started ? "done" : "pending";
  if (!status) return "pending";
  const { terminated } = status.state;
  if (terminated) return terminated.exitCode === 0 ? "done" : "failed";
  if (status.state.waiting && status.lastState.terminated && status.lastState.terminated.exitCode !== 0)
    return "failed";
  return "pending";
}

function tallyStates(containers: readonly Container[], statuses: readonly ContainerStatus[]): Tally {
  const tally: Tally = { waiting: 0, running: 0, stopped: 0, succeeded: 0, unknown: 0 };
  for (const { name } of containers) {
    const status = find(statuses, name);
    if (!status) tally.unknown++;
    else if (status.state.running) tally.running++;
    else if (status.state.terminated) {
      tally.stopped++;
      if (status.state.terminated.exitCode === 0) tally.succeeded++;
    } else if (status.lastState.terminated) tally.stopped++;
    else tally.waiting++;
  }
  return tally;
}

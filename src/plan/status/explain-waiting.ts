import type { CoreEvent } from "../../base/api/event.ts";
import type { Container, ContainerStatus, Pod } from "../../base/api/pod.ts";
import { isSidecar } from "../restart-policy.ts";

/** Reasons that every container has until it was started. */
const DEFAULT_REASONS = ["ContainerCreating", "PodInitializing"];

/** Whether a container waits for its first start, and not because something failed. */
export const isToBeStarted = ({ state: { waiting } }: ContainerStatus): boolean =>
  waiting !== undefined && DEFAULT_REASONS.includes(waiting.reason ?? "ContainerCreating");

/** Whether the volumes and the network of a pod are still missing. Source: the condition PodReadyToStartContainers. */
export const isBeingSetUp = ({ status }: Pod): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === "PodReadyToStartContainers" && is === "False") ?? false;

/** The init container that has to end, or the sidecar that has to start, before this container; undefined: none. */
export function findBlockingInit({ spec, status }: Pod, name: string): string | undefined {
  for (const init of spec.initContainers ?? []) {
    if (init.name === name) return undefined;
    const found = status?.initContainerStatuses?.find((one) => one.name === init.name);
    if (!(isSidecar(init) ? found?.started : found?.state.terminated?.exitCode === 0)) return init.name;
  }
  return undefined;
}

/**
 * The step of its start that a container waits for.
 * @param events of this container, oldest first
 */
export function describeStart(
  { image = "" }: Container,
  events: readonly CoreEvent[],
): { problem: string; facts: string[] } {
  const last = events.findLast(({ reason }) => ["Pulling", "Pulled", "Created"].includes(reason));
  switch (last?.reason) {
    case "Pulling":
      return { problem: `its image "${image}" is being pulled`, facts: [`since ${last.lastTimestamp}`] };
    case "Created":
      return { problem: "it is being started", facts: [] };
    default:
      return { problem: "it is being created", facts: [] };
  }
}

import type { ContainerStatus, Pod } from "../../base/api/pod.ts";
import { allStatusesOf } from "../../base/model/pod.ts";
import { findWaitingReason } from "../waiting-reasons.ts";

/** The container that has the requested log, or why there is none. Source: kubelet's `validateContainerLogStatus`. */
export function findLogContainer(
  { metadata, status }: Pod,
  name: string,
  previous: boolean,
): { id: string } | { problem: string } {
  const found = allStatusesOf(status).find((it) => it.name === name);
  const who = `container ${JSON.stringify(name)} in pod ${JSON.stringify(metadata.name)}`;
  if (!found) return { problem: `${who} is not available${status?.message ? `: the pod ${status.message}` : ""}` };
  const id = findLogContainerId(found, previous);
  if (id !== undefined) return { id };
  if (previous) {
    return { problem: `previous terminated container "${name}" in pod "${metadata.name}" not found` };
  }
  const { terminated, waiting } = found.state;
  if (terminated) return { problem: `${who} is terminated` };
  const why = findWaitingReason(waiting?.reason)?.logText ?? waiting?.reason;
  return { problem: why ? `${who} is waiting to start: ${why}` : `${who} is waiting to start - no logs yet` };
}

/** Container id whose log is shown for a container of a pod; undefined when there is none. */
export function findLogContainerId(
  { state, lastState, containerID }: ContainerStatus,
  previous: boolean,
): string | undefined {
  const before = lastState?.terminated?.containerID;
  const present = state.running ? containerID : state.terminated?.containerID;
  // A container that waits for its restart shows the log of the ended one.
  const id = previous ? before : present || before;
  return id ? withoutScheme(id) : undefined;
}

/** The running container of that name; undefined while it does not run. */
export function findRunningContainer({ status }: Pod, name: string): { id: string } | undefined {
  const found = allStatusesOf(status).find((it) => it.name === name);
  return found?.state.running && found.containerID ? { id: withoutScheme(found.containerID) } : undefined;
}

const withoutScheme = (containerId: string) => containerId.replace(/^docker:\/\//, "");

import type { Container, ContainerStatus, Pod } from "../../base/api/pod.ts";
import type { ContainerState } from "../../base/api/pod-status.ts";
import type { ProbeResponse } from "../../page/wire.ts";

/**
 * The pod without termination messages that may be the end of a log (`FallbackToLogsOnError`): logs need a session. Pure.
 */
export function hideLogEnds(pod: Pod): Pod {
  const { spec, status } = pod;
  const containers = [...(spec.initContainers ?? []), ...spec.containers];
  const hidden = new Set(containers.filter(mayShowLog).map(({ name }) => name));
  if (!status || hidden.size === 0) return pod;
  const hide = (statuses: ContainerStatus[]) => statuses.map((it) => (hidden.has(it.name) ? withoutMessages(it) : it));
  return {
    ...pod,
    status: {
      ...status,
      ...(status.initContainerStatuses && { initContainerStatuses: hide(status.initContainerStatuses) }),
      ...(status.containerStatuses && { containerStatuses: hide(status.containerStatuses) }),
    },
  };
}

const mayShowLog = ({ terminationMessagePolicy }: Container) => terminationMessagePolicy === "FallbackToLogsOnError";

const withoutMessages = (status: ContainerStatus): ContainerStatus => ({
  ...status,
  state: withoutMessage(status.state),
  lastState: withoutMessage(status.lastState),
});

function withoutMessage(state: ContainerState): ContainerState {
  if (!state.terminated) return state;
  const { message: _, ...terminated } = state.terminated;
  return { ...state, terminated };
}

/** Answers without what commands wrote and servers sent when a probe succeeded: events show the answers of failures only. Pure. */
export const hideProbeOutput = (answers: readonly ProbeResponse[]): ProbeResponse[] =>
  answers.map((answer) => (answer.result === "success" ? { ...answer, output: "" } : answer));

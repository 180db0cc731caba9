import type { Pod } from "../../base/api/pod.ts";
import { nearestName } from "../../base/text/nearest-name.ts";
import { findLogContainerId } from "../../plan/status/log-container.ts";

/** A container of the engine whose log is meant. */
export interface LogTarget {
  podName: string;
  containerName: string;
  containerId: string;
}

/** There is no log; the message is for the user. */
interface NoLog {
  problem: string;
}

const DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container";

/** The chosen containers, and a note for the user. */
interface ChosenContainers {
  names: string[];
  note?: string;
}

/** The containers of a pod that the arguments mean: the named one, all, or the default one. Source: kubectl logs. */
export function chooseContainers(
  { spec, metadata }: Pod,
  named: string | undefined,
  all: boolean,
): ChosenContainers | NoLog {
  const mains = spec.containers.map(({ name }) => name);
  const inits = (spec.initContainers ?? []).map(({ name }) => name);
  const ephemerals = (spec.ephemeralContainers ?? []).map(({ name }) => name);
  if (all) return { names: [...inits, ...mains, ...ephemerals] };
  const known = [...mains, ...inits, ...ephemerals];
  if (named !== undefined) {
    if (known.includes(named)) return { names: [named] };
    const near = nearestName(named, known);
    const list = listOf(spec);
    return {
      problem: `container "${named}" is not in pod "${metadata.name}": it has ${list}${near ? `; did you mean ${near}?` : ""}`,
    };
  }
  const wanted = metadata.annotations?.[DEFAULT_CONTAINER];
  if (wanted !== undefined && known.includes(wanted)) return { names: [wanted] };
  const [first = ""] = mains;
  if (known.length === 1) return { names: [first] };
  return {
    names: [first],
    note: `Defaulted container "${first}" out of: ${listOf(spec)}`,
  };
}

const listOf = ({ containers, initContainers = [], ephemeralContainers = [] }: Pod["spec"]) =>
  [
    ...containers.map(({ name }) => name),
    ...initContainers.map(({ name }) => `${name} (init)`),
    ...ephemeralContainers.map(({ name }) => `${name} (ephem)`),
  ].join(", ");

/** The engine's container behind a container of a pod. Source: the kubelet's `validateContainerLogStatus`. */
export function findLogTarget(
  { metadata, status = {} }: Pod,
  containerName: string,
  previous: boolean,
): LogTarget | NoLog {
  const podName = metadata.name ?? "";
  const { containerStatuses = [], initContainerStatuses = [], ephemeralContainerStatuses = [] } = status;
  const statuses = [...containerStatuses, ...initContainerStatuses, ...ephemeralContainerStatuses];
  const found = statuses.find(({ name }) => name === containerName);
  const containerId = found && findLogContainerId(found, previous);
  if (containerId !== undefined) return { podName, containerName, containerId };
  const who = `container "${containerName}" in pod "${podName}"`;
  if (previous)
    return { problem: `${who} has no previous one: it was not restarted, or its dead containers are removed` };
  const { reason, message } = found?.state.waiting ?? {};
  const why = reason ?? status.reason ?? (found ? "no logs yet" : "it is not known yet");
  return { problem: `${who} is waiting to start: ${why}${message ? `: ${message.trimEnd()}` : ""}` };
}

import type { Container, Pod } from "../../api/pod.ts";
import { LABEL } from "../../runtime/labels.ts";
import { findLogContainerId } from "../../status/log-container.ts";
import { nearestName } from "../../text/nearest-name.ts";

/** A container of the engine whose log is meant. */
export interface LogTarget {
  podName: string;
  containerName: string;
  containerId: string;
}

/** What to tell the user instead of a log. */
export interface NoLog {
  problem: string;
}

const DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container";

/** Containers that are meant, and what to say beside. */
export interface ChosenContainers {
  names: string[];
  note?: string;
}

/** Of a pod: the one that is named, all, or the one that stands for the pod. Source: kubectl logs. */
export function chooseContainers(
  { spec, metadata }: Pod,
  named: string | undefined,
  all: boolean,
): ChosenContainers | NoLog {
  const mains = spec.containers.map(({ name }) => name);
  const inits = (spec.initContainers ?? []).map(({ name }) => name);
  if (all) return { names: [...inits, ...mains] };
  const known = [...mains, ...inits];
  if (named !== undefined) {
    if (known.includes(named)) return { names: [named] };
    const near = nearestName(named, known);
    const list = listOf(spec.containers, spec.initContainers ?? []);
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
    note: `Defaulted container "${first}" out of: ${listOf(spec.containers, spec.initContainers ?? [])}`,
  };
}

const listOf = (mains: readonly Container[], inits: readonly Container[]) =>
  [...mains.map(({ name }) => name), ...inits.map(({ name }) => `${name} (init)`)].join(", ");

/** The engine's container behind a container of a pod. Source: the kubelet's `validateContainerLogStatus`. */
export function findLogTarget(
  { metadata, status = {} }: Pod,
  containerName: string,
  previous: boolean,
): LogTarget | NoLog {
  const podName = metadata.name ?? "";
  const statuses = [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])];
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

/** What a list of the engine tells of a container of ours. */
export interface ListedContainer {
  Id: string;
  /** Unix seconds. */
  Created: number;
  Labels: Readonly<Record<string, string>>;
}

/**
 * The same by labels alone, for when no kubelet can be asked. A name may lack the node's name at its end.
 * @param containers of one root directory, all nodes; sandboxes are left aside
 */
export function findListedTargets(
  containers: readonly ListedContainer[],
  wanted: {
    pod: string;
    namespace: string | undefined;
    container: string | undefined;
    all: boolean;
    previous: boolean;
  },
): LogTarget[] | NoLog {
  const all = containers
    .filter(({ Labels }) => Labels[LABEL.type] === "container")
    .filter(({ Labels }) => wanted.namespace === undefined || Labels[LABEL.podNamespace] === wanted.namespace);
  const podName = ({ Labels }: ListedContainer) => Labels[LABEL.podName] ?? "";
  const exact = all.filter((it) => podName(it) === wanted.pod);
  const ofPod =
    exact.length > 0 ? exact : all.filter((it) => podName(it) === `${wanted.pod}-${it.Labels[LABEL.node] ?? ""}`);
  if (ofPod.length === 0) return { problem: unknownPod(wanted.pod, all.map(podName)) };
  const uids = new Set(ofPod.map(({ Labels }) => Labels[LABEL.podUid]));
  if (uids.size > 1) return { problem: `there are several pods "${wanted.pod}": choose one with -n` };
  const nameOf = ({ Labels }: ListedContainer) => Labels[LABEL.containerName] ?? "";
  const names = [...new Set(ofPod.toSorted((a, b) => a.Created - b.Created).map(nameOf))];
  const chosen = wanted.all ? names : wanted.container === undefined ? names.slice(0, 2) : [wanted.container];
  if (!wanted.all && chosen.length > 1) return { problem: `choose a container with -c: ${names.join(", ")}` };
  const targets: LogTarget[] = [];
  for (const containerName of chosen) {
    const attempts = ofPod.filter((it) => nameOf(it) === containerName).toSorted((a, b) => attemptOf(b) - attemptOf(a));
    const attempt = attempts[wanted.previous ? 1 : 0];
    if (attempts.length === 0) {
      return {
        problem: `container "${containerName}" is not in pod "${podName(ofPod[0]!)}": it has ${names.join(", ")}`,
      };
    }
    if (!attempt) return { problem: `container "${containerName}" has no previous one` };
    targets.push({ podName: podName(attempt), containerName, containerId: attempt.Id });
  }
  return targets;
}

/** By restart count; after a new sandbox counts go on, so time decides only between equals. */
const attemptOf = ({ Labels, Created }: ListedContainer) => Number(Labels[LABEL.restartCount] ?? 0) * 1e10 + Created;

function unknownPod(name: string, known: readonly string[]): string {
  const names = [...new Set(known)].sort();
  const near = nearestName(name, names) ?? names.find((candidate) => candidate.includes(name));
  const hint = near ? `; did you mean "${near}"?` : names.length > 0 ? `; there are ${names.join(", ")}` : "";
  return `the engine has no container of a pod "${name}"${hint}`;
}

import { hasCondition, type LabelSelector, matchesSelector, toLabelSelector } from "../../base/api/meta.ts";
import type { Pod } from "../../base/api/pod.ts";
import { allStatusesOf, namespaceOf } from "../../base/model/pod.ts";
import { didYouMean, nearestName } from "../../base/text/nearest-name.ts";
import { findLogContainerId } from "../../plan/status/log-container.ts";
import { CommandError, type CommandRequest, type PodScope, scopeOf, selectorOf, UsageError } from "../sub-command.ts";
import { ApiClient, type ApiObject } from "./api-client.ts";
import { kindOf } from "./object-targets.ts";

/** Pods of a namespace, or all. */
export const inScope = (pods: readonly Pod[], { namespace }: PodScope): Pod[] =>
  pods.filter((pod) => namespace === undefined || namespaceOf(pod) === namespace);

/**
 * The pod of that name. The suffix a static pod has, its node's name, may be left out, as in the manifest; `pod/web` is
 * `web`. Where namespaces have pods of the same name, one must be chosen.
 * @returns the message for the user as `problem`
 */
export function findPod(
  pods: readonly Pod[],
  written: string,
  scope: PodScope,
): Pod | { problem: string; isAbsent?: true } {
  const name = written.replace(POD_KIND, "");
  const candidates = inScope(pods, scope);
  const exact = candidates.filter(({ metadata }) => metadata.name === name);
  const found =
    exact.length > 0 ? exact : candidates.filter(({ metadata, spec }) => metadata.name === `${name}-${spec.nodeName}`);
  const [pod, ...others] = found;
  if (!pod) return { problem: notFound(pods, candidates, name, scope), isAbsent: true };
  if (others.length === 0) return pod;
  return {
    problem: `there are pods "${name}" in the namespaces ${found.map(namespaceOf).join(", ")}: choose one with -n`,
  };
}

/** Pods of these names; without names those in the namespace that the selector matches. */
export function choosePods(
  request: CommandRequest,
  pods: readonly Pod[],
  names: readonly string[],
): { chosen: Pod[]; problems: string[] } {
  const scope = scopeOf(request);
  const matches = selectorOf(request);
  if (names.length === 0) {
    return { chosen: inScope(pods, scope).filter(({ metadata }) => matches(metadata.labels ?? {})), problems: [] };
  }
  const found = names.map((name) => findPod(pods, name, scope));
  return {
    chosen: found.flatMap((pod) => ("problem" in pod ? [] : pod)),
    problems: found.flatMap((pod) =>
      "problem" in pod && !(pod.isAbsent && request.isOn("ignore-not-found")) ? pod.problem : [],
    ),
  };
}

const MAX_NAMES = 10;

function notFound(all: readonly Pod[], candidates: readonly Pod[], name: string, { namespace }: PodScope): string {
  const where = namespace === undefined ? "" : ` in namespace "${namespace}"`;
  const elsewhere = namespace === undefined ? undefined : findPod(all, name, { namespace: undefined });
  const others = namespace === undefined ? "" : namespaceHint(namespace, all.map(namespaceOf));
  const hint =
    elsewhere && "metadata" in elsewhere
      ? `it is in namespace "${namespaceOf(elsewhere)}"`
      : others
        ? `the namespace has no pods${others}`
        : hintOf(name, candidates);
  return `pod "${name}" not found${where}; ${hint}`;
}

/** The namespace that may be meant, as the end of a message; "" where the written one has objects. @param known those with objects */
export function namespaceHint(written: string, known: readonly string[]): string {
  const names = [...new Set(known)].toSorted();
  if (names.length === 0 || names.includes(written)) return "";
  return didYouMean(written, names) || `; they are in ${names.slice(0, MAX_NAMES).join(", ")}`;
}

/** Kinds that stand alone where a name was expected. */
const KIND_WORD = /^(?:pods?|po|deploy(?:ments?)?|jobs?|sts|statefulsets?|ds|daemonsets?|rs|replicasets?)$/i;

function hintOf(name: string, candidates: readonly Pod[]): string {
  if (KIND_WORD.test(name)) return `a kind is written together with its name: ${name}/NAME`;
  if (candidates.length === 0) return "there are no pods";
  const full = [...new Set(candidates.map(({ metadata }) => metadata.name ?? ""))];
  const short = candidates.map(({ metadata, spec }) => metadata.name?.replace(`-${spec.nodeName}`, "") ?? "");
  const near = nearestName(name, [...full, ...short]) ?? full.find((candidate) => `-${candidate}`.includes(`-${name}`));
  if (near !== undefined) return `did you mean "${near}"?`;
  const more = full.length > MAX_NAMES ? `, … (${full.length} in all)` : "";
  return `there are ${full.slice(0, MAX_NAMES).join(", ")}${more}`;
}

/** Names of the kind Pod. */
export const POD_WORDS = ["pod", "pods", "po"];
/** The kind before the name of a pod. */
export const POD_KIND = /^(pods?|po)\//i;

/**
 * The pod of `web`, `pod/web`, or of `deployment/web`, `service/web` and the like: of several the one that is ready.
 * @returns also a note about the choice, and the object it was chosen by, when that is no pod
 * @throws CommandError, UsageError
 */
export async function choosePod(
  request: CommandRequest,
  pods: readonly Pod[],
  written: string,
): Promise<{ pod: Pod; note?: string; object?: ApiObject }> {
  if (!written.includes("/") || POD_KIND.test(written)) {
    const pod = findPod(pods, written, scopeOf(request));
    if ("problem" in pod) throw new CommandError(pod.problem);
    return { pod };
  }
  const [kind = "", name = "", ...more] = written.split("/");
  if (kind === "" || name === "" || more.length > 0) throw new UsageError(`"${written}" must be POD or KIND/NAME`);
  const api = await ApiClient.open(request, `Without it only pods are known: name a pod in place of "${written}"`);
  const resource = await api.findResource(kind);
  const namespace = scopeOf(request).namespace ?? "default";
  const object = await api.requireObject(resource, namespace, name);
  const found = podsOfObject(object, inScope(pods, { namespace })).toSorted(byUse);
  const [pod, ...others] = found;
  if (!pod) throw new CommandError(`${kindOf(resource)} "${name}" has no pods now`);
  const note = others.length > 0 ? `Found ${found.length} pods, using pod/${pod.metadata.name}` : undefined;
  return { pod, object, ...(note !== undefined && { note }) };
}

/** The pods that an object selects by labels, or owns. @param pods of its namespace */
export function podsOfObject({ metadata, spec }: ApiObject, pods: readonly Pod[]): Pod[] {
  const { selector } = (spec ?? {}) as { selector?: LabelSelector | Record<string, string> };
  if (selector !== undefined && Object.keys(selector).length > 0) {
    const wanted = toLabelSelector(selector);
    return pods.filter((pod) => matchesSelector(wanted, pod.metadata.labels));
  }
  return pods.filter((pod) => pod.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid));
}

/** Ready ones first, then those that run, then the oldest. Source: kubectl's `ActivePods`. */
function byUse(a: Pod, b: Pod): number {
  const rank = ({ status, metadata }: Pod) =>
    (metadata.deletionTimestamp ? 4 : 0) +
    (hasCondition(status, "Ready") ? 0 : 2) +
    (status?.phase === "Running" ? 0 : 1);
  const ageOf = ({ metadata }: Pod) => Date.parse(String(metadata.creationTimestamp ?? "")) || 0;
  return rank(a) - rank(b) || ageOf(a) - ageOf(b) || (namespaceOf(a) < namespaceOf(b) ? -1 : 1);
}

/** A container of the engine whose log is meant. */
export interface LogTarget {
  podName: string;
  containerName: string;
  containerId: string;
}

const DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container";

/**
 * The containers of a pod that the arguments mean: the named one, all, or the default one. Source: kubectl logs.
 * @returns also a note for the user; the message for the user as `problem`
 */
export function chooseContainers(
  { spec, metadata }: Pod,
  named: string | undefined,
  all: boolean,
): { names: string[]; note?: string } | { problem: string } {
  const mains = spec.containers.map(({ name }) => name);
  const inits = (spec.initContainers ?? []).map(({ name }) => name);
  const ephemerals = (spec.ephemeralContainers ?? []).map(({ name }) => name);
  if (all) return { names: [...inits, ...mains, ...ephemerals] };
  const known = [...mains, ...inits, ...ephemerals];
  if (named !== undefined) {
    if (known.includes(named)) return { names: [named] };
    const hint = listOf(spec) + didYouMean(named, known);
    return { problem: `container "${named}" is not in pod "${metadata.name}": it has ${hint}` };
  }
  const wanted = metadata.annotations?.[DEFAULT_CONTAINER];
  if (wanted !== undefined && known.includes(wanted)) return { names: [wanted] };
  const [first = ""] = mains;
  if (known.length === 1) return { names: [first] };
  return { names: [first], note: `Defaulted container "${first}" out of: ${listOf(spec)}` };
}

const listOf = ({ containers, initContainers = [], ephemeralContainers = [] }: Pod["spec"]) =>
  [
    ...containers.map(({ name }) => name),
    ...initContainers.map(({ name }) => `${name} (init)`),
    ...ephemeralContainers.map(({ name }) => `${name} (ephem)`),
  ].join(", ");

/** The engine's container behind a container of a pod. Source: the kubelet's `validateContainerLogStatus`. */
export function findLogTarget(pod: Pod, containerName: string, previous: boolean): LogTarget | { problem: string } {
  const { metadata, status = {} } = pod;
  const podName = metadata.name ?? "";
  const found = allStatusesOf(status).find(({ name }) => name === containerName);
  const containerId = found && findLogContainerId(found, previous);
  if (containerId !== undefined) return { podName, containerName, containerId };
  const who = `container "${containerName}" in pod "${podName}"`;
  if (previous)
    return { problem: `${who} has no previous one: it was not restarted, or its dead containers are removed` };
  const { reason, message } = found?.state.waiting ?? {};
  const why = reason ?? status.reason ?? (found ? "no logs yet" : "it is not known yet");
  return { problem: `${who} is waiting to start: ${why}${message ? `: ${message.trimEnd()}` : ""}` };
}

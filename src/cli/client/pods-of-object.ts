import { matchesSelector, toLabelSelector } from "../../base/api/match-labels.ts";
import type { LabelSelector } from "../../base/api/meta.ts";
import type { Pod } from "../../base/api/pod.ts";
import { CommandError, type CommandRequest, scopeOf, UsageError } from "../sub-command.ts";
import { ApiClient, type ApiObject } from "./api-client.ts";
import { kindOf } from "./object-targets.ts";
import { findPod, inScope, namespaceOf } from "./pod-lookup.ts";

const POD_KIND = /^(pods?|po)\//i;

/** The pod that a command line names, and a note about the choice. */
interface ChosenPod {
  pod: Pod;
  note?: string;
  /** The object it was chosen by, when that is no pod. */
  object?: ApiObject;
}

/**
 * The pod of `web`, `pod/web`, or of `deployment/web`, `service/web` and the like: of several the one that is ready.
 * @throws CommandError, UsageError
 */
export async function choosePod(request: CommandRequest, pods: readonly Pod[], written: string): Promise<ChosenPod> {
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
    (status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") ? 0 : 2) +
    (status?.phase === "Running" ? 0 : 1);
  const ageOf = ({ metadata }: Pod) => Date.parse(String(metadata.creationTimestamp ?? "")) || 0;
  return rank(a) - rank(b) || ageOf(a) - ageOf(b) || (namespaceOf(a) < namespaceOf(b) ? -1 : 1);
}

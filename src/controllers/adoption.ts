import type { LabelSelector } from "../base/api/meta.ts";
import { matchesSelector } from "../base/api/selectors.ts";
import type { PodTemplateSpec } from "../base/api/workload.ts";
import type { DesiredWorkload } from "../base/model/desired-object.ts";
import type { DesiredPod } from "../base/model/desired-pod.ts";
import { type ControllerWorld, Draft, podUid } from "./controller.ts";
import { computeTemplateHash, type PodRecord, type WorkloadRecord } from "./workload-record.ts";

/** Incarnations of one pod of a StatefulSet that are distinguished; a pod has few. */
const MAX_INCARNATIONS = 1000;

/**
 * The record of a new workload that takes over the pods its selector matches and no controller owns, as those of
 * `kubectl delete --cascade=orphan`; undefined where there are none. Pods of manifests stay those of their text.
 * Pure. Source: `PodControllerRefManager`; Jobs have a selector of their own, and Deployments take ReplicaSets.
 */
export function adoptPods(
  desired: DesiredWorkload,
  pods: readonly DesiredPod[],
  world: ControllerWorld,
): WorkloadRecord | undefined {
  const selector = selectorOf(desired);
  if (!selector) return undefined;
  const adopted = pods.filter((pod) => isAdoptable(pod, desired, selector));
  if (adopted.length === 0) return undefined;
  const { metadata, spec } = desired.object as { metadata: object; spec: { template: PodTemplateSpec } };
  const draft = new Draft(world, desired.kind, metadata, "", undefined);
  for (const { pod } of adopted) {
    const template = templateOf(desired, pod, spec.template);
    const revision = draft.findRevision(template) ?? draft.addRevision(template, "as-owner");
    const { uid = "", name = "", creationTimestamp } = pod.metadata;
    const record: PodRecord = {
      name,
      uid,
      revision: revision.hash,
      createdAt: creationTimestamp ?? draft.nowText,
    };
    const ordinal = desired.kind === "StatefulSet" ? ordinalOf(desired, name) : undefined;
    if (ordinal !== undefined) {
      record.ordinal = ordinal;
      const count = countIncarnations(
        uid,
        (incarnation) => podUid(world.nodeName, draft.namespace, name, incarnation),
        revision.hash,
      );
      revision.incarnations = { ...revision.incarnations, [ordinal]: count };
    }
    revision.replicas++;
    draft.record.pods.push(record);
  }
  return draft.record;
}

function selectorOf({ kind, object }: DesiredWorkload): LabelSelector | undefined {
  switch (kind) {
    case "ReplicaSet":
    case "StatefulSet":
    case "DaemonSet":
      return object.spec.selector;
    case "ReplicationController":
      return { matchLabels: object.spec.selector ?? {} };
    default:
      return undefined;
  }
}

function isAdoptable({ pod, source }: DesiredPod, desired: DesiredWorkload, selector: LabelSelector): boolean {
  const { metadata } = pod;
  return (
    source === "api" &&
    metadata.deletionTimestamp === undefined &&
    !metadata.ownerReferences?.some(({ controller }) => controller) &&
    (metadata.namespace ?? "default") === (desired.object.metadata.namespace ?? "default") &&
    matchesSelector(selector, metadata.labels) &&
    (desired.kind !== "StatefulSet" || ordinalOf(desired, metadata.name ?? "") !== undefined)
  );
}

/** The ordinal in `<name>-<ordinal>`. */
function ordinalOf({ object }: DesiredWorkload, name: string): number | undefined {
  const prefix = `${object.metadata.name}-`;
  const rest = name.startsWith(prefix) ? name.slice(prefix.length) : "";
  return /^(?:0|[1-9]\d{0,8})$/.test(rest) ? Number(rest) : undefined;
}

/**
 * The template of the workload where the pod has its revision: it keeps running unchanged. Otherwise what the pod was made of,
 * which the controller replaces by its rules.
 */
function templateOf(desired: DesiredWorkload, pod: DesiredPod["pod"], template: PodTemplateSpec): PodTemplateSpec {
  const label = pod.metadata.labels?.["controller-revision-hash"];
  const hash = computeTemplateHash(template);
  if (label === undefined || label === hash || label === `${desired.object.metadata.name}-${hash}`) return template;
  const { labels = {}, annotations } = pod.metadata;
  const { nodeName: _nodeName, ...spec } = pod.spec;
  return { metadata: { labels, ...(annotations && { annotations }) }, spec } as PodTemplateSpec;
}

/** Incarnations up to the one with this uid: the next pod of the name gets another uid. */
function countIncarnations(uid: string, uidOf: (incarnation: string) => string, hash: string): number {
  for (let count = 0; count < MAX_INCARNATIONS; count++) if (uidOf(`${hash}/${count}`) === uid) return count + 1;
  return 0;
}

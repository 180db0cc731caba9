import { IMAGE_UPDATE_ANNOTATIONS } from "../base/api/annotations.ts";
import type { Container, Pod, PodSpec } from "../base/api/pod.ts";
import type { DaemonSet, ReplicaSet, ReplicationController } from "../base/api/workload.ts";
import type { DesiredPod, DesiredWorkload } from "../base/model/desired-state.ts";
import { hex32 } from "../base/text/json.ts";
import { matchesNode } from "../plan/node-affinity.ts";
import { type ControllerWorld, Draft, type WorkloadEvent } from "./controller.ts";
import { reconcileDeployment, scaledValue } from "./deployment.ts";
import { type JobLookup, reconcileCronJob, reconcileJob } from "./job.ts";
import { reconcileStatefulSet } from "./stateful-set.ts";
import {
  COMPLETION_INDEX,
  type ControllerState,
  controllerReference,
  type PodRecord,
  type RevisionRecord,
  type WorkloadRecord,
} from "./workload-records.ts";

interface Outcome {
  record: WorkloadRecord;
  events: readonly WorkloadEvent[];
  state: ControllerState | undefined;
  /** Time until the next reconciliation, at the latest. */
  wakeInMs: number | undefined;
  /** Wall clock at the next reconciliation, at the latest; it comes as well when that clock is set back. */
  holdsUntilMs: number | undefined;
}

/** The next state of any workload. Pure. */
export function reconcileWorkload(
  desired: DesiredWorkload,
  known: WorkloadRecord | undefined,
  world: ControllerWorld,
  before: ControllerState | undefined,
  jobOf: JobLookup,
): Outcome {
  const draft = new Draft(world, desired.kind, desired.object.metadata, desired.revision, known);
  // One that waits for a finalizer keeps its pods, and gets no others, until it is gone.
  if (desired.source === "api" && desired.object.metadata.deletionTimestamp !== undefined) {
    return { record: draft.record, events: [], state: before, wakeInMs: undefined, holdsUntilMs: undefined };
  }
  let state: ControllerState | undefined;
  switch (desired.kind) {
    case "Deployment":
      state = reconcileDeployment(draft, desired.object.spec, before?.kind === "Deployment" ? before : undefined);
      break;
    case "ReplicaSet":
    case "ReplicationController":
      reconcileReplicaSet(draft, desired.object.spec);
      break;
    case "StatefulSet":
      reconcileStatefulSet(draft, desired.object.spec);
      break;
    case "DaemonSet":
      reconcileDaemonSet(draft, desired.object.spec);
      break;
    case "Job":
      state = reconcileJob(draft, desired.object.spec, before?.kind === "Job" ? before : undefined);
      break;
    case "CronJob":
      reconcileCronJob(draft, desired.object.spec, jobOf);
      break;
    default:
      desired satisfies never;
  }
  const { record, events, wakeInMs, holdsUntilMs } = draft;
  return { record, events, state, wakeInMs, holdsUntilMs };
}

/**
 * The next state of a ReplicaSet or ReplicationController: as many pods as it wants. An edited template holds for new
 * pods only. Source: `pkg/controller/replicaset` of 1.20.
 */
function reconcileReplicaSet(draft: Draft, { template, replicas }: (ReplicaSet | ReplicationController)["spec"]): void {
  const current = draft.findRevision(template) ?? draft.addRevision(template, "as-owner");
  draft.fitPods(current, draft.livePods(), replicas);
  draft.limitHistory(0, [current.hash]);
}

/** The next state of a DaemonSet: one pod, if it may run on this node. Source: `pkg/controller/daemon` of 1.20. */
function reconcileDaemonSet(draft: Draft, spec: DaemonSet["spec"]): void {
  const update = draft.takeUpRevision(spec.template, "as-owner");
  // An adoption may make two of them: the older one stays.
  const live = draft.livePods().sort((a, b) => Date.parse(a.createdAt) - Date.parse(b.createdAt));
  const newest = live.find(({ revision }) => revision === update.hash);
  const others = live.filter((pod) => pod !== newest);
  if (!matchesNode(spec.template as Pod, draft.world.node.name, draft.world.node.labels)) {
    for (const pod of live) draft.deletePod(pod);
  } else if (live.length === 0) {
    // The pod before it must be gone: there is one daemon on a node.
    if (draft.record.pods.length === 0) draft.createPod(update);
  } else if (spec.updateStrategy.type === "RollingUpdate") {
    const { maxSurge = 0 } = spec.updateStrategy.rollingUpdate ?? {};
    const mayOverlap = scaledValue(maxSurge, 1, "up") > 0;
    const isNewestUp = newest !== undefined && draft.isAvailable(newest, spec.minReadySeconds);
    const isOldUp = others.some((pod) => draft.isAvailable(pod, spec.minReadySeconds));
    if (others.length > 0 && mayOverlap && !newest && isOldUp) draft.createPod(update);
    if (isNewestUp || !mayOverlap || !isOldUp) for (const pod of others) draft.deletePod(pod);
  }
  draft.limitHistory(spec.revisionHistoryLimit, [update.hash]);
}

type Labels = Record<string, string>;

/** The pod of a record, complete: name, labels and owner as a cluster's controller would give it. */
export function toDesiredPod(
  desired: DesiredWorkload,
  record: WorkloadRecord,
  pod: PodRecord,
  nodeName: string,
): DesiredPod {
  const revision = record.revisions[pod.revision]!;
  const { metadata, spec } = revision.template;
  const { labels, annotations } = pod.edited ?? {
    labels: { ...metadata.labels, ...controllerLabels(desired, record, revision, pod) },
    annotations: {
      ...inheritedAnnotations(desired),
      ...metadata.annotations,
      ...(pod.index !== undefined && { [COMPLETION_INDEX]: String(pod.index) }),
    },
  };
  const made: Pod = {
    metadata: {
      name: pod.name,
      generateName: pod.name.slice(0, pod.name.lastIndexOf("-") + 1),
      namespace: desired.object.metadata.namespace ?? "default",
      uid: pod.uid,
      creationTimestamp: pod.createdAt,
      labels: asMap(labels),
      ...(Object.keys(annotations).length > 0 && { annotations: asMap(annotations) }),
      ownerReferences: [
        desired.kind === "Deployment"
          ? controllerReference("ReplicaSet", revision.name, revision.uid)
          : controllerReference(desired.kind, desired.object.metadata.name, record.uid),
        ...(pod.edited?.owners ?? []),
      ],
    },
    spec: { ...spec, ...identityOf(desired, spec, pod), nodeName },
    status: { phase: "Pending" },
  };
  const { source, origin, location, sourceId, asksForClusterDns } = desired;
  const known = {
    ...(location && { location }),
    ...(sourceId !== undefined && { sourceId }),
    ...(asksForClusterDns && { asksForClusterDns }),
    isFromTemplate: true as const,
  };
  const runsOnce = desired.kind === "Job" && { runsOnce: true as const };
  const changes = pod.edited ? `\n${JSON.stringify(pod.edited)}` : "";
  const revisionText = hex32(`${pod.revision}\n${pod.uid}${changes}`);
  return { pod: made, source, origin, ...known, revision: revisionText, ...runsOnce };
}

/** How images are updated may be written at the workload; it is not part of the template, so changing it replaces no pod. */
const inheritedAnnotations = ({ object }: DesiredWorkload): Labels =>
  Object.fromEntries(
    Object.entries(object.metadata.annotations ?? {}).filter(([name]) => IMAGE_UPDATE_ANNOTATIONS.includes(name)),
  );

const asMap = (map: Readonly<Labels>): Labels => Object.assign(Object.create(null), map);

/** Labels by which a controller knows the pods it made, and the revision they have. */
function controllerLabels(
  { kind, object }: DesiredWorkload,
  { uid }: WorkloadRecord,
  { hash }: RevisionRecord,
  pod: PodRecord,
): Labels {
  const name = object.metadata.name ?? "";
  const revisionName = `${name}-${hash}`;
  switch (kind) {
    case "Deployment":
      return { "pod-template-hash": hash };
    case "StatefulSet":
      return {
        "controller-revision-hash": revisionName,
        "statefulset.kubernetes.io/pod-name": pod.name,
        "apps.kubernetes.io/pod-index": String(pod.ordinal ?? 0),
      };
    case "DaemonSet":
      return { "controller-revision-hash": hash };
    case "Job":
      return {
        "controller-uid": uid,
        "job-name": name,
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        ...(pod.index !== undefined && { [COMPLETION_INDEX]: String(pod.index) }),
      };
    default:
      return {};
  }
}

/** The identity of a pod of a StatefulSet or an indexed Job: host name, claims, index. */
function identityOf(desired: DesiredWorkload, spec: PodSpec, pod: PodRecord): Partial<PodSpec> {
  if (desired.kind === "StatefulSet") {
    const { serviceName, volumeClaimTemplates = [] } = desired.object.spec;
    const claims = volumeClaimTemplates.map(({ metadata: { name = "" } }) => ({
      name,
      persistentVolumeClaim: { claimName: `${name}-${pod.name}` },
    }));
    const names = new Set(claims.map(({ name }) => name));
    const others = (spec.volumes ?? []).filter(({ name }) => !names.has(name));
    return {
      hostname: pod.name,
      ...(serviceName !== undefined && { subdomain: serviceName }),
      ...(claims.length > 0 && { volumes: [...others, ...claims] }),
    };
  }
  if (pod.index === undefined) return {};
  const withIndex = (container: Container): Container => {
    const env = (container.env ?? []).filter(({ name }) => name !== "JOB_COMPLETION_INDEX");
    return { ...container, env: [...env, { name: "JOB_COMPLETION_INDEX", value: String(pod.index) }] };
  };
  return {
    hostname: `${desired.object.metadata.name}-${pod.index}`,
    containers: spec.containers.map(withIndex),
    ...(spec.initContainers && { initContainers: spec.initContainers.map(withIndex) }),
  };
}

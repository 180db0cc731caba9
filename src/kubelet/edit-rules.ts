import { createHash } from "node:crypto";
import { ANNOTATION_PREFIX, MAX_RESTART_PERIOD_ANNOTATION, RESTARTING_ANNOTATIONS } from "../base/api/annotations.ts";
import type { Container, ContainerResizePolicy, Pod, PodSpec, QOSClass, Volume } from "../base/api/pod.ts";
import type { DesiredPod, DesiredState, ObjectIndex } from "../base/model/desired-state.ts";
import { memoized } from "../base/model/memoized.ts";
import type { NodeInfo } from "../base/model/node.ts";
import { allContainersOf, containersOf, mapContainers, type PodRef } from "../base/model/pod.ts";
import { attemptsOf, isRunning, type PodSnapshot } from "../base/model/pod-snapshot.ts";
import { parseDuration } from "../base/text/duration.ts";
import { rowsOf } from "../base/text/word-rows.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import {
  computeSourceRevision,
  environmentReferences,
  hasReferences,
  podReferences,
} from "../plan/object-references.ts";
import { computeHostPorts } from "../plan/pod-network.ts";
import type { PodHashes, PodPlanOptions } from "../plan/pod-plan.ts";
import {
  computeContainerLimits,
  computeQosClass,
  isCriticalPod,
  memoryBytesOf,
  type PendingResize,
} from "../plan/pod-resources.ts";
import { isSidecar } from "../plan/restart-policy.ts";
import { computeAppArmorProfile, computeSeccompProfile } from "../plan/security-profiles.ts";

/** One revision of one pod, as a pod worker runs it. */
export interface PodRevision {
  pod: Pod;
  /** Its source. */
  desired: DesiredPod;
  objects: ObjectIndex;
  hashes: PodHashes;
  qosClass: QOSClass;
  options: PodPlanOptions;
  /** Changes when a finished pod has to run again. */
  runRevision: string;
  /** Changes when files made from ConfigMaps, Secrets or metadata may have to be written again. */
  objectsRevision: string;
  /** Some ConfigMaps or Secrets of the pod may not be known yet; see {@link toTentativeRevision}. */
  isTentative?: true;
  /** It is known from its containers only; see {@link toRunningRevision}. */
  isAssumed?: true;
  /** An edit is being prepared: it is to take the place of this revision. */
  isToBeReplaced?: true;
  extraConditions?: readonly { type: string; status: "True" | "False"; reason?: string; message?: string }[];
}

/**
 * Which restarts an edit of a manifest causes. The planner compares these hashes with the labels of running containers:
 *
 * | The edit changes | Effect |
 * | --- | --- |
 * | `hashes.sandbox`: network, host namespaces, sysctls the QoS class and other settings of the pod as a whole | the pod starts again in a new sandbox |
 * | `hashes.init`: an init container, sidecars excepted | the pod starts again in a new sandbox |
 * | `hashes.containers`: image, command, environment (ConfigMaps and Secrets it uses included), mounts, … of one container | that container restarts |
 * | `hashes.limits`: cpu and memory, unless `resizePolicy` asks for a restart | the running container is updated in place |
 * | `objectsRevision`: labels, annotations, contents of ConfigMaps and Secrets in volumes | files are written again |
 * | `runRevision`: anything that decides how a pod ends | a finished pod runs again |
 *
 * Pure.
 */
export function toPodRevision(
  desired: DesiredPod,
  state: DesiredState,
  options: KubeletOptions,
  node: NodeInfo,
): PodRevision {
  const { pod, imagePins } = desired;
  const { configMaps, secrets, unreadSecrets } = state;
  const pinned = withPinnedImages(pod, imagePins);
  const containers = containersOf(pinned.spec);
  const keepsEnvironment = desired.runsOnce || desired.isBound;
  const own = ownFactsOf(pod);
  const hashes = {
    sandbox: own.sandbox,
    init: pinned === pod ? own.init : computeInitHash(pinned),
    containers: new Map(
      allContainersOf(pinned.spec).map((container) => {
        const sourcesRevision = keepsEnvironment ? "" : computeSourceRevision(pod, container, state);
        const known = sourcesRevision === "" && pinned === pod ? own.containers.get(container.name) : undefined;
        return [container.name, known ?? computeContainerHash(pod, container, sourcesRevision)];
      }),
    ),
    limits: new Map(
      containers.map((container) => [
        container.name,
        computeContainerLimits({ pod, container, node, settings: options }),
      ]),
    ),
  };
  const notices = state.notices?.get(pod.metadata.uid ?? "") ?? [];
  return {
    pod,
    desired,
    objects: { configMaps, secrets, ...(unreadSecrets && { unreadSecrets }) },
    hashes,
    qosClass: own.qosClass,
    options: {
      maxBackOffMs: maxBackOffMs(pod, options.crashLoopBackOffMaxMs),
      maxDeadPerContainer: options.maximumDeadContainersPerContainer,
      minDeadTtlMs: options.minimumContainerTtlMs,
    },
    runRevision: keepsEnvironment ? (pod.metadata.uid ?? "") : computeRunRevision(pod, hashes),
    objectsRevision: toHash([
      desired.revision,
      ...(desired.filesRevision === undefined ? [] : [desired.filesRevision]),
      ...objectsUsed(pod, state),
    ]),
    // ManifestLive reports whether the newest manifest is the one that runs.
    extraConditions: notices.map(({ reason, message }) => ({ type: "ManifestLive", status: "False", reason, message })),
  };
}

/**
 * Whether ConfigMaps or Secrets of a running pod may be in a source, or their values in a file, that was not read yet or
 * does not answer: a full revision would restart its containers and remove its files. Pure.
 * @param isComplete every source was read
 */
export function mayLackObjects({ pod }: DesiredPod, state: DesiredState, isComplete: boolean): boolean {
  const isReading = (!isComplete && state.completeSources !== undefined) || state.unreadSecrets !== undefined;
  return isReading && !hasReferences(podReferences(pod), state);
}

/**
 * The revision while ConfigMaps or Secrets of the pod may be in a source that was not read yet: containers whose
 * environment uses one of them keep the revision they run, and files of volumes stay as they are. Everything else, such as
 * probes and restarts, is as usual. Pure.
 */
export function toTentativeRevision(revision: PodRevision, snapshot: PodSnapshot): PodRevision {
  const { pod, objects, hashes } = revision;
  const kept = allContainersOf(pod.spec).flatMap((container): [string, string][] => {
    if (hasReferences(environmentReferences(pod, container), objects)) return [];
    const [newest] = attemptsOf(snapshot, container.name);
    return newest ? [[container.name, newest.hash]] : [];
  });
  const containers = new Map([...hashes.containers, ...kept]);
  const runsOnlyOnce = revision.runRevision === pod.metadata.uid;
  return {
    ...revision,
    hashes: { ...hashes, containers },
    // A pod that has ended must not look edited either.
    runRevision: runsOnlyOnce ? revision.runRevision : computeRunRevision(pod, { ...hashes, containers }),
    isTentative: true,
  };
}

/**
 * The revision that a pod of an earlier process runs, as far as this process knows it: containers of another revision than
 * `next` count as they are, without the probes and limits that they may not have had. One that has to start again is of
 * `next`: its label must not name values that are not known any more. Pure.
 */
export function toRunningRevision(next: PodRevision, snapshot: PodSnapshot): PodRevision {
  const { pod, hashes } = next;
  const [sandbox] = snapshot.sandboxes;
  const running = new Map(
    allContainersOf(pod.spec).flatMap(({ name }): [string, string][] => {
      const [newest] = attemptsOf(snapshot, name);
      return newest && (isRunning(newest) || pod.spec.restartPolicy !== "Always") ? [[name, newest.hash]] : [];
    }),
  );
  const isAsBefore = (name: string) => running.get(name) === hashes.containers.get(name);
  const withoutProbes = <T extends Container>(container: T): T => {
    const { livenessProbe: _, readinessProbe: __, startupProbe: ___, ...others } = container;
    return isAsBefore(container.name) ? container : (others as T);
  };
  return {
    ...next,
    isAssumed: true,
    pod: { ...pod, spec: mapContainers(pod.spec, withoutProbes) },
    hashes: {
      ...hashes,
      sandbox: sandbox?.hash ?? hashes.sandbox,
      ...(sandbox?.initHash !== undefined && { init: sandbox.initHash }),
      containers: new Map([...hashes.containers, ...running]),
      limits: new Map([...hashes.limits].filter(([name]) => isAsBefore(name))),
    },
  };
}

/** The revision of a pod that keeps its resources: a condition says why. */
export const withPendingResize = (revision: PodRevision, { reason, message }: PendingResize): PodRevision => ({
  ...revision,
  extraConditions: [...(revision.extraConditions ?? []), { type: "PodResizePending", status: "True", reason, message }],
});

/** The revision of a pod whose edit waits: a condition says why. @param isPreparing it has not failed so far */
export const withPendingEdit = (revision: PodRevision, message: string, isPreparing: boolean): PodRevision => ({
  ...revision,
  ...(isPreparing && { isToBeReplaced: true }),
  extraConditions: [
    ...(revision.extraConditions ?? []).filter(({ type }) => type !== "ManifestLive"),
    { type: "ManifestLive", status: "False", reason: "EditPending", message },
  ],
});

/** A pod of a workload, as an edit that stops another one of it sees it. */
export interface PodTurn extends PodRef {
  /** It is not Ready: an edit can only mend it. */
  isBroken: boolean;
  /** It was not Ready when its edit came. */
  wasBroken: boolean;
  /** It has the edit: none of it waits. */
  hasEdit: boolean;
  /** Ready, and all of it is of the revision that it is to run now. */
  isAvailable: boolean;
  /** Its own edit is about to take effect. */
  isNext: boolean;
}

/**
 * The pod of the same workload for which an edit waits: of several edited pods one is stopped at a time, that of the highest
 * ordinal first, as a StatefulSet does. While one has the edit and is not available, another one that worked before keeps what
 * it ran, also over its restarts, as the old pods of a Deployment do. Pure.
 */
export function findPodBefore(own: PodTurn, others: readonly PodTurn[]): PodTurn | undefined {
  const stuck = others.find((it) => it.hasEdit && !it.isAvailable);
  if (own.isBroken && (own.wasBroken || !stuck)) return undefined;
  const isHigher = ({ name }: PodTurn) => name.localeCompare(own.name, "en", { numeric: true }) > 0;
  return stuck ?? others.find((it) => !it.isAvailable) ?? others.find((it) => it.isNext && isHigher(it));
}

export const pendingResizeOf = (revision: PodRevision | undefined) =>
  revision?.extraConditions?.find(({ type }) => type === "PodResizePending");

const computeRunRevision = (pod: Pod, { sandbox, containers }: PodHashes): string =>
  toHash([
    sandbox,
    // A container added to an ended pod does not run it again.
    ...containersOf(pod.spec).map(({ name }) => containers.get(name) ?? ""),
    // A finished pod may end otherwise under another deadline or policy.
    String(pod.spec.activeDeadlineSeconds),
    pod.spec.restartPolicy ?? "Always",
  ]);

/** The pod as it is compared with what runs: an image that was updated is another image, one that was only pinned is not. */
function withPinnedImages(pod: Pod, pins: DesiredPod["imagePins"]): Pod {
  if (!pins) return pod;
  const toPinned = <T extends { image?: string | undefined }>(container: T): T => {
    const pin = pins.get(container.image ?? "");
    return pin && !pin.isBaseline ? { ...container, image: pin.ref } : container;
  };
  return { ...pod, spec: mapContainers(pod.spec, toPinned) };
}

function maxBackOffMs(pod: Pod, nodeMs: number): number {
  const text = pod.metadata.annotations?.[MAX_RESTART_PERIOD_ANNOTATION];
  const ms = text === undefined ? undefined : parseDuration(text);
  return ms === undefined || !(ms >= 1000 && ms <= 300_000) ? nodeMs : ms;
}

/** Revision of every ConfigMap and Secret the pod refers to. */
function objectsUsed(pod: Pod, state: DesiredState): string[] {
  return podReferences(pod).map(({ kind, fullName }) => {
    const object = kind === "ConfigMap" ? state.configMaps.get(fullName) : state.secrets.get(fullName);
    return `${kind} ${fullName} ${object ? contentRevisionOf(object) : "-"}`;
  });
}

/** A large object of many pods is read once. */
const contentRevisionOf = memoized((object: object) => toHash(object));

/** JSON with sorted keys in which absent and empty are the same: a field of a later version changes no hash. */
function toCanonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => {
    if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
    const entries = Object.entries(part).filter(([, member]) => !isNothing(member));
    return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

const isNothing = (value: unknown) =>
  value === undefined ||
  value === null ||
  (typeof value === "object" && Object.values(value).every((member) => member === undefined));

const toHashOfText = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 16);
const toHash = (value: unknown) => toHashOfText(toCanonicalJson(value));

/** Facts of a revision that depend on nothing but the pod: every change of any pod computes the revisions of all. */
const ownFactsOf = memoized((pod: Pod) => ({
  qosClass: computeQosClass(pod),
  sandbox: computeSandboxHash(pod),
  init: computeInitHash(pod),
  containers: new Map(
    allContainersOf(pod.spec).map((container) => [container.name, computeContainerHash(pod, container, "")]),
  ),
}));

/** Restarts by an edit of a field of a pod, besides those of parts with revisions of their own. A new field needs a row. */
const RESTARTS: Readonly<Record<keyof PodSpec, "pod" | "containers" | "nothing">> = {
  ...rowsOf("hostNetwork hostPID hostIPC hostUsers shareProcessNamespace runtimeClassName securityContext", "pod"),
  ...rowsOf("hostname subdomain setHostnameAsFQDN hostnameOverride dnsPolicy dnsConfig", "pod"),
  hostAliases: "containers",
  // Their revisions leave out what takes effect in a running container.
  ...rowsOf("containers initContainers ephemeralContainers volumes", "nothing"),
  // The cgroup of the pod changes in place.
  ...rowsOf("resources overhead", "nothing"),
  // A container that starts for another reason has the variables of Services that are wanted then.
  enableServiceLinks: "nothing",
  ...rowsOf("restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds readinessGates", "nothing"),
  ...rowsOf("imagePullSecrets serviceAccountName serviceAccount automountServiceAccountToken", "nothing"),
  ...rowsOf("nodeName nodeSelector affinity schedulerName tolerations topologySpreadConstraints os", "nothing"),
  ...rowsOf("priorityClassName priority preemptionPolicy schedulingGates resourceClaims workloadRef", "nothing"),
};

const fieldsThatRestart = (what: "pod" | "containers", spec: PodSpec) =>
  Object.fromEntries(Object.entries(spec).filter(([name]) => RESTARTS[name as keyof PodSpec] === what));

/** Names are without prefix and in camel case: hashes of earlier versions stay the same. */
const restartingAnnotationsOf = ({ metadata: { annotations } }: Pod) =>
  Object.fromEntries(
    RESTARTING_ANNOTATIONS.map(({ name }) => [
      name.slice(ANNOTATION_PREFIX.length).replace(/-(.)/g, (_, letter: string) => letter.toUpperCase()),
      annotations?.[name],
    ]),
  );

/** Revision of what only a new sandbox can change, and so a restart of the whole pod. */
export const computeSandboxHash = (pod: Pod): string =>
  toHash({
    ...fieldsThatRestart("pod", pod.spec),
    hostPorts: computeHostPorts(pod),
    ...restartingAnnotationsOf(pod),
    qosClass: computeQosClass(pod),
  });

/** Revision of the init containers, sidecars left out: an edit of one starts the pod again, as the sandbox hash does. */
const computeInitHash = ({ spec }: Pod): string =>
  toHash(
    (spec.initContainers ?? [])
      .filter((container) => !isSidecar(container))
      .map(({ resizePolicy: _, imagePullPolicy: __, ...container }) => ({
        ...container,
        resources: toFixedResources({ ...container, resizePolicy: _ }),
      })),
  );

const RESIZABLE = ["cpu", "memory"] as const;

const restartsOnResize = (policies: readonly ContainerResizePolicy[] | undefined, resource: string) =>
  policies?.some(
    ({ resourceName, restartPolicy }) => resourceName === resource && restartPolicy === "RestartContainer",
  );

/** Requests and limits without the part that can be changed in the running container. */
function toFixedResources({ resources, resizePolicy }: Container) {
  const resizable = RESIZABLE.filter((resource) => !restartsOnResize(resizePolicy, resource));
  const withoutResizable = (list: Container["resources"]["limits"]) =>
    list && Object.fromEntries(Object.entries(list).filter(([name]) => !resizable.some((other) => other === name)));
  return {
    ...resources,
    requests: withoutResizable(resources.requests),
    limits: withoutResizable(resources.limits),
    // The engine changes a memory limit in place, but cannot take one away.
    hasMemoryLimit: memoryBytesOf(resources.limits) > 0,
  };
}

/** A mount that is there keeps its options. Source: the kubelet never mounts a volume of a running pod again. */
function withoutMountOptions(volume: Volume): Volume {
  const { local: _, ...hostPath } = volume.hostPath ?? {};
  const { mountOptions: __, ...nfs } = volume.nfs ?? {};
  return { ...volume, ...(volume.hostPath && { hostPath }), ...(volume.nfs && { nfs }) } as Volume;
}

/** The place for the revision of its sources in the text of a container. No string in the text has bare quotes. */
const SOURCES = ',"sourcesRevision":"?"';

/** A container as text, without what takes effect in a running one: an edit of an object gives it only another revision. */
const containerTextOf = memoized((container: Container, pod: Pod): string => {
  const { resizePolicy: _, imagePullPolicy: __, ...fixed } = container;
  const mounted = new Set(
    [...(container.volumeMounts ?? []), ...(container.volumeDevices ?? [])].map(({ name }) => name),
  );
  for (const { valueFrom } of container.env ?? []) {
    if (valueFrom?.fileKeyRef) mounted.add(valueFrom.fileKeyRef.volumeName);
  }
  return toCanonicalJson({
    container: { ...fixed, resources: toFixedResources(container) },
    volumes: (pod.spec.volumes ?? []).filter(({ name }) => mounted.has(name)).map(withoutMountOptions),
    ...fieldsThatRestart("containers", pod.spec),
    // The deprecated annotations count only through what they mean for this container.
    seccomp: computeSeccompProfile(pod, container),
    appArmor: computeAppArmorProfile(pod, container),
    critical: isCriticalPod(pod) || undefined,
    sourcesRevision: "?",
  });
});

/**
 * Revision of one container: an edit restarts it and no other. Left out is what takes effect without a restart.
 * @param sourcesRevision of the ConfigMaps and Secrets of its environment; "" for none
 */
export function computeContainerHash(pod: Pod, container: Container, sourcesRevision: string): string {
  const sources = sourcesRevision === "" ? "" : SOURCES.replace("?", sourcesRevision);
  return toHashOfText(containerTextOf(container, pod).replace(SOURCES, sources));
}

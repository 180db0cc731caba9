import type { Pod, ResourceList, Toleration } from "../base/api/pod.ts";
import { quantityToMilli, quantityToWhole } from "../base/api/quantity.ts";
import type { DesiredPod } from "../base/model/desired-state.ts";
import { memoized } from "../base/model/memoized.ts";
import { type NodeInfo, UNSCHEDULABLE_TAINT } from "../base/model/node.ts";
import type { EvictionSignal } from "../base/model/option-values.ts";
import { type Persisted, StoredMap } from "../base/model/persisted.ts";
import { containersOf, controllerOf, type PodUID, podFullName } from "../base/model/pod.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import { matchesNode, matchesOnlyNode } from "./node-affinity.ts";
import type { PodRefusal } from "./pod-end-reasons.ts";
import { computeHostPorts, type HostPort, isSameClaim } from "./pod-network.ts";
import {
  allocationOf,
  computePodTotal,
  cpuMillisOf,
  hasResources,
  hugePageNamesOf,
  isCriticalPod,
  memoryBytesOf,
  type PendingResize,
  type PodAllocation,
  withAllocation,
} from "./pod-resources.ts";

/** Resources the node offers to pods. */
export interface AdmissionNode {
  name: string;
  labels: Readonly<Record<string, string>>;
  /** Labels that templates ask for count as in a cluster; see {@link matchesOnlyNode}. */
  comparesAllLabels?: boolean;
  maxPods: number;
  /** Allocatable: capacity without what is reserved. A member that is absent is not limited. */
  cpuMillis?: number;
  memoryBytes?: number;
  ephemeralStorageBytes?: number;
  /** Huge pages by resource name, e.g. `hugepages-2Mi`; a missing size is not available. */
  hugePageBytes?: Readonly<Record<string, number>>;
}

/** Why the node does not run a pod: upstream's words, then details that kubelet 1.20 left out. */
export interface Rejection {
  reason: string;
  message: string;
}

interface AdmissionInput {
  /** In the order in which they get what is left. */
  pods: readonly DesiredPod[];
  /** Have their place already: they keep it before new ones. */
  running: ReadonlySet<PodUID>;
  /** Refused last time: they may still be stopping. */
  refused?: ReadonlySet<PodUID>;
  /** As they were when they were admitted last; an edit may ask for more than its pod holds. */
  held?: ReadonlyMap<PodUID, Pod>;
  /** Resources of running pods that are not in `held`, from before this process; without an entry: what they ask for. */
  allocations?: ReadonlyMap<PodUID, PodAllocation>;
  /** Manifests of before, of running pods that were edited. */
  earlier?: ReadonlyMap<PodUID, DesiredPod>;
  node: AdmissionNode;
}

const NONE: ReadonlyMap<PodUID, never> = new Map<PodUID, never>();

/** The verdict of the node on a set of pods. A pod without an entry runs as its manifest says. */
export interface Admission {
  rejections: ReadonlyMap<PodUID, Rejection>;
  /** Running pods that keep their resources, because the node cannot give them those of their edit. */
  resizes: ReadonlyMap<PodUID, PendingResize>;
  /** Running pods that keep running with their earlier manifest, because the node refuses the edit. */
  refusedEdits: ReadonlyMap<PodUID, Rejection>;
}

interface Resource {
  name: string;
  capacity: (node: AdmissionNode) => number | undefined;
  amountIn: (list: ResourceList | undefined) => number;
}

const RESOURCES: readonly Resource[] = [
  { name: "cpu", capacity: (node) => node.cpuMillis, amountIn: cpuMillisOf },
  { name: "memory", capacity: (node) => node.memoryBytes, amountIn: memoryBytesOf },
  {
    name: "ephemeral-storage",
    capacity: (node) => node.ephemeralStorageBytes,
    amountIn: (list) => quantityToWhole(list?.["ephemeral-storage"] ?? "0"),
  },
];

/**
 * Requests of a pod for the resources it may be refused for: those every node has, and the sizes of huge pages it names.
 * All pods are judged at each change, so their quantities are read once.
 */
const requestsOf = memoized((pod: Pod) => {
  const everyone = [...containersOf(pod.spec), pod.spec];
  const names = new Set(everyone.flatMap(({ resources }) => hugePageNamesOf(resources?.requests)));
  const hugePages = [...names].map((name) => ({
    name,
    capacity: ({ hugePageBytes }: AdmissionNode) => hugePageBytes && (hugePageBytes[name] ?? 0),
    amountIn: (list: ResourceList | undefined) => quantityToWhole(list?.[name] ?? "0"),
  }));
  return [...RESOURCES, ...hugePages].map(({ name, capacity, amountIn }) => ({
    name,
    capacity,
    requested: computePodTotal(pod, "requests", amountIn),
  }));
});

/**
 * Which pods the node refuses. Critical pods come first and take resources (not ports) from others, then pods that
 * already run, then the rest by age (pods of manifests first). A refused pod is reconsidered whenever anything changes. A
 * running pod keeps its place when the node offers less than before; for an edit of its resources it waits until all
 * running pods have what they hold.
 * Source: the kubelet's GeneralPredicates, CriticalPodAdmissionHandler, canResizePod.
 */
export function admitPods(input: AdmissionInput): Admission {
  const admission = judgePods(input, new Set());
  // Edits that ask for host ports of each other: none of them ever takes effect unless all do.
  let swaps = [...admission.refusedEdits].flatMap(([uid, { reason }]) => (reason === "NodePorts" ? [uid] : []));
  while (swaps.length > 0) {
    const swapped = judgePods(input, new Set(swaps));
    const left = swaps.filter((uid) => !swapped.rejections.has(uid) && !swapped.refusedEdits.has(uid));
    if (left.length === swaps.length) return swapped;
    swaps = left;
  }
  return admission;
}

/** @param swaps pods whose edits give back their host ports */
function judgePods(input: AdmissionInput, swaps: ReadonlySet<PodUID>): Admission {
  const { pods, running, refused, held = NONE, allocations = NONE, earlier = NONE, node } = input;
  const uidOf = ({ pod }: DesiredPod) => pod.metadata.uid!;
  const admittedOf = (uid: PodUID) => earlier.get(uid)?.pod ?? held.get(uid);
  const rank = (desired: DesiredPod) => (isCriticalPod(desired.pod) ? 0 : running.has(uidOf(desired)) ? 1 : 2);
  const ordered = pods.map((desired, index) => ({ desired, index, rank: rank(desired) }));
  ordered.sort((a, b) => a.rank - b.rank || compareAge(a.desired, b.desired) || a.index - b.index);

  const rejections = new Map<PodUID, Rejection>();
  const refusedEdits = new Map<PodUID, Rejection>();
  const resized: Resized[] = [];
  const taken = new Taken();
  // Ports in use count first, in any order: no pod loses its port to another. An edit that waits gives none back yet.
  for (const desired of pods) {
    const uid = uidOf(desired);
    if (running.has(uid) && !swaps.has(uid)) taken.addPorts(uid, admittedOf(uid) ?? desired.pod);
  }
  let isPreempted = false;
  const judge = (desired: DesiredPod, isEdit: boolean) => {
    const uid = uidOf(desired);
    const pod = running.has(uid) ? asAllocated(desired.pod, held.get(uid), allocations.get(uid)) : desired.pod;
    const keepsPlace = running.has(uid) && !isEdit && !isPreempted && !refused?.has(uid);
    const rejection =
      (keepsPlace ? undefined : rejectForResources(pod, taken, node, isPreempted && running.has(uid))) ??
      rejectForPorts(uid, pod, taken) ??
      // Labels count when a pod is scheduled: a pod that runs is not stopped when they change.
      (running.has(uid) && wasScheduled(desired, admittedOf(uid)) ? undefined : rejectForNode(desired, node));
    return { desired, pod, rejection };
  };
  const place = (newest: DesiredPod) => {
    const uid = uidOf(newest);
    const before = running.has(uid) ? earlier.get(uid) : undefined;
    const verdict = judge(newest, before !== undefined);
    const kept = verdict.rejection && before && judge(before, false);
    if (verdict.rejection && kept && !kept.rejection) refusedEdits.set(uid, verdict.rejection);
    const { desired, pod, rejection } = kept ?? verdict;
    if (rejection) {
      rejections.set(uid, verdict.rejection!);
      return;
    }
    taken.add(uid, pod);
    if (pod !== desired.pod) resized.push({ uid, allocated: pod, wanted: desired.pod });
    if (isCriticalPod(pod) && !running.has(uid)) isPreempted = true;
  };
  for (const { desired, rank } of ordered) if (rank < 2) place(desired);
  const resizes = settleResizes(resized, taken, node);
  for (const { desired, rank } of ordered) if (rank === 2) place(desired);
  return { rejections, resizes, refusedEdits };
}

/**
 * Whether the labels of the node were compared before this pod ran.
 * @param before the pod as it was admitted; undefined when an earlier process has done that
 */
const wasScheduled = ({ isBound, isFromTemplate, source, pod: { spec } }: DesiredPod, before: Pod | undefined) =>
  isBound ||
  isFromTemplate ||
  (before
    ? Bun.deepEquals([spec.nodeSelector, spec.affinity], [before.spec.nodeSelector, before.spec.affinity])
    : source === "api");

/** The older one first. Source: the kubelet's `PodsByCreationTime`. */
function compareAge(a: DesiredPod, b: DesiredPod): number {
  const [createdA, createdB] = [a, b].map(({ pod }) => pod.metadata.creationTimestamp ?? "") as [string, string];
  if (createdA !== createdB) return createdA < createdB ? -1 : 1;
  return (a.resourceVersion ?? 0) - (b.resourceVersion ?? 0);
}

/** A running pod with the resources it holds. */
function asAllocated(wanted: Pod, held: Pod | undefined, stored: PodAllocation | undefined): Pod {
  if (held === wanted) return wanted;
  const allocation = held ? allocationOf(held) : stored;
  return allocation ? withAllocation(wanted, allocation) : wanted;
}

/** A running pod whose edit asks for other resources than it holds. */
interface Resized {
  uid: PodUID;
  allocated: Pod;
  wanted: Pod;
}

/** Gives running pods the resources of their edits as far as there are any. @returns those that have to wait */
function settleResizes(resized: readonly Resized[], taken: Taken, node: AdmissionNode): Map<PodUID, PendingResize> {
  for (let open = resized; ; ) {
    const waiting = new Map<PodUID, PendingResize>();
    for (const { uid, allocated, wanted } of open) {
      taken.removeResources(allocated);
      const lacking = findLacking(wanted, taken, node);
      taken.addResources(lacking.length === 0 ? wanted : allocated);
      if (lacking.length > 0) waiting.set(uid, { pod: allocated, ...describeLack(lacking) });
    }
    if (waiting.size === open.length) return waiting;
    // A pod that shrinks may make room for one before it.
    open = open.filter(({ uid }) => waiting.has(uid));
  }
}

/** Source: the kubelet's canResizePod. */
function describeLack(lacking: readonly Lack[]): Pick<PendingResize, "reason" | "message"> {
  const never = lacking.find(({ requested, capacity }) => requested > capacity);
  if (never) {
    const { name, requested, capacity } = never;
    const message = `Node didn't have enough capacity: ${name}, requested: ${requested}, capacity: ${capacity}`;
    return { reason: "Infeasible", message };
  }
  return { reason: "Deferred", message: describeFirst(lacking[0]!) };
}

/** Resources and ports already taken. */
class Taken {
  podCount = 0;
  readonly used = new Map<string, number>();
  readonly #ports = new Map<number, { uid: PodUID; pod: Pod; claim: HostPort }[]>();

  add(uid: PodUID, pod: Pod): void {
    this.addResources(pod);
    this.addPorts(uid, pod);
  }

  addResources(pod: Pod, sign = 1): void {
    this.podCount += sign;
    for (const { name, requested } of requestsOf(pod)) {
      this.used.set(name, (this.used.get(name) ?? 0) + sign * requested);
    }
  }

  removeResources(pod: Pod): void {
    this.addResources(pod, -1);
  }

  addPorts(uid: PodUID, pod: Pod): void {
    for (const claim of computeHostPorts(pod)) {
      this.#ports.getOrInsert(claim.hostPort, []).push({ uid, pod, claim });
    }
  }

  holdersOf(claim: HostPort): { uid: PodUID; pod: Pod }[] {
    return (this.#ports.get(claim.hostPort) ?? []).filter((entry) => isSameClaim(entry.claim, claim));
  }
}

/** A resource of which the node has too little left. */
interface Lack {
  name: string;
  requested: number;
  used: number;
  capacity: number;
}

function findLacking(pod: Pod, taken: Taken, node: AdmissionNode): Lack[] {
  const lacking: Lack[] = [];
  if (taken.podCount + 1 > node.maxPods) {
    lacking.push({ name: "pods", requested: 1, used: taken.podCount, capacity: node.maxPods });
  }
  for (const { name, capacity, requested } of requestsOf(pod)) {
    const limit = capacity(node);
    if (limit === undefined || requested === 0) continue;
    const used = taken.used.get(name) ?? 0;
    if (used + requested > limit) lacking.push({ name, requested, used, capacity: limit });
  }
  return lacking;
}

const describeFirst = ({ name, requested, used, capacity }: Lack) =>
  `Node didn't have enough resource: ${name}, requested: ${requested}, used: ${used}, capacity: ${capacity}`;

function rejectForResources(pod: Pod, taken: Taken, node: AdmissionNode, isPreempted: boolean): PodRefusal | undefined {
  const lacking = findLacking(pod, taken, node);
  const [first] = lacking;
  if (!first) return undefined;
  if (isPreempted) return { reason: "Preempting", message: "Preempted in order to admit critical pod" };
  if (isCriticalPod(pod)) {
    const missing = lacking.map(
      ({ name, requested, used, capacity }) => `(res: ${name}, q: ${requested - (capacity - used)}), `,
    );
    return {
      reason: "UnexpectedAdmissionError",
      message: `Pod Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [${missing.join("")}]`,
    };
  }
  return { reason: `OutOf${first.name}`, message: `Pod ${describeFirst(first)}` };
}

function rejectForPorts(uid: PodUID, pod: Pod, taken: Taken): PodRefusal | undefined {
  for (const claim of computeHostPorts(pod)) {
    const holders = taken.holdersOf(claim);
    // A port the pod itself holds: the conflict is caused by an edit of the other pod.
    const holder = holders.some((entry) => entry.uid === uid) ? undefined : holders[0];
    if (!holder) continue;
    const { hostIP, hostPort, protocol } = claim;
    return {
      reason: "NodePorts",
      message: `Pod Predicate NodePorts failed: host port ${hostIP === "" ? "" : `${hostIP}:`}${hostPort}/${protocol} is held by pod "${podFullName(holder.pod.metadata)}"`,
    };
  }
  return undefined;
}

const labelsFlag = (labels: readonly [string, string][]): string =>
  `--node-labels=${labels.map(([key, value]) => `${key}=${value}`).join(",")}`;

/** The next step where a nodeSelector or a node affinity asks for labels that the node does not have. */
function describeMissingLabels({ spec }: Pod, labels: Readonly<Record<string, string>>): string {
  const missing = Object.entries(spec.nodeSelector ?? {}).filter(([key, value]) => labels[key] !== value);
  if (missing.length > 0) return `; ${labelsFlag(missing)} gives the node what the nodeSelector asks for`;
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const asked = (terms[0]?.matchExpressions ?? []).filter(({ operator }) => operator === "In");
  const lacking = asked.filter(({ key, values = [] }) => !values.includes(labels[key] ?? ""));
  if (lacking.length === 0) return "";
  const flag = labelsFlag(lacking.map(({ key, values = [] }) => [key, values[0] ?? ""]));
  return `; ${flag} gives the node what the node affinity asks for`;
}

/** The text of a URL is often meant for many machines, among which labels choose. */
const isOfThisNodeAlone = ({ isFromTemplate, source }: DesiredPod) => isFromTemplate === true && source !== "http";

/** Why the node is none of those that the pod may run on; undefined where it is one. */
export function rejectForNode(desired: DesiredPod, node: AdmissionNode): PodRefusal | undefined {
  const { pod } = desired;
  const isMatch =
    isOfThisNodeAlone(desired) && !node.comparesAllLabels
      ? matchesOnlyNode(pod, node.name, node.labels).matches
      : matchesNode(pod, node.name, node.labels);
  if (!isMatch) {
    return {
      reason: "NodeAffinity",
      message: `Pod Predicate NodeAffinity failed: the labels of this node (see --node-labels) do not match its nodeSelector or node affinity${describeMissingLabels(pod, node.labels)}`,
    };
  }
  const os = pod.spec.os?.name;
  if (os !== undefined && os !== "linux") {
    return {
      reason: "PodOSNotSupported",
      message: `Pod was rejected: Failed to admit pod as the OS field doesn't match node OS: spec.os.name is ${os}, this node runs linux`,
    };
  }
  return undefined;
}

/** Resources of pods with requests or limits, by UID. */
export type StoredAllocations = Readonly<Record<PodUID, PodAllocation>>;

/** Remembers what each pod held when it was admitted last, also over a restart of this process. */
export class NodeAdmission {
  readonly #node: AdmissionNode;
  #held = new Map<PodUID, Pod>();
  #refused: ReadonlySet<PodUID> = new Set();
  readonly #allocations: StoredMap<PodUID, PodAllocation, StoredAllocations>;

  constructor(node: AdmissionNode, file: Persisted<StoredAllocations>) {
    this.#node = node;
    this.#allocations = new StoredMap(file, Object.entries, Object.fromEntries);
  }

  /**
   * @param earlier manifests of before, of running pods that were edited
   * @param isComplete these are all pods: what others held is forgotten
   */
  admit(
    pods: readonly DesiredPod[],
    running: ReadonlySet<PodUID>,
    isComplete: boolean,
    earlier: ReadonlyMap<PodUID, DesiredPod> = new Map(),
  ): Admission {
    const admission = admitPods({
      pods,
      running,
      refused: this.#refused,
      held: this.#held,
      allocations: this.#allocations,
      earlier,
      node: this.#node,
    });
    this.#refused = new Set(admission.rejections.keys());
    const before = this.#held;
    this.#held = new Map();
    for (const { pod } of pods) {
      const uid = pod.metadata.uid!;
      if (admission.rejections.has(uid)) {
        this.#allocations.delete(uid);
        continue;
      }
      const kept = admission.refusedEdits.has(uid) ? earlier.get(uid)?.pod : undefined;
      const given = admission.resizes.get(uid)?.pod ?? kept ?? pod;
      this.#held.set(uid, given);
      if (given !== before.get(uid)) this.#setAllocation(uid, allocationOf(given));
    }
    if (isComplete) {
      for (const uid of this.#allocations.keys()) if (!this.#held.has(uid)) this.#allocations.delete(uid);
    }
    return admission;
  }

  #setAllocation(uid: PodUID, allocation: PodAllocation): void {
    if (!hasResources(allocation)) this.#allocations.delete(uid);
    else if (!Bun.deepEquals(this.#allocations.get(uid), allocation)) this.#allocations.set(uid, allocation);
  }
}

type ReservedOptions = Pick<KubeletOptions, "systemReserved" | "kubeReserved" | "evictionHard">;

/** Capacity without what is reserved, the hard eviction threshold and huge pages. Source: NodeAllocatable. */
export function computeNodeAllocatable(
  node: Pick<NodeInfo, "cpuCount" | "memoryBytes" | "hugePageBytes">,
  options: ReservedOptions,
): { cpuMillis: number; memoryBytes: number } {
  const hugePages = Object.values(node.hugePageBytes ?? {}).reduce((sum, bytes) => sum + bytes, 0);
  const keptBytes =
    reserved("memory", quantityToWhole, options) + thresholdOf("memory.available", node.memoryBytes, options);
  return {
    cpuMillis: Math.max(0, node.cpuCount * 1000 - reserved("cpu", quantityToMilli, options)),
    memoryBytes: Math.max(0, node.memoryBytes - keptBytes - hugePages),
  };
}

/**
 * Bounds of the cgroup `kubepods`: capacity without reservations. Source: the kubelet with enforceNodeAllocatable=pods.
 */
export function computeKubepodsBounds(
  node: Pick<NodeInfo, "cpuCount" | "memoryBytes" | "pidLimit">,
  options: Pick<ReservedOptions, "systemReserved" | "kubeReserved">,
): { cpuMillis: number; memoryBytes: number; pids?: number } {
  const left = (capacity: number, name: string, amount: (text: string) => number) =>
    Math.max(1, capacity - reserved(name, amount, options));
  return {
    cpuMillis: left(node.cpuCount * 1000, "cpu", quantityToMilli),
    memoryBytes: left(node.memoryBytes, "memory", quantityToWhole),
    ...(node.pidLimit && { pids: left(node.pidLimit, "pid", quantityToWhole) }),
  };
}

/** Disk for pods: capacity without reservations, as {@link computeNodeAllocatable} computes it for memory. */
export function computeAllocatableDisk(capacityBytes: number, options: ReservedOptions): number {
  const keptBytes =
    reserved("ephemeral-storage", quantityToWhole, options) + thresholdOf("nodefs.available", capacityBytes, options);
  return Math.max(0, capacityBytes - keptBytes);
}

/** `--max-pods`, and no more than `--pods-per-core` allows. */
export const computeMaxPods = (
  { maxPods, podsPerCore }: Pick<KubeletOptions, "maxPods" | "podsPerCore">,
  cpuCount: number,
): number => (podsPerCore > 0 ? Math.min(maxPods, podsPerCore * cpuCount) : maxPods);

const reserved = (
  name: string,
  amount: (text: string) => number,
  { systemReserved, kubeReserved }: Pick<ReservedOptions, "systemReserved" | "kubeReserved">,
): number => amount(systemReserved[name] ?? "0") + amount(kubeReserved[name] ?? "0");

function thresholdOf(watched: EvictionSignal, capacity: number, { evictionHard }: ReservedOptions): number {
  const threshold = evictionHard.find(({ signal }) => signal === watched);
  if (!threshold) return 0;
  return "quantity" in threshold ? threshold.quantity : Math.floor((capacity * threshold.percentage) / 100);
}

/**
 * Whether a pod stays Pending because the node is cordoned. Pods of files and URLs never pass a scheduler, and those of
 * DaemonSets tolerate the cordon.
 * @param isSubmitted to the API
 * @param assigned pods that were assigned to the node before
 */
export function isHeldByCordon({ pod }: DesiredPod, isSubmitted: boolean, assigned: readonly PodUID[]): boolean {
  const controller = controllerOf(pod);
  if (!isSubmitted && !controller) return false;
  if (controller?.kind === "DaemonSet" || pod.spec.tolerations?.some(toleratesCordon)) return false;
  return !assigned.includes(pod.metadata.uid ?? "");
}

/** Source: core/v1 `Toleration.ToleratesTaint`. The taint has no value. */
function toleratesCordon({ key = "", effect, operator = "Equal", value = "" }: Toleration): boolean {
  if (effect && effect !== UNSCHEDULABLE_TAINT.effect) return false;
  if (key !== "" && key !== UNSCHEDULABLE_TAINT.key) return false;
  return operator === "Exists" || (key !== "" && value === "");
}

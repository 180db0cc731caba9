import type { Pod, ResourceList } from "../api/pod.ts";
import { quantityToWhole } from "../api/quantity.ts";
import type { DesiredPod } from "../model/desired-pod.ts";
import { type PodUID, podFullName } from "../model/identity.ts";
import { containersOf } from "../model/pod-containers.ts";
import { computeHostPorts, type HostPort, isSameClaim } from "./host-ports.ts";
import { matchesNode, matchesOnlyNode } from "./node-affinity.ts";
import { computePodTotal, cpuMillisOf, hugePageNamesOf, memoryBytesOf } from "./pod-resources.ts";
import { isCriticalPod } from "./qos-class.ts";

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

/**
 * Why the node does not run a pod, in the words of upstream's pod status, followed by details that kubelet 1.20 left
 * out, e.g. which pod holds the port.
 */
export interface Rejection {
  reason: string;
  message: string;
}

export interface AdmissionInput {
  /** In the order in which they get what is left. */
  pods: readonly DesiredPod[];
  /** Have their place already: they keep it before new ones. */
  running: ReadonlySet<PodUID>;
  /** As they were when they were admitted last; an edit may ask for more than its pod holds. */
  held: ReadonlyMap<PodUID, Pod>;
  node: AdmissionNode;
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

/** The resources a pod may be refused for: those every node has, and the sizes of huge pages it asks for. */
function resourcesOf({ spec }: Pod): Resource[] {
  const everyone = [...containersOf(spec), spec];
  const names = new Set(everyone.flatMap(({ resources }) => hugePageNamesOf(resources?.requests)));
  const hugePages = [...names].map((name) => ({
    name,
    capacity: ({ hugePageBytes }: AdmissionNode) => hugePageBytes && (hugePageBytes[name] ?? 0),
    amountIn: (list: ResourceList | undefined) => quantityToWhole(list?.[name] ?? "0"),
  }));
  return [...RESOURCES, ...hugePages];
}

/**
 * Which pods the node refuses. Critical pods come first and take resources (not ports) from others, then pods that
 * already run, then the rest in their order. A refused pod is reconsidered whenever anything changes, unlike
 * upstream's, which stays refused. Source: the kubelet's GeneralPredicates, canAdmitPod, CriticalPodAdmissionHandler
 *.
 */
export function admitPods({ pods, running, held, node }: AdmissionInput): Map<PodUID, Rejection> {
  const uidOf = ({ pod }: DesiredPod) => pod.metadata.uid!;
  const rank = (desired: DesiredPod) => (isCriticalPod(desired.pod) ? 0 : running.has(uidOf(desired)) ? 1 : 2);
  const ordered = pods.map((desired, index) => ({ desired, index, rank: rank(desired) }));
  ordered.sort((a, b) => a.rank - b.rank || a.index - b.index);

  const rejections = new Map<PodUID, Rejection>();
  const taken = new Taken();
  // Ports in use count first, in any order: no pod loses its port to another.
  for (const desired of pods) {
    const uid = uidOf(desired);
    if (running.has(uid)) taken.addPorts(uid, held.get(uid) ?? desired.pod);
  }
  let isPreempted = false;
  for (const { desired } of ordered) {
    const uid = uidOf(desired);
    const rejection =
      rejectForResources(desired.pod, taken, node, isPreempted && running.has(uid)) ??
      rejectForPorts(uid, desired.pod, taken) ??
      // Labels count when a pod is scheduled: a pod that runs is not stopped when they change.
      ((desired.isBound || desired.isFromTemplate) && running.has(uid) ? undefined : rejectForNode(desired, node));
    if (rejection) {
      rejections.set(uid, rejection);
      continue;
    }
    taken.add(uid, desired.pod);
    if (isCriticalPod(desired.pod) && !running.has(uid)) isPreempted = true;
  }
  return rejections;
}

/** Resources and ports already taken. */
class Taken {
  podCount = 0;
  readonly used = new Map<string, number>();
  readonly #ports = new Map<number, { uid: PodUID; pod: Pod; claim: HostPort }[]>();

  add(uid: PodUID, pod: Pod): void {
    this.podCount++;
    for (const { name, amountIn } of resourcesOf(pod)) {
      this.used.set(name, (this.used.get(name) ?? 0) + computePodTotal(pod, "requests", amountIn));
    }
    this.addPorts(uid, pod);
  }

  addPorts(uid: PodUID, pod: Pod): void {
    for (const claim of computeHostPorts(pod)) {
      const known = this.#ports.get(claim.hostPort);
      if (known) known.push({ uid, pod, claim });
      else this.#ports.set(claim.hostPort, [{ uid, pod, claim }]);
    }
  }

  holdersOf(claim: HostPort): { uid: PodUID; pod: Pod }[] {
    return (this.#ports.get(claim.hostPort) ?? []).filter((entry) => isSameClaim(entry.claim, claim));
  }
}

function rejectForResources(pod: Pod, taken: Taken, node: AdmissionNode, isPreempted: boolean): Rejection | undefined {
  const lacking: { name: string; requested: number; used: number; capacity: number }[] = [];
  if (taken.podCount + 1 > node.maxPods) {
    lacking.push({ name: "pods", requested: 1, used: taken.podCount, capacity: node.maxPods });
  }
  for (const { name, capacity, amountIn } of resourcesOf(pod)) {
    const limit = capacity(node);
    const requested = computePodTotal(pod, "requests", amountIn);
    if (limit === undefined || requested === 0) continue;
    const used = taken.used.get(name) ?? 0;
    if (used + requested > limit) lacking.push({ name, requested, used, capacity: limit });
  }
  const first = lacking[0];
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
  return {
    reason: `OutOf${first.name}`,
    message: `Pod Node didn't have enough resource: ${first.name}, requested: ${first.requested}, used: ${first.used}, capacity: ${first.capacity}`,
  };
}

function rejectForPorts(uid: PodUID, pod: Pod, taken: Taken): Rejection | undefined {
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

/** The next step where a nodeSelector asks for labels that the node does not have. */
function describeMissingLabels({ spec }: Pod, labels: Readonly<Record<string, string>>): string {
  const missing = Object.entries(spec.nodeSelector ?? {}).filter(([key, value]) => labels[key] !== value);
  if (missing.length === 0) return "";
  const flag = `--node-labels=${missing.map(([key, value]) => `${key}=${value}`).join(",")}`;
  return `; ${flag} gives the node what the nodeSelector asks for`;
}

/** The text of a URL is often meant for many machines, among which labels choose. */
const isOfThisNodeAlone = ({ isFromTemplate, source }: DesiredPod) => isFromTemplate === true && source !== "http";

function rejectForNode(desired: DesiredPod, node: AdmissionNode): Rejection | undefined {
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

/** Remembers what each pod held when it was admitted last; everything else is {@link admitPods}. */
export class NodeAdmission {
  #node: AdmissionNode;
  #held = new Map<PodUID, Pod>();

  constructor(node: AdmissionNode) {
    this.#node = node;
  }

  /** Labels that selectors and affinities are compared with from now on. */
  setLabels(labels: AdmissionNode["labels"]): void {
    this.#node = { ...this.#node, labels };
  }

  /** @param running pods that have their place already */
  admit(pods: readonly DesiredPod[], running: ReadonlySet<PodUID>): Map<PodUID, Rejection> {
    const rejections = admitPods({ pods, running, held: this.#held, node: this.#node });
    this.#held = new Map(
      pods.flatMap(({ pod }) => (rejections.has(pod.metadata.uid!) ? [] : [[pod.metadata.uid!, pod] as const])),
    );
    return rejections;
  }
}

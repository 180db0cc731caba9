import type { ObjectMeta } from "../base/api/meta.ts";
import type { Pod, PodStatus } from "../base/api/pod.ts";
import type { PodTemplateSpec } from "../base/api/workload.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { memoized } from "../base/model/memoized.ts";
import type { PodUID } from "../base/model/pod.ts";
import type { EventRecorder } from "../base/model/pod-event.ts";
import { toApiTime } from "../base/text/api-time.ts";
import { hex32 } from "../base/text/json.ts";
import {
  computeTemplateHash,
  inheritedAnnotations,
  isSameTemplate,
  objectUid,
  type PodRecord,
  podSuffix,
  type RevisionRecord,
  type WorkloadRecord,
  withFormerRevision,
} from "./workload-records.ts";

/** Before this the clock was never set: boards without a battery boot in 1970. Unit: milliseconds since 1970. */
export const CLOCK_IS_SET_MS = Date.UTC(2020, 0, 1);

/** Pods that one reconciliation makes: a large workload is made step by step, and does not hold the event loop. */
const MAX_MADE_AT_ONCE = 10;
/** Until the next step: what the engine and clients have sent comes before it. */
const STEP_PAUSE_MS = 20;

/** A pod that replaces another one waits for rules and the ingress server, which may not work, no longer than this. */
const MAX_AWAITED_MS = 10_000;
const AWAITED_PAUSE_MS = 100;

/** A controller's view of one of its pods. */
export interface PodFacts {
  phase: "Pending" | "Running" | "Succeeded" | "Failed";
  isReady: boolean;
  /** Whether it is Ready is not known yet: this process has just started, or made it. */
  isUnknown?: boolean;
  /** How long it has been Ready. Unit: milliseconds; 0 unless it is. */
  readyForMs: number;
  /** Nothing of it is left on the engine. */
  isGone: boolean;
  /** It is Ready, and the kernel or the ingress server is about to lead to it. */
  isAwaited?: () => boolean;
  /** As the kubelet publishes it. */
  status?: PodStatus;
}

/** An event of a workload. */
export interface WorkloadEvent {
  type: "Normal" | "Warning";
  reason: string;
  message: string;
  /** The ReplicaSet of a Deployment that the event is about; absent: the workload. */
  replicaSet?: { name: string; uid: string };
}

/** The node, as controllers know it. */
interface ControllerNode {
  name: string;
  /** Address of the machine, under which Services of type LoadBalancer and Ingresses are reached. */
  ip: string;
  labels: Readonly<Record<string, string>>;
  /** Pods that it admits at the same time. */
  maxPods: number;
  /** Labels that templates ask for count as in a cluster. */
  comparesAllLabels: boolean;
  /** Digest of the root directory, by which two nodes on one machine differ. */
  rootHash: string;
  /** Start of this process, as the API writes times. */
  startedAt: string;
}

/** Everything that each controller stands on. Named after that of kube-controller-manager. */
export interface ControllerContext {
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder & { objectGone(uid: string): void };
  node: ControllerNode;
}

/** The world as a controller sees it. */
export interface ControllerWorld {
  node: Pick<ControllerNode, "name" | "labels" | "maxPods">;
  /** Wall clock; for time stamps and schedules. */
  now: Date;
  /** Monotonic clock; for durations. */
  nowMs: number;
  /** Facts of a pod by uid. A pod that is not known yet is Pending. */
  pod: (uid: string) => PodFacts;
}

/** Working copy of a record, with the events to record and the time of the next reconciliation. */
export class Draft {
  readonly record: WorkloadRecord;
  readonly events: WorkloadEvent[] = [];
  readonly world: ControllerWorld;
  /** The object was edited since the last reconciliation. */
  readonly isEdited: boolean;
  readonly #meta: ObjectMeta;
  wakeInMs: number | undefined;
  /** Wall clock; the decision holds until it shows this time, or one before the present. Unit: milliseconds since 1970. */
  holdsUntilMs: number | undefined;
  #madePods = 0;

  constructor(
    world: ControllerWorld,
    kind: string,
    meta: ObjectMeta,
    objectRevision: string,
    known: WorkloadRecord | undefined,
  ) {
    this.world = world;
    this.#meta = meta;
    // An object that was deleted and created again shares only its name with the one before.
    const isSame = known !== undefined && (meta.uid === undefined || meta.uid === known.uid);
    this.record = isSame ? copyOf(known) : this.#newRecord(kind);
    this.isEdited = this.record.objectRevision !== objectRevision;
    if (this.isEdited) {
      this.record.objectRevision = objectRevision;
      this.record.generation++;
    }
    this.record.pods = this.record.pods.filter(({ uid, leaving }) => !(leaving && world.pod(uid).isGone));
  }

  #newRecord(kind: string): WorkloadRecord {
    return {
      uid: this.#meta.uid ?? objectUid(this.world.node.name, kind, this.namespace, this.name),
      createdAt: this.nowText,
      generation: 0,
      objectRevision: "",
      revisions: {},
      pods: [],
    };
  }

  get name(): string {
    return this.#meta.name ?? "";
  }

  get namespace(): string {
    return this.#meta.namespace ?? "default";
  }

  get nowText(): string {
    return toApiTime(this.world.now);
  }

  /** Asks for another reconciliation after this time at the latest. */
  wakeIn(ms: number): void {
    this.wakeInMs = Math.min(this.wakeInMs ?? Number.POSITIVE_INFINITY, Math.max(0, ms));
  }

  /** Whether a time of the monotonic clock has come; else asks for a reconciliation then. */
  isPast(timeMs: number): boolean {
    const leftMs = timeMs - this.world.nowMs;
    if (leftMs > 0) this.wakeIn(leftMs);
    return leftMs <= 0;
  }

  recordEvent(reason: string, message: string, type: WorkloadEvent["type"] = "Normal"): void {
    this.events.push({ type, reason, message });
  }

  /** Records an event about the ReplicaSet that has the pod, or else about the workload. */
  #recordPod(pod: PodRecord, reason: string, message: string): void {
    const { name, uid = this.record.uid } = this.record.revisions[pod.revision] ?? {};
    const replicaSet = uid !== this.record.uid && name !== undefined && { replicaSet: { name, uid } };
    this.events.push({ type: "Normal", reason, message, ...replicaSet });
  }

  /** Oldest first. */
  revisions(): RevisionRecord[] {
    return Object.values(this.record.revisions).sort((a, b) => a.revision - b.revision);
  }

  /** The first revision of a template that was made. Source: `FindNewReplicaSet`. */
  findRevision(template: PodTemplateSpec): RevisionRecord | undefined {
    const known = this.revisions().filter((it) => isSameTemplate(it.template, template));
    return known.reduce((first, it) => (it.createdAt < first.createdAt ? it : first), known[0]!);
  }

  /**
   * Takes a template up as the newest revision, with no replicas.
   * @param named whether the revision is an object of its own, named after the template's hash
   */
  addRevision(template: PodTemplateSpec, named: "by-hash" | "as-owner"): RevisionRecord {
    let hash = computeTemplateHash(template);
    for (let collisions = 1; this.record.revisions[hash]; collisions++) {
      hash = computeTemplateHash(template, collisions);
    }
    const name = named === "by-hash" ? `${this.name}-${hash}` : this.name;
    const revision: RevisionRecord = {
      hash,
      name,
      uid: named === "by-hash" ? objectUid(this.world.node.name, "ReplicaSet", this.namespace, name) : this.record.uid,
      revision: (this.revisions().at(-1)?.revision ?? 0) + 1,
      template,
      createdAt: this.nowText,
      replicas: 0,
      desiredReplicas: 0,
      maxReplicas: 0,
      made: 0,
    };
    this.inheritAnnotations(revision);
    this.record.revisions[hash] = revision;
    return revision;
  }

  /** The revision of a template, as the newest one, also when it existed before. */
  takeUpRevision(template: PodTemplateSpec, named: "by-hash" | "as-owner"): RevisionRecord {
    const found = this.findRevision(template) ?? this.addRevision(template, named);
    const newest = Math.max(0, ...this.revisions().map((it) => (it === found ? 0 : it.revision)));
    if (found.revision <= newest) {
      found.former = withFormerRevision(found);
      found.revision = newest + 1;
    }
    return found;
  }

  /** Copies the present annotations of the workload to a revision; what it has besides stays, as upstream. */
  inheritAnnotations(revision: RevisionRecord): void {
    const inherited = inheritedAnnotations(this.#meta.annotations);
    if (Object.keys(inherited).length > 0) revision.annotations = { ...revision.annotations, ...inherited };
  }

  /** Forgets the oldest revisions that no pod has, beyond `limit`. */
  limitHistory(limit: number, keep: readonly string[]): void {
    const used = new Set([...keep, ...this.record.pods.map(({ revision }) => revision)]);
    const unused = this.revisions().filter(({ hash }) => !used.has(hash));
    for (const { hash } of unused.slice(0, Math.max(0, unused.length - limit))) delete this.record.revisions[hash];
  }

  /** Pods that are wanted, of one revision or of all. */
  livePods(revision?: RevisionRecord): PodRecord[] {
    return this.record.pods.filter((pod) => !pod.leaving && (!revision || pod.revision === revision.hash));
  }

  /**
   * How many more pods to make now of those wanted: at most as many as the node admits in addition to the `live` ones. The others
   * are a number in the status, so that `replicas: 1000000000` costs no more than a full node.
   */
  fitting(wanted: number, live = this.livePods().length): number {
    return Math.max(0, Math.min(wanted, this.world.node.maxPods - live, MAX_MADE_AT_ONCE - this.#madePods));
  }

  /** This reconciliation has made enough pods; the next one, which follows soon, makes more. */
  get isBatchFull(): boolean {
    return this.#madePods >= MAX_MADE_AT_ONCE;
  }

  /** Makes one more pod, named `<prefix>-<suffix>`. */
  createPod(revision: RevisionRecord, prefix: string = revision.name): PodRecord {
    const taken = new Set(this.record.pods.map(({ name }) => name));
    for (;;) {
      const name = `${prefix}-${podSuffix(revision.uid, revision.hash, revision.made++)}`;
      if (taken.has(name)) continue;
      const pod = this.addPod(name, revision);
      this.#recordPod(pod, "SuccessfulCreate", `Created pod: ${name}`);
      return pod;
    }
  }

  deletePod(pod: PodRecord): void {
    this.remove(pod);
    this.#recordPod(pod, "SuccessfulDelete", `Deleted pod: ${pod.name}`);
  }

  /** @param incarnation distinguishes pods of the same name */
  addPod(name: string, revision: RevisionRecord, incarnation = ""): PodRecord {
    const pod: PodRecord = {
      name,
      uid: podUid(this.world.node.name, this.namespace, name, incarnation),
      revision: revision.hash,
      createdAt: this.nowText,
    };
    this.record.pods.push(pod);
    this.#madePods++;
    if (this.isBatchFull) this.wakeIn(STEP_PAUSE_MS);
    return pod;
  }

  remove(pod: PodRecord): void {
    pod.leaving = true;
  }

  /** Whether a pod has been Ready for `minReadySeconds`; asks for another reconciliation when that is yet to come. */
  isAvailable({ uid }: PodRecord, minReadySeconds = 0): boolean {
    const { isReady, readyForMs, isAwaited } = this.world.pod(uid);
    if (!isReady) return false;
    if (readyForMs < MAX_AWAITED_MS && isAwaited?.()) {
      this.wakeIn(AWAITED_PAUSE_MS);
      return false;
    }
    return this.isPast(this.world.nowMs - readyForMs + minReadySeconds * 1000);
  }

  countAvailable(pods: readonly PodRecord[], minReadySeconds?: number): number {
    return pods.filter((pod) => this.isAvailable(pod, minReadySeconds)).length;
  }

  countReady(pods: readonly PodRecord[]): number {
    return pods.filter(({ uid }) => this.world.pod(uid).isReady).length;
  }

  /** Makes pods of a revision until there are `replicas`, or deletes those of `live` that are too many. */
  fitPods(revision: RevisionRecord, live = this.livePods(revision), replicas = revision.replicas): void {
    for (let left = this.fitting(replicas - live.length); left > 0; left--) this.createPod(revision);
    this.deleteSurplus(live, replicas);
  }

  /**
   * Deletes the pods that are missed least until `replicas` are left. Source: `controller.ActivePods`: those that do not
   * run, then those that are not Ready, then the youngest.
   */
  deleteSurplus(live: readonly PodRecord[], replicas: number): void {
    const rank = ({ uid }: PodRecord) => {
      const { phase, isReady } = this.world.pod(uid);
      if (phase !== "Running") return 0;
      return isReady ? 2 : 1;
    };
    const readyForMs = ({ uid }: PodRecord) => this.world.pod(uid).readyForMs;
    const leastMissed = live.toReversed().sort((a, b) => rank(a) - rank(b) || readyForMs(a) - readyForMs(b));
    for (const pod of leastMissed.slice(0, Math.max(0, live.length - replicas))) this.deletePod(pod);
  }
}

/** Uid of a pod of a workload. @param incarnation distinguishes pods of the same name */
export const podUid = (nodeName: string, namespace: string, name: string, incarnation: string): string =>
  hex32(`${nodeName}\n${namespace}\n${name}\n${incarnation}`);

/** Templates are never changed in place, so they are shared. */
function copyOf(known: WorkloadRecord): WorkloadRecord {
  const revisions = Object.entries(known.revisions).map(([hash, revision]) => [hash, { ...revision }]);
  return { ...known, revisions: Object.fromEntries(revisions), pods: known.pods.map((pod) => ({ ...pod })) };
}

/** The kubelet's view of pods. */
export interface ObservedPods {
  pods(): readonly Pod[];
  /** All containers were inspected, and nothing is left of this pod. */
  isGone(uid: PodUID): boolean;
  /** The status of this pod tells what the engine has of it. */
  isObserved(uid: PodUID): boolean;
  onChange(listener: () => void): () => void;
}

export type Statuses = ReadonlyMap<PodUID, PodStatus | undefined>;

const statusesOf = memoized(
  (pods: readonly Pod[]): Statuses => new Map(pods.map(({ metadata, status }) => [metadata.uid!, status])),
);

/** Pods as controllers see them: their statuses, and since when each one is Ready. */
export class PodObserver {
  readonly #kubelet: ObservedPods;
  readonly #clock: Clock;
  /** Monotonic; of pods that are Ready. */
  readonly #readySinceMs = new Map<PodUID, number>();
  /** Every source was read: a pod without a worker is not one that is still to come. */
  isRead = false;
  /** Pods that this process has seen running. */
  readonly #knownUids = new Set<PodUID>();
  readonly #isAwaited: (status: PodStatus) => boolean;

  /** @param isAwaited requests do not reach a pod yet, but soon will */
  constructor(kubelet: ObservedPods, clock: Clock, isAwaited: (status: PodStatus) => boolean = () => false) {
    this.#kubelet = kubelet;
    this.#clock = clock;
    this.#isAwaited = isAwaited;
  }

  /** Notes which pods are Ready. A pod that was Ready before this process keeps that time, by the wall clock. */
  update(pods: readonly Pod[]): Statuses {
    const statuses = statusesOf(pods);
    for (const uid of this.#readySinceMs.keys()) if (!statuses.has(uid)) this.#readySinceMs.delete(uid);
    for (const uid of this.#knownUids) if (!statuses.has(uid)) this.#knownUids.delete(uid);
    for (const [uid, status] of statuses) {
      const ready = status?.conditions?.find(({ type }) => type === "Ready");
      if (ready?.status !== "True") this.#readySinceMs.delete(uid);
      else if (!this.#readySinceMs.has(uid)) {
        const elapsedMs = this.#clock.now().getTime() - Date.parse(ready.lastTransitionTime ?? "");
        const earlierMs = this.#knownUids.has(uid) || !(elapsedMs > 0) ? 0 : elapsedMs;
        this.#readySinceMs.set(uid, this.#clock.monotonicMs() - earlierMs);
      }
      if (status?.phase !== "Pending") this.#knownUids.add(uid);
    }
    return statuses;
  }

  /** Facts about pods as of now. */
  reader(statuses: Statuses = statusesOf(this.#kubelet.pods())): (uid: PodUID) => PodFacts {
    const nowMs = this.#clock.monotonicMs();
    return (uid) => {
      const readySinceMs = this.#readySinceMs.get(uid);
      const status = statuses.get(uid);
      return {
        ...(status && { status }),
        phase: (status?.phase as PodFacts["phase"] | undefined) ?? "Pending",
        isReady: readySinceMs !== undefined,
        isUnknown: !this.#kubelet.isObserved(uid),
        readyForMs: readySinceMs === undefined ? 0 : Math.max(0, nowMs - readySinceMs),
        isGone: this.isGone(uid),
        isAwaited: () => status !== undefined && this.#isAwaited(status),
      };
    };
  }

  isGone(uid: PodUID): boolean {
    return this.isRead && this.#kubelet.isGone(uid);
  }
}

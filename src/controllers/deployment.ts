import type { Pod } from "../base/api/pod.ts";
import type { DeploymentSpec, PodTemplateSpec } from "../base/api/workload.ts";
import { computeHostPorts } from "../plan/pod-network.ts";
import type { Draft } from "./controller.ts";
import type { ConditionRecord, DeploymentCounts, ProgressState, RevisionRecord } from "./workload-records.ts";

/** A rollout settles after a few steps; the limit guards against a programming error. */
const MAX_STEPS = 100;

/**
 * The next state of a Deployment: its ReplicaSets and their pods. Source: `pkg/controller/deployment` of 1.20 (sync.go,
 * rolling.go, recreate.go); steps that upstream takes in several syncs are taken at once.
 */
export function reconcileDeployment(
  draft: Draft,
  spec: DeploymentSpec,
  before: ProgressState | undefined,
): ProgressState {
  for (const revision of draft.revisions()) draft.fitPods(revision);
  const rollout = new Rollout(draft, spec);
  for (let step = 0; step < MAX_STEPS && rollout.step(); step++);
  return rollout.report(before);
}

class Rollout {
  readonly #draft: Draft;
  readonly #spec: DeploymentSpec;
  readonly #maxSurge: number;
  readonly #maxUnavailable: number;

  constructor(draft: Draft, spec: DeploymentSpec) {
    this.#draft = draft;
    this.#spec = spec;
    const { surge, unavailable } = computeFenceposts(spec);
    this.#maxSurge = surge;
    this.#maxUnavailable = unavailable;
  }

  get current(): RevisionRecord | undefined {
    return this.#draft.findRevision(this.#spec.template);
  }

  counts(): DeploymentCounts {
    const { current } = this;
    const live = this.#draft.livePods();
    const revisions = this.#draft.revisions();
    return {
      replicas: live.length,
      updatedReplicas: current ? this.#draft.livePods(current).length : 0,
      readyReplicas: this.#draft.countReady(live),
      availableReplicas: revisions.reduce((sum, revision) => sum + this.#available(revision), 0),
    };
  }

  /** @returns whether something changed, so that another step may follow */
  step(): boolean {
    const { paused, strategy, replicas } = this.#spec;
    if (paused || this.#active().some(({ desiredReplicas }) => desiredReplicas !== replicas)) {
      const isScaled = this.#scale();
      if (paused) this.#cleanUp();
      // An adopted ReplicaSet may have the right size already.
      if (paused || isScaled) return isScaled;
    }
    return strategy.type === "Recreate" ? this.#recreate() : this.#rollingUpdate();
  }

  /** Oldest first. */
  #old(): RevisionRecord[] {
    const { current } = this;
    return this.#draft.revisions().filter((revision) => revision !== current);
  }

  #active(): RevisionRecord[] {
    return this.#draft.revisions().filter(({ replicas }) => replicas > 0);
  }

  /** Old ReplicaSets keep the minReadySeconds they had. Source: sync.go, `getNewReplicaSet`. */
  #available(revision: RevisionRecord): number {
    const { minReadySeconds = this.#spec.minReadySeconds } = revision === this.current ? this.#spec : revision;
    return this.#draft.countAvailable(this.#draft.livePods(revision), minReadySeconds);
  }

  #takeUp(): RevisionRecord {
    return this.#draft.takeUpRevision(this.#spec.template, "by-hash");
  }

  #setReplicas(revision: RevisionRecord, replicas: number): boolean {
    revision.desiredReplicas = this.#spec.replicas;
    revision.maxReplicas = this.#spec.replicas + this.#maxSurge;
    const before = revision.replicas;
    if (before === replicas) return false;
    revision.replicas = replicas;
    this.#draft.fitPods(revision);
    const direction = before < replicas ? "up" : "down";
    this.#draft.recordEvent("ScalingReplicaSet", `Scaled ${direction} replica set ${revision.name} to ${replicas}`);
    return true;
  }

  /** A change of `replicas`: over the ReplicaSets in proportion to their size. Source: sync.go, `scale`. */
  #scale(): boolean {
    const { replicas, strategy } = this.#spec;
    const { current } = this;
    const active = this.#active();
    const only = active.length > 1 ? undefined : (active[0] ?? current ?? this.#old().at(-1));
    if (only) return this.#setReplicas(only, replicas);
    if (current && current.replicas === replicas && this.#available(current) === replicas) {
      const old = active.filter((revision) => revision !== current);
      return old.map((revision) => this.#setReplicas(revision, 0)).includes(true);
    }
    if (strategy.type !== "RollingUpdate") {
      for (const revision of active) revision.desiredReplicas = replicas;
      return false;
    }
    const sizes = this.#scaleInProportion(active);
    return [...sizes].map(([revision, size]) => this.#setReplicas(revision, size)).includes(true);
  }

  #scaleInProportion(active: RevisionRecord[]): Map<RevisionRecord, number> {
    const { replicas } = this.#spec;
    const allowed = replicas > 0 ? replicas + this.#maxSurge : 0;
    const toAdd = allowed - sumReplicas(active);
    const newerFirst = toAdd > 0 ? 1 : -1;
    active.sort((a, b) => b.replicas - a.replicas || newerFirst * (b.revision - a.revision));
    const sizes = new Map<RevisionRecord, number>();
    let added = 0;
    for (const revision of active) {
      const share = toAdd === 0 ? 0 : this.#proportion(revision, toAdd, added);
      sizes.set(revision, revision.replicas + share);
      added += share;
    }
    const [largest] = active;
    if (largest) sizes.set(largest, Math.max(0, sizes.get(largest)! + toAdd - added));
    return sizes;
  }

  #proportion(revision: RevisionRecord, toAdd: number, added: number): number {
    if (toAdd === added) return 0;
    const { replicas } = this.#spec;
    const size = (revision.replicas * (replicas + this.#maxSurge)) / revision.maxReplicas;
    const fraction = replicas === 0 ? -revision.replicas : Math.round(size) - revision.replicas;
    return toAdd > 0 ? Math.min(fraction, toAdd - added) : Math.max(fraction, toAdd - added);
  }

  /** Source: recreate.go. */
  #recreate(): boolean {
    const old = this.#old();
    if (old.map((revision) => this.#setReplicas(revision, 0)).includes(true)) return true;
    const hashes = new Set(old.map(({ hash }) => hash));
    const isOldLeft = this.#draft.record.pods.some(({ revision }) => hashes.has(revision));
    if (isOldLeft) return false;
    const isScaled = this.#setReplicas(this.#takeUp(), this.#spec.replicas);
    this.#cleanUp();
    return isScaled;
  }

  /** Source: rolling.go. */
  #rollingUpdate(): boolean {
    const current = this.#takeUp();
    if (this.#scaleUpCurrent(current) || this.#scaleDownOld(current)) return true;
    this.#cleanUp();
    return false;
  }

  #scaleUpCurrent(current: RevisionRecord): boolean {
    const { replicas } = this.#spec;
    if (current.replicas >= replicas) return this.#setReplicas(current, replicas);
    const room = replicas + this.#maxSurge - sumReplicas(this.#draft.revisions());
    if (room <= 0) return false;
    return this.#setReplicas(current, current.replicas + Math.min(room, replicas - current.replicas));
  }

  #scaleDownOld(current: RevisionRecord): boolean {
    const old = this.#old().filter(({ replicas }) => replicas > 0);
    const minAvailable = this.#spec.replicas - this.#maxUnavailable;
    const currentUnavailable = current.replicas - this.#available(current);
    const mayGo = sumReplicas(this.#draft.revisions()) - minAvailable - currentUnavailable;
    if (old.length === 0 || mayGo <= 0) return false;
    // Pods that are not available are not a loss.
    const unavailable = (revision: RevisionRecord) => revision.replicas - this.#available(revision);
    const isCleaned = this.#shrink(old, mayGo, unavailable);
    const { availableReplicas } = this.counts();
    return this.#shrink(old, availableReplicas - minAvailable, ({ replicas }) => replicas) || isCleaned;
  }

  /** Takes up to `budget` pods away, from the oldest ReplicaSet on, and from each at most what `share` says. */
  #shrink(revisions: readonly RevisionRecord[], budget: number, share: (revision: RevisionRecord) => number): boolean {
    let left = budget;
    for (const revision of revisions) {
      const count = Math.min(left, share(revision));
      if (count > 0 && this.#setReplicas(revision, revision.replicas - count)) left -= count;
    }
    return left < budget;
  }

  /** Forgets old ReplicaSets without pods beyond revisionHistoryLimit, once the rollout is complete. */
  #cleanUp(): void {
    if (!this.#isComplete(this.counts()) && !this.#spec.paused) return;
    const kept = [...this.#active(), this.current].map((revision) => revision?.hash ?? "");
    this.#draft.limitHistory(this.#spec.revisionHistoryLimit ?? 10, kept);
  }

  /**
   * Records how far the rollout is. Source: `deploymentutil.DeploymentProgressing`, `DeploymentTimedOut`.
   * @param before undefined: nothing is known of the last reconciliation
   */
  report(before: ProgressState | undefined): ProgressState {
    const { record, world, isEdited } = this.#draft;
    const { generation } = record;
    const { current } = this;
    const counts = this.counts();
    const hasMoved = !before || before.generation !== generation || isFurther(before.counts, counts);
    const sinceMs = hasMoved ? world.nowMs : before.sinceMs;
    const wasExceeded = record.progressDeadlineExceeded === true && !isEdited;
    // A restart of kubelet-ts is not progress.
    const isExceeded = this.#hasDeadline(counts) && ((wasExceeded && (!before || !hasMoved)) || this.#isLate(sinceMs));
    delete record.progressDeadlineExceeded;
    if (isExceeded) record.progressDeadlineExceeded = true;
    if (isExceeded && !wasExceeded && current) {
      const message = `ReplicaSet "${current.name}" has timed out progressing`;
      this.#draft.recordEvent("ProgressDeadlineExceeded", message, "Warning");
    }
    delete record.updateRevision;
    if (current) {
      record.updateRevision = current.hash;
      current.minReadySeconds = this.#spec.minReadySeconds ?? 0;
      this.#draft.inheritAnnotations(current);
    }
    record.conditions = this.#conditions(counts, isExceeded, hasMoved);
    return { kind: "Deployment", counts, generation, sinceMs };
  }

  #hasDeadline(counts: DeploymentCounts): boolean {
    const { paused, progressDeadlineSeconds = NO_DEADLINE } = this.#spec;
    return !paused && progressDeadlineSeconds !== NO_DEADLINE && !this.#isComplete(counts);
  }

  #isLate(sinceMs: number): boolean {
    const { progressDeadlineSeconds = NO_DEADLINE } = this.#spec;
    return this.#draft.isPast(sinceMs + progressDeadlineSeconds * 1000);
  }

  /** Every pod is of the present template and available. Source: `deploymentutil.DeploymentComplete`. */
  #isComplete(counts: DeploymentCounts): boolean {
    const { replicas } = this.#spec;
    return [counts.updatedReplicas, counts.replicas, counts.availableReplicas].every((count) => count === replicas);
  }

  /** Available and Progressing. Source: `syncRolloutStatus`, `calculateStatus`, `checkPausedConditions`. */
  #conditions(counts: DeploymentCounts, isExceeded: boolean, hasMoved: boolean): ConditionRecord[] {
    const { record, nowText } = this.#draft;
    const find = (type: string) => record.conditions?.find((condition) => condition.type === type);
    const isAvailable = counts.availableReplicas >= this.#spec.replicas - this.#maxUnavailable;
    const availability: Finding = isAvailable
      ? { status: "True", reason: "MinimumReplicasAvailable", message: "Deployment has minimum availability." }
      : {
          status: "False",
          reason: "MinimumReplicasUnavailable",
          message: "Deployment does not have minimum availability.",
        };
    const available = withTimes("Available", availability, find("Available"), nowText);
    if ((this.#spec.progressDeadlineSeconds ?? NO_DEADLINE) === NO_DEADLINE) return [available];
    const known = find("Progressing");
    const progress = this.#progress(counts, isExceeded, hasMoved, known);
    return [available, withTimes("Progressing", progress, known, nowText)];
  }

  #progress(
    counts: DeploymentCounts,
    isExceeded: boolean,
    hasMoved: boolean,
    before: ConditionRecord | undefined,
  ): Finding {
    const subject = `ReplicaSet "${this.current?.name ?? ""}"`;
    if (this.#spec.paused) {
      if (before?.reason === EXCEEDED) return before;
      return { status: "Unknown", reason: PAUSED, message: "Deployment is paused" };
    }
    const complete: Finding = { status: "True", reason: COMPLETE, message: `${subject} has successfully progressed.` };
    // A change of replicas is not a rollout.
    const wasComplete = before?.reason === COMPLETE && before.message === complete.message;
    if (this.#isComplete(counts) || (wasComplete && counts.replicas === counts.updatedReplicas)) return complete;
    if (isExceeded) return { status: "False", reason: EXCEEDED, message: `${subject} has timed out progressing.` };
    if (hasMoved || !before || before.reason === PAUSED) {
      return { status: "True", reason: "ReplicaSetUpdated", message: `${subject} is progressing.` };
    }
    return before;
  }
}

const sumReplicas = (revisions: readonly RevisionRecord[]): number =>
  revisions.reduce((sum, { replicas }) => sum + replicas, 0);

/**
 * How many pods more, and how many less, than `replicas` there may be during a rollout. Pods that hold a port of the
 * node cannot overlap: they are replaced in place. Source: `deploymentutil.ResolveFenceposts`.
 */
export function computeFenceposts({ replicas, strategy, template }: DeploymentSpec): {
  surge: number;
  unavailable: number;
} {
  if (strategy.type !== "RollingUpdate") return { surge: 0, unavailable: 0 };
  const { maxSurge = 0, maxUnavailable = 0 } = strategy.rollingUpdate ?? {};
  const surge = hasHostPorts(template) ? 0 : scaledValue(maxSurge, replicas, "up");
  const unavailable = Math.min(replicas, scaledValue(maxUnavailable, replicas, "down"));
  return surge === 0 && unavailable === 0 ? { surge, unavailable: 1 } : { surge, unavailable };
}

/** A number, or a percentage of `total`. Source: `intstr.GetScaledValueFromIntOrPercent`. */
export function scaledValue(value: number | string, total: number, round: "up" | "down"): number {
  if (typeof value === "number") return value;
  const share = (Number.parseInt(value, 10) * total) / 100;
  return round === "up" ? Math.ceil(share) : Math.floor(share);
}

/** Whether two pods of the template cannot run on one node together. */
const hasHostPorts = (template: PodTemplateSpec): boolean => computeHostPorts(template as Pod).length > 0;

type Finding = Pick<ConditionRecord, "status" | "reason" | "message">;

const COMPLETE = "NewReplicaSetAvailable";
const EXCEEDED = "ProgressDeadlineExceeded";
const PAUSED = "DeploymentPaused";

/** Source: `SetDeploymentCondition`: the same status and reason is the same condition. */
function withTimes(type: string, found: Finding, before: ConditionRecord | undefined, now: string): ConditionRecord {
  if (before && before.status === found.status && before.reason === found.reason && before.message === found.message) {
    return before;
  }
  const lastTransitionTime = before?.status === found.status ? before.lastTransitionTime : now;
  const { status, reason, message } = found;
  return { type, status, reason, message, lastUpdateTime: now, lastTransitionTime };
}

/** No deadline, as `extensions/v1beta1` writes it. */
const NO_DEADLINE = 2147483647;

const isFurther = (before: DeploymentCounts, now: DeploymentCounts): boolean =>
  now.updatedReplicas > before.updatedReplicas ||
  now.replicas - now.updatedReplicas < before.replicas - before.updatedReplicas ||
  now.readyReplicas > before.readyReplicas ||
  now.availableReplicas > before.availableReplicas;

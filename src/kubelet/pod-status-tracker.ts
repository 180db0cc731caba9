import { DEPENDS_ON_ANNOTATION } from "../base/api/annotations.ts";
import type { PodCondition, PodStatus } from "../base/api/pod.ts";
import type { Clock } from "../base/model/clock.ts";
import type { NodeInfo } from "../base/model/node.ts";
import { containersOf } from "../base/model/pod.ts";
import { isRunning, type PodSnapshot } from "../base/model/pod-snapshot.ts";
import { ENDED_BY_SHUTDOWN } from "../plan/node-shutdown.ts";
import type { ContainerProbeState, PodEnd, PodPlan, WaitingReason } from "../plan/pod-plan.ts";
import { isRevisionLive, type RolloutProgress } from "../plan/rollout.ts";
import { computePodStatus, withForeignConditions } from "../plan/status/compute-pod-status.ts";
import type { PodRevision } from "./edit-rules.ts";
import type { PodSyncState } from "./pod-actions.ts";
import type { PodCache } from "./pod-cache.ts";
import type { Completion } from "./pod-records.ts";

interface PodStatusTrackerDeps {
  clock: Clock;
  cache: Pick<PodCache, "imageNames">;
  node: Pick<NodeInfo, "ip">;
}

interface StatusUpdate {
  revision: PodRevision;
  snapshot: PodSnapshot;
  plan: Pick<PodPlan, "waiting">;
  probes: ReadonlyMap<string, ContainerProbeState>;
  state: PodSyncState;
  end: PodEnd | undefined;
  /** How it ends for as long as it is halted. */
  halt: PodEnd | undefined;
  /** Why it may not start now. */
  hold?: WaitingReason | undefined;
  /** Another pod of its controller is Ready. */
  isSubstituted: () => boolean;
}

/** The status of one pod and the progress of its revision from sync to sync, and the completion that is remembered when the pod has ended. */
export class PodStatusTracker {
  readonly #deps: PodStatusTrackerDeps;
  /** The last computed status; undefined before the first sync. */
  status: PodStatus | undefined;
  readonly #earlierConditions: readonly PodCondition[];
  #completion: Completion | undefined;
  #lastPodIps: readonly string[] = [];
  #startTime: Date | undefined;
  /** Start of the pod, monotonic; activeDeadlineSeconds counts from here. */
  startedAtMs = 0;
  /** Revision of the last sync. */
  #planned: PodRevision | undefined;
  #last: { revision?: PodRevision | undefined; progress: RolloutProgress } = { progress: "pending" };

  /** @param completion of the pod, and its last conditions, as an earlier process knew them */
  constructor(deps: PodStatusTrackerDeps, completion?: Completion, conditions: readonly PodCondition[] = []) {
    this.#deps = deps;
    this.#earlierConditions = conditions;
    this.#completion = completion;
  }

  /** Takes over a pod that may have run, or ended, in an earlier process. @returns how this revision ended there */
  adopt({ runRevision }: PodRevision, { sandboxes }: PodSnapshot): PodEnd | undefined {
    const known = this.#completion;
    // Time before this revision does not count if an earlier revision ended.
    const isEarlierRevision = known !== undefined && known.runRevision !== runRevision;
    const before = sandboxes.at(-1)?.createdAt ?? (known?.status.startTime && new Date(known.status.startTime));
    const scheduled = this.#earlierConditions.find(({ type, status }) => type === "PodScheduled" && status === "True");
    const began = before && new Date(scheduled?.lastTransitionTime ?? before);
    this.#setStartTime((!isEarlierRevision && began) || this.#deps.clock.now());
    if (!known || isEarlierRevision) {
      this.#completion = undefined;
      return undefined;
    }
    this.#lastPodIps = (known.status.podIPs ?? []).flatMap(({ ip }) => ip ?? []);
    return known.end;
  }

  /** The pod runs again after it had ended. */
  restart(): void {
    this.#completion = undefined;
    this.#setStartTime(this.#deps.clock.now());
  }

  /** The conditions of clients are these now. @returns the completion if it has to be stored */
  setForeign(foreign: readonly PodCondition[]): Completion | undefined {
    if (this.status) this.status = withForeignConditions(this.status, foreign);
    const known = this.#completion;
    if (known) this.#completion = { ...known, status: withForeignConditions(known.status, foreign) };
    return this.#completion;
  }

  /** A sync has planned this revision. */
  notePlanned(revision: PodRevision): void {
    this.#planned = revision;
  }

  /** How far the pod has come with its newest revision. @param hasEnded it has terminated */
  progressOf(revision: PodRevision | undefined, snapshot: PodSnapshot, hasEnded: boolean): RolloutProgress {
    if (!revision || this.#planned !== revision) return "pending";
    return hasEnded || isRevisionLive({ ...revision, snapshot }) ? "live" : "progressing";
  }

  /** @returns whether the progress, or the planned revision, is another than at the last call */
  noteProgress(progress: RolloutProgress): boolean {
    const { revision, progress: before } = this.#last;
    this.#last = { revision: this.#planned, progress };
    return progress !== before || revision !== this.#planned;
  }

  /** @returns whether the status changed, and the completion if it has to be stored */
  update(input: StatusUpdate): { isChanged: boolean; completion?: Completion } {
    const { revision, snapshot, end } = input;
    const ips = snapshot.sandboxes[0]?.ips ?? [];
    if (ips.length > 0) this.#lastPodIps = ips;
    const status = this.#compute(input);
    const isFinal = end && isAtRest(input) && !Bun.deepEquals(status, this.#completion?.status);
    if (isFinal) this.#completion = { runRevision: revision.runRevision, end, status };
    const isChanged = !this.status || !Bun.deepEquals(status, this.status);
    if (isChanged) this.status = status;
    return { isChanged, ...(isFinal && { completion: this.#completion! }) };
  }

  #setStartTime(startTime: Date): void {
    const { clock } = this.#deps;
    this.#startTime = startTime;
    this.startedAtMs = clock.monotonicMs() - Math.max(0, clock.now().getTime() - startTime.getTime());
  }

  #compute({ revision, snapshot, plan, probes, state, end, halt, hold, isSubstituted }: StatusUpdate): PodStatus {
    const waiting = new Map([...state.startErrors, ...plan.waiting]);
    if (state.sandboxError) {
      const { message } = state.sandboxError;
      for (const { name } of containersOf(revision.pod.spec))
        waiting.set(name, { reason: "ContainerCreating", message });
    }
    const { postStartPending, postStartFailed, killing } = state;
    // One that an edit stops leaves its Service before its program ends, as that of a terminating pod does.
    const isLeaving = killing.size > 0 && !isRevisionLive({ ...revision, snapshot }) && isSubstituted();
    const unready = [postStartPending, postStartFailed, ...(isLeaving ? [killing] : [])];
    const held = snapshot.containers.filter((it) => isRunning(it) && unready.some((ids) => ids.has(it.id)));
    const previous = this.status ?? this.#completion?.status;
    const currentEnd = end ?? halt;
    return computePodStatus({
      pod: revision.pod,
      snapshot,
      qosClass: revision.qosClass,
      probes,
      waiting,
      postStartPending: new Set(held.map(({ name }) => name)),
      terminationMessages: state.terminationMessages,
      imageNames: this.#deps.cache.imageNames,
      limits: revision.hashes.limits,
      lastPodIps: this.#lastPodIps,
      hostIp: this.#deps.node.ip,
      startTime: this.#startTime!,
      ...(currentEnd && { end: currentEnd }),
      isStopping: state.stoppingSinceMs !== undefined,
      ...(previous && { previous }),
      previousConditions: previous?.conditions ?? this.#earlierConditions,
      extraConditions: [
        ...(revision.extraConditions ?? []),
        ...disruptionOf(currentEnd),
        ...dependenciesOf(revision, hold),
        ...resizesOf(state),
      ],
      now: this.#deps.clock.now(),
    });
  }
}

const isAtRest = ({ snapshot, state }: StatusUpdate) =>
  !snapshot.containers.some(isRunning) && state.killing.size === 0 && state.reading.size === 0;

/** Condition of a pod with dependencies. */
const dependenciesOf = ({ pod }: PodRevision, hold: WaitingReason | undefined) =>
  pod.metadata.annotations?.[DEPENDS_ON_ANNOTATION] === undefined
    ? []
    : [{ type: "DependenciesMet", ...(hold ? { status: "False" as const, ...hold } : { status: "True" as const }) }];

/** Condition of a pod whose containers are being resized. Source: KEP-1287. */
function resizesOf({ resizing, resizeErrors }: PodSyncState) {
  if (resizing.size === 0) return [];
  const error = [...resizing].map((id) => resizeErrors.get(id)).find((one) => one !== undefined);
  const why = error ? { reason: "Error", message: error.message } : {};
  return [{ type: "PodResizeInProgress", status: "True" as const, ...why }];
}

/** Source: the kubelet's DisruptionTarget condition of a graceful node shutdown. */
const disruptionOf = (end: PodEnd | undefined) =>
  end?.reason === ENDED_BY_SHUTDOWN.reason
    ? [
        {
          type: "DisruptionTarget",
          status: "True" as const,
          reason: "TerminationByKubelet",
          message: end.message ?? "",
        },
      ]
    : [];

import { hasCondition } from "../base/api/meta.ts";
import type { ContainerStatus } from "../base/api/pod.ts";
import { Listeners } from "../base/concurrency/listeners.ts";
import type { DesiredPod } from "../base/model/desired-state.ts";
import { allContainersOf, controllerOf, type PodUID } from "../base/model/pod.ts";
import { attemptsOf, isRunning, type PodSnapshot } from "../base/model/pod-snapshot.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { Rejection } from "../plan/admission.ts";
import { explainPodEnd } from "../plan/pod-end-reasons.ts";
import { isRevisionLive, MIN_READY_MS } from "../plan/rollout.ts";
import { isFinished } from "../plan/service-endpoints.ts";
import { fixOfStep, PodStepError } from "../plan/waiting-reasons.ts";
import { findPodBefore, type PodRevision, type PodTurn, toRunningRevision, withPendingEdit } from "./edit-rules.ts";
import { type PodActionsDeps, toPodRequest } from "./pod-actions.ts";
import type { PodWorker } from "./pod-worker.ts";

/** A pull or a check that fails for another reason than a back-off is tried again after this time. */
const RETRY_MS = 10_000;

/** An edit that waits for longer is shown: most are ready at once. */
const SHOW_AFTER_MS = 3_000;

interface PendingEdit {
  /** Hashes of the edit, or why the node refuses it: another key is another edit. */
  key: string;
  /** The revision that runs meanwhile. */
  earlier: PodRevision;
  /** {@link earlier}, with the condition that says why once that is known. */
  kept: PodRevision;
  why?: string;
  isReady: boolean;
  wasBroken: boolean;
  /** The pod of the same workload before it. */
  waitsFor?: PodUID;
  /** Aborts the preparation. */
  stop: AbortController;
}

interface PendingEditsDeps extends PodActionsDeps {
  workers: ReadonlyMap<PodUID, PodWorker>;
}

/**
 * Edits of pods that run. Nothing of such a pod is stopped before the images of the edit are there and what it refers to
 * exists; until then, or while the node refuses it, the pod keeps running with its earlier manifest, and a condition says why. The
 * kubelet stops first, and so loses the pod by a slip in its image's tag. Pods of one workload take turns: {@link findPodBefore}.
 */
export class PendingEdits {
  /** {@link select} would return another revision now. */
  readonly changes = new Listeners();
  readonly #deps: PendingEditsDeps;
  readonly #edits = new Map<PodUID, PendingEdit>();

  constructor(deps: PendingEditsDeps) {
    this.#deps = deps;
  }

  /**
   * The revision that a pod gets now: `next`, or the earlier one while `next` is being prepared.
   * @param toRevision of the manifest that an earlier process kept
   */
  select(worker: PodWorker, next: PodRevision, toRevision: (kept: DesiredPod) => PodRevision): PodRevision {
    const { uid } = worker.ref;
    if (next.isTentative) return next;
    const earlier = mayWait(next.desired) ? this.#earlierRevisionOf(worker, next, toRevision) : undefined;
    const containers = earlier ? findReplaced(earlier, next) : [];
    if (!earlier || containers.length === 0) {
      this.forget(uid);
      return next;
    }
    const assumed = earlier.isAssumed ? [...earlier.hashes.containers] : [];
    const key = JSON.stringify([next.hashes.sandbox, next.hashes.init, [...next.hashes.containers], assumed]);
    const known = this.#edits.get(uid);
    if (known?.key !== key) {
      const edit = this.#begin(worker, key, earlier);
      void this.#prepare(worker, next, containers, edit);
      return edit.kept;
    }
    if (!known.isReady || this.#waitsForTurn(worker, next, known)) return known.kept;
    this.forget(uid);
    return next;
  }

  /** The status or the progress of a pod changed: its own edit, or one that waited for it, may go on. */
  observe(worker: PodWorker): void {
    const { uid, isBroken, isAvailable } = this.#turnOf(worker);
    const isDue = ([own, { waitsFor }]: [PodUID, PendingEdit]) =>
      waitsFor !== undefined && (own === uid ? isBroken : waitsFor === uid && isAvailable);
    if (this.#edits.entries().some(isDue)) this.changes.emit();
    else if (!isAvailable && hasCondition(worker.status, "Ready")) this.#observeLater(uid);
  }

  /** A pod without a readiness probe is available a while after it is Ready. */
  #observeLater(uid: PodUID): void {
    const waiting = this.#edits.values().find(({ waitsFor }) => waitsFor === uid);
    const again = () => {
      const worker = this.#deps.workers.get(uid);
      if (worker) this.observe(worker);
    };
    waiting?.stop.signal.addEventListener("abort", this.#deps.clock.schedule(MIN_READY_MS, again));
  }

  #waitsForTurn(worker: PodWorker, { desired: { pod, imagePins } }: PodRevision, edit: PendingEdit): boolean {
    const owner = controllerOf(pod)?.uid;
    // Updates of images exchange one pod after the other themselves.
    if (!owner || !Bun.deepEquals(imagePins, edit.earlier.desired.imagePins)) return false;
    const isOther = (it: PodWorker) => it !== worker && controllerOf(it.revision?.pod)?.uid === owner;
    const others = this.#deps.workers.values().filter(isOther);
    const before = findPodBefore(this.#turnOf(worker), [...others.map((it) => this.#turnOf(it))]);
    if (!before) return false;
    const isNew = edit.waitsFor !== before.uid;
    edit.waitsFor = before.uid;
    if (isNew) this.#observeLater(before.uid);
    const fix = `if it does not become Ready, kubelet-ts explain pod ${before.name} says why`;
    const why = `pod "${before.name}" of the same workload goes first. Fix: ${fix}`;
    if (edit.why !== why) this.#note(edit, why, true);
    return true;
  }

  #turnOf(worker: PodWorker): PodTurn {
    const { ref, snapshot, revision, status } = worker;
    const edit = this.#edits.get(ref.uid);
    const current = edit?.earlier ?? revision;
    const ready = status?.conditions?.find(({ type }) => type === "Ready");
    const readyMs = Math.abs(this.#deps.clock.now().getTime() - Date.parse(ready?.lastTransitionTime ?? ""));
    const isProbed = current?.pod.spec.containers.every(({ readinessProbe }) => readinessProbe);
    // The status may lack the newest containers: it waits for what one that ended has to say.
    const isNewest = ({ name, containerID }: ContainerStatus) =>
      containerID === `docker://${attemptsOf(snapshot, name)[0]?.id}`;
    const isShown = current && isRevisionLive({ ...current, snapshot }) && status?.containerStatuses?.every(isNewest);
    return {
      ...ref,
      isBroken: isBroken(worker),
      wasBroken: edit?.wasBroken ?? false,
      hasEdit: edit === undefined,
      isAvailable:
        (isShown && ready?.status === "True" && (isProbed || !(readyMs < MIN_READY_MS))) ||
        worker.isRemoving ||
        isFinished(worker),
      isNext: edit !== undefined && (edit.isReady || edit.why === undefined),
    };
  }

  /** The pod runs a revision that is known from its containers, and changes with them. */
  isAssumed(uid: PodUID): boolean {
    return this.#edits.get(uid)?.earlier.isAssumed ?? false;
  }

  /** The manifest of a running pod before this edit; undefined: it was not edited. */
  earlierOf(desired: DesiredPod, worker: PodWorker | undefined, snapshot: PodSnapshot): DesiredPod | undefined {
    const { uid } = snapshot;
    if (!mayWait(desired) || worker?.isRemoving) return undefined;
    const known = this.#edits.get(uid)?.earlier ?? (worker && hasRun(worker, snapshot) ? worker.revision : undefined);
    const earlier = known?.desired ?? this.#deps.records.earlierManifests.get(uid);
    return earlier?.revision === desired.revision ? undefined : earlier;
  }

  /** The revision that a pod keeps, whose edit the node refuses. @param before that of {@link earlierOf} */
  refuse(worker: PodWorker, before: PodRevision, { reason, message }: Rejection): PodRevision {
    const key = `${reason}: ${message}`;
    const known = this.#edits.get(worker.ref.uid);
    if (known?.key === key) return known.kept;
    const earlier = known?.earlier ?? worker.revision ?? toRunningRevision(before, worker.snapshot);
    const edit = this.#begin(worker, key, earlier);
    this.#show(worker, edit, message, explainPodEnd(reason, message).fix);
    return edit.kept;
  }

  forget(uid: PodUID): void {
    this.#stop(uid);
    this.#deps.records.earlierManifests.delete(uid);
  }

  #stop(uid: PodUID): void {
    this.#edits.get(uid)?.stop.abort();
    this.#edits.delete(uid);
  }

  /** Forgets the edits of other pods. */
  prune(uids: ReadonlySet<PodUID>): void {
    for (const uid of this.#edits.keys()) if (!uids.has(uid)) this.#stop(uid);
    for (const uid of this.#deps.records.earlierManifests.keys()) if (!uids.has(uid)) this.forget(uid);
  }

  /** Ends all preparations: pods keep what they run. */
  stop(): void {
    for (const uid of this.#edits.keys()) this.#stop(uid);
  }

  /** The revision that runs now; undefined when an edit would stop nothing. */
  #earlierRevisionOf(
    worker: PodWorker,
    next: PodRevision,
    toRevision: (kept: DesiredPod) => PodRevision,
  ): PodRevision | undefined {
    const { snapshot, revision } = worker;
    const known = this.#edits.get(worker.ref.uid)?.earlier;
    if ((known && !known.isAssumed) || worker.isRemoving) return known;
    const stored = this.#deps.records.earlierManifests.get(worker.ref.uid);
    if (stored && (known || !revision || revision.isTentative)) return toRunningRevision(toRevision(stored), snapshot);
    if (!known && revision) return hasRun(worker, snapshot) ? revision : undefined;
    return snapshot.containers.some(isRunning) ? toRunningRevision(next, snapshot) : undefined;
  }

  #begin(worker: PodWorker, key: string, earlier: PodRevision): PendingEdit {
    const { uid } = worker.ref;
    this.#stop(uid);
    const edit = {
      key,
      earlier,
      kept: { ...earlier, isToBeReplaced: true as const },
      isReady: false,
      wasBroken: isBroken(worker),
      stop: new AbortController(),
    };
    this.#edits.set(uid, edit);
    return edit;
  }

  async #prepare(worker: PodWorker, next: PodRevision, names: readonly string[], edit: PendingEdit): Promise<void> {
    const { clock, services } = this.#deps;
    const { signal } = edit.stop;
    const containers = allContainersOf(next.pod.spec).filter(({ name }) => names.includes(name));
    const isNewSandbox = needsSandbox(edit.earlier, next);
    const podIps = worker.snapshot.sandboxes[0]?.ips ?? [];
    const request = { ...toPodRequest(next), containers, isNewSandbox, podIps };
    const cancelTimer = clock.schedule(SHOW_AFTER_MS, () => {
      this.#note(edit, "its images are being pulled", true);
      this.changes.emit();
    });
    signal.addEventListener("abort", cancelTimer);
    while (!signal.aborted) {
      let retryMs = RETRY_MS;
      try {
        await services.prepareEdit(request, signal);
        cancelTimer();
        edit.isReady = true;
        if (signal.aborted) return;
        this.changes.emit();
        // The edit of another pod may wait for a host port that this one has given back.
        this.changes.emit();
        return;
      } catch (error) {
        if (signal.aborted) return;
        cancelTimer();
        // A back-off is no news: the failure before it says more.
        const reason = error instanceof PodStepError ? error.reason : "";
        const message = messageOf(error);
        const isNews = reason !== "ImagePullBackOff" || edit.why === undefined;
        if (isNews && this.#show(worker, edit, message, fixOfStep(reason, message))) this.changes.emit();
        retryMs = (error instanceof PodStepError && error.retryAfterMs) || RETRY_MS;
      }
      await clock.sleep(retryMs, signal).catch(() => {});
    }
  }

  /** @returns whether it is news */
  #show(worker: PodWorker, edit: PendingEdit, problem: string, fix: string): boolean {
    const why = fix === "" ? problem : `${problem.replace(/\.$/, "")}. Fix: ${fix}`;
    if (edit.why === why) return false;
    const message = this.#note(edit, why, false);
    const { imagePins: _, ...manifest } = edit.earlier.desired;
    this.#deps.records.earlierManifests.set(worker.ref.uid, manifest);
    this.#deps.recorder.record(worker.ref, { type: "Warning", reason: "EditPending", message });
    return true;
  }

  #note(edit: PendingEdit, why: string, isPreparing: boolean): string {
    edit.why = why;
    const message = `the edit waits, and the pod keeps running with its earlier manifest: ${why}`;
    edit.kept = withPendingEdit(edit.earlier, message, isPreparing);
    return message;
  }
}

/** A cluster's pods and those of Jobs follow upstream: no file edits them. */
const mayWait = ({ isBound, runsOnce }: DesiredPod): boolean => !isBound && !runsOnce;

const isBroken = ({ status }: PodWorker): boolean =>
  status?.conditions?.find(({ type }) => type === "Ready")?.status === "False";

/** A pod that has never run, or that has ended, has nothing to lose by an edit. */
const hasRun = (worker: PodWorker, { containers }: PodSnapshot): boolean =>
  !isFinished(worker) && containers.some(({ startedAt }) => startedAt);

const needsSandbox = ({ hashes: before }: PodRevision, { hashes }: PodRevision): boolean =>
  before.sandbox !== hashes.sandbox || before.init !== hashes.init;

/** Names of the containers that an edit starts that stops any; none: it stops nothing. Pure. */
function findReplaced(earlier: PodRevision, next: PodRevision): string[] {
  const isNewSandbox = needsSandbox(earlier, next);
  const isSame = (name: string) => earlier.hashes.containers.get(name) === next.hashes.containers.get(name);
  if (!isNewSandbox && [...earlier.hashes.containers.keys()].every(isSame)) return [];
  return [...next.hashes.containers.keys()].filter((name) => isNewSandbox || !isSame(name));
}

import { Listeners } from "../base/concurrency/listeners.ts";
import type { Clock } from "../base/model/clock.ts";
import type { ImageEngine, Observed, ObservedRuntime, RuntimeEvent } from "../base/model/container-engine.ts";
import type { Persisted } from "../base/model/persisted.ts";
import type { PodRef, PodUID } from "../base/model/pod.ts";
import {
  attemptsOf,
  byNewest,
  type ContainerId,
  type ContainerSnapshot,
  isTerminated,
  type PodSnapshot,
} from "../base/model/pod-snapshot.ts";
import type { ImageNames } from "../plan/status/compute-pod-status.ts";

/** Events after which inspect has a new result. The others (exec_*, attach, top, kill, …) do not change the state. */
const OBSERVED_ACTIONS = new Set(["start", "die", "destroy", "oom", "rename", "pause", "unpause", "update", "restart"]);

/**
 * The engine's own verdict misses an OOM kill whose notice reached it after the end of the container, or was given to
 * the sandbox alone (the limit of the pod was hit). A SIGKILL this soon after such a notice is attributed to it.
 */
const OOM_NOTICE_MS = 2_000;
const SIGKILLED = 137;

/**
 * A container that is asked to end may be started again right away (`docker restart`): then it was never gone.
 * A SIGKILL leaves nothing to wait for. Containers the kubelet stops are inspected when that call returns.
 */
const MANUAL_RESTART_MS = 500;
const SIGKILL = "9";

/** A removal that takes longer has failed: what is left of the container counts then. */
const REMOVAL_MS = 5_000;

/** One that ended no longer ago than this before its removal may have been ended by it: `docker rm -f`. */
const FORCED_REMOVAL_MS = 10_000;

interface PodCacheDeps {
  runtime: ObservedRuntime;
  clock: Clock;
  /** Dead containers found OOM-killed by the kubelet although the engine does not report it. */
  oomVerdicts: Persisted<readonly ContainerId[]>;
  images: Pick<ImageEngine, "imageStatus">;
}

interface Entry {
  observed: Observed;
  /** As the list calls it; differs from the list when something changed unseen. */
  running: boolean;
  /** Someone removed it after its end, which still counts: until the kubelet removes it too, or this sandbox is gone. */
  goneFrom?: ContainerId;
}

/**
 * The engine's containers as last inspected, by pod. Each entry comes from an inspect, one at a time per container, so a
 * late response never overwrites a newer one; events and lists only select which containers to inspect again.
 */
export class PodCache {
  /** Something about this pod changed: its worker plans again. */
  readonly changes = new Listeners<PodUID>();
  /** This container was there, and is no more. */
  readonly removals = new Listeners<ContainerSnapshot>();
  readonly #imageNames = new Map<string, ImageNames>();
  /** Names of images by id, those that were looked up. */
  readonly imageNames: ReadonlyMap<string, ImageNames> = this.#imageNames;
  readonly #learning = new Map<string, ReturnType<ImageEngine["imageStatus"]>>();
  readonly #deps: PodCacheDeps;
  readonly #entries = new Map<ContainerId, Entry>();
  readonly #byPod = new Map<PodUID, Set<ContainerId>>();
  readonly #snapshots = new Map<PodUID, PodSnapshot>();
  /** Containers of which something is known that was not inspected yet. */
  readonly #unsure = new Set<ContainerId>();
  /** Inspections under way; `again`: another change was reported since it began. */
  readonly #inspecting = new Map<ContainerId, { again: boolean; done: Promise<void> }>();
  readonly #exitedAtMs = new Map<ContainerId, number>();
  /** Monotonic time at which each dead container ended. */
  readonly exitedAtMs: ReadonlyMap<ContainerId, number> = this.#exitedAtMs;
  /** Last OOM notice of the engine for a container, or a sandbox. */
  readonly #oomNotices = new Map<ContainerId, { monotonicMs: number; wallMs: number }>();
  readonly #oomVerdicts: Set<ContainerId>;
  /** Got a signal other than SIGKILL and have not ended since. */
  readonly #signalled = new Set<ContainerId>();

  constructor(deps: PodCacheDeps) {
    this.#deps = deps;
    this.#oomVerdicts = new Set(deps.oomVerdicts.read());
  }

  /** Looks a name up, once for all pods of an image that ask at the same time. */
  async learnImage(imageId: string): Promise<void> {
    const learning = this.#learning.getOrInsertComputed(imageId, () => this.#deps.images.imageStatus(imageId));
    const image = await learning.finally(() => this.#learning.delete(imageId));
    const [tag] = image?.repoTags ?? [];
    const [digest] = image?.repoDigests ?? [];
    this.#imageNames.set(imageId, { ...(tag && { tag }), ...(digest && { digest }) });
  }

  /** Every pod the engine holds something of. */
  uids(): Iterable<PodUID> {
    return this.#byPod.keys();
  }

  /** Whether the engine holds this container, or sandbox. */
  has(id: ContainerId): boolean {
    return this.#entries.has(id);
  }

  /** Never changed in place: a change makes a new snapshot. An unknown pod has an empty one. */
  get(pod: PodRef): PodSnapshot {
    return this.#snapshot(pod.uid) ?? { ...pod, sandboxes: [], containers: [] };
  }

  /** Identity of a pod by the labels of its containers. */
  refOf(uid: PodUID): PodRef | undefined {
    const first = this.#byPod.get(uid)?.values().next().value;
    return first === undefined ? undefined : this.#entries.get(first)?.observed.pod;
  }

  /**
   * Lists everything and inspects what changed without an event, and what could not be inspected before, 16 at a time.
   * @param full inspect every container again, after a time without events.
   * @throws what the engine throws; the next call goes on with the rest.
   */
  async relist(full: boolean, signal?: AbortSignal): Promise<void> {
    const listed = await this.#deps.runtime.list(signal);
    const seen = new Set(listed.map(({ id }) => id));
    for (const { id, state } of listed) {
      const isAsListed = this.#entries.get(id)?.running === (state === "running" || state === "paused");
      if (full || !isAsListed) this.#unsure.add(id);
    }
    for (const [id, { goneFrom }] of this.#entries) if (!seen.has(id) && !goneFrom) this.#unsure.add(id);
    this.#judge([...this.#oomVerdicts.keys().filter((id) => !seen.has(id))], false);
    const ids = [...this.#unsure].values();
    const observeNext = async () => {
      for (const id of ids) await this.observe(id, signal);
    };
    const results = await Promise.allSettled(Array.from({ length: 16 }, observeNext));
    const failed = results.find((result) => result.status === "rejected");
    if (failed) throw failed.reason;
  }

  /** Takes an event of the engine. @returns when the cache knows. */
  async handleEvent(event: RuntimeEvent): Promise<void> {
    if (event.action === "kill" && event.signal !== SIGKILL) this.#signalled.add(event.id);
    if (event.action === "die" && this.#signalled.delete(event.id)) {
      const { clock } = this.#deps;
      clock.schedule(MANUAL_RESTART_MS, () => void this.#observeEnd(event.id).catch(() => {}));
      return;
    }
    if (!OBSERVED_ACTIONS.has(event.action)) return;
    if (event.action === "start") return this.observeStart(event.id);
    if (event.action === "destroy") return this.#noteRemoval(event.id);
    if (event.action === "oom") return this.#noteOom(event.id);
    await this.observe(event.id);
  }

  /** Inspects one container now, or again after an inspection that is under way. */
  async observe(id: ContainerId, signal?: AbortSignal): Promise<void> {
    const current = this.#inspecting.get(id);
    if (current) {
      current.again = true;
      return current.done;
    }
    const inspection = { again: true, done: Promise.resolve() };
    this.#inspecting.set(id, inspection);
    this.#unsure.add(id);
    inspection.done = (async () => {
      try {
        while (inspection.again) {
          inspection.again = false;
          const found = await this.#deps.runtime.inspect(id, signal);
          if (found?.isBeingRemoved && this.#entries.has(id)) this.#awaitRemoval(id);
          else this.#put(id, found);
        }
        this.#unsure.delete(id);
      } finally {
        this.#inspecting.delete(id);
      }
    })();
    return inspection.done;
  }

  /**
   * As {@link observe}, after a start, which an event and the end of our own call both report: what has been found running is
   * not inspected again. A `die` in between has its own event.
   */
  async observeStart(id: ContainerId, signal?: AbortSignal): Promise<void> {
    await this.#inspecting.get(id)?.done.catch(() => {});
    if (!this.#entries.get(id)?.running) await this.observe(id, signal);
  }

  /** As {@link observeStart}, after an end: what has been found dead, or was removed, is not inspected again. */
  async #observeEnd(id: ContainerId): Promise<void> {
    await this.#inspecting.get(id)?.done.catch(() => {});
    if (this.#entries.get(id)?.running ?? this.#unsure.has(id)) await this.observe(id);
  }

  /** The id never comes back: there is nothing to inspect, unless an earlier inspection could still bring the container back. */
  async #noteRemoval(id: ContainerId): Promise<void> {
    if (this.#inspecting.has(id)) return this.observe(id);
    this.#unsure.delete(id);
    this.#put(id, undefined);
  }

  /** After a removal by the kubelet itself, whether or not its event was first. */
  async forget(id: ContainerId, signal?: AbortSignal): Promise<void> {
    if (this.has(id)) await this.observe(id, signal);
    const entry = this.#entries.get(id);
    if (entry?.goneFrom) this.#drop(id, entry);
  }

  async #noteOom(id: ContainerId): Promise<void> {
    const { clock } = this.#deps;
    this.#oomNotices.set(id, { monotonicMs: clock.monotonicMs(), wallMs: clock.now().getTime() });
    const uid = this.#entries.get(id)?.observed.pod.uid;
    await Promise.all([id, ...(this.#byPod.get(uid ?? "") ?? [])].map((each) => this.observe(each)));
  }

  #withOomVerdict(observed: Observed): Observed {
    if (observed.kind !== "container") return observed;
    const { id, sandboxId, exitCode, finishedAt } = observed.container;
    if (!isTerminated(observed.container)) this.#judge([id], false);
    if (observed.container.oomKilled || !isTerminated(observed.container)) return observed;
    const exitedAtMs = this.#exitedAtMs.get(id) ?? 0;
    const notice = this.#oomNotices.get(id) ?? this.#oomNotices.get(sandboxId);
    // A slow engine reports the end long after it, but with its time.
    const distancesMs = notice && [exitedAtMs - notice.monotonicMs, (finishedAt?.getTime() ?? 0) - notice.wallMs];
    const isClose = distancesMs?.some((ms) => Math.abs(ms) <= OOM_NOTICE_MS);
    if (isClose && exitCode === SIGKILLED) this.#judge([id], true);
    if (!this.#oomVerdicts.has(id)) return observed;
    return { ...observed, container: { ...observed.container, oomKilled: true } };
  }

  #judge(ids: Iterable<ContainerId>, isOom: boolean): void {
    const before = this.#oomVerdicts.size;
    for (const id of ids) isOom ? this.#oomVerdicts.add(id) : this.#oomVerdicts.delete(id);
    if (this.#oomVerdicts.size !== before) this.#deps.oomVerdicts.write([...this.#oomVerdicts]);
  }

  /** `docker rm -f` stops a container first: it did not crash. Its `destroy` event follows. */
  #awaitRemoval(id: ContainerId): void {
    const observeAgain = async () => {
      if (this.#entries.has(id)) this.#put(id, await this.#deps.runtime.inspect(id));
    };
    this.#deps.clock.schedule(REMOVAL_MS, () => void observeAgain().catch(() => {}));
  }

  #put(id: ContainerId, found: Observed | undefined): void {
    if (!found) {
      this.#oomNotices.delete(id);
      this.#signalled.delete(id);
      this.#judge([id], false);
    }
    const before = this.#entries.get(id);
    const uid = found?.pod.uid ?? before?.observed.pod.uid;
    if (uid === undefined) return;
    if (found?.kind === "container") this.#noteExit(found.container, before);
    const observed = found && withRestart(this.#withOomVerdict(found), before?.observed);
    if (observed) {
      this.#entries.set(id, { observed, running: isUp(observed) });
      this.#byPod.getOrInsertComputed(uid, () => new Set()).add(id);
    } else if (before && !before.goneFrom) {
      const container = before.observed.kind === "container" ? before.observed.container : undefined;
      if (container && this.#stillCounts(container, this.get(before.observed.pod)))
        before.goneFrom = container.sandboxId;
      else this.#drop(id, before);
      if (container) this.removals.emit(container);
    }
    this.#snapshots.delete(uid);
    this.changes.emit(uid);
  }

  #drop(id: ContainerId, { observed: { pod } }: Entry): void {
    this.#entries.delete(id);
    this.#exitedAtMs.delete(id);
    const ids = this.#byPod.get(pod.uid) ?? new Set();
    ids.delete(id);
    if (ids.size === 0) this.#byPod.delete(pod.uid);
    this.#snapshots.delete(pod.uid);
    for (const each of ids) if (this.#entries.get(each)?.goneFrom === id) this.#drop(each, this.#entries.get(each)!);
  }

  /**
   * After `docker container prune`, what is done does not run a second time, and the restart count does not fall. What was
   * removed by force runs again.
   */
  #stillCounts({ id, name, sandboxId, state }: ContainerSnapshot, snapshot: PodSnapshot): boolean {
    const endedAtMs = this.#exitedAtMs.get(id);
    if (state !== "exited" || endedAtMs === undefined || !this.#entries.get(sandboxId)?.running) return false;
    const isNewest = attemptsOf(snapshot, name)[0]?.id === id;
    return isNewest && this.#deps.clock.monotonicMs() - endedAtMs > FORCED_REMOVAL_MS;
  }

  #noteExit(container: ContainerSnapshot, before: Entry | undefined): void {
    if (!isTerminated(container)) return void this.#exitedAtMs.delete(container.id);
    if (this.#exitedAtMs.has(container.id)) return;
    const { clock } = this.#deps;
    // Seen alive before: it ended just now. Otherwise the engine's wall clock has to be believed, never the future.
    const agoMs = before?.running
      ? 0
      : Math.max(0, clock.now().getTime() - (container.finishedAt ?? container.createdAt).getTime());
    this.#exitedAtMs.set(container.id, clock.monotonicMs() - agoMs);
  }

  #snapshot(uid: PodUID): PodSnapshot | undefined {
    const cached = this.#snapshots.get(uid);
    if (cached) return cached;
    const ref = this.refOf(uid);
    if (!ref) return undefined;
    const snapshot: PodSnapshot = { ...ref, sandboxes: [], containers: [] };
    for (const id of this.#byPod.get(uid) ?? []) {
      const observed = this.#entries.get(id)?.observed;
      if (observed?.kind === "sandbox") snapshot.sandboxes.push(observed.sandbox);
      else if (observed) snapshot.containers.push(observed.container);
    }
    snapshot.sandboxes.sort((a, b) => b.attempt - a.attempt || b.createdAt.getTime() - a.createdAt.getTime());
    snapshot.containers.sort(byNewest);
    this.#snapshots.set(uid, snapshot);
    return snapshot;
  }
}

/** Two start times show it, whether or not the end in between was seen. */
function withRestart(observed: Observed, before: Observed | undefined): Observed {
  if (observed.kind !== "sandbox" || before?.kind !== "sandbox") return observed;
  const [startedAtMs, beforeMs] = [observed.sandbox.startedAt?.getTime(), before.sandbox.startedAt?.getTime()];
  const isRestarted = before.sandbox.isRestarted || (beforeMs !== undefined && beforeMs !== startedAtMs);
  return isRestarted ? { ...observed, sandbox: { ...observed.sandbox, isRestarted } } : observed;
}

const isUp = (observed: Observed) =>
  observed.kind === "sandbox" ? observed.sandbox.state === "ready" : observed.container.state === "running";

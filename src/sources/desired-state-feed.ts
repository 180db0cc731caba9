import type { ConfigMap, Secret } from "../base/api/config-objects.ts";
import { ChangeLogger } from "../base/logging/change-logger.ts";
import {
  type DesiredObject,
  type DesiredPod,
  type DesiredState,
  isWorkload,
  type ObjectKey,
  objectKey,
  type PodNotice,
} from "../base/model/desired-state.ts";
import type { Finding } from "../base/model/finding.ts";
import type { Logger } from "../base/model/logger.ts";
import { compareFullNames, type PodFullName, type PodUID, podFullName } from "../base/model/pod.ts";
import { type CheckpointStore, type FeedSource, type ObjectsByText, sourceId } from "./checkpoint-store.ts";
import { EMPTY_SET, hasErrors, joinLocations, type Objects, type SourceSet, type SourceStatus } from "./source-set.ts";

/** Key of the pods that `--runonce` started: they belong to the root directory. */
const RUN_ONCE_KEY = "runonce";
export const RUN_ONCE_ID = sourceId(RUN_ONCE_KEY);

/** Identifies a pod (`namespace/name`) or a workload (`Kind namespace/name`). */
export type RunnableKey = PodFullName | ObjectKey;

/** Keys of the pods and workloads, without ConfigMaps and Secrets. */
export const runnableKeys = ({ pods, objects = [] }: Objects): RunnableKey[] => [
  ...pods.map(({ pod }) => podFullName(pod.metadata)),
  ...objects.map(({ kind, object }) => objectKey(kind, object.metadata)),
];

const without = (objects: Objects, keys: ReadonlySet<RunnableKey>): Objects => ({
  ...objects,
  pods: objects.pods.filter(({ pod }) => !keys.has(podFullName(pod.metadata))),
  objects: (objects.objects ?? []).filter(({ kind, object }) => !keys.has(objectKey(kind, object.metadata))),
});

/** Whether it has a pod, or an object that makes pods. */
const hasPods = ({ pods, objects = [] }: Objects): boolean => pods.length > 0 || objects.some(isWorkload);

/**
 * The texts without some pods and objects. ConfigMaps and Secrets leave with the last pod or workload of their text; those
 * of a text of their own, with the last one of all.
 */
export function withoutRunnables(texts: ObjectsByText, keys: ReadonlySet<RunnableKey>): ObjectsByText {
  const left = [...texts].map(([text, objects]) => [text, objects, without(objects, keys)] as const);
  const isLast = left.some(([, before]) => hasPods(before)) && !left.some(([, , rest]) => hasPods(rest));
  return new Map(
    left.flatMap(([text, before, rest]) => {
      if (hasPods(rest) || (!hasPods(before) && !isLast)) return [[text, rest] as const];
      return runnableKeys(rest).length > 0 ? [[text, { ...rest, configMaps: [], secrets: [] }] as const] : [];
    }),
  );
}

interface KeptSourceDeps {
  id: string;
  /** Path or masked URL of the previous source. */
  name: string;
  texts: ObjectsByText;
  /** `run-once`: pods of `--runonce`. `unclaimed`: their source is not configured any more. */
  origin: "run-once" | "unclaimed";
  store: CheckpointStore;
}

/**
 * Pods that run by a checkpoint alone: those of `--runonce`, and those whose source is not configured any more. They
 * leave only when a configured source describes a pod of the same name, or when they are removed by name.
 */
export class KeptSource implements FeedSource {
  readonly kind = "file";
  readonly name: string;
  readonly id: string;
  readonly #deps: KeptSourceDeps;
  #texts: ObjectsByText;
  #emit: ((set: SourceSet) => void) | undefined;

  constructor(deps: KeptSourceDeps) {
    this.#deps = deps;
    this.name = deps.origin === "run-once" ? "--runonce" : deps.name;
    this.id = deps.id;
    this.#texts = deps.texts;
  }

  start(emit: (set: SourceSet) => void): void {
    this.#emit = emit;
    this.emit();
  }

  async stop(): Promise<void> {}

  status(): SourceStatus {
    const set = this.set();
    const pods = set.pods.length;
    const state = this.#deps.origin === "unclaimed" && hasPods(set) ? "unclaimed" : "ok";
    const message = state === "unclaimed" ? { message: "not configured any more; its pods keep running" } : {};
    return { kind: "file", name: this.name, state, ...message, pods, reads: 0, failures: 0 };
  }

  /** Drops these pods and workloads, on disk too. @returns whether it had one of them */
  drop(keys: ReadonlySet<RunnableKey>): boolean {
    if (![...this.#texts.values()].some((objects) => runnableKeys(objects).some((key) => keys.has(key)))) return false;
    this.#texts = withoutRunnables(this.#texts, keys);
    this.#deps.store.save(this.#deps.id, this.#deps.name, { texts: this.#texts });
    return true;
  }

  /** Emits what is left after {@link drop}. */
  emit(): void {
    this.#emit?.(this.set());
  }

  set(): SourceSet {
    const all = [...this.#texts.values()];
    return {
      pods: all.flatMap(({ pods }) => pods),
      configMaps: all.flatMap(({ configMaps }) => configMaps),
      secrets: all.flatMap(({ secrets }) => secrets),
      objects: all.flatMap(({ objects = [] }) => objects),
      locations: joinLocations(all),
      findings: [],
      stale: new Map(),
      isComplete: true,
      isKept: true,
      ...(this.#deps.origin === "unclaimed" ? { unclaimedFrom: this.#deps.name } : {}),
    };
  }
}

/**
 * The checkpoint of `--runonce` with the pods of a further run: a pod of the same name is replaced, all others stay,
 * since a run adds pods and never removes any.
 */
function mergeRunOnce(before: ObjectsByText, now: ObjectsByText): ObjectsByText {
  const named = new Set([...now.values()].flatMap(runnableKeys));
  // The newer texts come first, so that their ConfigMaps and Secrets count.
  const merged = new Map(now);
  for (const [text, objects] of before) {
    const left = without(objects, named);
    if (runnableKeys(left).length === 0) continue;
    let key = text;
    for (let count = 2; merged.has(key); count++) key = `${text} (${count})`;
    merged.set(key, left);
  }
  return merged;
}

export interface FeedInfo {
  /** Every source was read and no text is unknown. Before that, no pod outside of the state may be removed. */
  isComplete: boolean;
  /** Every source was read, or has a checkpoint. A text that was never right may still be unknown. */
  isRead: boolean;
  /** Findings of all sources, in their order. */
  findings: readonly Finding[];
  /** A line for each text that is ignored, because an earlier one describes the same object. */
  duplicates: readonly string[];
}

interface MergeResult extends FeedInfo {
  state: DesiredState;
}

/** Result of reading all sources once. */
export interface ReadOnceResult extends MergeResult {
  /** One line for each source that could not be read at all. */
  failures: string[];
}

/** A manifest, or a part of it, that is refused; what it wanted before keeps running. */
export interface ManifestRejection {
  /** Path or masked URL of the source. */
  source: string;
  finding: Finding;
  /** Pods that run by an older text of that file. */
  stalePods: readonly PodFullName[];
}

interface DesiredStateFeedDeps {
  /** In the order in which they win against each other. */
  sources: readonly FeedSource[];
  /** Sources that exist as checkpoints only; they lose against all others. */
  kept: readonly KeptSource[];
  checkpoints: CheckpointStore;
  logger: Logger;
}

/** All sources together, as one desired state that changes. */
export class DesiredStateFeed {
  readonly #deps: DesiredStateFeedDeps;
  readonly #facts: ChangeLogger;
  readonly #sources: readonly FeedSource[];
  readonly #sets: (SourceSet | undefined)[];
  readonly #listeners = new Set<(state: DesiredState, info: FeedInfo) => void>();
  #isStarting = true;
  #last: { state: DesiredState; info: FeedInfo } | undefined;

  constructor(deps: DesiredStateFeedDeps) {
    this.#deps = deps;
    this.#facts = new ChangeLogger(deps.logger);
    this.#sources = [...deps.sources, ...deps.kept];
    this.#sets = this.#sources.map(() => undefined);
  }

  /** Starts the sources. Without any source the state is empty and complete. */
  start(): void {
    this.#sources.forEach((source, index) => {
      source.start((set) => this.#onSet(index, source, set));
    });
    this.#isStarting = false;
    if (this.#sources.length === 0 || this.#sets.some((set) => set !== undefined)) this.#publish();
  }

  /** Calls back with every new state, at once with the present one. @returns ends it */
  onChange(listener: (state: DesiredState, info: FeedInfo) => void): () => void {
    this.#listeners.add(listener);
    if (this.#last) listener(this.#last.state, this.#last.info);
    return () => this.#listeners.delete(listener);
  }

  /** Ends all sources and writes what is still to be stored. */
  async stop(): Promise<void> {
    this.#listeners.clear();
    await Promise.all(this.#sources.map((source) => source.stop()));
    await this.flush();
  }

  /** The checkpoints on disk have what every source has now. Never rejects. */
  async flush(): Promise<void> {
    await this.#deps.checkpoints.flush();
  }

  /** In the order of the sources; for `/healthz?verbose` and metrics. */
  status(): SourceStatus[] {
    return this.#sources
      .map((source) => source.status())
      .filter(({ state, reads, pods }) => state !== "ok" || reads + pods > 0);
  }

  /** Manifests that are refused at present, in the order of the sources. */
  rejections(): ManifestRejection[] {
    return this.#sets.flatMap((set, index) => {
      const { name } = this.#sources[index]!;
      return (set?.findings ?? [])
        .filter((finding) => hasErrors([finding]))
        .map((finding) => ({
          source: name,
          finding,
          stalePods: [...(set?.stale ?? [])]
            .filter(([, why]) => why.startsWith(`${finding.file}:`))
            .map(([pod]) => pod),
        }));
    });
  }

  /**
   * Removes a pod or workload whose source is not configured any more, or that `--runonce` started.
   * @param key `namespace/name` of a pod, `Kind namespace/name` of a workload
   * @returns undefined when there is none, or a configured source describes it
   */
  removalOf(key: RunnableKey): (() => void) | undefined {
    if (!this.#deps.kept.some((source) => runnableKeys(source.set()).includes(key))) return undefined;
    return () => {
      this.#drop(new Set([key]));
      for (const source of this.#deps.kept) source.emit();
    };
  }

  /** Reads every configured source once, concurrently, instead of `start`. Rejects only when `signal` aborts. */
  async readOnce(signal: AbortSignal): Promise<ReadOnceResult> {
    const { sources } = this.#deps;
    const outcomes = await Promise.allSettled(sources.map(async (source) => source.readOnce?.(signal) ?? EMPTY_SET));
    signal.throwIfAborted();
    const sets = outcomes.map((outcome) => (outcome.status === "fulfilled" ? outcome.value : undefined));
    sets.forEach((set, index) => {
      this.#sets[index] = set;
    });
    const failures = outcomes.flatMap((outcome) =>
      outcome.status === "rejected" ? [(outcome.reason as Error).message] : [],
    );
    const { state, ...merged } = mergeSources(sets);
    // Absent means that every source was read, so that a ConfigMap that is missing does not exist.
    const completeSources = failures.length > 0 ? { completeSources: this.#completeSources } : {};
    return { ...merged, state: { ...state, ...completeSources }, failures };
  }

  /** Stores the pods of {@link readOnce}, so that a kubelet on the same root directory supervises them. */
  async storeRunOnce(): Promise<void> {
    const { sources, checkpoints } = this.#deps;
    const now = new Map<string, Objects>();
    sources.forEach(({ name }, index) => {
      const set = this.#sets[index];
      if (!set) return;
      const { pods, configMaps, secrets, objects = [], locations = {} } = set;
      now.set(name, { pods, configMaps, secrets, objects, locations });
    });
    const before: ObjectsByText = checkpoints.load(RUN_ONCE_ID)?.texts ?? new Map();
    checkpoints.save(RUN_ONCE_ID, RUN_ONCE_KEY, { texts: mergeRunOnce(before, now) });
    await checkpoints.flush();
  }

  #onSet(index: number, source: FeedSource, set: SourceSet): void {
    this.#sets[index] = set;
    const checkpoint = source.checkpoint?.();
    if (checkpoint) this.#deps.checkpoints.save(source.id, source.name, checkpoint);
    if (!this.#isStarting) this.#publish();
  }

  /** @returns whether a kept source had one of these */
  #drop(keys: ReadonlySet<RunnableKey>): void {
    for (const source of this.#deps.kept) source.drop(keys);
  }

  /** Pods of kept sources that a configured source describes belong to that source from now on. */
  #handOver(): void {
    const isLive = (set: SourceSet | undefined, index: number) =>
      set !== undefined && !set.isKept && this.#sources[index]!.status().state === "ok";
    this.#drop(new Set(this.#sets.filter(isLive).flatMap((set) => runnableKeys(set!))));
    this.#deps.kept.forEach((source, index) => {
      this.#sets[this.#deps.sources.length + index] = source.set();
    });
  }

  #publish(): void {
    if (this.#deps.kept.length > 0) this.#handOver();
    const { state, ...info } = mergeSources(this.#sets);
    const logged = new Set<string>();
    for (const message of info.duplicates) {
      logged.add(`duplicate:${message}`);
      this.#facts.log(`duplicate:${message}`, "warn", message);
    }
    this.#facts.prune("duplicates", logged);
    this.#reportUnclaimed(state);
    const before = this.#last?.state;
    const configMaps = keepSame(before?.configMaps, state.configMaps);
    const secrets = keepSame(before?.secrets, state.secrets);
    this.#last = { state: { ...state, configMaps, secrets, completeSources: this.#completeSources }, info };
    for (const listener of this.#listeners) listener(this.#last.state, this.#last.info);
  }

  get #completeSources(): ReadonlySet<string> {
    return new Set(this.#sources.filter((_, index) => this.#sets[index]?.isComplete).map(({ id }) => id));
  }

  /** One warning for each source. */
  #reportUnclaimed({ pods, objects = [] }: DesiredState): void {
    const logged = new Set<string>();
    for (const source of this.#deps.kept) {
      const from = source.set().unclaimedFrom;
      const names = [
        ...pods.filter(({ sourceId }) => sourceId === source.id).map(({ pod }) => `pod ${podFullName(pod.metadata)}`),
        ...objects
          .filter((it) => isWorkload(it) && it.sourceId === source.id)
          .map(({ kind, object }) => objectKey(kind, object.metadata)),
      ];
      if (from === undefined || names.length === 0) continue;
      const key = `unclaimed:${source.id}`;
      logged.add(key);
      const what =
        `The source ${from} is not configured any more; what it described keeps running until a configured source ` +
        `describes it or it is removed ("kubelet-ts delete KIND NAME --namespace=NAMESPACE")`;
      this.#facts.log(key, "warn", `${what}: ${firstOf(names)}`);
    }
    this.#facts.prune("unclaimed", logged);
  }
}

/** The map before, while it has the same items: what pods make of it need not be made again. */
const keepSame = <K, V>(before: ReadonlyMap<K, V> | undefined, now: ReadonlyMap<K, V>): ReadonlyMap<K, V> =>
  before?.size === now.size && [...now].every(([key, item]) => before.get(key) === item) ? before : now;

/**
 * All sources together. Of two objects with the same namespace and name (or two pods with one UID) the first counts, by
 * order of the sources, then of the files, then of the documents; the other is reported, unless it is a kept one.
 * @param sets in the order of the sources; undefined: that source was not read yet
 */
export function mergeSources(sets: readonly (SourceSet | undefined)[]): MergeResult {
  const duplicates: string[] = [];
  const notices = new Map<PodUID, PodNotice[]>();
  const byName = new Map<string, DesiredPod>();
  const byUid = new Map<PodUID, DesiredPod>();
  const configMaps = new Map<string, ConfigMap>();
  const secrets = new Map<string, Secret>();
  const objects = new Map<ObjectKey, DesiredObject>();
  const note = (uid: PodUID, notice: PodNotice) => notices.set(uid, [...(notices.get(uid) ?? []), notice]);

  for (const set of sets) {
    for (const desired of set?.pods ?? []) {
      const name = podFullName(desired.pod.metadata);
      const uid = desired.pod.metadata.uid!;
      const winner = byName.get(name) ?? byUid.get(uid);
      if (winner) {
        if (set?.isKept) continue;
        const what = byName.has(name) ? `pod "${name}"` : `a pod with the uid ${uid}`;
        const message = `${desired.origin}: ignored, ${what} is described by ${winner.origin} already`;
        duplicates.push(message);
        note(winner.pod.metadata.uid!, { reason: "DuplicateManifest", message });
        continue;
      }
      byName.set(name, desired);
      byUid.set(uid, desired);
      if (set?.unclaimedFrom !== undefined)
        note(uid, { reason: "Unclaimed", message: unclaimedMessage("pod", name, set.unclaimedFrom) });
      const why = set?.stale.get(name);
      if (why !== undefined) {
        note(uid, { reason: "InvalidManifest", message: `runs by an older text: ${why}` });
      }
    }
    const reported = set?.isKept ? [] : duplicates;
    addObjects("ConfigMap", set?.configMaps ?? [], configMaps, reported);
    addObjects("Secret", set?.secrets ?? [], secrets, reported);
    for (const desired of set?.objects ?? []) {
      const key = objectKey(desired.kind, desired.object.metadata);
      const winner = objects.get(key);
      const name = podFullName(desired.object.metadata);
      if (!winner) {
        const from = isWorkload(desired) ? set?.unclaimedFrom : undefined;
        const unclaimed = from !== undefined && { unclaimed: unclaimedMessage(desired.kind.toLowerCase(), name, from) };
        objects.set(key, unclaimed ? { ...desired, ...unclaimed } : desired);
      } else {
        reported.push(`${desired.origin}: ignored, ${desired.kind} "${name}" is described by ${winner.origin} already`);
      }
    }
  }
  const deletions = sets.flatMap((set) => [...(set?.deletions ?? [])]);
  const pods = [...byName].sort(([a], [b]) => compareFullNames(a, b)).map(([, desired]) => desired);
  return {
    state: {
      pods,
      configMaps,
      secrets,
      ...(notices.size > 0 && { notices }),
      locations: joinLocations(sets.filter((set) => set !== undefined)),
      ...(deletions.length > 0 && { deletions: new Map(deletions) }),
      ...(objects.size > 0 && {
        objects: [...objects].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object),
      }),
    },
    findings: sets.flatMap((set) => set?.findings ?? []),
    duplicates,
    isComplete: sets.every((set) => set?.isComplete),
    isRead: sets.every((set) => set !== undefined),
  };
}

/** The first ten names: a line of the log stays short. */
function firstOf(names: readonly string[]): string {
  const more = names.length - 10;
  return names.slice(0, 10).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** Says why an unclaimed pod or workload runs, and both ways to end that. */
function unclaimedMessage(kind: string, fullName: PodFullName, source: string): string {
  const [namespace, name] = fullName.split("/");
  const removal = `kubelet-ts delete ${kind} ${name} --namespace=${namespace}`;
  return `its source ${source} is not configured any more; the ${kind} keeps running. Fix: ${removal}, or configure a source that describes it`;
}

function addObjects<T extends ConfigMap | Secret>(
  kind: "ConfigMap" | "Secret",
  objects: readonly T[],
  known: Map<string, T>,
  duplicates: string[],
): void {
  for (const object of objects) {
    const name = podFullName(object.metadata);
    if (!known.has(name)) known.set(name, object);
    else if (known.get(name) !== object) {
      duplicates.push(`${kind} "${name}" is described more than once; the first text counts`);
    }
  }
}

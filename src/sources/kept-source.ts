import { isWorkload, type ObjectKey, objectKey } from "../base/model/desired-state.ts";
import { type PodFullName, podFullName } from "../base/model/pod.ts";
import { type CheckpointStore, type FeedSource, type ObjectsByText, sourceId } from "./checkpoint-store.ts";
import { joinLocations, type Objects, type SourceSet, type SourceStatus } from "./source-set.ts";

/** Key of the pods that `--runonce` started: they belong to the root directory. */
export const RUN_ONCE_KEY = "runonce";
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
export function mergeRunOnce(before: ObjectsByText, now: ObjectsByText): ObjectsByText {
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

import type { PodStatus } from "../../src/base/api/pod.ts";
import type { WantedPod } from "./desired.ts";
import type { World } from "./world.ts";

/** An object as the API shows it. */
export interface Shown {
  metadata: { name: string; uid: string; resourceVersion: string; generation?: number; creationTimestamp?: string };
  status?: undefined | (PodStatus & { observedGeneration?: number; succeeded?: number });
}

interface WatchEvent {
  type: "ADDED" | "MODIFIED" | "DELETED" | "ERROR" | "BOOKMARK";
  object: Shown;
}

/** Resources that are watched. */
const PATHS = {
  Pod: "/api/v1/pods",
  Deployment: "/apis/apps/v1/deployments",
  ReplicaSet: "/apis/apps/v1/replicasets",
  Job: "/apis/batch/v1/jobs",
} as const;

type Kind = keyof typeof PATHS;

/** Circumstances of two versions of an object. */
interface Between {
  /** A person may have edited it: it runs afresh. */
  isEdited: boolean;
  isSameProcess: boolean;
}

type Check = (before: Shown, now: Shown, between: Between) => string | undefined;

/** The reason of a pod of which nothing is known before the engine has answered. */
const ENGINE_AWAITED = "EngineUnavailable";
/** How often a client looks whether the API answers. */
const CONNECT_MS = 1_000;
/** An edit may be acted on for this time. */
const EDIT_SETTLES_MS = 60 * 60_000;
/** Longer than the kubelet takes from one list of all containers to the next. */
const FORGOTTEN_MS = 5 * 60_000;
/** Lists are this old at most when they are judged. */
const LIST_AGE_MS = 2 * 60_000;
/** One machine of eight has them, on one day of five. */
const WATCHED = { seeds: 8, seed: 5, days: 5, day: 1 };

/** Pods of which a person removed a container, and with it what was known. Its event may be lost: the kubelet finds out by a list. */
export class ForgottenPods {
  readonly #world: World;
  /** When that was, by uid. */
  readonly #sinceMs = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
    world.engine.observers.add(({ what, by, container: { labels } }) => {
      if (what === "remove" && by === "stranger")
        this.#sinceMs.set(labels["io.kubernetes.pod.uid"] ?? "", world.time.nowMs);
    });
  }

  has(uid: string): boolean {
    return this.#world.time.nowMs - (this.#sinceMs.get(uid) ?? -FORGOTTEN_MS) < FORGOTTEN_MS;
  }
}

interface InformerDeps {
  world: World;
  kind: Kind;
  isEdited(name: string): boolean;
  check: Check;
  fail(rule: string, message: string): void;
}

/** Objects of one resource that a client listed and saw change since, as an informer of Kubernetes keeps them. */
class Informer {
  readonly #deps: InformerDeps;
  readonly #objects = new Map<string, { object: Shown; process: number }>();
  readonly #forgotten: ForgottenPods;
  #revision = "";
  #isWatching = false;
  #end: AbortController | undefined;

  constructor(deps: InformerDeps) {
    this.#deps = deps;
    this.#forgotten = new ForgottenPods(deps.world);
  }

  /** As long as the process lives; what is known outlives it. */
  connect(): void {
    const { world, kind } = this.#deps;
    this.#end = new AbortController();
    const { signal } = this.#end;
    const again = () => {
      this.#isWatching = false;
      if (!signal.aborted) world.time.afterForProcess(CONNECT_MS, () => void attempt());
    };
    const attempt = async () => {
      if (this.#revision === "" && !(await this.#list())) return again();
      if (signal.aborted) return;
      this.#isWatching = true;
      let rest = "";
      const onText = (text: string) => {
        const lines = (rest + text).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) this.#take(JSON.parse(line) as WatchEvent);
      };
      const query = `watch=true&allowWatchBookmarks=true&resourceVersion=${this.#revision}`;
      await world.watch(`${PATHS[kind]}?${query}`, signal, onText);
      again();
    };
    again();
  }

  /** It goes away, and knows nothing when it comes back. */
  disconnect(): void {
    this.#end?.abort();
    this.#objects.clear();
    this.#revision = "";
    this.#isWatching = false;
  }

  /** Compares what the events told with a list. */
  async compare(): Promise<void> {
    const { world, kind, fail } = this.#deps;
    const { processes } = world;
    const listed = await this.#read();
    if (!listed || !this.#isWatching || processes !== world.processes) return;
    const versions = new Map([...this.#objects.values()].map(({ object: { metadata } }) => [metadata.uid, metadata]));
    for (const { metadata } of listed.items) {
      const known = versions.get(metadata.uid);
      versions.delete(metadata.uid);
      if (Number(known?.resourceVersion ?? 0) < Number(metadata.resourceVersion))
        fail("watch", `a watch did not tell of ${kind} ${metadata.name} as it is listed`);
    }
    for (const { name, resourceVersion } of versions.values()) {
      if (Number(resourceVersion) < Number(listed.metadata.resourceVersion))
        fail("watch", `a watch did not tell that ${kind} ${name} is gone`);
    }
  }

  async #read() {
    const answer = await this.#deps.world.ask("GET", PATHS[this.#deps.kind], undefined, "");
    if (answer?.status !== 200) return undefined;
    return JSON.parse(answer.text) as { metadata: { resourceVersion: string }; items: Shown[] };
  }

  async #list(): Promise<boolean> {
    const listed = await this.#read();
    if (!listed) return false;
    const uids = new Set(listed.items.map(({ metadata }) => metadata.uid));
    for (const uid of this.#objects.keys()) if (!uids.has(uid)) this.#objects.delete(uid);
    for (const item of listed.items) this.#keep(item);
    this.#revision = listed.metadata.resourceVersion;
    return true;
  }

  #take({ type, object }: WatchEvent): void {
    if (type === "ERROR") {
      // The events in between are forgotten: clients list again.
      this.#revision = "";
      return;
    }
    const { resourceVersion, uid, name } = object.metadata;
    if (Number(resourceVersion) < Number(this.#revision))
      this.#deps.fail("watch", `${type} of ${name} has version ${resourceVersion} after ${this.#revision}`);
    this.#revision = resourceVersion;
    if (type === "DELETED") this.#objects.delete(uid);
    else if (type !== "BOOKMARK") this.#keep(object);
  }

  #keep(object: Shown): void {
    const { world, kind, isEdited, check, fail } = this.#deps;
    const { uid, name, generation = 0, creationTimestamp } = object.metadata;
    const kept = this.#objects.get(uid);
    const isKnown = object.status?.reason !== ENGINE_AWAITED;
    const shown = isKnown || !kept ? object : { ...object, status: kept.object.status };
    // A status of an earlier process stays one.
    const process = isKnown || !kept ? world.processes : kept.process;
    this.#objects.set(uid, { object: shown, process });
    if (!kept || !isKnown || this.#forgotten.has(uid)) return;
    const before = kept.object.metadata;
    const between = { isEdited: isEdited(name), isSameProcess: kept.process === world.processes };
    const wrong =
      between.isSameProcess && generation < (before.generation ?? 0)
        ? `generation ${generation} after ${before.generation}`
        : creationTimestamp !== before.creationTimestamp && !between.isEdited
          ? `creationTimestamp ${creationTimestamp} after ${before.creationTimestamp}`
          : check(kept.object, object, between);
    if (wrong !== undefined) fail("status", `the API shows ${kind} ${name} with ${wrong}`);
  }
}

/** Clients that watch the local API see what the API of a cluster could show. On some machines and days: they are slow. */
export class Watchers {
  readonly #informers: readonly Informer[];
  readonly #world: World;
  #isOn = false;

  constructor(world: World, wanted: ReadonlyMap<string, WantedPod>, fail: (rule: string, message: string) => void) {
    const isEdited = (name: string) => {
      const pod = wanted.get(name.split("-")[0] ?? "");
      return !pod || world.time.nowMs - pod.changedMs < EDIT_SETTLES_MS;
    };
    const kinds = Object.entries(CHECKS) as [Kind, Check][];
    const informers = kinds.map(([kind, check]) => new Informer({ world, kind, isEdited, check, fail }));
    this.#informers = world.seed % WATCHED.seeds === WATCHED.seed ? informers : [];
    this.#world = world;
    world.onStart = () => {
      if (this.#isOn) for (const informer of this.#informers) informer.connect();
    };
  }

  beginDay(day: number): void {
    this.#isOn = day % WATCHED.days === WATCHED.day;
    for (const informer of this.#informers) {
      if (!this.#isOn) informer.disconnect();
      else if (this.#world.isRunning) this.#world.time.afterForProcess(0, () => informer.connect());
    }
  }

  async compare(): Promise<void> {
    if (this.#isOn) await Promise.all(this.#informers.map((informer) => informer.compare()));
  }
}

const checkGeneration: Check = ({ status: before }, { status, metadata }, { isSameProcess }) => {
  const { observedGeneration = 0 } = status ?? {};
  if (observedGeneration > (metadata.generation ?? 0)) return `observedGeneration ${observedGeneration}, of the future`;
  const was = before?.observedGeneration ?? 0;
  return isSameProcess && observedGeneration < was
    ? `observedGeneration ${observedGeneration} after ${was}`
    : undefined;
};

/** How a pod may not change. */
export const checkPod: Check = (earlier, later, { isEdited, isSameProcess }) => {
  const [before, now] = [earlier, later].map(({ status }) => status ?? ({} as PodStatus)) as [PodStatus, PodStatus];
  const isOver = before.phase === "Succeeded" || before.phase === "Failed";
  const isBack = isOver ? now.phase !== before.phase : before.phase === "Running" && now.phase === "Pending";
  if (isBack && !isEdited) return `phase ${now.phase} after ${before.phase}`;
  if (!isEdited && isSameProcess && before.startTime !== undefined && now.startTime !== before.startTime)
    return `startTime ${now.startTime} after ${before.startTime}`;
  for (const { name, restartCount, containerID, state, ready } of now.containerStatuses ?? []) {
    const was = before.containerStatuses?.find((one) => one.name === name);
    if (ready && !state.running) return `${name} ready, which does not run`;
    if (!was) continue;
    if (restartCount < was.restartCount) return `restartCount ${restartCount} of ${name} after ${was.restartCount}`;
    if (restartCount > was.restartCount || !containerID || !was.containerID) continue;
    if (containerID !== was.containerID) return `another container ${name} with the same restartCount ${restartCount}`;
    if (was.state.terminated && state.running) return `${name} running again after it was terminated`;
  }
  const conditions = new Map((now.conditions ?? []).map(({ type, status }) => [type, status]));
  const isReady = conditions.get("ContainersReady") === "True";
  if (conditions.get("Ready") === "True" && !isReady) return "Ready without ContainersReady";
  const unready = now.containerStatuses?.find(({ ready }) => !ready);
  return isReady && unready ? `ContainersReady, although ${unready.name} is not` : undefined;
};

/** An API shows since when each container runs. @returns what is wrong */
export function findWrongStatus({ engine, time }: World, pods: readonly object[]): string | undefined {
  for (const { status } of pods as readonly { status?: PodStatus }[]) {
    for (const { containerID = "", state } of status?.containerStatuses ?? []) {
      const container = engine.containers.get(containerID.slice("docker://".length));
      // A later one is not in the list.
      if (container?.status !== "running" || time.wallMs - container.startedMs < LIST_AGE_MS) continue;
      const startedAt = `${new Date(container.startedMs).toISOString().slice(0, 19)}Z`;
      const shown = state?.running?.startedAt ?? "another state";
      if (shown !== startedAt) return `the API shows ${shown} for ${container.name}, which runs since ${startedAt}`;
    }
  }
  return undefined;
}

const CHECKS: Readonly<Record<Kind, Check>> = {
  Pod: checkPod,
  Deployment: checkGeneration,
  ReplicaSet: checkGeneration,
  Job: ({ status: before }, { status: now }, { isEdited }) => {
    const [was = 0, is = 0] = [before?.succeeded, now?.succeeded];
    return !isEdited && is < was ? `${is} successes after ${was}` : undefined;
  },
};

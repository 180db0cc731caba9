import type { Clock } from "../base/model/clock.ts";
import { type CgroupDirectories, parentDirectories } from "./cgroups/cgroup-layout.ts";
import type { CgroupReader } from "./cgroups/cgroup-reader.ts";
import { NetDevReader } from "./cgroups/net-dev-reader.ts";
import { type CgroupKind, type Detail, mainDirectory } from "./cgroups/open-cgroup.ts";
import { OLDEST_BASE_MS } from "./cpu-rate.ts";
import type { CgroupSample, ContainerSample, NodeSample, PodSample, SystemContainerName } from "./node-sample.ts";
import type { ContainerFacts, PodFacts } from "./pod-facts.ts";
import { DESCRIPTORS_PER_SAMPLE, TrackedCgroups } from "./tracked-cgroups.ts";

/** Callers within this time receive the same numbers. */
const CACHE_MS = 1_000;
/** Key of the network of process 1, next to the ids of sandboxes. */
const NODE_NETWORK = "/";

/**
 * Measures the node, its pods and their containers on demand. Files are closed 90 to 180 s after the last request; from
 * then on no timer runs.
 */
export class Sampler {
  readonly #reader: CgroupReader;
  readonly #clock: Clock;
  readonly #facts: () => readonly PodFacts[];
  readonly #systemCgroups: ReadonlyMap<SystemContainerName, string>;
  readonly #networks: NetDevReader;
  readonly #cgroups: TrackedCgroups;
  #latest: NodeSample | undefined;
  /** Has all details. */
  #previous: NodeSample | undefined;
  #latestMs = Number.NEGATIVE_INFINITY;
  #cancelRelease: (() => void) | undefined;

  /** @param systemCgroups paths that are measured in addition, e.g. `/system.slice` */
  constructor(
    reader: CgroupReader,
    clock: Clock,
    facts: () => readonly PodFacts[],
    procRoot = "/proc",
    systemCgroups: ReadonlyMap<SystemContainerName, string> = new Map(),
  ) {
    this.#reader = reader;
    this.#cgroups = new TrackedCgroups(reader);
    this.#systemCgroups = systemCgroups;
    this.#clock = clock;
    this.#facts = facts;
    this.#networks = new NetDevReader(procRoot);
  }

  /** true when the next sample cannot have CPU rates of a useful window: the last one is too old, or too young. */
  get isCold(): boolean {
    const root = this.#latest?.root;
    return this.#isIdle || (root !== undefined && root.usageNanoCores === undefined);
  }

  /** The sample before the latest one, for clients that compute rates themselves; undefined when it had only the basics. */
  get previous(): NodeSample | undefined {
    return this.#previous;
  }

  /** Any one cgroup, ours or not; undefined when there is none of that path. */
  measureOnce(cgroupPath: string): CgroupSample | undefined {
    const directories = this.#reader.ofPath(cgroupPath);
    const createdAt = this.#reader.createdAt(directories);
    if (!createdAt) return undefined;
    const cgroup = this.#reader.open(directories);
    const spec = this.#reader.spec(directories);
    const hasQuota = spec.cpuQuotaMicroseconds !== undefined;
    const stats = cgroup.read("all", { hasQuota, kind: "container" });
    const processes = stats && this.#reader.processCounts(stats.processIds, DESCRIPTORS_PER_SAMPLE);
    cgroup.close();
    if (!stats) return undefined;
    const unknown = { usageNanoCores: undefined, openFilesLimit: undefined, loadAverage: 0 };
    return { path: cgroupPath, stats, createdAt, spec, processes, ...unknown };
  }

  /** The sample of this second, taken now unless there is one with at least this detail. */
  sample(detail: Detail): NodeSample {
    const nowMs = this.#clock.monotonicMs();
    const latest = this.#latest;
    if (latest && nowMs - this.#latestMs < CACHE_MS && (latest.detail === "all" || detail === "basics")) return latest;
    return this.#take(detail, nowMs);
  }

  /** Takes a sample even if there is a fresh one. */
  sampleNow(detail: Detail): NodeSample {
    return this.#take(detail, this.#clock.monotonicMs());
  }

  /** Releases every open file. */
  close(): void {
    this.#cancelRelease?.();
    this.#cancelRelease = undefined;
    this.#cgroups.close();
    this.#networks.close();
    this.#latest = undefined;
    this.#previous = undefined;
    this.#latestMs = Number.NEGATIVE_INFINITY;
  }

  #take(detail: Detail, nowMs: number): NodeSample {
    const podFacts = this.#facts();
    const containerCount = podFacts.reduce((sum, { containers }) => sum + containers.length, 0);
    this.#cgroups.begin(detail, nowMs, containerCount);
    const measure = this.#cgroups.measure.bind(this.#cgroups);

    const root = measure("/", () => this.#reader.ofPath("/"));
    const pods = podFacts.map((facts): PodSample => {
      const measureContainer = (container: ContainerFacts, kind: CgroupKind): ContainerSample | undefined => {
        if (container.pid <= 0) return undefined;
        const cgroup = measure(container.id, () => this.#reader.ofProcess(container.pid), {
          pid: container.pid,
          kind,
        });
        return cgroup && { facts: container, cgroup };
      };
      const containers = facts.containers
        .map((container) => measureContainer(container, "container"))
        .filter((sample) => sample !== undefined);
      const interfaces = once(() =>
        facts.hostNetwork ? [] : this.#networks.read(facts.sandbox.id, facts.sandbox.pid),
      );
      if (detail === "all") interfaces();
      const sandbox = detail === "all" ? measureContainer(facts.sandbox, "sandbox") : undefined;
      this.#cgroups.keep(facts.sandbox.id);
      return {
        facts,
        cgroup: measure(facts.uid, () => this.#podDirectories(facts)),
        sandbox,
        containers,
        get interfaces() {
          return interfaces();
        },
      };
    });
    const system = new Map<SystemContainerName, CgroupSample>();
    for (const [name, path] of this.#systemCgroups) {
      const cgroup = measure(`system ${name}`, () => this.#reader.ofPath(path));
      if (cgroup) system.set(name, cgroup);
    }
    const [kubepods, ...groups] = this.#podGroups(pods, detail).map(({ path, directories }) =>
      measure(path, () => directories),
    );
    if (detail === "basics") this.#cgroups.keepPaths();
    this.#cgroups.forgetUnseen();
    this.#networks.retain(new Set([NODE_NETWORK, ...podFacts.map(({ sandbox }) => sandbox.id)]));
    this.#previous = this.#isIdle || this.#latest?.detail !== "all" ? undefined : this.#latest;
    const interfaces = once(() => this.#networks.read(NODE_NETWORK, 1));
    if (detail === "all") interfaces();
    this.#latest = {
      detail,
      at: this.#clock.now(),
      root,
      kubepods,
      system,
      groups: groups.filter((group) => group !== undefined),
      pods,
      get interfaces() {
        return interfaces();
      },
    };
    this.#latestMs = nowMs;
    this.#releaseLater();
    return this.#latest;
  }

  /**
   * The pod's cgroup is the parent of the cgroup of its sandbox: right for both cgroup drivers, and inside a container.
   * Without a process its name is all there is. Pods without a cgroup of their own (`--cgroups-per-qos=false`) have none.
   */
  #podDirectories({ sandbox, containers, cgroupParent }: PodFacts): CgroupDirectories | undefined {
    const name = cgroupParent.slice(cgroupParent.lastIndexOf("/") + 1);
    if (name === "") return undefined;
    const pid = sandbox.pid || (containers.find((container) => container.pid > 0)?.pid ?? 0);
    const child = pid > 0 ? this.#reader.ofProcess(pid) : undefined;
    if (child && mainDirectory(child).includes(`/${name}/`)) return parentDirectories(child);
    return cgroupParent.startsWith("/") ? this.#reader.ofPath(cgroupParent) : undefined;
  }

  /** `kubepods` and, with detail `all`, the QoS cgroups below it, found by going up from the pods. */
  #podGroups(pods: readonly PodSample[], detail: Detail): { path: string; directories: CgroupDirectories }[] {
    const found = new Map<string, CgroupDirectories>();
    for (const pod of pods) {
      let directories = this.#cgroups.directoriesOf(pod.facts.uid);
      if (!pod.cgroup || !directories) continue;
      let path = parentPath(pod.cgroup.path);
      while (path.length > 1 && /kubepods/.test(path) && !found.has(path)) {
        directories = parentDirectories(directories);
        found.set(path, directories);
        path = parentPath(path);
      }
    }
    const sorted = [...found].map(([path, directories]) => ({ path, directories }));
    sorted.sort((a, b) => a.path.length - b.path.length || (a.path < b.path ? -1 : 1));
    return detail === "all" ? sorted : sorted.slice(0, 1);
  }

  get #isIdle(): boolean {
    return this.#clock.monotonicMs() - this.#latestMs > OLDEST_BASE_MS;
  }

  // An open file keeps a removed cgroup alive in the kernel, so none stays open after the last question.
  #releaseLater(): void {
    if (this.#cancelRelease) return;
    this.#cancelRelease = this.#clock.schedule(OLDEST_BASE_MS, () => {
      this.#cancelRelease = undefined;
      if (this.#isIdle) this.close();
      else this.#releaseLater();
    });
  }
}

/** The value, made at the first call: with basics most callers never use it. */
function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

const parentPath = (path: string) => path.slice(0, path.lastIndexOf("/"));

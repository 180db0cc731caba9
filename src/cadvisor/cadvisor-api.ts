import type { MachineInfo } from "../api/machine-info.ts";
import type { Clock } from "../model/clock.ts";
import type { NodeStats } from "../stats/node-stats.ts";
import { type ContainerInfo, toContainerInfo } from "./container-info.ts";
import {
  toAttributesV2,
  toContainerSpecV2,
  toContainerStatsV2,
  toStorageV2,
  toSummaryV2,
} from "./container-info-v2.ts";
import { type MeasuredCgroup, measuredCgroups } from "./measured-cgroup.ts";
import { type ProcessInfo, readProcesses } from "./process-list.ts";

/** Which instants to tell of; the latest and the one before are all that is kept. */
export interface StatsQuery {
  /** Greatest number of instants, newest kept; 0 or less: as many as there are. */
  numStats: number;
}

/** Which container a path of the kubelet's `/stats/` names. */
export interface KubeletContainer {
  namespace: string;
  pod: string;
  container: string;
}

/** A path that names a cgroup and nothing outside of the hierarchy. */
export const isCgroupPath = (path: string) => path.startsWith("/") && !path.split("/").includes("..");

/** Never more cgroups than this in one answer. */
const MOST_CGROUPS = 2_000;

/** cAdvisor's JSON resources over the measurements of this node. Everything is read at the moment of the question. */
export class CadvisorApi {
  readonly #stats: NodeStats;
  readonly #clock: Clock;
  readonly #roots: { proc: string; etc: string };

  constructor(stats: NodeStats, clock: Clock, roots = { proc: "/proc", etc: "/etc" }) {
    this.#stats = stats;
    this.#clock = clock;
    this.#roots = roots;
  }

  machineInfo(): MachineInfo {
    return this.#stats.machineInfo();
  }

  /** One cgroup with the names of those directly below it; undefined when there is none of that path. */
  container(path: string, query: StatsQuery): ContainerInfo | undefined {
    const measured = this.#measure([path]).get(path);
    if (!measured) return undefined;
    return this.#toInfo(measured, query, this.#children(path));
  }

  /** A cgroup and all below it, by path; empty when there is none of that path. */
  containers(path: string, query: StatsQuery): ContainerInfo[] {
    const measured = this.#measure(this.#subtree(path));
    return [...measured.values()].map((instants) =>
      this.#toInfo(instants, query, this.#children(instants[0]!.cgroup.path)),
    );
  }

  /** Our containers whose Docker id, a prefix of it, or name is `name`; all of them when it is "". By cgroup path. */
  dockerContainers(name: string, query: StatsQuery): ContainerInfo[] {
    return this.#ofDocker(name).map((instants) => this.#toInfo(instants, query, []));
  }

  /** A container as the kubelet names it. */
  kubeletContainer({ namespace, pod, container }: KubeletContainer, query: StatsQuery): ContainerInfo | undefined {
    const instants = this.#instants((measured) => {
      const facts = measured.pod?.facts;
      return facts?.namespace === namespace && facts.name === pod && measured.container?.facts.name === container;
    })[0];
    return instants && this.#toInfo(instants, query, []);
  }

  /** API 2.x: spec and figures by path. @param type `docker`: `name` is a Docker id or name. */
  statsV2(name: string, type: "name" | "docker", recursive: boolean, query: StatsQuery): Record<string, object> {
    const facts = this.#facts();
    return this.#byPath(name, type, recursive, (instants) => ({
      spec: toContainerSpecV2(instants.at(-1)!, facts),
      stats: newest(instants, query).map((measured) => toContainerStatsV2(measured, facts)),
    }));
  }

  specV2(name: string, type: "name" | "docker", recursive: boolean): Record<string, object> {
    const facts = this.#facts();
    return this.#byPath(name, type, recursive, (instants) => toContainerSpecV2(instants.at(-1)!, facts));
  }

  summaryV2(name: string, type: "name" | "docker", recursive: boolean): Record<string, object> {
    return this.#byPath(name, type, recursive, (instants) => toSummaryV2(instants.at(-1)!));
  }

  storageV2(): object[] {
    const sample = this.#stats.sample("all");
    return toStorageV2(this.#facts(), sample.at);
  }

  attributesV2(): object {
    return toAttributesV2(this.#facts());
  }

  /** Processes in a cgroup and below. */
  processes(path: string): ProcessInfo[] {
    if (!isCgroupPath(path)) return [];
    return readProcesses(this.#stats.reader, path, this.#clock.now(), this.#roots);
  }

  #byPath(
    name: string,
    type: "name" | "docker",
    recursive: boolean,
    toAnswer: (instants: MeasuredCgroup[]) => object,
  ): Record<string, object> {
    const found =
      type === "docker" ? this.#ofDocker(name) : [...this.#measure(recursive ? this.#subtree(name) : [name]).values()];
    return Object.fromEntries(found.map((instants) => [instants[0]!.cgroup.path, toAnswer(instants)]));
  }

  #ofDocker(name: string): MeasuredCgroup[][] {
    return this.#instants(({ container }) => {
      if (!container) return false;
      const { id, dockerName } = container.facts;
      return name === "" || dockerName === name || (name.length >= 12 && id.startsWith(name));
    });
  }

  #facts() {
    return this.#stats.cadvisorFacts();
  }

  #toInfo(instants: MeasuredCgroup[], query: StatsQuery, children: readonly string[]): ContainerInfo {
    return toContainerInfo(newest(instants, query), children, this.#facts());
  }

  /** The cgroups of these paths that exist, each at all instants known, oldest first. */
  #measure(paths: readonly string[]): Map<string, MeasuredCgroup[]> {
    const wanted = new Set(paths);
    const known = new Map(
      this.#instants(({ cgroup }) => wanted.has(cgroup.path)).map((instants) => [instants[0]!.cgroup.path, instants]),
    );
    const found = new Map<string, MeasuredCgroup[]>();
    for (const path of paths.filter(isCgroupPath)) {
      const instants = known.get(path) ?? this.#measureOther(path);
      if (instants) found.set(path, instants);
    }
    return found;
  }

  /** A cgroup that is neither the node's nor one of our pods'. */
  #measureOther(path: string): MeasuredCgroup[] | undefined {
    const cgroup = this.#stats.measureOnce(path);
    if (!cgroup) return undefined;
    const nothing = { isRoot: false, container: undefined, pod: undefined, interfaces: [] };
    return [{ at: this.#clock.now(), cgroup, ...nothing }];
  }

  #instants(matches: (measured: MeasuredCgroup) => boolean): MeasuredCgroup[][] {
    const latest = this.#stats.sample("all");
    const earlier = this.#stats.previousSample("all");
    const before = new Map(
      (earlier ? measuredCgroups(earlier) : []).map((measured) => [measured.cgroup.path, measured] as const),
    );
    return measuredCgroups(latest)
      .filter(matches)
      .map((measured) => {
        const previous = before.get(measured.cgroup.path);
        return previous ? [previous, measured] : [measured];
      });
  }

  #children(path: string): string[] {
    const { reader } = this.#stats;
    return reader.children(reader.ofPath(path)).map((name) => `${path === "/" ? "" : path}/${name}`);
  }

  #subtree(path: string): string[] {
    if (!isCgroupPath(path)) return [];
    const found: string[] = [];
    const visit = (at: string) => {
      if (found.length >= MOST_CGROUPS) return;
      found.push(at);
      for (const child of this.#children(at)) visit(child);
    };
    visit(path);
    return found;
  }
}

function newest(instants: MeasuredCgroup[], { numStats }: StatsQuery): MeasuredCgroup[] {
  return numStats > 0 ? instants.slice(-numStats) : instants;
}

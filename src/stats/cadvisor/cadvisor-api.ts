import { endOfText, metricText, type TextFormat } from "../metrics/metric.ts";
import type { NodeStats } from "../node-stats.ts";
import { type MeasuredCgroup, measuredCgroups, toMeasuredCgroup } from "../sampler.ts";
import { CadvisorFactsReader } from "./cadvisor-facts.ts";
import { cadvisorMetrics } from "./cadvisor-metrics.ts";
import { type ContainerInfo, toContainerInfo } from "./container-info.ts";

/** Which instants a response shows. Only the latest and the one before are kept. */
export interface StatsQuery {
  /** Greatest number of instants, newest kept; 0 or less: all. */
  numStats: number;
}

/** A path that names a cgroup and nothing outside of the hierarchy. */
const isCgroupPath = (path: string) => path.startsWith("/") && !path.split("/").includes("..");

/** Greatest number of cgroups in one response. */
const MAX_CGROUPS = 2_000;

/** cAdvisor's JSON resources and metrics, measured on demand, after `refreshOthers` of the measurements. What may be long is a generator: the caller decides how much is computed at a time. */
export class CadvisorApi {
  readonly facts: CadvisorFactsReader;
  readonly #stats: NodeStats;

  constructor(stats: NodeStats) {
    this.#stats = stats;
    this.facts = new CadvisorFactsReader(stats);
  }

  *metrics(format: TextFormat): Generator<string, void> {
    const sample = this.#stats.sampler.sample("all");
    const facts = this.facts.read(sample.pods.map(({ facts }) => facts));
    for (const metric of cadvisorMetrics(sample, facts)) yield metricText(metric, format);
    yield endOfText(format);
  }

  /** One cgroup with the names of those directly below it; undefined when there is none of that path. */
  container(path: string, query: StatsQuery): ContainerInfo | undefined {
    if (!isCgroupPath(path)) return undefined;
    const instants = this.#instantsByPath().get(path) ?? this.#measureOther(path);
    return instants && this.#toInfo(instants, query, this.#children(path));
  }

  /** A cgroup and all below it, by path; nothing when there is none of that path. */
  *containers(path: string, query: StatsQuery): Generator<ContainerInfo, void> {
    if (!isCgroupPath(path)) return;
    const known = this.#instantsByPath();
    const waiting = [path];
    for (let count = 0; count < MAX_CGROUPS; count++) {
      const next = waiting.pop();
      if (next === undefined) return;
      const instants = known.get(next) ?? this.#measureOther(next);
      if (!instants) continue;
      const children = this.#children(next);
      waiting.push(...children.toReversed());
      yield this.#toInfo(instants, query, children);
    }
  }

  /** The containers of the engine whose id, a prefix of it, or name is `name`; all of them when it is "". */
  *dockerContainers(name: string, query: StatsQuery): Generator<ContainerInfo, void> {
    for (const instants of this.#instantsByPath().values()) {
      const facts = instants[0]!.container?.facts;
      const { id = "", dockerName = "" } = facts ?? {};
      if (!facts || !(name === "" || dockerName === name || (name.length >= 12 && id.startsWith(name)))) continue;
      yield this.#toInfo(instants, query, []);
    }
  }

  kubeletContainer(
    { namespace, pod, container }: Record<"namespace" | "pod" | "container", string>,
    query: StatsQuery,
  ): ContainerInfo | undefined {
    for (const instants of this.#instantsByPath().values()) {
      const [measured] = instants;
      const facts = measured!.pod?.facts;
      if (facts?.namespace !== namespace || facts.name !== pod) continue;
      if (measured!.container?.facts.name === container) return this.#toInfo(instants, query, []);
    }
    return undefined;
  }

  #toInfo(instants: MeasuredCgroup[], { numStats }: StatsQuery, children: readonly string[]): ContainerInfo {
    return toContainerInfo(numStats > 0 ? instants.slice(-numStats) : instants, children, this.facts.recent());
  }

  /** A cgroup that is neither the node's nor one of our pods'. */
  #measureOther(path: string): MeasuredCgroup[] | undefined {
    const cgroup = this.#stats.sampler.measureOnce(path);
    return cgroup && [toMeasuredCgroup(cgroup, this.#stats.clock.now())];
  }

  /** The cgroups of the node and its pods, each at all instants known, oldest first. */
  #instantsByPath(): Map<string, MeasuredCgroup[]> {
    const latest = this.#stats.sampler.sample("all");
    const earlier = this.#stats.sampler.previous;
    const before = new Map(
      (earlier ? measuredCgroups(earlier) : []).map((measured) => [measured.cgroup.path, measured] as const),
    );
    return new Map(
      measuredCgroups(latest).map((measured) => {
        const { path } = measured.cgroup;
        const previous = before.get(path);
        return [path, previous ? [previous, measured] : [measured]];
      }),
    );
  }

  #children(path: string): string[] {
    const { reader } = this.#stats;
    return reader.children(reader.ofPath(path)).map((name) => `${path === "/" ? "" : path}/${name}`);
  }
}

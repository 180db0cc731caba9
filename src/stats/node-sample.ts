import type { InterfaceCounters, ProcessCounts } from "../base/host/proc.ts";
import type { Detail } from "./cgroups/cgroup-reader.ts";
import type { CgroupSpec, CgroupStats } from "./cgroups/cgroup-stats.ts";
import type { ContainerFacts, PodFacts } from "./pod-facts.ts";

export interface CgroupSample {
  /** Path below the root of its hierarchy, e.g. `/kubepods/burstable/pod<uid>/<container id>`. */
  path: string;
  stats: CgroupStats;
  /** Average over the last 10 s and more; undefined until there are two readings. */
  usageNanoCores: number | undefined;
  createdAt: Date;
  /** Up to a minute old, or older on a big node. */
  spec: CgroupSpec;
  openFilesLimit: { soft: number; hard: number } | undefined;
  /** Only with detail `all`. */
  processes: ProcessCounts | undefined;
  /** Smoothed number of tasks that ran or waited for a disk. */
  loadAverage: number;
}

export interface ContainerSample {
  facts: ContainerFacts;
  cgroup: CgroupSample;
}

export interface PodSample {
  facts: PodFacts;
  /** undefined when the pod's cgroup is gone already. */
  cgroup: CgroupSample | undefined;
  /** Only with detail `all`. */
  sandbox: ContainerSample | undefined;
  containers: ContainerSample[];
  /** Empty with host networking. */
  interfaces: readonly InterfaceCounters[];
}

/** Names of the Summary API for the cgroups of `--kubelet-cgroups`, `--runtime-cgroups` and `--system-cgroups`. */
export type SystemContainerName = "kubelet" | "runtime" | "misc";

/** Everything measured at one instant. */
export interface NodeSample {
  detail: Detail;
  at: Date;
  root: CgroupSample | undefined;
  /** All pods together; undefined without pods. */
  kubepods: CgroupSample | undefined;
  /** Cgroups of the system that options name; one that does not exist is left out. */
  system: ReadonlyMap<SystemContainerName, CgroupSample>;
  /** Cgroups between `kubepods` and the pods; only with detail `all`. */
  groups: CgroupSample[];
  /** In the order of the facts. A container that is gone is left out. */
  pods: PodSample[];
  interfaces: readonly InterfaceCounters[];
}

/** One cgroup of a sample with what it belongs to. */
export interface MeasuredCgroup {
  at: Date;
  cgroup: CgroupSample;
  isRoot: boolean;
  /** undefined for a cgroup that is not a container of one of our pods. */
  container: ContainerSample | undefined;
  /** Its container is a pod's sandbox. */
  isSandbox: boolean;
  /** The pod it belongs to, or is. */
  pod: PodSample | undefined;
  /** Interfaces of the node or of a sandbox; empty for cgroups without a network of their own. */
  interfaces: readonly InterfaceCounters[];
}

/** A cgroup that belongs to nothing known. */
export const toMeasuredCgroup = (cgroup: CgroupSample, at: Date): MeasuredCgroup => ({
  at,
  cgroup,
  isRoot: false,
  container: undefined,
  isSandbox: false,
  pod: undefined,
  interfaces: [],
});

/** Every cgroup of a sample: the node, the groups, the pods, their sandboxes and containers. */
export function measuredCgroups(sample: NodeSample): MeasuredCgroup[] {
  const found: MeasuredCgroup[] = [];
  const add = (cgroup: CgroupSample | undefined, more: Partial<MeasuredCgroup> = {}) => {
    if (cgroup) found.push({ ...toMeasuredCgroup(cgroup, sample.at), ...more });
  };
  add(sample.root, { isRoot: true, interfaces: sample.interfaces });
  for (const group of [sample.kubepods, ...sample.groups]) add(group);
  for (const pod of sample.pods) {
    const { sandbox, interfaces } = pod;
    add(pod.cgroup, { pod });
    add(sandbox?.cgroup, { pod, container: sandbox, isSandbox: true, interfaces });
    for (const container of pod.containers) add(container.cgroup, { pod, container });
  }
  return found;
}

/** The engine keeps a container's log in a directory of its own, with what it knows of the container. */
export const logDirectory = ({ logPath }: ContainerFacts) => logPath.slice(0, Math.max(0, logPath.lastIndexOf("/")));

import type { InterfaceCounters, ProcessCounts } from "../base/host/proc.ts";
import type { CgroupSpec, CgroupStats } from "./cgroups/cgroup-stats.ts";
import type { Detail } from "./cgroups/open-cgroup.ts";
import type { ContainerFacts, PodFacts } from "./pod-facts.ts";

/** One cgroup at one instant. */
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
  /** Only with detail `all`. On a node with more than 60 containers some are from the previous sample. */
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
  /** Interfaces of the node. */
  interfaces: readonly InterfaceCounters[];
}

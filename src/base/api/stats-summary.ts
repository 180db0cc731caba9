/** Response of `/stats/summary`. Source: kubelet's `stats/v1alpha1`. Times are RFC 3339; absent members are not known. */
export interface Summary {
  node: NodeSummary;
  pods: PodSummary[];
}

/** Usage of a cgroup. */
interface CgroupSummary {
  startTime: string;
  cpu?: CpuSummary;
  memory?: MemorySummary;
  swap?: SwapSummary;
  io?: IoSummary;
}

export interface NodeSummary extends CgroupSummary {
  nodeName: string;
  systemContainers?: ContainerSummary[];
  network?: NetworkSummary;
  fs?: FsSummary;
  runtime?: { imageFs?: FsSummary; containerFs?: FsSummary };
  rlimit?: { time: string; maxpid?: number; curproc?: number };
}

export interface PodSummary extends CgroupSummary {
  podRef: { name: string; namespace: string; uid: string };
  /** null when no container runs. */
  containers: ContainerSummary[] | null;
  network?: NetworkSummary;
  volume?: VolumeSummary[];
  "ephemeral-storage"?: FsSummary;
  process_stats?: { process_count: number };
}

export interface ContainerSummary extends CgroupSummary {
  name: string;
  rootfs?: FsSummary;
  logs?: FsSummary;
}

export interface CpuSummary {
  time: string;
  /** Averaged over the last sampling window; absent until there are two samples. */
  usageNanoCores?: number;
  usageCoreNanoSeconds?: number;
  psi?: PsiSummary;
}

export interface MemorySummary {
  time: string;
  availableBytes?: number;
  usageBytes?: number;
  workingSetBytes?: number;
  rssBytes?: number;
  pageFaults?: number;
  majorPageFaults?: number;
  psi?: PsiSummary;
}

export interface SwapSummary {
  time: string;
  swapAvailableBytes?: number;
  swapUsageBytes?: number;
}

export interface IoSummary {
  time: string;
  psi?: PsiSummary;
}

/** Pressure stall information; `total` in nanoseconds, averages in per cent. Source: Kubernetes KEP-4205. */
export interface PsiSummary {
  full: PsiFigures;
  some: PsiFigures;
}

interface PsiFigures {
  total: number;
  avg10: number;
  avg60: number;
  avg300: number;
}

export interface InterfaceSummary {
  name: string;
  rxBytes?: number;
  rxErrors?: number;
  txBytes?: number;
  txErrors?: number;
}

export interface NetworkSummary extends InterfaceSummary {
  time: string;
  interfaces: InterfaceSummary[];
}

export interface FsSummary {
  time: string;
  availableBytes?: number;
  capacityBytes?: number;
  usedBytes?: number;
  inodesFree?: number;
  inodes?: number;
  inodesUsed?: number;
}

export interface VolumeSummary extends FsSummary {
  name: string;
  pvcRef?: { name: string; namespace: string };
}

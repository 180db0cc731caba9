import type { EvictionSignal } from "./option-values.ts";

/** Facts about the machine. Read once at start. */
export interface NodeInfo {
  /** Lower case; suffix of every pod name. */
  name: string;
  /** Earlier names of the node, which pods of manifests have in theirs. */
  formerNames?: readonly string[];
  /** Reported as hostIP. */
  ip: string;
  cpuCount: number;
  memoryBytes: number;
  /** Processes and threads the kernel allows; absent when it does not say. */
  pidLimit?: number;
  /** Absent or 0 without swap. */
  swapBytes?: number;
  /** Huge pages set aside, in bytes by resource name, e.g. `hugepages-2Mi`; a size the kernel has none of may be missing. */
  hugePageBytes?: Readonly<Record<string, number>>;
}

/** Features of the engine and its kernel, probed once per connection. */
export interface EngineInfo {
  /** Negotiated, e.g. `1.41`. */
  apiVersion: string;
  /** e.g. `20.10.24`. */
  serverVersion: string;
  cgroupDriver: "cgroupfs" | "systemd";
  cgroupVersion: 1 | 2;
  /** The engine's own directory, with the containers' logs, e.g. `/var/lib/docker`. */
  dockerRootDir: string;
  /** Directory of images and writable layers; its disk may fill up. */
  imagesDir: string;
  /** overlay2, or overlayfs with the containerd image store; absent when the engine does not name it. */
  storageDriver?: string;
  /** false where the kernel refuses negative OOM scores (no CAP_SYS_RESOURCE): they are clamped to 0. */
  negativeOomScores: boolean;
  /** From /info SecurityOptions: seccomp, apparmor, selinux, rootless, userns. */
  securityOptions: readonly string[];
  runtimes: readonly string[];
  /** CDI devices of /info DiscoveredDevices, e.g. `nvidia.com/gpu=0`; absent before API 1.50. */
  cdiDevices?: readonly string[];
}

/** The taint of a cordoned node. Source: core/v1 `TaintNodeUnschedulable`. */
export const UNSCHEDULABLE_TAINT = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" } as const;

/** Capacity and available amount, by signal. A signal that cannot be read is absent. */
export type NodeSignals = Partial<Record<EvictionSignal, { capacity: number; available: number }>>;

/** Conditions of a node that is short of something. */
export type PressureType = "MemoryPressure" | "DiskPressure" | "PIDPressure";

/** Whether the node is short of something, and since when that is so (or is not). Wall time. */
export interface PressureState {
  is: boolean;
  since: Date;
}

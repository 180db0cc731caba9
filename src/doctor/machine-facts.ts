import type { Finding } from "../model/finding.ts";

/** A directory whose disk matters. */
export interface DiskFacts {
  /** `root directory`, `images`. */
  name: string;
  path: string;
  /** undefined where the file system cannot be asked. */
  capacityBytes: number | undefined;
  freeBytes: number;
  /** 0 where the file system has no limit of inodes. */
  inodes: number;
  freeInodes: number;
}

/** A port that kubelet-ts would listen on. */
export interface PortFacts {
  flag: string;
  port: number;
  /** `nginx (pid 812)`; undefined while it is free or ours. */
  holder: string | undefined;
}

export interface EngineFacts {
  endpoint: string;
  /** undefined: it answered. */
  problem: { kind: string; message: string } | undefined;
  version: string;
  apiVersion: string;
  storageDriver: string;
  logDriver: string;
  cgroupDriver: string;
  cgroupVersion: string;
  liveRestore: boolean;
  warnings: readonly string[];
  /** Subnets of the default bridge. */
  bridgeSubnets: readonly string[];
  /** Names of containers that another kubelet or orchestrator made. */
  foreignContainers: readonly { name: string; owner: string }[];
  rootless: boolean;
}

/** Everything that is checked. */
export interface MachineFacts {
  isRoot: boolean;
  engine: EngineFacts;
  /** Controllers that the kernel offers. */
  cgroupControllers: readonly string[];
  hasPsi: boolean;
  swapBytes: number;
  failSwapOn: boolean;
  inotifyInstances: number;
  inotifyWatches: number;
  pidMax: number;
  ipForward: boolean;
  /** `net.bridge.bridge-nf-call-iptables`; undefined where br_netfilter is not loaded. */
  bridgeNetfilter: boolean | undefined;
  mayLowerOomScores: boolean;
  /** Flags of the first CPU; empty where they cannot be read. */
  cpuFlags: readonly string[];
  /** `x64`, `x64-baseline`, `arm64`. */
  binaryTarget: string;
  disks: readonly DiskFacts[];
  nowMs: number;
  /** When this binary was built. */
  buildMs: number;
  /** undefined where the kernel does not tell. */
  clockSynchronized: boolean | undefined;
  /** Addresses of /etc/resolv.conf. */
  nameservers: readonly string[];
  ports: readonly PortFacts[];
  /** Whether `/usr/share/zoneinfo` or the built-in data knows the zone of TZ or /etc/localtime. */
  timeZone: string;
  /** Processes that also manage containers: `kubelet (pid 7)`, `k3s (pid 9)`. */
  otherOrchestrators: readonly string[];
  manifests: { paths: readonly string[]; findings: readonly Finding[]; pods: number };
  images: readonly ImageFacts[];
  certificates: readonly { path: string; expiresMs: number }[];
  /** undefined: not installed as a service. */
  unit: { path: string; isCurrent: boolean; isEdited: boolean } | undefined;
}

export interface ImageFacts {
  name: string;
  present: boolean;
  /** As Docker names it; "" when the image is not present. */
  architecture: string;
  pullPolicy: string;
}

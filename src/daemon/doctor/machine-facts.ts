import type { Finding } from "../../base/model/finding.ts";
import type { ServiceFacts } from "../install/find-service.ts";

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
  /** `own`: of the kubelet that is checked. `unknown`: this user may not know whose it is. */
  state: "free" | "own" | "unknown" | "taken";
  /** `nginx (pid 812)`; "" while it is free or unknown. */
  holder: string;
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
  /** `--cgroup-driver`; "" when it is not given. */
  wantedCgroupDriver: string;
  cgroupVersion: string;
  liveRestore: boolean;
  warnings: readonly string[];
  /** Subnets of the default bridge. */
  bridgeSubnets: readonly string[];
  userlandProxy: UserlandProxyFacts;
  /** Names of containers that another kubelet or orchestrator made. */
  foreignContainers: readonly { name: string; owner: string }[];
  rootless: boolean;
}

/** How the engine forwards host ports. */
export interface UserlandProxyFacts {
  isOn: boolean;
  /** The engine writes rules of the packet filter. */
  hasIptables: boolean;
  /** Processes of the proxy: one for each host port and address. */
  processes: number;
}

/** A network that this machine reaches without a gateway, or by a route of its own. */
export interface RouteFacts {
  /** `192.168.1.0/24`. */
  subnet: string;
  /** `eth0`. */
  device: string;
}

/** The files of --config and --config-dir. */
export interface ConfigurationFacts {
  /** Errors of the files; they begin with file, line and column. */
  errors: readonly string[];
  /** Why the kubelet uses the last known good configuration instead. */
  rejected: string | undefined;
}

/** Everything that is checked. */
export interface MachineFacts {
  /** undefined: there are no files. */
  configuration: ConfigurationFacts | undefined;
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
  /** undefined where the kernel does not report it. */
  clockSynchronized: boolean | undefined;
  /** Addresses of /etc/resolv.conf. */
  nameservers: readonly string[];
  ports: readonly PortFacts[];
  /** Routes of IPv4 other than the default ones and those of container networks. */
  routes: readonly RouteFacts[];
  /** Pods that the node admits. */
  maxPods: number;
  /** Zone of TZ or /etc/localtime; `problem`: it is not known, and UTC is used. */
  timeZone: { name: string; problem?: string | undefined };
  /** Processes that also manage containers: `kubelet (pid 7)`, `k3s (pid 9)`. */
  otherOrchestrators: readonly string[];
  manifests: { paths: readonly string[]; findings: readonly Finding[]; pods: number };
  images: readonly ImageFacts[];
  certificates: readonly { path: string; expiresMs: number }[];
  /** undefined: not installed as a service. */
  unit: ServiceFacts | undefined;
}

/** Response of the registry about an image. */
export type RemoteImage =
  /** Why it cannot be pulled. */
  | { problem: string }
  /** As Docker names them: amd64, arm64; empty where the registry does not report it. */
  | { architectures: readonly string[] };

export interface ImageFacts {
  name: string;
  present: boolean;
  /** As Docker names it; "" when the image is not present. */
  architecture: string;
  pullPolicy: string;
  /** Absent when no registry was asked. */
  remote?: RemoteImage;
}

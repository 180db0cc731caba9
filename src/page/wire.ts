import type { CoreEvent } from "../base/api/event.ts";
import type { Condition } from "../base/api/meta.ts";
import type { Container, ContainerStatus, Pod } from "../base/api/pod.ts";
import type { PodRow } from "./pod-row.ts";

/** Messages between the page and its server. Times are milliseconds since 1970, sizes are bytes, CPU is in cores; 0, "" and null: not known, never, none. */

/** Rights of the session. Without a session the page shows what the read-only port shows. */
export interface Access {
  /** Logs and shell. */
  privileged: boolean;
  /** Restart, delete and apply. */
  canAct: boolean;
}

export interface SessionState {
  /** Streams of pages, and how many there may be. */
  openPages: number;
  mostPages: number;
}

/** First message of a stream, and the complete state after a reconnect. */
export interface Snapshot {
  access: Access;
  node: NodeState;
  pods: PodRow[];
  /** false while a source of pods has not been read, or has a manifest that is refused. */
  isComplete: boolean;
  rejections: Rejection[];
  workloads: WorkloadRow[];
  services: ServiceRow[];
  /** Usage by pod UID; the history of the last ten minutes. */
  usage: UsageHistory;
  now: number;
}

/** A change since the snapshot. Absent members did not change. */
export interface Update
  extends Partial<Pick<Snapshot, "node" | "pods" | "isComplete" | "rejections" | "workloads" | "services">> {
  usage?: UsagePoint;
}

export interface NodeState {
  name: string;
  version: string;
  engine: string;
  /** Why the kubelet cannot do its work; "" when it can. */
  problem: string;
  /** The problem is an engine that is gone or hangs. */
  isEngineAway: boolean;
  conditions: readonly Condition[];
  cpuCount: number;
  memoryBytes: number;
  bootTime: number;
  /** The cluster of this node: its pods come from an API server, and are changed there. */
  cluster: ClusterState | null;
}

export interface ClusterState {
  server: string;
  failure: { isAnswering: boolean; reason: string; since: number } | null;
}

export interface Rejection {
  source: string;
  /** 0 = the whole source. */
  line: number;
  column: number;
  message: string;
  isUnread?: true;
}

/** A reason of `kubelet-ts explain`, with what to do. */
export interface Explanation {
  problem: string;
  facts: string[];
  /** "" where there is none. */
  fix: string;
}

/** A Deployment, a Job and the like, with pods or without. */
export interface WorkloadRow {
  kind: string;
  namespace: string;
  name: string;
  /** `2/3 ready`, `Complete`, `every day at 03:00`. */
  status: string;
  isGood: boolean;
  /** Reasons why it does not do its work. */
  explanation: Explanation[];
  /** Manifest: `file:line`, URL or `submitted`. */
  source: string;
  /** Times of a CronJob; 0 = never, or not known. */
  lastRun: number;
  nextRun: number;
}

/** A Service or an Ingress, and the pods that it leads to. */
export interface ServiceRow {
  namespace: string;
  name: string;
  type: string;
  /** Cluster IP, or "" while it has none; name of an ExternalName; hosts of an Ingress. */
  address: string;
  /** `80/TCP`, with the port of the node `80:30080/TCP`; of an Ingress `TLS`. */
  ports: string[];
  /** `2/3 ready`. */
  status: string;
  isGood: boolean;
  explanation: Explanation[];
  /** In its namespace. */
  pods: { name: string; isReady: boolean }[];
}

export interface UsagePoint {
  time: number;
  node: NodeUsage;
  pods: Record<string, PodUsage>;
}

export interface NodeUsage {
  cpuCores: number;
  memoryBytes: number;
  diskUsedBytes: number;
  diskBytes: number;
  imageUsedBytes: number;
  /** The file system on which the engine keeps images. */
  imageDiskUsedBytes: number;
  imageDiskBytes: number;
  load: [number, number, number];
  /** Share of time, in per cent of the last ten seconds, in which some task waited; absent where the kernel does not report it. */
  pressure?: { cpu: number; memory: number; io: number };
}

interface PodUsage {
  cpuCores: number;
  memoryBytes: number;
}

/** The usage of a pod at each time; null where it did not run. */
export type Spark = Record<keyof PodUsage, (number | null)[]>;

export interface UsageHistory {
  times: number[];
  node: NodeUsage | undefined;
  pods: Record<string, Spark>;
}

/** Time that a chart shows. Unit: milliseconds. */
export const RANGE_MS = { "10m": 600_000, "1h": 3_600_000, "24h": 86_400_000 } as const;
export type HistoryRange = keyof typeof RANGE_MS;

export interface History {
  times: number[];
  cpuCores: (number | null)[];
  memoryBytes: (number | null)[];
  /** Bytes per second. */
  receivedBytes: (number | null)[];
  sentBytes: (number | null)[];
  diskBytes: (number | null)[];
}

export interface PodDetail extends Pick<Pod, "metadata" | "status"> {
  row: PodRow;
  /** Services that lead to the pod. */
  services: ServiceRow[];
  containers: ContainerDetail[];
  volumes: VolumeDetail[];
  events: readonly CoreEvent[];
  /** Reasons why the pod is not Ready, each with what to do. */
  explanation: Explanation[];
  /** Images of this pod that the kubelet keeps up to date. */
  imageUpdates: ImageUpdateRow[];
  manifest: ManifestView;
}

export interface ImageUpdateRow {
  /** As the manifest names it. */
  image: string;
  state: string;
  /** Tag and digest that run; "" while unknown. */
  current: string;
  /** The update that waits or is tried; "" when there is none. */
  candidate: string;
  /** Why it waits, or what failed. */
  message: string;
  checkedAt: number;
}

/** The manifest of a pod, without environment values unless privileged. */
export interface ManifestView {
  text: string;
  /** Text of the file; without it, the decoded pod as YAML. */
  isSource: boolean;
  /** Number of the first line of the text in its file. */
  firstLine: number;
  /** In the file, or in the shown document of it. Lines and columns count from 1. */
  findings: { line: number; column: number; isError: boolean; message: string }[];
}

export interface ContainerDetail {
  spec: Container;
  kind: "init" | "sidecar" | "main" | "ephemeral";
  /** `running`, `CrashLoopBackOff`, `OOMKilled (exit code 137)`. */
  state: string;
  status: ContainerStatus | undefined;
  cpuLimitCores: number;
  memoryLimitBytes: number;
  cpuCores: number;
  memoryBytes: number;
  /** Enforcement periods of the CPU limit, and those in which the container had to wait; null without a limit. */
  throttling: { periods: number; throttled: number } | null;
  /** Processes of this container that the OOM killer ended; null where the kernel does not count them. */
  oomKills: number | null;
  /** Oldest first. */
  probeAttempts: Record<"startup" | "readiness" | "liveness", readonly ProbeAttempt[]>;
}

export interface ProbeAttempt {
  time: number;
  result: string;
  output: string;
  durationMs: number;
}

export interface VolumeDetail {
  name: string;
  type: string;
  usedBytes: number;
  capacityBytes: number;
}

export interface NodeDetail {
  /** `use`: what the kubelet keeps there, "" for others. */
  filesystems: { device: string; mountPoint: string; use: string; capacityBytes: number; usedBytes: number }[];
  images: ImageRow[];
  /** The image disk is cleaned when it is as full as this. */
  imageGcPercent: number;
  /** A tree in depth-first order. */
  cgroups: CgroupRow[];
  /** Containers of the engine that are not ours. */
  otherContainers: OtherContainerRow[];
  /** Use of each core since the last reading. */
  cores: CoreUse[];
  memory: MachineMemory;
  interfaces: InterfaceRow[];
  machine: Record<string, string>;
  /** Versions, drivers and directories of the engine; empty before it has answered. */
  engine: Record<string, string>;
  events: readonly CoreEvent[];
}

/** Shares of time, in per cent. The rest is idle. */
export interface CoreUse {
  user: number;
  system: number;
  /** Idle while a task waited for a disk. */
  wait: number;
  /** Taken by other machines of the same host. */
  stolen: number;
}

export interface MachineMemory {
  totalBytes: number;
  /** Free, or reclaimable without swapping. */
  availableBytes: number;
  /** Page cache and buffers. */
  cachedBytes: number;
  swapBytes: number;
  swapUsedBytes: number;
}

/** A network interface of the node; counted since it was made. */
export interface InterfaceRow {
  name: string;
  receivedBytes: number;
  sentBytes: number;
  errors: number;
  dropped: number;
}

export interface ImageRow {
  /** `sha256:…` */
  id: string;
  names: string[];
  sizeBytes: number;
  createdAt: number;
  /** Pods of this node, as `namespace/name`. */
  usedBy: string[];
  /** The kubelet removes it when the image disk is full. */
  isRemovable: boolean;
  lastUse: number;
}

export interface CgroupRow {
  path: string;
  name: string;
  /** The pod that this is, or whose container it is. */
  pod: { namespace: string; name: string } | null;
  depth: number;
  cpuCores: number | null;
  memoryBytes: number;
  /** Processes and threads; null = unknown. */
  tasks: number | null;
}

export interface OtherContainerRow {
  name: string;
  image: string;
  startedAt: number;
  cpuCores: number | null;
  memoryBytes: number;
}

export interface ProcessRow {
  container: string;
  pid: number;
  /** User id on the node. */
  user: number;
  /** Letter of `/proc/<pid>/stat`. */
  state: string;
  memoryBytes: number;
  cpuSeconds: number;
  command: string;
}

export interface ActionResult {
  ok: boolean;
  message: string;
}

/** An object of a manifest that was applied, or would be. */
export interface AppliedObject {
  /** `pod/web`, `deployment.apps/shop` */
  reference: string;
  outcome: "created" | "configured" | "unchanged" | "ignored";
  warnings: string[];
}

/** Response of an apply, or of its dry run. */
export interface ApplyResult {
  objects: AppliedObject[];
  /** Why other objects were refused, with lines and columns where they are known; empty: none was. */
  problems: string[];
}

/** Changes and restarts that a manifest would cause. */
export interface CompareResult {
  /** `subject`: `pod "default/web"`; `lines`: as diff -U3; `effects`: `container app restarts`. */
  changes: { subject: string; lines: readonly string[]; effects: readonly string[] }[];
  /** Characters of changed lines that are not sent; 0 = all are. */
  leftOut: number;
  problems: string[];
}

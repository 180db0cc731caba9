import type { PodUID } from "./pod.ts";

/** Docker's container id, 64 hex digits. */
export type ContainerId = string;

export type ContainerState = "created" | "running" | "exited" | "unknown";

/** The HEALTHCHECK of an image. 0: Docker's default. */
export interface ImageHealthcheck {
  /** `CMD` and a command, `CMD-SHELL` and a text, or `NONE`. */
  test: readonly string[];
  intervalMs: number;
  timeoutMs: number;
  startPeriodMs: number;
  retries: number;
}

/** A container or sandbox as the engine describes both. */
export interface EngineContainer {
  id: ContainerId;
  /** Docker's name without the slash. */
  dockerName: string;
  /** Image id, `sha256:…`. */
  imageId: string;
  createdAt: Date;
  /** Absent while never started. */
  startedAt?: Date;
  /** Host pid of the main process, 0 when not running. */
  pid: number;
  /** The engine's json-file log, the current one; "" when it has none. */
  logPath: string;
  /** Host directory of the writable layer; "" when the storage driver shows none. */
  writableLayerPath: string;
  /** Every label, for what is read rarely (termination message path, preStop of an orphan, …). */
  labels: Readonly<Record<string, string>>;
}

/** One container of a pod (never the sandbox), from list and inspect. */
export interface ContainerSnapshot extends EngineContainer {
  /** `spec.containers[].name` (or of an init container). */
  name: string;
  /** Sandbox whose namespaces it joined. */
  sandboxId: ContainerId;
  state: ContainerState;
  /** 0 for the first container of that name, one more for each successor; also the last part of the Docker name. */
  restartCount: number;
  /** Label `annotation.io.kubernetes.container.hash`: revision of everything that went into the container. */
  hash: string;
  /** That of its image, where the pod makes a probe of it. */
  healthcheck?: ImageHealthcheck;
  /** Crash-loop back-off after its next end. Unit: milliseconds. Absent: its next crash is the first. */
  backOffMs?: number;
  /** Image it was created from: an image id, because images are passed to the engine by id. */
  image: string;
  /** Absent while running or never started. */
  finishedAt?: Date;
  /** Only meaningful when exited. */
  exitCode: number;
  oomKilled: boolean;
  /** Engine's own error text (a start that failed), else "". */
  error: string;
  paused: boolean;
  /** Limits in force. */
  limits: ContainerLimits;
}

/** The pause container of a pod. */
export interface SandboxSnapshot extends EngineContainer {
  /** `ready` only while the pause process runs. */
  state: "ready" | "notready";
  attempt: number;
  /** Label `annotation.kubelet-ts.io/sandbox.hash`: revision of what needs a new sandbox when it changes. */
  hash: string;
  /** Label `annotation.kubelet-ts.io/init.hash`: revision of the init containers; absent on sandboxes without the label. */
  initHash?: string;
  /** In the order of the pod's networks, IPv4 first; empty with host networking or when stopped. */
  ips: string[];
  hostNetwork: boolean;
  /** It was stopped and started: containers from before are left in namespaces without a network. */
  isRestarted?: boolean;
  /** Cgroup the engine put it under, as given at creation. */
  cgroupParent: string;
}

/** Everything the engine holds for one pod UID, newest first in both lists. */
export interface PodSnapshot {
  uid: PodUID;
  /** With the node suffix, e.g. `web-node1`. */
  name: string;
  namespace: string;
  sandboxes: SandboxSnapshot[];
  containers: ContainerSnapshot[];
}

/** Limits in force on one container. Every member is set, so that an edit can remove a limit. */
export interface ContainerLimits {
  /** As cgroup v1's `cpu.shares`: 1024 is one CPU. */
  cpuShares: number;
  /** 0 when CFS quotas are switched off. */
  cpuPeriodUs: number;
  /** CPU time in each period; 0 when there is no limit. */
  cpuQuotaUs: number;
  /** 0 when there is no limit. */
  memoryBytes: number;
  /** Memory and swap together; 0 when there is no limit, -1 for any amount of swap. */
  memorySwapBytes: number;
}

/** State of the processes of one container at one moment. */
export interface ProcessSample {
  /**
   * `gone`: the main process has ended, even if the engine does not know yet. `starting`: it is still the runtime's own, which
   * has yet to become the program. `busy`: something runs, wants to, or waits for a disk. `asleep`: everything waits.
   */
  state: "gone" | "starting" | "busy" | "asleep";
  /** Context switches of its threads so far: an unchanged value means that none of them has run. */
  switches: number;
  /** CPU time so far. Unit: milliseconds, in steps of 10. */
  cpuMs: number;
}

/** Newest first. The counts decide: times of creation are by a wall clock that may have been set back in between. */
export function byNewest(a: ContainerSnapshot, b: ContainerSnapshot): number {
  return b.restartCount - a.restartCount || b.createdAt.getTime() - a.createdAt.getTime();
}

/** Every container of that name the engine still has, newest first. */
export function attemptsOf(snapshot: PodSnapshot, name: string): ContainerSnapshot[] {
  return snapshot.containers.filter((container) => container.name === name).sort(byNewest);
}

/** Alive as far as the engine knows: running (also paused). */
export const isRunning = (container: ContainerSnapshot) => container.state === "running";

/** Ended, or its start failed: Docker leaves such a container in state `created` with an exit code. */
export function isTerminated(container: ContainerSnapshot): boolean {
  return container.state === "exited" || (container.state === "created" && container.exitCode !== 0);
}

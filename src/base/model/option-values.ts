/** Resource watched by an eviction or pressure threshold. Source: kubelet's `evictionapi.Signal`. */
export type EvictionSignal =
  | "memory.available"
  | "nodefs.available"
  | "nodefs.inodesFree"
  | "imagefs.available"
  | "imagefs.inodesFree"
  | "pid.available";

/** A threshold is met when the signal falls below `quantity` (bytes, inodes or pids) or `percentage` of the capacity. */
export type EvictionThreshold =
  | { signal: EvictionSignal; quantity: number }
  | { signal: EvictionSignal; percentage: number };

/** One request header of the URL source; the value is secret and never leaves the process but in that request. */
export interface SecretHeader {
  name: string;
  value: string;
}

export interface NodeTaint {
  key: string;
  value: string;
  effect: "NoSchedule" | "PreferNoSchedule" | "NoExecute";
}

/** How long a shutdown waits for pods of this priority and above, up to the next. Source: upstream's type. */
export interface ShutdownPeriod {
  priority: number;
  shutdownGracePeriodSeconds: number;
}

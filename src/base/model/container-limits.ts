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

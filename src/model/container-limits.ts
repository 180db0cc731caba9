/** Limits the engine enforces on one container, under its names. Every member is set, so that an edit can remove a limit. */
export interface ContainerLimits {
  CpuShares: number;
  /** 0 when CFS quotas are switched off. */
  CpuPeriod: number;
  /** 0 when there is no limit. */
  CpuQuota: number;
  /** 0 when there is no limit. */
  Memory: number;
  MemorySwap: number;
}

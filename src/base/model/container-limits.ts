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

/**
 * In-place resize: the body of `POST /containers/{id}/update` that gives a running container the limits of its
 * manifest; undefined when it has them. The container's hash does not contain resizable fields.
 * @param have HostConfig as inspect shows it
 */
export function computeLimitsUpdate(
  have: ContainerLimits,
  want: ContainerLimits,
): Partial<ContainerLimits> | undefined {
  const update: Partial<ContainerLimits> = {};
  if (have.CpuShares !== want.CpuShares) update.CpuShares = want.CpuShares;
  if (have.CpuPeriod !== want.CpuPeriod && want.CpuPeriod > 0) update.CpuPeriod = want.CpuPeriod;
  // The engine takes 0 for "unchanged"; -1 removes the limit.
  if (Math.max(0, have.CpuQuota) !== want.CpuQuota) update.CpuQuota = want.CpuQuota === 0 ? -1 : want.CpuQuota;
  if (want.Memory > 0 && (have.Memory !== want.Memory || have.MemorySwap !== want.MemorySwap)) {
    update.Memory = want.Memory;
    update.MemorySwap = want.MemorySwap;
  }
  return Object.keys(update).length === 0 ? undefined : update;
}

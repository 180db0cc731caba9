/** The smallest weight the kernel takes, also what a container without a CPU request gets. */
export const MIN_CPU_SHARES = 2;
const MAX_CPU_SHARES = 262_144;
const SHARES_PER_CPU = 1024;
/** The kernel refuses shorter quotas. Microseconds. */
const MIN_CPU_QUOTA_US = 1000;

/** cgroup v1 `cpu.shares` and Docker's CpuShares of a CPU request in thousandths of a CPU. Source: kubelet. */
export const toCpuShares = (milliCpu: number) =>
  Math.min(MAX_CPU_SHARES, Math.max(MIN_CPU_SHARES, Math.floor((milliCpu * SHARES_PER_CPU) / 1000)));

/** CFS quota in microseconds per period; 0 when there is no limit. Source: kubelet. */
export const toCpuQuotaUs = (milliCpu: number, periodUs: number) =>
  milliCpu === 0 ? 0 : Math.max(MIN_CPU_QUOTA_US, Math.floor((milliCpu * periodUs) / 1000));

/** cgroup v2 `cpu.weight` (1…10000) of a v1 weight (2…262144). Source: runc and kubelet. */
export const toCpuWeight = (cpuShares: number) => 1 + Math.floor(((cpuShares - 2) * 9999) / 262_142);

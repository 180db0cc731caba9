import type { Pod, QOSClass } from "../base/api/pod.ts";
import { formatBytes, quantityToWhole } from "../base/api/quantity.ts";
import type { CgroupPlan, CgroupWrite } from "../base/model/cgroup-plan.ts";
import type { EngineInfo } from "../base/model/node.ts";
import { containersOf } from "../base/model/pod.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import type { computeKubepodsBounds } from "./admission.ts";
import {
  computePodTotal,
  computeQosClass,
  cpuMillisOf,
  hugePageNamesOf,
  MIN_CPU_SHARES,
  memoryBytesOf,
  toCpuQuotaUs,
  toCpuShares,
  toCpuWeight,
} from "./pod-resources.ts";

type CgroupDriver = EngineInfo["cgroupDriver"];

/** Names below the cgroup root, outermost first, e.g. `["kubepods", "burstable", "pod<uid>"]`. */
export type CgroupName = readonly string[];

const KUBEPODS = "kubepods";

/** Cgroup of a QoS class; Guaranteed pods are directly under `kubepods`. Source: kubelet's qosContainerManager. */
export const toQosCgroupName = (qosClass: QOSClass): CgroupName =>
  qosClass === "Guaranteed" ? [KUBEPODS] : [KUBEPODS, qosClass.toLowerCase()];

/** Cgroup of a pod; its sandbox and all its containers are in it. */
export const toPodCgroupName = (uid: string, qosClass: QOSClass): CgroupName => [
  ...toQosCgroupName(qosClass),
  `pod${uid}`,
];

/** A slice spells its parents out, so `-` inside a part is written `_`. */
const toSlicePart = (part: string) => part.replaceAll("-", "_");

/**
 * Path of a cgroup in its hierarchy: `/kubepods/burstable/pod<uid>`, or slices under systemd.
 * @param root `--cgroup-root`; "" for the top
 */
export function toCgroupPath(name: CgroupName, driver: CgroupDriver, root = ""): string {
  const rootParts = root.split("/").filter(Boolean);
  if (driver === "cgroupfs") return `/${[...rootParts, ...name].join("/")}`;
  const parts = name.map(toSlicePart);
  const slices = parts.map((_, index) => `${parts.slice(0, index + 1).join("-")}.slice`);
  return `/${[...rootParts, ...slices].join("/")}`;
}

/**
 * Docker's CgroupParent: a path with cgroupfs, the bare name of the slice with systemd (moby#20310, #12849).
 */
export function toCgroupParent(name: CgroupName, driver: CgroupDriver, root = ""): string {
  const path = toCgroupPath(name, driver, root);
  return driver === "cgroupfs" ? path : path.slice(path.lastIndexOf("/") + 1);
}

/** Bounds of a cgroup; what is absent is left as the kernel made it. */
export interface CgroupLimits {
  /** cgroup v1 weight, 2…262144. */
  cpuShares?: number;
  /** Microseconds per period; -1 is no limit. */
  cpuQuotaUs?: number;
  cpuPeriodUs?: number;
  /** -1 is no limit. */
  memoryBytes?: number;
  /** Bytes of swap alone. Only where memory is bounded, or on cgroup v2. */
  swapBytes?: number;
  /** -1 is no limit. */
  pids?: number;
  /** Bytes by the kernel's page size name, e.g. `2MB`. */
  hugePageBytes?: Readonly<Record<string, number>>;
}

export type PodCgroupSettings = Pick<
  KubeletOptions,
  "cpuCfsQuota" | "cpuCfsQuotaPeriodMs" | "podPidsLimit" | "memorySwap"
>;

/** `hugepages-2Mi` is `2MB` in the kernel's file names, which count in powers of two as well. */
export function toHugePageSizeName(resourceName: string): string {
  const bytes = quantityToWhole(resourceName.slice("hugepages-".length));
  return `${formatBytes(bytes).replace("i", "")}B`;
}

/**
 * Bounds of the pod as a whole, where all its containers (or the pod itself) have a limit. Source:
 * ResourceConfigForPod.
 */
export function computePodCgroupLimits(pod: Pod, settings: PodCgroupSettings): CgroupLimits {
  const qosClass = computeQosClass(pod);
  const periodUs = settings.cpuCfsQuotaPeriodMs * 1000;
  const cpuQuotaUs =
    settings.cpuCfsQuota && isBounded(pod, cpuMillisOf)
      ? toCpuQuotaUs(computePodTotal(pod, "limits", cpuMillisOf), periodUs)
      : -1;
  const maySwap = settings.memorySwap === "LimitedSwap" && qosClass === "Burstable";
  return {
    cpuShares: qosClass === "BestEffort" ? MIN_CPU_SHARES : toCpuShares(computePodTotal(pod, "requests", cpuMillisOf)),
    cpuPeriodUs: periodUs,
    cpuQuotaUs,
    memoryBytes: computePodMemoryLimit(pod),
    ...(!maySwap && { swapBytes: 0 }),
    pids: settings.podPidsLimit > 0 ? settings.podPidsLimit : -1,
    hugePageBytes: computeHugePageLimits(pod),
  };
}

const isBounded = ({ spec }: Pod, amountIn: typeof cpuMillisOf) =>
  amountIn(spec.resources?.limits) > 0 || containersOf(spec).every(({ resources }) => amountIn(resources.limits) > 0);

/** Bytes that the pod as a whole may have, as {@link computePodCgroupLimits} bounds it; -1 is no limit. */
export const computePodMemoryLimit = (pod: Pod) =>
  isBounded(pod, memoryBytesOf) ? computePodTotal(pod, "limits", memoryBytesOf) : -1;

function computeHugePageLimits(pod: Pod): Record<string, number> {
  const everyone = [...containersOf(pod.spec), pod.spec];
  const names = new Set(everyone.flatMap(({ resources }) => hugePageNamesOf(resources?.limits)));
  return Object.fromEntries(
    [...names].map((name) => [
      toHugePageSizeName(name),
      computePodTotal(pod, "limits", (list) => quantityToWhole(list?.[name] ?? "0")),
    ]),
  );
}

/** All pods together have what is not reserved, Burstable pods weigh what they request. Source: qosContainerManager. */
export function computeQosCgroups(
  pods: readonly Pod[],
  bounds: ReturnType<typeof computeKubepodsBounds>,
): { name: CgroupName; limits: CgroupLimits }[] {
  const { cpuMillis, ...others } = bounds;
  return [
    { name: toQosCgroupName("Guaranteed"), limits: { cpuShares: toCpuShares(cpuMillis), ...others } },
    { name: toQosCgroupName("Burstable"), limits: { cpuShares: toCpuShares(sumBurstableMillis(pods)) } },
    { name: toQosCgroupName("BestEffort"), limits: { cpuShares: MIN_CPU_SHARES } },
  ];
}

/** Thousandths of a CPU that the Burstable ones of these pods request together. */
const sumBurstableMillis = (pods: readonly Pod[]): number =>
  pods
    .filter((pod) => computeQosClass(pod) === "Burstable")
    .reduce((sum, pod) => sum + computePodTotal(pod, "requests", cpuMillisOf), 0);

const orMax = (value: number) => (value < 0 ? "max" : String(value));

/** Files that only weigh: without them nothing is left unbounded. */
const WEIGHTS = new Set(["cpu.shares", "cpu.weight", "cpu.cfs_period_us", "memory.swap.max"]);

function toWrites(
  entries: readonly (readonly [CgroupWrite["controller"], string, string | undefined])[],
): CgroupWrite[] {
  return entries.flatMap(([controller, file, value]) => {
    if (value === undefined) return [];
    return [{ controller, file, value, isIdle: WEIGHTS.has(file) || value === "-1" || value.startsWith("max") }];
  });
}

/** The files of a cgroup v1 that put `limits` into force. Swap is bounded per container there, by the engine. */
export function toCgroupV1Writes(limits: CgroupLimits): CgroupWrite[] {
  const { cpuShares, cpuPeriodUs, cpuQuotaUs, memoryBytes, pids, hugePageBytes = {} } = limits;
  return toWrites([
    ["cpu", "cpu.shares", cpuShares?.toString()],
    ["cpu", "cpu.cfs_period_us", cpuPeriodUs?.toString()],
    ["cpu", "cpu.cfs_quota_us", cpuQuotaUs?.toString()],
    ["memory", "memory.limit_in_bytes", memoryBytes?.toString()],
    ["pids", "pids.max", pids === undefined ? undefined : orMax(pids)],
    ...Object.entries(hugePageBytes).map(
      ([size, bytes]) => ["hugetlb", `hugetlb.${size}.limit_in_bytes`, String(bytes)] as const,
    ),
  ]);
}

/** The files of a cgroup v2 that put `limits` into force. */
export function toCgroupV2Writes(limits: CgroupLimits): CgroupWrite[] {
  const { cpuShares, cpuPeriodUs = 100_000, cpuQuotaUs, memoryBytes, swapBytes, pids, hugePageBytes = {} } = limits;
  return toWrites([
    ["cpu", "cpu.weight", cpuShares === undefined ? undefined : String(toCpuWeight(cpuShares))],
    ["cpu", "cpu.max", cpuQuotaUs === undefined ? undefined : `${orMax(cpuQuotaUs)} ${cpuPeriodUs}`],
    ["memory", "memory.max", memoryBytes === undefined ? undefined : orMax(memoryBytes)],
    ["memory", "memory.swap.max", swapBytes?.toString()],
    ["pids", "pids.max", pids === undefined ? undefined : orMax(pids)],
    ...Object.entries(hugePageBytes).map(([size, bytes]) => ["hugetlb", `hugetlb.${size}.max`, String(bytes)] as const),
  ]);
}

/** The same as properties for `systemctl set-property`: what is written past systemd is lost with its next reload. */
export function toSliceProperties(limits: CgroupLimits, cgroupVersion: 1 | 2): string[] {
  const { cpuShares, cpuQuotaUs, cpuPeriodUs = 100_000, memoryBytes, swapBytes, pids } = limits;
  const isV2 = cgroupVersion === 2;
  const orInfinity = (value: number) => (value < 0 ? "infinity" : String(value));
  return [
    ...(cpuShares === undefined ? [] : [isV2 ? `CPUWeight=${toCpuWeight(cpuShares)}` : `CPUShares=${cpuShares}`]),
    // In per cent of one CPU; empty lifts the limit.
    ...(cpuQuotaUs === undefined
      ? []
      : [`CPUQuota=${cpuQuotaUs < 0 ? "" : `${Math.ceil((cpuQuotaUs * 100) / cpuPeriodUs)}%`}`]),
    ...(memoryBytes === undefined ? [] : [`${isV2 ? "MemoryMax" : "MemoryLimit"}=${orInfinity(memoryBytes)}`]),
    ...(swapBytes === undefined || !isV2 ? [] : [`MemorySwapMax=${orInfinity(swapBytes)}`]),
    ...(pids === undefined ? [] : [`TasksMax=${orInfinity(pids)}`]),
  ];
}

interface CgroupTarget {
  driver: CgroupDriver;
  cgroupVersion: 1 | 2;
  /** `--cgroup-root`; "" for the top. */
  cgroupRoot: string;
}

/** Everything `PodCgroups` has to do so that the cgroup exists with these bounds. */
export function toCgroupPlan(name: CgroupName, limits: CgroupLimits, target: CgroupTarget): CgroupPlan {
  const { driver, cgroupVersion, cgroupRoot } = target;
  const properties = toSliceProperties(limits, cgroupVersion);
  return {
    path: toCgroupPath(name, driver, cgroupRoot),
    v1Writes: toCgroupV1Writes(limits),
    v2Writes: toCgroupV2Writes(limits),
    ...(driver === "systemd" && { slice: { name: toCgroupParent(name, driver, cgroupRoot), properties } }),
  };
}

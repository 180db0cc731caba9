import { quantityToMilli, quantityToWhole } from "../base/api/quantity.ts";
import type { NodeInfo } from "../base/model/node.ts";
import type { EvictionSignal } from "../base/model/option-values.ts";
import type { KubeletOptions } from "../config/option-table.ts";

type ReservedOptions = Pick<KubeletOptions, "systemReserved" | "kubeReserved" | "evictionHard">;

/** Capacity without what is reserved, the hard eviction threshold and huge pages. Source: NodeAllocatable. */
export function computeNodeAllocatable(
  node: Pick<NodeInfo, "cpuCount" | "memoryBytes" | "hugePageBytes">,
  options: ReservedOptions,
): { cpuMillis: number; memoryBytes: number } {
  const hugePages = Object.values(node.hugePageBytes ?? {}).reduce((sum, bytes) => sum + bytes, 0);
  const keptBytes =
    reserved("memory", quantityToWhole, options) + thresholdOf("memory.available", node.memoryBytes, options);
  return {
    cpuMillis: Math.max(0, node.cpuCount * 1000 - reserved("cpu", quantityToMilli, options)),
    memoryBytes: Math.max(0, node.memoryBytes - keptBytes - hugePages),
  };
}

/**
 * Bounds of the cgroup `kubepods`: capacity without reservations. Source: the kubelet with enforceNodeAllocatable=pods.
 */
export function computeKubepodsBounds(
  node: Pick<NodeInfo, "cpuCount" | "memoryBytes" | "pidLimit">,
  options: Pick<ReservedOptions, "systemReserved" | "kubeReserved">,
): { cpuMillis: number; memoryBytes: number; pids?: number } {
  const left = (capacity: number, name: string, amount: (text: string) => number) =>
    Math.max(1, capacity - reserved(name, amount, options));
  return {
    cpuMillis: left(node.cpuCount * 1000, "cpu", quantityToMilli),
    memoryBytes: left(node.memoryBytes, "memory", quantityToWhole),
    ...(node.pidLimit && { pids: left(node.pidLimit, "pid", quantityToWhole) }),
  };
}

/** Disk for pods: capacity without reservations, as {@link computeNodeAllocatable} computes it for memory. */
export function computeAllocatableDisk(capacityBytes: number, options: ReservedOptions): number {
  const keptBytes =
    reserved("ephemeral-storage", quantityToWhole, options) + thresholdOf("nodefs.available", capacityBytes, options);
  return Math.max(0, capacityBytes - keptBytes);
}

/** `--max-pods`, and no more than `--pods-per-core` allows. */
export const computeMaxPods = (
  { maxPods, podsPerCore }: Pick<KubeletOptions, "maxPods" | "podsPerCore">,
  cpuCount: number,
): number => (podsPerCore > 0 ? Math.min(maxPods, podsPerCore * cpuCount) : maxPods);

const reserved = (
  name: string,
  amount: (text: string) => number,
  { systemReserved, kubeReserved }: Pick<ReservedOptions, "systemReserved" | "kubeReserved">,
): number => amount(systemReserved[name] ?? "0") + amount(kubeReserved[name] ?? "0");

function thresholdOf(watched: EvictionSignal, capacity: number, { evictionHard }: ReservedOptions): number {
  const threshold = evictionHard.find(({ signal }) => signal === watched);
  if (!threshold) return 0;
  return "quantity" in threshold ? threshold.quantity : Math.floor((capacity * threshold.percentage) / 100);
}

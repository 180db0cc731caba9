import { quantityToMilli, quantityToWhole } from "../api/quantity.ts";
import type { EvictionThreshold, KubeletOptions } from "../model/kubelet-options.ts";
import type { NodeInfo } from "../model/node.ts";

export type ReservedOptions = Pick<KubeletOptions, "systemReserved" | "kubeReserved" | "evictionHard">;

/**
 * What the node has for pods: capacity without what is reserved for the system and for us, memory also without what the
 * hard eviction threshold keeps free. Source: upstream's NodeAllocatable; oracle A 28.
 */
export function computeNodeAllocatable(
  node: Pick<NodeInfo, "cpuCount" | "memoryBytes">,
  { systemReserved, kubeReserved, evictionHard }: ReservedOptions,
): { cpuMillis: number; memoryBytes: number } {
  const reserved = (name: string, amount: (text: string) => number) =>
    amount(systemReserved[name] ?? "0") + amount(kubeReserved[name] ?? "0");
  const threshold = evictionHard.find(({ signal }) => signal === "memory.available");
  return {
    cpuMillis: Math.max(0, node.cpuCount * 1000 - reserved("cpu", quantityToMilli)),
    memoryBytes: Math.max(
      0,
      node.memoryBytes - reserved("memory", quantityToWhole) - thresholdBytes(threshold, node.memoryBytes),
    ),
  };
}

function thresholdBytes(threshold: EvictionThreshold | undefined, capacity: number): number {
  if (!threshold) return 0;
  return "quantity" in threshold ? threshold.quantity : Math.floor((capacity * threshold.percentage) / 100);
}

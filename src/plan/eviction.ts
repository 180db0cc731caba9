import type { Pod } from "../base/api/pod.ts";
import { formatBytes, quantityToWhole } from "../base/api/quantity.ts";
import type { NodeSignals, PressureType } from "../base/model/node.ts";
import type { EvictionSignal, EvictionThreshold } from "../base/model/option-values.ts";
import { computePodTotal, isCriticalPod } from "./pod-resources.ts";

export interface EvictionSettings {
  hard: readonly EvictionThreshold[];
  soft: readonly EvictionThreshold[];
  /** How long a soft threshold must be met continuously. */
  softGraceMs: Readonly<Partial<Record<EvictionSignal, number>>>;
  /** How much more than the threshold must be free again. */
  minimumReclaim: readonly EvictionThreshold[];
  /** A pressure counts for this time after it has passed. */
  transitionMs: number;
}

/** Earlier observations; each evaluation returns the next history. Times are monotonic. */
interface PressureHistory {
  /** First time in a row that each threshold was met, by `hard memory.available`. */
  metSinceMs: ReadonlyMap<string, number>;
  lastPressureMs: ReadonlyMap<PressureType, number>;
}

export const NO_HISTORY: PressureHistory = { metSinceMs: new Map(), lastPressureMs: new Map() };

/** A threshold because of which a pod has to go. */
export interface DueThreshold {
  signal: EvictionSignal;
  kind: "hard" | "soft";
  /** Bytes or a count. */
  threshold: number;
  /** Bytes or a count. */
  available: number;
}

export interface NodePressure {
  history: PressureHistory;
  /** Pressures that are present, or were present within the transition period. */
  pressures: ReadonlySet<PressureType>;
  /** The most urgent first: memory. */
  due: readonly DueThreshold[];
}

/** Resource that a pod uses up. */
type EvictionResource = "memory" | "ephemeral-storage" | "inodes" | "pids";

const SIGNALS: Readonly<Record<EvictionSignal, { pressure: PressureType; resource: EvictionResource }>> = {
  "memory.available": { pressure: "MemoryPressure", resource: "memory" },
  "nodefs.available": { pressure: "DiskPressure", resource: "ephemeral-storage" },
  "nodefs.inodesFree": { pressure: "DiskPressure", resource: "inodes" },
  "imagefs.available": { pressure: "DiskPressure", resource: "ephemeral-storage" },
  "imagefs.inodesFree": { pressure: "DiskPressure", resource: "inodes" },
  "pid.available": { pressure: "PIDPressure", resource: "pids" },
};

export const resourceOf = (signal: EvictionSignal): EvictionResource => SIGNALS[signal].resource;
export const isDiskSignal = (signal: EvictionSignal) => SIGNALS[signal].pressure === "DiskPressure";

/** A threshold stays met until the minimum reclaim is free as well. Source: the eviction manager, synchronize. */
export function computeNodePressure(
  before: PressureHistory,
  signals: NodeSignals,
  settings: EvictionSettings,
  nowMs: number,
): NodePressure {
  const metSinceMs = new Map<string, number>();
  const lastPressureMs = new Map(before.lastPressureMs);
  const due: DueThreshold[] = [];
  for (const kind of ["hard", "soft"] as const) {
    for (const threshold of settings[kind]) {
      const { signal } = threshold;
      const key = `${kind} ${signal}`;
      const since = before.metSinceMs.get(key);
      const reclaim = settings.minimumReclaim.find((one) => one.signal === signal);
      if (!isMet(threshold, since === undefined ? undefined : reclaim, signals)) continue;
      metSinceMs.set(key, since ?? nowMs);
      lastPressureMs.set(SIGNALS[signal].pressure, nowMs);
      const graceMs = kind === "soft" ? (settings.softGraceMs[signal] ?? 0) : 0;
      if (nowMs - (since ?? nowMs) >= graceMs) {
        const { capacity, available } = signals[signal]!;
        due.push({ signal, kind, threshold: amountOf(threshold, capacity), available });
      }
    }
  }
  const isFresh = ([, atMs]: [PressureType, number]) => atMs === nowMs || nowMs - atMs < settings.transitionMs;
  return {
    history: { metSinceMs, lastPressureMs },
    pressures: new Set([...lastPressureMs].filter(isFresh).map(([type]) => type)),
    due: due.sort((a, b) => urgency(a) - urgency(b)),
  };
}

const urgency = ({ signal }: DueThreshold) => (signal === "memory.available" ? 0 : 1);

function isMet(threshold: EvictionThreshold, reclaim: EvictionThreshold | undefined, signals: NodeSignals): boolean {
  const seen = signals[threshold.signal];
  if (!seen) return false;
  return seen.available < amountOf(threshold, seen.capacity) + (reclaim ? amountOf(reclaim, seen.capacity) : 0);
}

const amountOf = (threshold: EvictionThreshold, capacity: number) =>
  "quantity" in threshold ? threshold.quantity : Math.floor((capacity * threshold.percentage) / 100);

/** Present usage of one pod; unknown values are absent. Bytes and counts. */
export interface PodUsage {
  /** Working sets, by container name. */
  memoryBytes: ReadonlyMap<string, number>;
  processes: number;
  disk?: PodDiskUsage;
}

export interface PodDiskUsage {
  /** Writable layer and logs, by container name. */
  containers: ReadonlyMap<string, number>;
  /** Usage by volume name; `ephemeral` volumes count as the pod's. */
  volumes: ReadonlyMap<string, { usedBytes: number; inodes: number; ephemeral: boolean }>;
}

export interface EvictionCandidate {
  pod: Pod;
  usage: PodUsage;
}

/**
 * First victim first: pods that use more than requested, then by priority, then by how much more. Critical pods are
 * never evicted; upstream spares all static pods, which would leave none. Source: rankMemoryPressure and its like.
 */
export function rankForEviction(
  candidates: readonly EvictionCandidate[],
  resource: EvictionResource,
): EvictionCandidate[] {
  const ranked = candidates
    .filter(({ pod }) => !isCriticalPod(pod))
    .map((candidate) => {
      const surplus = usageOf(candidate.usage, resource) - requestOf(candidate.pod, resource);
      return { candidate, surplus, exceeds: resource !== "pids" && surplus > 0 };
    });
  ranked.sort(
    (a, b) =>
      Number(b.exceeds) - Number(a.exceeds) ||
      priorityOf(a.candidate.pod) - priorityOf(b.candidate.pod) ||
      b.surplus - a.surplus,
  );
  return ranked.map(({ candidate }) => candidate);
}

const priorityOf = ({ spec }: Pod) => spec.priority ?? 0;

function usageOf({ memoryBytes, processes, disk }: PodUsage, resource: EvictionResource): number {
  if (resource === "memory") return sum(memoryBytes.values());
  if (resource === "pids") return processes;
  return resource === "inodes"
    ? sum([...(disk?.volumes.values() ?? [])].map(({ inodes }) => inodes))
    : diskBytesOf(disk);
}

function requestOf(pod: Pod, resource: EvictionResource): number {
  if (resource !== "memory" && resource !== "ephemeral-storage") return 0;
  return computePodTotal(pod, "requests", (list) => quantityToWhole(list?.[resource] ?? "0"));
}

const diskBytesOf = (disk: PodDiskUsage | undefined) =>
  disk
    ? sum(disk.containers.values()) +
      sum([...disk.volumes.values()].map(({ usedBytes, ephemeral }) => (ephemeral ? usedBytes : 0)))
    : 0;

/** Status message of a pod evicted because the node is short of a resource, in upstream's words; then which disk it is. */
export function toEvictionMessage(
  { signal, threshold, available }: DueThreshold,
  { pod, usage }: EvictionCandidate,
): string {
  const resource = resourceOf(signal);
  const show = resource === "memory" || resource === "ephemeral-storage" ? formatBytes : String;
  const lines = [
    `The node was low on resource: ${resource}. Threshold quantity: ${show(threshold)}, available: ${show(available)}. `,
  ];
  const used = resource === "memory" ? usage.memoryBytes : resource === "ephemeral-storage" && usage.disk?.containers;
  for (const { name, resources } of used ? pod.spec.containers : []) {
    const bytes = (used || undefined)?.get(name);
    const request = resources.requests?.[resource] ?? "0";
    if (bytes === undefined || bytes <= quantityToWhole(request)) continue;
    lines.push(`Container ${name} was using ${formatBytes(bytes)}, which exceeds its request of ${request}. `);
  }
  if (isDiskSignal(signal))
    lines.push(`The disk is that of ${signal.startsWith("nodefs") ? "the root directory" : "images"}. `);
  return lines.join("");
}

/** A limit of its own that a pod is evicted for. */
interface ExceededLimit {
  /** As upstream's metrics call it. */
  signal: "emptydirfs.limit" | "ephemeralpodfs.limit" | "ephemeralcontainerfs.limit";
  /** Message of the pod's status. */
  message: string;
}

/** sizeLimit of an emptyDir, then ephemeral-storage of all containers, then of each. Source: localStorageEviction. */
export function findExceededLimit({ spec }: Pod, disk: PodDiskUsage): ExceededLimit | undefined {
  for (const { name, emptyDir } of spec.volumes ?? []) {
    const { sizeLimit } = emptyDir ?? {};
    const used = disk.volumes.get(name)?.usedBytes;
    if (sizeLimit === undefined || used === undefined || quantityToWhole(sizeLimit) <= 0) continue;
    if (used <= quantityToWhole(sizeLimit)) continue;
    const message = `Usage of EmptyDir volume "${name}" exceeds the limit "${sizeLimit}". `;
    return { signal: "emptydirfs.limit", message };
  }
  const limits = spec.containers.map(({ name, resources }) => {
    const text = resources.limits?.["ephemeral-storage"] ?? "0";
    return { name, text, bytes: quantityToWhole(text) };
  });
  const total = sum(limits.map(({ bytes }) => bytes));
  if (total > 0 && diskBytesOf(disk) > total) {
    const message = `Pod ephemeral local storage usage exceeds the total limit of containers ${formatBytes(total)}. `;
    return { signal: "ephemeralpodfs.limit", message };
  }
  const full = limits.find(({ name, bytes }) => bytes > 0 && (disk.containers.get(name) ?? 0) > bytes);
  if (!full) return undefined;
  const message = `Container ${full.name} exceeded its local ephemeral storage limit "${full.text}". `;
  return { signal: "ephemeralcontainerfs.limit", message };
}

/** Whether its use of the disk has to be watched. */
export const hasDiskLimit = ({ spec }: Pod): boolean =>
  (spec.volumes ?? []).some(({ emptyDir }) => emptyDir?.sizeLimit !== undefined && emptyDir.medium !== "Memory") ||
  spec.containers.some(({ resources }) => resources.limits?.["ephemeral-storage"] !== undefined);

/** Why a node under pressure rejects this pod; undefined: it does not. Source: upstream's eviction manager, Admit. */
export function findPressureRefusal(
  pod: Pod,
  isBestEffort: boolean,
  pressures: ReadonlySet<PressureType>,
): string | undefined {
  if (pressures.size === 0 || isCriticalPod(pod)) return undefined;
  if (pressures.size === 1 && pressures.has("MemoryPressure") && !isBestEffort) return undefined;
  return `The node had condition: [${[...pressures].join(" ")}]. `;
}

const sum = (numbers: Iterable<number>) => [...numbers].reduce((total, one) => total + one, 0);

import type { Summary } from "../api/stats-summary.ts";
import type { History, HistoryRange, NodeUsage, UsageHistory } from "../page/wire.ts";

/** Values of one pod, or of the node, at one time. NaN where it is not known. */
interface Values {
  cpuCores: number;
  memoryBytes: number;
  receivedBytesPerSecond: number;
  sentBytesPerSecond: number;
  diskBytes: number;
}

const KEYS = [
  "cpuCores",
  "memoryBytes",
  "receivedBytesPerSecond",
  "sentBytesPerSecond",
  "diskBytes",
] as const satisfies readonly (keyof Values)[];

const RANGE_MS: Readonly<Record<HistoryRange, number>> = { "10m": 600_000, "1h": 3_600_000, "24h": 86_400_000 };
/** An hour at the pace of an open page, 10 s. */
const FINE_SLOTS = 360;
const COARSE_MS = 120_000;
const COARSE_SLOTS = 720;
/** More pods than a node has; a history beyond this is not kept. */
const MAX_SUBJECTS = 500;
const NODE = "";

/** Times and series of fixed length; the oldest value is overwritten. */
class Ring {
  readonly times: Float64Array;
  readonly #series = new Map<string, Float32Array>();
  #next = 0;

  constructor(readonly slots: number) {
    this.times = new Float64Array(slots);
  }

  add(timeMs: number, values: ReadonlyMap<string, Values>): void {
    const slot = this.#next;
    this.#next = (slot + 1) % this.slots;
    this.times[slot] = timeMs;
    for (const [subject, series] of this.#series) {
      const value = values.get(subject);
      KEYS.forEach((key, index) => {
        series[slot * KEYS.length + index] = value?.[key] ?? Number.NaN;
      });
    }
    for (const [subject, value] of values) {
      if (this.#series.has(subject) || this.#series.size >= MAX_SUBJECTS) continue;
      const series = new Float32Array(this.slots * KEYS.length).fill(Number.NaN);
      KEYS.forEach((key, index) => {
        series[slot * KEYS.length + index] = value[key];
      });
      this.#series.set(subject, series);
    }
  }

  retain(subjects: ReadonlySet<string>): void {
    for (const subject of this.#series.keys()) if (!subjects.has(subject)) this.#series.delete(subject);
  }

  /** Slots from the oldest to the newest with a time after `sinceMs`. */
  slotsSince(sinceMs: number): number[] {
    const order = Array.from({ length: this.slots }, (_, index) => (this.#next + index) % this.slots);
    return order.filter((slot) => (this.times[slot] ?? 0) > Math.max(sinceMs, 0));
  }

  values(subject: string, slots: readonly number[], key: keyof Values): (number | null)[] {
    const series = this.#series.get(subject);
    const index = KEYS.indexOf(key);
    return slots.map((slot) => {
      const value = series?.[slot * KEYS.length + index];
      return value === undefined || Number.isNaN(value) ? null : value;
    });
  }

  get subjects(): Iterable<string> {
    return this.#series.keys();
  }
}

/**
 * Usage of the node and of each pod, in memory of fixed size: 22 KB for each pod, 2.4 MB for 110. The last hour as it was
 * sampled, the last day every two minutes.
 */
export class UsageRecorder {
  readonly #fine = new Ring(FINE_SLOTS);
  readonly #coarse = new Ring(COARSE_SLOTS);
  readonly #previous = new Map<string, { timeMs: number; received: number; sent: number }>();
  #coarseMs = Number.NEGATIVE_INFINITY;

  add(summary: Summary, timeMs: number): void {
    const values = new Map<string, Values>();
    const { node } = summary;
    values.set(NODE, {
      cpuCores: (node.cpu?.usageNanoCores ?? Number.NaN) / 1e9,
      memoryBytes: node.memory?.workingSetBytes ?? Number.NaN,
      diskBytes: node.fs?.usedBytes ?? Number.NaN,
      ...this.#rates(NODE, timeMs, node.network),
    });
    for (const pod of summary.pods) {
      values.set(pod.podRef.uid, {
        cpuCores: (pod.cpu?.usageNanoCores ?? Number.NaN) / 1e9,
        memoryBytes: pod.memory?.workingSetBytes ?? Number.NaN,
        diskBytes: pod["ephemeral-storage"]?.usedBytes ?? Number.NaN,
        ...this.#rates(pod.podRef.uid, timeMs, pod.network),
      });
    }
    this.#fine.add(timeMs, values);
    if (timeMs - this.#coarseMs < COARSE_MS) return;
    this.#coarseMs = timeMs;
    this.#coarse.add(timeMs, values);
  }

  /** Forgets pods that are not on the node any more. */
  retain(uids: Iterable<string>): void {
    const subjects = new Set([NODE, ...uids]);
    this.#fine.retain(subjects);
    this.#coarse.retain(subjects);
    for (const subject of this.#previous.keys()) if (!subjects.has(subject)) this.#previous.delete(subject);
  }

  /** @param uid of a pod; "" is the node */
  history(uid: string, range: HistoryRange, nowMs: number): History {
    const ring = range === "24h" ? this.#coarse : this.#fine;
    const slots = ring.slotsSince(nowMs - RANGE_MS[range]);
    const values = (key: keyof Values) => ring.values(uid, slots, key);
    return {
      times: slots.map((slot) => ring.times[slot] ?? 0),
      cpuCores: values("cpuCores"),
      memoryBytes: values("memoryBytes"),
      receivedBytes: values("receivedBytesPerSecond"),
      sentBytes: values("sentBytesPerSecond"),
      diskBytes: values("diskBytes"),
    };
  }

  /** The last ten minutes of all pods. */
  recent(node: NodeUsage | undefined, nowMs: number): UsageHistory {
    const slots = this.#fine.slotsSince(nowMs - RANGE_MS["10m"]);
    const pods: UsageHistory["pods"] = {};
    for (const uid of this.#fine.subjects) {
      if (uid === NODE) continue;
      pods[uid] = {
        cpuCores: this.#fine.values(uid, slots, "cpuCores"),
        memoryBytes: this.#fine.values(uid, slots, "memoryBytes"),
      };
    }
    return { times: slots.map((slot) => this.#fine.times[slot] ?? 0), node, pods };
  }

  #rates(subject: string, timeMs: number, network: { rxBytes?: number; txBytes?: number } | undefined) {
    const received = network?.rxBytes ?? Number.NaN;
    const sent = network?.txBytes ?? Number.NaN;
    const before = this.#previous.get(subject);
    this.#previous.set(subject, { timeMs, received, sent });
    const seconds = before ? (timeMs - before.timeMs) / 1000 : 0;
    // A counter that went back belongs to a new sandbox.
    const rate = (now: number, then: number | undefined) =>
      then !== undefined && seconds > 0 && now >= then ? (now - then) / seconds : Number.NaN;
    return {
      receivedBytesPerSecond: rate(received, before?.received),
      sentBytesPerSecond: rate(sent, before?.sent),
    };
  }
}

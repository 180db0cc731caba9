import type { Summary } from "../../base/api/stats-summary.ts";
import type { History, HistoryRange, NodeUsage, UsageHistory } from "../../page/wire.ts";
import { UsageRing, type Values } from "./usage-ring.ts";

const RANGE_MS: Readonly<Record<HistoryRange, number>> = { "10m": 600_000, "1h": 3_600_000, "24h": 86_400_000 };
/** An hour at the pace of an open page, 10 s. */
const FINE_SLOTS = 360;
const COARSE_MS = 120_000;
const COARSE_SLOTS = 720;
const NODE = "";
const MAGIC = "kubelet-ts-usage-1";
const HEADER = /^(kubelet-ts-usage-1 (\d+) (\d+)\n)/;

/** To a hundredth of a millicore: the digits beyond are noise, and two thirds of the message. */
export const roundCores = (cores: number): number => Math.round(cores * 1e5) / 1e5;

/**
 * Usage of the node and of each pod, in memory of fixed size: 22 KB for each pod, 2.4 MB for 110. The last hour as it was
 * sampled, the last day every two minutes.
 */
export class UsageRecorder {
  readonly #fine = new UsageRing(FINE_SLOTS);
  readonly #coarse = new UsageRing(COARSE_SLOTS);
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
    // A clock that was set back must not leave the day's chart without values until it has caught up.
    if (timeMs >= this.#coarseMs && timeMs - this.#coarseMs < COARSE_MS) return;
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
    const bytes = (key: keyof Values) => ring.values(uid, slots, key, Math.round);
    return withGaps({
      times: slots.map((slot) => ring.times[slot] ?? 0),
      cpuCores: ring.values(uid, slots, "cpuCores", roundCores),
      memoryBytes: bytes("memoryBytes"),
      receivedBytes: bytes("receivedBytesPerSecond"),
      sentBytes: bytes("sentBytesPerSecond"),
      diskBytes: bytes("diskBytes"),
    });
  }

  /** The last ten minutes of all pods. */
  recent(node: NodeUsage | undefined, nowMs: number): UsageHistory {
    return this.#at(this.#fine.slotsSince(nowMs - RANGE_MS["10m"]), node);
  }

  /** The last values of all pods. */
  newest(node: NodeUsage | undefined): UsageHistory {
    return this.#at(this.#fine.slotsSince(0).slice(-1), node);
  }

  #at(slots: readonly number[], node: NodeUsage | undefined): UsageHistory {
    const pods: UsageHistory["pods"] = {};
    for (const uid of this.#fine.subjects) {
      if (uid === NODE) continue;
      pods[uid] = {
        cpuCores: this.#fine.values(uid, slots, "cpuCores", roundCores),
        memoryBytes: this.#fine.values(uid, slots, "memoryBytes", Math.round),
      };
    }
    return { times: slots.map((slot) => this.#fine.times[slot] ?? 0), node, pods };
  }

  /** The whole history, for a later process. */
  save(): Uint8Array {
    const [fine, coarse] = [this.#fine.save(), this.#coarse.save()];
    return Buffer.concat([Buffer.from(`${MAGIC} ${fine.length} ${coarse.length}\n`), fine, coarse]);
  }

  /** Takes over what `save` of an earlier process returned. @throws Error when that is damaged, or of another version */
  restore(bytes: Uint8Array): void {
    const [, header = "", fineBytes, coarseBytes] = HEADER.exec(Buffer.from(bytes.subarray(0, 100)).toString()) ?? [];
    const [fine, coarse] = [Number(fineBytes), Number(coarseBytes)];
    if (header === "" || bytes.length !== header.length + fine + coarse)
      throw new Error("the file holds no usage history, or one that was cut off");
    this.#coarse.restore(bytes.subarray(header.length + fine));
    this.#fine.restore(bytes.subarray(header.length, header.length + fine));
    this.#coarseMs = this.#coarse.lastMs;
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

/** Longer than the time between two samples when no page is open. */
const GAP_MS = 300_000;

/** Ends every line where nothing was sampled: the kubelet did not run, or the clock was set. Pure. */
function withGaps(history: History): History {
  const { times } = history;
  const isGap = (index: number) => index > 0 && (times[index] ?? 0) - (times[index - 1] ?? 0) > GAP_MS;
  if (!times.some((_, index) => isGap(index))) return history;
  const spread = <T>(series: readonly T[], between: (before: T) => T): T[] =>
    series.flatMap((value, index) => (isGap(index) ? [between(series[index - 1] as T), value] : [value]));
  const cut = (series: (number | null)[]) => spread(series, () => null);
  return {
    times: spread(times, (before) => before + 1),
    cpuCores: cut(history.cpuCores),
    memoryBytes: cut(history.memoryBytes),
    receivedBytes: cut(history.receivedBytes),
    sentBytes: cut(history.sentBytes),
    diskBytes: cut(history.diskBytes),
  };
}

import { deserialize, serialize } from "bun:jsc";
import { join } from "node:path";
import type { Summary } from "../../base/api/stats-summary.ts";
import { readBoundedBytes } from "../../base/files/bounded-read.ts";
import type { ReplaceFile } from "../../base/files/replace-file.ts";
import { ChangeLogger } from "../../base/logging/change-logger.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import { messageOf } from "../../base/text/error-message.ts";
import type { History, HistoryRange, NodeUsage, UsageHistory } from "../../page/wire.ts";

const RANGE_MS: Readonly<Record<HistoryRange, number>> = { "10m": 600_000, "1h": 3_600_000, "24h": 86_400_000 };
/** An hour at the pace of an open page, 10 s. */
const FINE_SLOTS = 360;
const COARSE_MS = 120_000;
const COARSE_SLOTS = 720;
const NODE = "";
/** Begins the file; another version is not read. */
const VERSION = "kubelet-ts-usage-2";

/** To a hundredth of a millicore: the digits beyond are noise, and two thirds of the message. */
export const roundCores = (cores: number): number => Math.round(cores * 1e5) / 1e5;

interface SavedUsage {
  version: string;
  fine: RingState;
  coarse: RingState;
}

/**
 * Usage of the node and of each pod, in memory of fixed size: 22 KB for each pod, 2.4 MB for 110. The last hour as it was
 * sampled, the last day every two minutes.
 */
export class UsageRecorder {
  #fine = new UsageRing(FINE_SLOTS);
  #coarse = new UsageRing(COARSE_SLOTS);
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
      times: slots.map((slot) => ring.state.times[slot] ?? 0),
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
    return { times: slots.map((slot) => this.#fine.state.times[slot] ?? 0), node, pods };
  }

  /** The whole history, for a later process. */
  save(): Uint8Array {
    const saved: SavedUsage = { version: VERSION, fine: this.#fine.state, coarse: this.#coarse.state };
    return serialize(saved, { binaryType: "nodebuffer" });
  }

  /** Takes over what `save` of an earlier process returned. @throws Error when that is damaged, or of another version */
  restore(bytes: Uint8Array): void {
    const saved = bytes.length > 0 ? (deserialize(bytes) as SavedUsage | null) : null;
    if (saved?.version !== VERSION) throw new Error("the file holds no usage history of this version");
    const [fine, coarse] = [new UsageRing(FINE_SLOTS, saved.fine), new UsageRing(COARSE_SLOTS, saved.coarse)];
    this.#fine = fine;
    this.#coarse = coarse;
    this.#coarseMs = coarse.lastMs;
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

/** More pods than a node has; a history beyond this is not kept, pods that are gone first. */
const MAX_SUBJECTS = 500;

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

/** Times and series of fixed length. */
interface RingState {
  /** Position of the oldest value, which is overwritten next. */
  next: number;
  times: Float64Array;
  /** Values of each subject, at each time in the order of {@link KEYS}. */
  series: Map<string, Float32Array>;
}

class UsageRing {
  readonly slots: number;
  readonly state: RingState;

  /** @param saved of a ring of the same size @throws Error when it is damaged */
  constructor(slots: number, saved?: RingState) {
    this.slots = slots;
    this.state = saved ?? { next: 0, times: new Float64Array(slots), series: new Map() };
    const { next, times, series } = this.state;
    const areWhole = [...series.values()].every((values) => values.length === slots * KEYS.length);
    if (times.length !== slots || !(next >= 0 && next < slots) || !areWhole || series.size > MAX_SUBJECTS)
      throw new Error("the usage history is damaged");
  }

  add(timeMs: number, values: ReadonlyMap<string, Values>): void {
    const slot = this.state.next;
    this.state.next = (slot + 1) % this.slots;
    this.state.times[slot] = timeMs;
    for (const [subject, series] of this.state.series) {
      const value = values.get(subject);
      KEYS.forEach((key, index) => {
        series[slot * KEYS.length + index] = value?.[key] ?? Number.NaN;
      });
    }
    for (const [subject, value] of values) {
      if (this.state.series.has(subject) || !this.#hasRoom(values)) continue;
      const series = new Float32Array(this.slots * KEYS.length).fill(Number.NaN);
      KEYS.forEach((key, index) => {
        series[slot * KEYS.length + index] = value[key];
      });
      this.state.series.set(subject, series);
    }
  }

  /** Whether there is room for one more subject, if need be that of one without a present value. */
  #hasRoom(values: ReadonlyMap<string, Values>): boolean {
    if (this.state.series.size < MAX_SUBJECTS) return true;
    const gone = this.state.series.keys().find((subject) => !values.has(subject));
    return gone !== undefined && this.state.series.delete(gone);
  }

  retain(subjects: ReadonlySet<string>): void {
    for (const subject of this.state.series.keys()) if (!subjects.has(subject)) this.state.series.delete(subject);
  }

  /**
   * Slots with a time after `sinceMs`, times rising. Values that a clock which was set back has overtaken are left out.
   */
  slotsSince(sinceMs: number): number[] {
    const found: number[] = [];
    let next = Number.POSITIVE_INFINITY;
    for (let age = 1; age <= this.slots; age++) {
      const slot = (this.state.next + this.slots - age) % this.slots;
      const time = this.state.times[slot] ?? 0;
      if (time <= Math.max(sinceMs, 0) || time >= next) continue;
      next = time;
      found.push(slot);
    }
    return found.reverse();
  }

  /** @param round applied to what is known */
  values(
    subject: string,
    slots: readonly number[],
    key: keyof Values,
    round: (value: number) => number,
  ): (number | null)[] {
    const series = this.state.series.get(subject);
    const index = KEYS.indexOf(key);
    return slots.map((slot) => {
      const value = series?.[slot * KEYS.length + index];
      return value === undefined || Number.isNaN(value) ? null : round(value);
    });
  }

  /** Time of the newest values; 0 when there are none. */
  get lastMs(): number {
    return this.state.times[(this.state.next + this.slots - 1) % this.slots] ?? 0;
  }

  get subjects(): Iterable<string> {
    return this.state.series.keys();
  }
}

/** A crash or a power cut loses at most this period. With 110 pods 2.4 MB are written each time. */
const SAVE_MS = 3_600_000;
/** 500 pods. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Key of the one fact that is logged. */
const SAVE = "save";

/** Keeps the usage history over restarts: `<root-dir>/state/usage-history`, written each hour and when the kubelet stops. */
export class KeptHistory {
  readonly #usage: UsageRecorder;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #changes: ChangeLogger;
  readonly #replaceFile: ReplaceFile;
  #cancel: () => void;

  constructor(usage: UsageRecorder, rootDir: string, clock: Clock, logger: Logger, replaceFile: ReplaceFile) {
    this.#usage = usage;
    this.#path = join(rootDir, "state", "usage-history");
    this.#clock = clock;
    this.#logger = logger;
    this.#changes = new ChangeLogger(logger);
    this.#replaceFile = replaceFile;
    this.#cancel = this.#schedule();
  }

  /** Reads the saved history. A file that cannot be read is replaced by the next save: it holds only charts. */
  restore(): void {
    try {
      this.#usage.restore(readBoundedBytes(this.#path, MAX_BYTES));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") {
        this.#logger.warn("The usage history cannot be read; the page's charts start empty", {
          path: this.#path,
          error: messageOf(error),
        });
      }
    }
  }

  stop(): void {
    this.#cancel();
    void this.#save();
  }

  #schedule(): () => void {
    return this.#clock.schedule(SAVE_MS, () => {
      void this.#save();
      this.#cancel = this.#schedule();
    });
  }

  /** Never rejects. */
  async #save(): Promise<void> {
    try {
      await this.#replaceFile(this.#path, this.#usage.save(), { durable: false });
      this.#changes.resolve(SAVE, "The usage history is saved again", { path: this.#path });
    } catch (error) {
      this.#changes.log(
        SAVE,
        "warn",
        "The usage history cannot be saved; a restart loses the charts since the last save",
        {
          path: this.#path,
          error: messageOf(error),
        },
      );
    }
  }
}

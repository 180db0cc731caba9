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

/** In this order in the file. Network: bytes per second. */
const KEYS = ["cpuCores", "memoryBytes", "receivedBytes", "sentBytes", "diskBytes"] as const;
type Key = (typeof KEYS)[number];
/** One pod, or the node, at one time; NaN where nothing is known. */
type Values = Record<Key, number>;

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

  add({ node, pods }: Summary, timeMs: number): void {
    const measured = (subject: string, { cpu, memory, network }: Measured, disk: { usedBytes?: number } = {}) =>
      [
        subject,
        {
          cpuCores: (cpu?.usageNanoCores ?? Number.NaN) / 1e9,
          memoryBytes: memory?.workingSetBytes ?? Number.NaN,
          ...this.#rates(subject, timeMs, network),
          diskBytes: disk.usedBytes ?? Number.NaN,
        },
      ] as const;
    const ofPods = pods.map((pod) => measured(pod.podRef.uid, pod, pod["ephemeral-storage"]));
    const values = new Map<string, Values>([measured(NODE, node, node.fs), ...ofPods]);
    this.#fine.add(timeMs, values);
    // A clock that was set back must not leave the day's chart without values until it has caught up.
    if (timeMs >= this.#coarseMs && timeMs - this.#coarseMs < COARSE_MS) return;
    this.#coarseMs = timeMs;
    this.#coarse.add(timeMs, values);
  }

  /** Forgets pods that are not on the node any more. */
  retain(uids: Iterable<string>): void {
    const subjects = new Set([NODE, ...uids]);
    for (const map of [this.#fine.state.series, this.#coarse.state.series, this.#previous]) {
      for (const subject of map.keys()) if (!subjects.has(subject)) map.delete(subject);
    }
  }

  history(uid: string, range: HistoryRange, nowMs: number): History {
    const ring = range === "24h" ? this.#coarse : this.#fine;
    const slots = ring.slotsSince(nowMs - RANGE_MS[range]);
    return withGaps(ring.times(slots), (key) => ring.values(uid, slots, key));
  }

  /** The last ten minutes of all pods. */
  recent(node: NodeUsage | undefined, nowMs: number): UsageHistory {
    return this.#at(this.#fine.slotsSince(nowMs - RANGE_MS["10m"]), node);
  }

  newest(node: NodeUsage | undefined): UsageHistory {
    return this.#at(this.#fine.slotsSince(0).slice(-1), node);
  }

  #at(slots: readonly number[], node: NodeUsage | undefined): UsageHistory {
    const values = (uid: string, key: Key) => this.#fine.values(uid, slots, key);
    const uids = [...this.#fine.state.series.keys()].filter((uid) => uid !== NODE);
    const pods = uids.map(
      (uid) => [uid, { cpuCores: values(uid, "cpuCores"), memoryBytes: values(uid, "memoryBytes") }] as const,
    );
    return { times: this.#fine.times(slots), node, pods: Object.fromEntries(pods) };
  }

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

  #rates(subject: string, timeMs: number, network: Measured["network"]): Pick<Values, "receivedBytes" | "sentBytes"> {
    const received = network?.rxBytes ?? Number.NaN;
    const sent = network?.txBytes ?? Number.NaN;
    const before = this.#previous.get(subject);
    this.#previous.set(subject, { timeMs, received, sent });
    const seconds = before ? (timeMs - before.timeMs) / 1000 : 0;
    // A counter that went back belongs to a new sandbox.
    const rate = (now: number, then: number | undefined) =>
      then !== undefined && seconds > 0 && now >= then ? (now - then) / seconds : Number.NaN;
    return { receivedBytes: rate(received, before?.received), sentBytes: rate(sent, before?.sent) };
  }
}

type Measured = Pick<Summary["node"], "cpu" | "memory" | "network">;

/** Longer than the time between two samples when no page is open. */
const GAP_MS = 300_000;

/** Ends every line where nothing was sampled: the kubelet did not run, or the clock was set. Pure. */
function withGaps(times: number[], valuesOf: (key: Key) => (number | null)[]): History {
  const isGap = (index: number) => index > 0 && (times[index] ?? 0) - (times[index - 1] ?? 0) > GAP_MS;
  const spread = <T>(series: readonly T[], between: (before: T) => T): T[] =>
    series.flatMap((value, index) => (isGap(index) ? [between(series[index - 1] as T), value] : [value]));
  const lines = KEYS.map((key) => [key, spread(valuesOf(key), () => null)] as const);
  return { times: spread(times, (before) => before + 1), ...(Object.fromEntries(lines) as Omit<History, "times">) };
}

/** More pods than a node has; a history beyond this is not kept, pods that are gone first. */
const MAX_SUBJECTS = 500;

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
    const { next: slot, times, series } = this.state;
    this.state.next = (slot + 1) % this.slots;
    times[slot] = timeMs;
    for (const subject of values.keys()) {
      if (series.has(subject) || !this.#hasRoom(values)) continue;
      series.set(subject, new Float32Array(this.slots * KEYS.length).fill(Number.NaN));
    }
    for (const [subject, kept] of series) {
      const value = values.get(subject);
      const present = KEYS.map((key) => value?.[key] ?? Number.NaN);
      kept.set(present, slot * KEYS.length);
    }
  }

  /** Whether there is room for one more subject, if need be that of one without a present value. */
  #hasRoom(values: ReadonlyMap<string, Values>): boolean {
    const { series } = this.state;
    if (series.size < MAX_SUBJECTS) return true;
    const gone = series.keys().find((subject) => !values.has(subject));
    return gone !== undefined && series.delete(gone);
  }

  /** Slots with a time after `sinceMs`, times rising, without those that a clock which was set back has overtaken. */
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

  times(slots: readonly number[]): number[] {
    return slots.map((slot) => this.state.times[slot] ?? 0);
  }

  /** null where nothing is known. */
  values(subject: string, slots: readonly number[], key: Key): (number | null)[] {
    const series = this.state.series.get(subject);
    const index = KEYS.indexOf(key);
    const round = key === "cpuCores" ? roundCores : Math.round;
    return slots.map((slot) => {
      const value = series?.[slot * KEYS.length + index];
      return value === undefined || Number.isNaN(value) ? null : round(value);
    });
  }

  get lastMs(): number {
    return this.state.times[(this.state.next + this.slots - 1) % this.slots] ?? 0;
  }
}

/** A crash or a power cut loses at most this period. With 110 pods 2.4 MB are written each time. */
const SAVE_MS = 3_600_000;
/** 500 pods. */
const MAX_BYTES = 16 * 1024 * 1024;
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
        const fields = { path: this.#path, error: messageOf(error) };
        this.#logger.warn("The usage history cannot be read; the page's charts start empty", fields);
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
      const problem = "The usage history cannot be saved; a restart loses the charts since the last save";
      this.#changes.log(SAVE, "warn", problem, { path: this.#path, error: messageOf(error) });
    }
  }
}

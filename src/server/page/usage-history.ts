import { deserialize, serialize } from "bun:jsc";
import { join } from "node:path";
import type { Summary } from "../../base/api/stats-summary.ts";
import { type ReplaceFile, readBoundedBytes } from "../../base/files/whole-file.ts";
import { ChangeLogger } from "../../base/logging/change-logger.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import { messageOf } from "../../base/text/error-message.ts";
import {
  type History,
  type HistoryRange,
  type NodeUsage,
  RANGE_MS,
  type Spark,
  type UsageHistory,
} from "../../page/wire.ts";

/** An hour at the pace of an open page, 10 s. */
const FINE_SAMPLES = 360;
const COARSE_MS = 120_000;
const COARSE_SAMPLES = 720;
const NODE = "";
/** More than a node has; further pods have no history. */
const MAX_PODS = 499;
/** Begins the file; another version is not read. */
const VERSION = "kubelet-ts-usage-3";

/** To a hundredth of a millicore: the digits beyond are noise, and two thirds of the message. */
export const roundCores = (cores: number): number => Math.round(cores * 1e5) / 1e5;

/** In this order in a sample. CPU and network: averages since the sample before. */
const KEYS = ["cpuCores", "memoryBytes", "receivedBytes", "sentBytes", "diskBytes"] as const;
type Key = (typeof KEYS)[number];

/** The node and its pods at one time. */
interface Sample {
  timeMs: number;
  /** Number of the row of each subject: of a pod by its UID. Shared by samples of the same pods. */
  rows: ReadonlyMap<string, number>;
  /** A row for each subject, with values in the order of {@link KEYS}; NaN where nothing is known. */
  values: Float32Array;
}

interface SavedUsage {
  version: string;
  fine: Sample[];
  coarse: Sample[];
}

/**
 * Usage of the node and of each pod, in memory of bounded size: 22 KB for each pod, 2.4 MB for 110. The last hour as it was
 * sampled, the last day every two minutes.
 */
export class UsageRecorder {
  #fine: Sample[] = [];
  #coarse: Sample[] = [];
  /** Counters of the newest sample of each series. */
  #ofFine: ReadonlyMap<string, Counters> = new Map();
  #ofCoarse: ReadonlyMap<string, Counters> = new Map();

  add({ node, pods }: Summary, timeMs: number): void {
    const kept = pods.slice(0, MAX_PODS);
    const measured = [
      toMeasured(NODE, node, node.fs, timeMs),
      ...kept.map((pod) => toMeasured(pod.podRef.uid, pod, pod["ephemeral-storage"], timeMs)),
    ];
    const rows = rowsOf(
      measured.map(({ subject }) => subject),
      this.#fine.at(-1)?.rows,
    );
    const toSample = (before: ReadonlyMap<string, Counters>): Sample => {
      const values = measured.flatMap((it) => toValues(it, before.get(it.subject)));
      return { timeMs, rows, values: Float32Array.from(values) };
    };
    const counters = new Map(measured.map((it) => [it.subject, it.counters]));
    const sample = toSample(this.#ofFine);
    this.#fine = [...this.#fine, sample].slice(-FINE_SAMPLES);
    // Both series share their samples while no page is open.
    const isShared = this.#ofCoarse === this.#ofFine;
    this.#ofFine = counters;
    // A clock that was set back must not leave the day's chart without values until it has caught up.
    const sinceMs = timeMs - (this.#coarse.at(-1)?.timeMs ?? Number.NEGATIVE_INFINITY);
    if (sinceMs >= 0 && sinceMs < COARSE_MS) return;
    this.#coarse = [...this.#coarse, isShared ? sample : toSample(this.#ofCoarse)].slice(-COARSE_SAMPLES);
    this.#ofCoarse = counters;
  }

  history(uid: string, range: HistoryRange, nowMs: number): History {
    const samples = samplesSince(range === "24h" ? this.#coarse : this.#fine, nowMs - RANGE_MS[range]);
    return withGaps(samples.map(timeOf), (key) => valuesOf(samples, uid, key));
  }

  /** The last ten minutes of all pods. */
  recent(node: NodeUsage | undefined, nowMs: number): UsageHistory {
    return toUsageHistory(samplesSince(this.#fine, nowMs - RANGE_MS["10m"]), node);
  }

  newest(node: NodeUsage | undefined): UsageHistory {
    return toUsageHistory(this.#fine.slice(-1), node);
  }

  save(): Uint8Array {
    const saved: SavedUsage = { version: VERSION, fine: this.#fine, coarse: this.#coarse };
    return serialize(saved, { binaryType: "nodebuffer" });
  }

  /** Takes over what `save` of an earlier process returned. @throws Error when that is damaged, or of another version */
  restore(bytes: Uint8Array): void {
    const saved = bytes.length > 0 ? (deserialize(bytes) as SavedUsage | null) : null;
    if (saved?.version !== VERSION) throw new Error("the file holds no usage history of this version");
    this.#fine = saved.fine;
    this.#coarse = saved.coarse;
  }
}

/** CPU time in seconds, and bytes that the network of a subject has carried; NaN: not known. */
interface Counters {
  timeMs: number;
  cpu: number;
  received: number;
  sent: number;
}

interface Measured {
  subject: string;
  counters: Counters;
  /** Use of the CPU in the last seconds only: for the first sample. */
  cores: number;
  memoryBytes: number;
  diskBytes: number;
}

const toMeasured = (
  subject: string,
  { cpu, memory, network }: Pick<Summary["node"], "cpu" | "memory" | "network">,
  disk: { usedBytes?: number } = {},
  timeMs: number,
): Measured => ({
  subject,
  counters: {
    timeMs,
    cpu: (cpu?.usageCoreNanoSeconds ?? Number.NaN) / 1e9,
    received: network?.rxBytes ?? Number.NaN,
    sent: network?.txBytes ?? Number.NaN,
  },
  cores: (cpu?.usageNanoCores ?? Number.NaN) / 1e9,
  memoryBytes: memory?.workingSetBytes ?? Number.NaN,
  diskBytes: disk.usedBytes ?? Number.NaN,
});

/** Counters advance in steps of milliseconds: over less than this time a rate of CPU is noise. */
const SHORTEST_MS = 1_000;

/** Values in the order of {@link KEYS}. A counter that went back belongs to a new sandbox. */
function toValues({ counters: now, cores, memoryBytes, diskBytes }: Measured, before: Counters | undefined): number[] {
  const elapsedMs = before ? now.timeMs - before.timeMs : 0;
  const rate = (key: "cpu" | "received" | "sent") =>
    before && elapsedMs > 0 && now[key] >= before[key] ? ((now[key] - before[key]) * 1000) / elapsedMs : Number.NaN;
  const average = elapsedMs >= SHORTEST_MS ? rate("cpu") : Number.NaN;
  return [Number.isNaN(average) ? cores : average, memoryBytes, rate("received"), rate("sent"), diskBytes];
}

function rowsOf(subjects: readonly string[], before: Sample["rows"] | undefined): Sample["rows"] {
  const isSame = before?.size === subjects.length && subjects.every((subject, row) => before.get(subject) === row);
  return isSame ? before : new Map(subjects.map((subject, row) => [subject, row]));
}

const timeOf = ({ timeMs }: Sample) => timeMs;

/** Samples after a time, their times rising, without those that a clock which was set back has overtaken. */
function samplesSince(samples: readonly Sample[], sinceMs: number): Sample[] {
  let nextMs = Number.POSITIVE_INFINITY;
  const isShown = ({ timeMs }: Sample) => {
    if (timeMs <= sinceMs || timeMs >= nextMs) return false;
    nextMs = timeMs;
    return true;
  };
  return samples.toReversed().filter(isShown).reverse();
}

/** null where nothing is known. */
function valuesOf(samples: readonly Sample[], subject: string, key: Key): (number | null)[] {
  const column = KEYS.indexOf(key);
  const round = key === "cpuCores" ? roundCores : Math.round;
  return samples.map(({ rows, values }) => {
    const value = values[(rows.get(subject) ?? Number.NaN) * KEYS.length + column] ?? Number.NaN;
    return Number.isNaN(value) ? null : round(value);
  });
}

function toUsageHistory(samples: readonly Sample[], node: NodeUsage | undefined): UsageHistory {
  const uids = new Set(samples.flatMap(({ rows }) => [...rows.keys()].filter((subject) => subject !== NODE)));
  const toSpark = (uid: string): Spark => ({
    cpuCores: valuesOf(samples, uid, "cpuCores"),
    memoryBytes: valuesOf(samples, uid, "memoryBytes"),
  });
  return { times: samples.map(timeOf), node, pods: Object.fromEntries([...uids].map((uid) => [uid, toSpark(uid)])) };
}

/** Longer than the time between two samples when no page is open. */
const GAP_MS = 300_000;

/** Ends every line where nothing was sampled: the kubelet did not run, or the clock was set. Pure. */
function withGaps(times: number[], lineOf: (key: Key) => (number | null)[]): History {
  const isGap = (index: number) => index > 0 && (times[index] ?? 0) - (times[index - 1] ?? 0) > GAP_MS;
  const spread = <T>(series: readonly T[], between: (before: T) => T): T[] =>
    series.flatMap((value, index) => (isGap(index) ? [between(series[index - 1] as T), value] : [value]));
  const lines = KEYS.map((key) => [key, spread(lineOf(key), () => null)] as const);
  return { times: spread(times, (before) => before + 1), ...(Object.fromEntries(lines) as Omit<History, "times">) };
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

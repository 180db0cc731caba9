import { statfsSync } from "node:fs";
import { statfs } from "node:fs/promises";
import type { FileSlot } from "../base/concurrency/file-slot.ts";
import type { Clock } from "../base/model/clock.ts";
import { type MeasureDirectories, measureByDu } from "./measure-by-du.ts";

/** Size of a file system. Bytes and counts. */
export interface FsCapacity {
  capacityBytes: number;
  /** Written, without what is reserved. */
  usedBytes: number;
  /** For unprivileged users, as `df` shows it. */
  availableBytes: number;
  /** 0 where the file system has no fixed number of inodes. */
  inodes: number;
  inodesFree: number;
}

/** Usage of one directory. */
export interface DirectoryUsage {
  usedBytes: number;
  /** undefined where `du` cannot count them (busybox). */
  inodesUsed: number | undefined;
  /** undefined when it could not be read. */
  fs: FsCapacity | undefined;
  at: Date;
}

/** A scan is not repeated before this many times as long as it took: at most 5 % of the time goes into scans. */
const REST_FACTOR = 20;

/**
 * Disk usage of directories, measured in the background and on demand. A request never waits: it gets
 * what the last scan found. Bounded by `periodMs` between scans, a low-priority `du` at a time, and a rest after
 * each as long as twenty scans.
 */
export class DiskUsage {
  readonly #clock: Clock;
  readonly #periodMs: number;
  readonly #slot: FileSlot;
  readonly #measure: MeasureDirectories;
  #found = new Map<string, DirectoryUsage>();
  #scan: Promise<void> | undefined;
  #notBeforeMs = Number.NEGATIVE_INFINITY;

  /** @param periodMs shortest time between two scans (`--volume-stats-agg-period`). */
  constructor(
    clock: Clock,
    periodMs: number,
    slot: FileSlot,
    measure: MeasureDirectories = (directories, what) => measureByDu(directories, what, slot),
  ) {
    this.#slot = slot;
    this.#clock = clock;
    this.#periodMs = periodMs;
    this.#measure = measure;
  }

  /**
   * Last known usage of these directories; starts a scan of all of them when that is due.
   * @param fileSystems directories for which only the usage of their whole file system is read
   */
  ask(directories: readonly string[], fileSystems: readonly string[] = []): ReadonlyMap<string, DirectoryUsage> {
    const nowMs = this.#clock.monotonicMs();
    const all = [...directories, ...fileSystems];
    const unknown = all.some((directory) => !this.#found.has(directory));
    // New directories do not wait for the period, but never for less than the rest after a long scan.
    if (!this.#scan && all.length > 0 && nowMs >= this.#notBeforeMs + (unknown ? 0 : this.#periodMs)) {
      this.#scan = this.#run(directories, fileSystems, nowMs).finally(() => {
        this.#scan = undefined;
      });
    }
    return this.#found;
  }

  /** Resolves when the scan that runs now, if any, is done. */
  async settled(): Promise<void> {
    await this.#scan;
  }

  async #run(directories: readonly string[], fileSystems: readonly string[], startedMs: number): Promise<void> {
    const unique = [...new Set(directories)];
    const bytes = await this.#measure(unique, "bytes");
    const inodes = await this.#measure(unique, "inodes");
    const at = this.#clock.now();
    const found = new Map<string, DirectoryUsage>();
    for (const [directory, usedBytes] of bytes) {
      found.set(directory, {
        usedBytes,
        inodesUsed: inodes.get(directory),
        fs: await readCapacity(directory, this.#slot),
        at,
      });
    }
    for (const path of new Set(fileSystems)) {
      const fs = await readCapacity(path, this.#slot);
      if (fs) found.set(path, { usedBytes: fs.usedBytes, inodesUsed: fs.inodes - fs.inodesFree, fs, at });
    }
    this.#found = found;
    const endedMs = this.#clock.monotonicMs();
    this.#notBeforeMs = endedMs + Math.max(1_000, (endedMs - startedMs) * REST_FACTOR);
  }
}

/** A local file system answers at once. */
const STATFS_TIMEOUT_MS = 10_000;

/** Capacity of the file system a path is on; undefined when it cannot be asked, or does not answer. */
export async function readCapacity(path: string, slot: FileSlot): Promise<FsCapacity | undefined> {
  try {
    return toCapacity(await slot.run(() => statfs(path), STATFS_TIMEOUT_MS));
  } catch {
    return undefined;
  }
}

/** As `readCapacity`, at once; only for local file systems. undefined when there is no such directory. */
export function readCapacityNow(path: string): FsCapacity | undefined {
  try {
    return toCapacity(statfsSync(path));
  } catch {
    return undefined;
  }
}

/** Converts the result of `statfs`. */
function toCapacity(fs: {
  bsize: number;
  blocks: number;
  bfree: number;
  bavail: number;
  files: number;
  ffree: number;
}): FsCapacity {
  return {
    capacityBytes: fs.blocks * fs.bsize,
    usedBytes: (fs.blocks - fs.bfree) * fs.bsize,
    availableBytes: fs.bavail * fs.bsize,
    inodes: fs.files,
    inodesFree: fs.ffree,
  };
}

/** A request waits this long for file systems; those that have not answered are shown as they were. */
const ANSWER_MS = 1_000;
/** Figures of a file system that has not answered for this long are not shown. */
const MAX_AGE_MS = 60_000;

/**
 * Capacities of file systems. The event loop waits for a file system at most once, when its path is new: later a thread
 * asks it, and one that hangs is asked no second time.
 */
export class Capacities {
  readonly #clock: Clock;
  readonly #measure: (path: string) => Promise<FsCapacity | undefined>;
  readonly #measureNow: (path: string) => FsCapacity | undefined;
  readonly #known = new Map<string, { capacity: FsCapacity | undefined; atMs: number }>();
  readonly #running = new Map<string, { answer: Promise<void>; sinceMs: number }>();

  constructor(clock: Clock, measure: (path: string) => Promise<FsCapacity | undefined>, measureNow = readCapacityNow) {
    this.#clock = clock;
    this.#measure = measure;
    this.#measureNow = measureNow;
  }

  /** The last figures; starts to bring them up to date. undefined when the path is not there, or does not answer. */
  last(path: string): FsCapacity | undefined {
    const nowMs = this.#clock.monotonicMs();
    const known = this.#known.get(path);
    if (!known) {
      const capacity = this.#measureNow(path);
      this.#known.set(path, { capacity, atMs: nowMs });
      return capacity;
    }
    if (known.atMs < nowMs) void this.#start(path);
    const hangsSinceMs = this.#running.get(path)?.sinceMs ?? nowMs;
    return nowMs - hangsSinceMs < MAX_AGE_MS ? known.capacity : undefined;
  }

  /** Brings these up to date. Resolves within a second, even if a file system hangs. */
  async refresh(paths: readonly string[]): Promise<void> {
    const late = Promise.withResolvers<void>();
    const cancel = this.#clock.schedule(ANSWER_MS, late.resolve);
    const known = paths.filter((path) => this.#known.has(path));
    await Promise.race([Promise.all(known.map((path) => this.#start(path))), late.promise]);
    cancel();
  }

  #start(path: string): Promise<void> {
    const running = this.#running.get(path);
    if (running) return running.answer;
    const answer = this.#measure(path).then((capacity) => {
      this.#running.delete(path);
      const nowMs = this.#clock.monotonicMs();
      const before = this.#known.get(path);
      // The thread was busy with other work, or the path is gone: a later request tells.
      if (!capacity && before && nowMs - before.atMs <= MAX_AGE_MS) return;
      this.#known.set(path, { capacity, atMs: nowMs });
    });
    this.#running.set(path, { answer, sinceMs: this.#clock.monotonicMs() });
    return answer;
  }
}

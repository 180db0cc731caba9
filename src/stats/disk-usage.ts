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

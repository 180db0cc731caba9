import { type StatsFs, statfsSync } from "node:fs";
import { realpath, statfs } from "node:fs/promises";
import type { FileSlot } from "../base/concurrency/worker-pool.ts";
import { readBoundedStream } from "../base/files/bounded-stream.ts";
import { parseMounts } from "../base/files/mount-points.ts";
import type { Clock } from "../base/model/clock.ts";
import { unlessFailed } from "../base/text/error-message.ts";
import { readText } from "./cgroups/kernel-files.ts";
import type { ContainerFacts, PodFacts, VolumeFacts } from "./pod-facts.ts";
import { logDirectory } from "./sampler.ts";

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

/** Disk usage of directories, measured in the background: a request gets what the last scan found. One low-priority `du` at a time. */
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

  /** Last known usage; starts a scan of all when that is due. @param fileSystems directories whose whole file system counts */
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

/** Local file systems answer within milliseconds. */
const STATFS_TIMEOUT_MS = 10_000;

/** Capacity of the file system a path is on; undefined when it cannot be read, or not in time. */
export const readCapacity = (path: string, slot: FileSlot): Promise<FsCapacity | undefined> =>
  slot.run(() => statfs(path), STATFS_TIMEOUT_MS).then(toCapacity, () => undefined);

/** As `readCapacity`, at once; only for local file systems. undefined when there is no such directory. */
export const readCapacityNow = (path: string): FsCapacity | undefined =>
  unlessFailed(() => toCapacity(statfsSync(path)));

const toCapacity = ({ bsize, blocks, bfree, bavail, files, ffree }: StatsFs): FsCapacity => ({
  capacityBytes: blocks * bsize,
  usedBytes: (blocks - bfree) * bsize,
  availableBytes: bavail * bsize,
  inodes: files,
  inodesFree: ffree,
});

/** Directories of these pods, with those of the volumes that are chosen. */
export const podDirectories = (pods: readonly PodFacts[], isChosen: (volume: VolumeFacts) => boolean): string[] =>
  pods.flatMap(({ containers, volumes }) => [
    ...containers.flatMap(containerDirectories),
    ...volumes.filter(isChosen).map(({ path }) => path),
  ]);

/** Directories of these pods whose whole file system is measured. */
export const podFileSystems = (pods: readonly PodFacts[]): string[] =>
  pods.flatMap(({ volumes }) => volumes.filter(({ isFileSystem }) => isFileSystem).map(({ path }) => path));

export function containerDirectories(container: ContainerFacts): string[] {
  return [container.writableLayerPath, logDirectory(container)].filter((path) => path !== "");
}

/** A request waits this long for file systems; those that need longer are shown as they were. */
const ANSWER_MS = 1_000;
/** Figures of a file system that has not answered for this long are not shown. */
const MAX_AGE_MS = 60_000;

/** Capacities of file systems. The event loop waits for one at most once, when its path is new; one that hangs is not asked again. */
export class Capacities {
  readonly #clock: Clock;
  readonly #measure: (path: string) => Promise<FsCapacity | undefined>;
  readonly #measureNow: (path: string) => FsCapacity | undefined;
  readonly #known = new Map<string, { capacity: FsCapacity | undefined; atMs: number }>();
  readonly #running = new Map<string, { done: Promise<void>; sinceMs: number }>();

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
    if (running) return running.done;
    const done = this.#measure(path).then((capacity) => {
      this.#running.delete(path);
      const nowMs = this.#clock.monotonicMs();
      const before = this.#known.get(path);
      // The slot was busy with other work, or the path is gone: a later request shows which.
      if (!capacity && before && nowMs - before.atMs <= MAX_AGE_MS) return;
      this.#known.set(path, { capacity, atMs: nowMs });
    });
    this.#running.set(path, { done, sinceMs: this.#clock.monotonicMs() });
    return done;
  }
}

export type MeasureDirectories = (
  directories: readonly string[],
  what: "bytes" | "inodes",
) => Promise<Map<string, number>>;

/** Longest time one `du` may run, and the most directories it is given (an argument list has a limit). */
const DU_TIMEOUT_MS = 120_000;
const DU_BATCH = 200;
/** One line for each directory of a batch; a path has at most 4096 bytes. */
const MAX_DU_BYTES = DU_BATCH * 8192;

/** Local file systems answer within milliseconds. */
const SORT_TIMEOUT_MS = 5_000;

/** `f_type` of an overlay. Source: linux/magic.h. */
const OVERLAY_MAGIC = 0x794c7630;

/** Runs `du` at the lowest priority, without what is mounted beneath. Directories that are gone, and what `du` cannot count, are missing. */
export async function measureByDu(
  directories: readonly string[],
  what: "bytes" | "inodes",
  slot: FileSlot,
): Promise<Map<string, number>> {
  const { plain, overlaid } = await sortByFileSystem(directories, slot);
  const found = await measureAll(plain, ["-x"], what);
  if (overlaid.length === 0) return found;
  const mountinfo = readText("/proc/self/mountinfo") ?? "";
  const together: string[] = [];
  for (const { path, real } of overlaid) {
    const exclusions = toExclusions(path, real, mountinfo);
    if (exclusions.length === 0) together.push(path);
    else for (const pair of await measureAll([path], exclusions, what)) found.set(...pair);
  }
  for (const pair of await measureAll(together, [], what)) found.set(...pair);
  return found;
}

/** Over layers on different disks an overlay reports a file's own disk as its device, so `du -x` does not count it. Source: the kernel's overlayfs.rst. */
async function sortByFileSystem(directories: readonly string[], slot: FileSlot) {
  const plain: string[] = [];
  /** `real`: without symbolic links, as the kernel lists mounts. */
  const overlaid: { path: string; real: string }[] = [];
  const classify = async (path: string) => {
    try {
      if ((await statfs(path)).type === OVERLAY_MAGIC) overlaid.push({ path, real: await realpath(path) });
      else plain.push(path);
    } catch {
      // Gone, or not to be read: it is missing from the result.
    }
  };
  try {
    for (const path of directories) await slot.run(() => classify(path), SORT_TIMEOUT_MS);
  } catch {
    // A disk does not answer: the rest is missing from the result, too.
  }
  return { plain, overlaid };
}

/** Arguments that keep `du` off the mounts beneath a directory. */
export function toExclusions(path: string, real: string, mountinfo: string): string[] {
  return parseMounts(mountinfo).flatMap(({ mountPoint }) => {
    if (!mountPoint.startsWith(`${real}/`)) return [];
    // A pattern of the shell, over the path as du walks it.
    const walked = path + mountPoint.slice(real.length);
    return [`--exclude=${walked.replace(/[*?[\]\\]/g, "\\$&")}`];
  });
}

async function measureAll(
  directories: readonly string[],
  options: readonly string[],
  what: "bytes" | "inodes",
): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (let start = 0; start < directories.length; start += DU_BATCH) {
    const batch = directories.slice(start, start + DU_BATCH);
    const unit = what === "bytes" ? "-k" : "--inodes";
    let text: string;
    try {
      const du = Bun.spawn(["nice", "-n", "19", "du", "-s", ...options, unit, "--", ...batch], {
        stdout: "pipe",
        stderr: "ignore",
        stdin: "ignore",
        timeout: DU_TIMEOUT_MS,
        killSignal: "SIGKILL",
      });
      text = await readBoundedStream(du.stdout, MAX_DU_BYTES);
      await du.exited;
    } catch {
      return found;
    }
    for (const line of text.split("\n")) {
      const [, amount, directory] = /^(\d+)\t(.*)$/.exec(line) ?? [];
      if (directory) found.set(directory, Number(amount) * (what === "bytes" ? 1024 : 1));
    }
  }
  return found;
}

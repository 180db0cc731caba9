import { realpath, statfs } from "node:fs/promises";
import type { FileSlot } from "../base/concurrency/file-slot.ts";
import { readBoundedStream } from "../base/files/bounded-stream.ts";
import { unescapeMountPath } from "../base/text/mount-path.ts";
import { readText } from "./cgroups/read-text.ts";

/** Measures the disk usage of many directories: bytes by directory, and inodes where possible. */
export type MeasureDirectories = (
  directories: readonly string[],
  what: "bytes" | "inodes",
) => Promise<Map<string, number>>;

/** Longest time one `du` may run, and the most directories it is given (an argument list has a limit). */
const DU_TIMEOUT_MS = 120_000;
const DU_BATCH = 200;
/** One line for each directory of a batch; a path has at most 4096 bytes. */
const MAX_DU_BYTES = DU_BATCH * 8192;

/** A local file system answers at once. */
const STATFS_TIMEOUT_MS = 5_000;

/** `f_type` of an overlay. Source: linux/magic.h. */
const OVERLAY_MAGIC = 0x794c7630;

/**
 * Runs `du` at the lowest priority; file systems that are mounted beneath are not counted. Directories that are gone are
 * missing from the answer; so is everything when there is no `du`, or when it cannot count inodes.
 */
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

interface OverlaidDirectory {
  /** As it was asked for. */
  path: string;
  /** Without symbolic links, as the kernel lists mounts. */
  real: string;
}

/**
 * An overlay whose layers lie on different disks reports a file's own disk as its device, and only for directories the
 * overlay's: to `du -x` every file there is on another file system. Source: the kernel's overlayfs.rst.
 */
async function sortByFileSystem(directories: readonly string[], slot: FileSlot) {
  const plain: string[] = [];
  const overlaid: OverlaidDirectory[] = [];
  const classify = async (path: string) => {
    try {
      if ((await statfs(path)).type === OVERLAY_MAGIC) overlaid.push({ path, real: await realpath(path) });
      else plain.push(path);
    } catch {
      // Gone, or not to be read: it is missing from the answer.
    }
  };
  try {
    for (const path of directories) await slot.run(() => classify(path), STATFS_TIMEOUT_MS);
  } catch {
    // A disk does not answer: the rest is missing from the answer, too.
  }
  return { plain, overlaid };
}

/** Arguments that keep `du` off the mounts beneath a directory. */
export function toExclusions(path: string, real: string, mountinfo: string): string[] {
  return mountinfo.split("\n").flatMap((line) => {
    const mountPoint = unescapeMountPath(line.split(" ")[4] ?? "");
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
    for (const [directory, amount] of parseDu(text)) found.set(directory, what === "bytes" ? amount * 1024 : amount);
  }
  return found;
}

/** Lines `<number>\t<path>`. */
export function parseDu(text: string): Map<string, number> {
  const found = new Map<string, number>();
  for (const line of text.split("\n")) {
    const tab = line.indexOf("\t");
    const amount = Number(line.slice(0, tab));
    if (tab > 0 && Number.isFinite(amount)) found.set(line.slice(tab + 1), amount);
  }
  return found;
}

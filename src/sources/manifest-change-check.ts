import { readdir, realpath, stat } from "node:fs/promises";
import type { FileSlot } from "../base/concurrency/file-slot.ts";
import { toFileSystemId } from "../base/files/mount-points.ts";
import {
  type FileContent,
  type FileIdentity,
  isSameFile,
  type Listing,
  type ManifestSnapshot,
  missingListing,
  sortNames,
} from "./manifest-files.ts";

/** A longer check is left to a thread, which may hang. Local disks respond within milliseconds. */
const CHECK_TIMEOUT_MS = 1_000;
/** More files are cheaper to check together, in a thread. */
const MAX_FILES = 1_000;

/**
 * The snapshot of a path that is missing, or whose files are all what `known` describes, as in an empty directory;
 * undefined in every other case. Calls stat only, and waits for the disk outside the event loop.
 */
export async function snapshotIfUnchanged(
  path: string,
  known: ReadonlyMap<string, FileIdentity>,
): Promise<ManifestSnapshot | undefined> {
  if (known.size > MAX_FILES) return undefined;
  try {
    const listing = await list(path);
    const files = "files" in listing ? listing.files : [];
    if (files.length > MAX_FILES) return undefined;
    const contents = new Map<string, FileContent>();
    for (const file of files) {
      const found = await stat(file, { bigint: true });
      const identity = known.get(file);
      if (found.isDirectory()) contents.set(file, { kind: "not-a-file", what: "a directory" });
      else if (found.isFile() && identity && isSameFile(identity, found)) contents.set(file, { kind: "same" });
      else return undefined;
    }
    return { listing, contents };
  } catch {
    return undefined;
  }
}

/** As `listManifests`. @throws Error for what cannot be listed */
async function list(path: string): Promise<Listing> {
  let real: string;
  try {
    real = await realpath(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return missingListing(path);
    throw error;
  }
  const found = await stat(real);
  if (!found.isDirectory()) return { kind: "file", files: [path] };
  const place = toFileSystemId(real, found.dev);
  return { kind: "directory", ...sortNames(path, await readdir(path)), place };
}

/**
 * Checks a path for changes before a thread is started to read it: most checks find none. While the check of a path hangs,
 * the path is left to the thread.
 */
export class ManifestChangeCheck {
  readonly #slot: FileSlot;
  readonly #check: typeof snapshotIfUnchanged;
  readonly #underWay = new Set<string>();

  constructor(slot: FileSlot, check = snapshotIfUnchanged) {
    this.#slot = slot;
    this.#check = check;
  }

  /** @returns undefined: the path must be read */
  async snapshotIfUnchanged(
    path: string,
    known: ReadonlyMap<string, FileIdentity>,
  ): Promise<ManifestSnapshot | undefined> {
    if (this.#underWay.has(path)) return undefined;
    const check = () => {
      this.#underWay.add(path);
      return this.#check(path, known).finally(() => this.#underWay.delete(path));
    };
    try {
      return await this.#slot.run(check, CHECK_TIMEOUT_MS);
    } catch {
      return undefined;
    }
  }
}

import { readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { toFileSystemPlace } from "../files/mount-points.ts";
import {
  compareNames,
  type FileContent,
  type FileIdentity,
  isSameFile,
  type ManifestSnapshot,
  skipReason,
} from "./manifest-files.ts";

/** A look that has not ended by then is left to a thread that may hang. Local disks answer within milliseconds. */
const LOOK_MS = 1_000;
/** More files are cheaper to look at together, in a thread. */
const MAX_FILES = 1_000;

/**
 * The snapshot of a directory in which every file is still the one that `known` describes; undefined in every other case.
 * It waits for the disk outside of the event loop and reads nothing.
 */
export async function lookForChanges(
  path: string,
  known: ReadonlyMap<string, FileIdentity>,
): Promise<ManifestSnapshot | undefined> {
  if (known.size === 0 || known.size > MAX_FILES) return undefined;
  try {
    const real = await realpath(path);
    const directory = await stat(real);
    if (!directory.isDirectory()) return undefined;
    const place = toFileSystemPlace(real, directory.dev);
    const names = (await readdir(path)).sort(compareNames);
    const files: string[] = [];
    const skipped: { path: string; reason: string }[] = [];
    for (const name of names) {
      const reason = skipReason(name);
      if (reason) skipped.push({ path: join(path, name), reason });
      else files.push(join(path, name));
    }
    if (files.length > MAX_FILES) return undefined;
    const contents = new Map<string, FileContent>();
    for (const file of files) {
      const found = await stat(file, { bigint: true });
      const identity = known.get(file);
      if (found.isDirectory()) contents.set(file, { kind: "not-a-file", what: "a directory" });
      else if (found.isFile() && identity && isSameFile(identity, found)) contents.set(file, { kind: "same" });
      else return undefined;
    }
    return { listing: { kind: "directory", files, skipped, place }, contents };
  } catch {
    return undefined;
  }
}

/** Runs a look when no other one hangs; undefined, or an error, when there is no result in time. */
export interface LookSlot {
  attempt<T>(look: () => Promise<T>, timeoutMs: number): Promise<{ value: T } | undefined>;
}

/**
 * {@link lookForChanges} before a thread is started for a path: most looks find nothing new. A path whose look hangs is
 * left to the thread until it answers.
 */
export class ManifestLook {
  readonly #slot: LookSlot;
  readonly #look: typeof lookForChanges;
  readonly #underWay = new Set<string>();

  constructor(slot: LookSlot, look = lookForChanges) {
    this.#slot = slot;
    this.#look = look;
  }

  /** @returns undefined: the path has to be read */
  async unchanged(path: string, known: ReadonlyMap<string, FileIdentity>): Promise<ManifestSnapshot | undefined> {
    if (this.#underWay.has(path)) return undefined;
    const look = () => {
      this.#underWay.add(path);
      return this.#look(path, known).finally(() => this.#underWay.delete(path));
    };
    try {
      return (await this.#slot.attempt(look, LOOK_MS))?.value;
    } catch {
      return undefined;
    }
  }
}

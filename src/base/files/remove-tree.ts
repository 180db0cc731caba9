import { basename, dirname } from "node:path";
import { unlessCode } from "../text/error-message.ts";
import { type EntryName, HeldDirectory } from "./held-directory.ts";

/** Longest time: a tree that something keeps filling has no end. */
const DEFAULT_TIMEOUT_MS = 300_000;

/**
 * Removes a path with everything beneath it. Links are removed, never followed, also when something exchanges entries;
 * a mount beneath is never entered. Works at any depth: directories are moved to the top before they are emptied. A
 * missing path is success.
 * @param path links up to its parent are followed
 * @throws Error with the path; the rest may be gone
 */
export function removeTree(path: string, timeoutMs = DEFAULT_TIMEOUT_MS): void {
  using parent = unlessCode(["ENOENT"], () => HeldDirectory.open(dirname(path)));
  if (!parent) return;
  try {
    if (parent.unlink(basename(path))) return;
    using top = parent.child(basename(path));
    if (!top) {
      parent.unlink(basename(path)); // Exchanged meanwhile.
      return;
    }
    new TreeRemoval(top, path, performance.now() + timeoutMs).empty();
    if (!parent.rmdir(basename(path))) throw new Error(`cannot remove "${path}": it is being filled`);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw code === undefined ? error : new Error(`cannot remove "${path}": ${message}`, { cause: error });
  }
}

/** One removal: empties the top directory by passes over its entries. */
class TreeRemoval {
  readonly #top: HeldDirectory;
  readonly #path: string;
  readonly #deadlineMs: number;
  readonly #mountId: string;
  #moved = 0;

  constructor(top: HeldDirectory, path: string, deadlineMs: number) {
    this.#top = top;
    this.#path = path;
    this.#deadlineMs = deadlineMs;
    this.#mountId = top.mountId();
  }

  empty(): void {
    for (let names: EntryName[] = this.#top.names(); names.length > 0; names = this.#top.names()) {
      for (const name of names) this.#remove(this.#top, name);
    }
  }

  /** Removes an entry of the top directory; directories in it are moved up and left to a later pass. */
  #remove(parent: HeldDirectory, name: EntryName): void {
    this.#checkTime();
    if (parent.unlink(name) || parent.rmdir(name)) return;
    using directory = parent.child(name);
    if (!directory) return; // Exchanged meanwhile: the next pass sees it.
    if (directory.mountId() !== this.#mountId) {
      throw new Error(`cannot remove "${this.#path}": "${directory.realPath()}" is a mount point`);
    }
    for (const inner of directory.names()) {
      if (!directory.unlink(inner) && !directory.rmdir(inner)) this.#moveUp(directory, inner);
    }
    parent.rmdir(name);
  }

  #moveUp(directory: HeldDirectory, name: EntryName): void {
    for (;;) {
      this.#checkTime();
      try {
        directory.rename(name, `.removed-${this.#moved++}`, this.#top);
        return;
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code === "ENOENT") return;
        // The name is taken by an entry of the tree.
        if (code !== "ENOTEMPTY" && code !== "EEXIST" && code !== "ENOTDIR") throw error;
      }
    }
  }

  #checkTime(): void {
    if (performance.now() < this.#deadlineMs) return;
    throw new Error(`cannot remove "${this.#path}": it takes too long, or something keeps filling it`);
  }
}

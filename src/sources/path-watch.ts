import { type FSWatcher, lstatSync, readlinkSync, statSync, watch } from "node:fs";
import { join, resolve, sep } from "node:path";

/** Links that lead to a path. Source: Linux, `MAXSYMLINKS`. */
const MAX_LINKS = 40;

/**
 * Reports events of a path, of its contents and of what leads to it: each directory above is watched for the next name,
 * so that a file, a directory or a link that is replaced is seen (`..data` of Kubernetes, `live/` of certbot). The kind of
 * event is not reported: the listener reads again. Network file systems may send no events, so a timer is needed as well.
 */
export class PathWatch {
  readonly #path: string;
  readonly #onEvent: (changed?: string) => void;
  /** Watches by directory. */
  readonly #armed = new Map<string, Armed>();
  #stopped = false;

  /** @param onEvent gets the path that has changed, where the kernel says it */
  constructor(path: string, onEvent: (changed?: string) => void) {
    this.#path = resolve(path);
    this.#onEvent = onEvent;
  }

  /**
   * Watches the existing files. Call it after every read, since inotify follows inodes, not names.
   * @returns whether a watch was set up: what happened before that was not reported
   */
  arm(): boolean {
    if (this.#stopped) return false;
    const wanted = findDirectories(this.#path);
    for (const [directory, { watcher }] of this.#armed) {
      if (wanted.has(directory)) continue;
      watcher.close();
      this.#armed.delete(directory);
    }
    let isNew = false;
    for (const [directory, names] of wanted) {
      const before = this.#armed.get(directory);
      const armed = rearm(before, directory, (file) => this.#onName(directory, file));
      if (!armed) this.#armed.delete(directory);
      else this.#armed.set(directory, Object.assign(armed, { names }));
      if (armed && armed !== before) isNew = true;
    }
    return isNew;
  }

  stop(): void {
    this.#stopped = true;
    for (const { watcher } of this.#armed.values()) watcher.close();
    this.#armed.clear();
  }

  #onName(directory: string, file: string | null): void {
    const names = this.#armed.get(directory)?.names;
    if (names && file !== null && !names.has(file)) return;
    // Another directory may have the name now, even the inode number of the old one, whose watch died with it.
    for (const [below, armed] of this.#armed) {
      if (names && below !== directory && isBeneath(below, file === null ? directory : join(directory, file))) {
        armed.broken = true;
      }
    }
    this.#onEvent(file === null ? undefined : join(directory, file));
  }
}

const isBeneath = (path: string, directory: string): boolean =>
  path === directory || path.startsWith(directory.endsWith(sep) ? directory : directory + sep);

/**
 * The directories that decide what a path leads to, each with the names in it that matter; undefined: all of them, in the
 * directory that the path itself is.
 */
function findDirectories(path: string): Map<string, Set<string> | undefined> {
  const found = new Map<string, Set<string> | undefined>();
  let directory: string = sep;
  let names = path.split(sep).filter((name) => name !== "");
  for (let links = 0; names.length > 0; ) {
    const [name = "", ...rest] = names;
    found.set(directory, (found.get(directory) ?? new Set()).add(name));
    const here = join(directory, name);
    let target: string | undefined;
    try {
      if (lstatSync(here).isSymbolicLink()) target = readlinkSync(here);
    } catch {
      return found;
    }
    if (target === undefined) {
      directory = here;
      names = rest;
      continue;
    }
    if (++links > MAX_LINKS) return found;
    names = [
      ...resolve(directory, target)
        .split(sep)
        .filter((part) => part !== ""),
      ...rest,
    ];
    directory = sep;
  }
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory()) found.set(directory, undefined);
  return found;
}

interface Armed {
  watcher: FSWatcher;
  /** undefined: all. */
  names?: ReadonlySet<string> | undefined;
  dev: number;
  ino: number;
  broken: boolean;
}

/** Keeps a watch that is on the right directory, else sets up a new one; undefined when there is none to watch. */
function rearm(old: Armed | undefined, directory: string, onEvent: (file: string | null) => void): Armed | undefined {
  let stat: ReturnType<typeof statSync>;
  try {
    stat = statSync(directory);
  } catch {
    old?.watcher.close();
    return undefined;
  }
  if (old && !old.broken && old.dev === stat.dev && old.ino === stat.ino) return old;
  old?.watcher.close();
  if (!stat.isDirectory()) return undefined;
  try {
    const watcher = watch(directory, { persistent: false }, (_, file) => onEvent(file));
    const armed: Armed = { watcher, dev: stat.dev, ino: stat.ino, broken: false };
    const giveUp = () => {
      armed.broken = true;
      onEvent(null);
    };
    watcher.on("error", giveUp);
    watcher.on("close", () => {
      armed.broken = true;
    });
    return armed;
  } catch {
    return undefined; // Out of inotify watches, or removed meanwhile: the timer covers it.
  }
}

import { type FSWatcher, lstatSync, readlinkSync, statSync, watch } from "node:fs";
import { stat } from "node:fs/promises";
import { join, resolve, sep } from "node:path";
import type { FileSlot } from "../base/concurrency/worker-pool.ts";
import type { Clock } from "../base/model/clock.ts";

/** Links that lead to a path. Source: Linux, `MAXSYMLINKS`. */
const MAX_LINKS = 40;

/** How often paths are looked at without an event. */
const LOOK_AGAIN_MS = 60_000;
const ANSWER_TIMEOUT_MS = 1_000;

interface Look {
  clock: Pick<Clock, "schedule">;
  slot: FileSlot;
}

/**
 * Reports events of paths, of their contents and of what leads to them: each directory above is watched for the next name,
 * so that a file, a directory or a link that is replaced is seen (`..data` of Kubernetes, `live/` of certbot). The kind of
 * event is not reported: the listener reads again. Events get lost, and network file systems may send none, so a timer is
 * needed as well.
 */
export class PathWatch {
  readonly #onEvent: (changed?: string) => void;
  #paths: readonly string[] = [];
  /** Watches by directory. */
  readonly #armed = new Map<string, Armed>();
  #stopped = false;
  #cancelLook = () => {};

  /**
   * @param onEvent gets the path that has changed, where the kernel says it
   * @param look for a listener without a timer that reads in this thread: it is also called once a minute, unless a path
   *   does not answer in the slot
   */
  constructor(onEvent: (changed?: string) => void, look?: Look) {
    this.#onEvent = onEvent;
    if (look) this.#planLook(look);
  }

  /**
   * Watches the existing files of these paths, no longer those of others. Call it after every read, since inotify follows
   * inodes, not names.
   * @returns whether a watch was set up: what happened before that was not reported
   */
  arm(paths: readonly string[]): boolean {
    if (this.#stopped) return false;
    this.#paths = paths;
    const wanted: WantedNames = new Map();
    for (const path of paths) addDirectories(wanted, resolve(path));
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
    this.#cancelLook();
    for (const { watcher } of this.#armed.values()) watcher.close();
    this.#armed.clear();
  }

  #planLook({ clock, slot }: Look): void {
    this.#cancelLook = clock.schedule(LOOK_AGAIN_MS, () => {
      this.#planLook({ clock, slot });
      // A path that is missing answers.
      const answers = this.#paths.map((path) => slot.run(() => stat(path).catch(() => {}), ANSWER_TIMEOUT_MS));
      const report = () => this.#stopped || this.#onEvent();
      void Promise.all(answers).then(report, () => {});
    });
  }

  #onName(directory: string, file: string | null): void {
    const names = this.#armed.get(directory)?.names;
    if (names && file !== null && !names.has(file)) return;
    // Another directory may have the name now, even the inode number of the old one, whose watch died with it.
    const path = file === null ? directory : join(directory, file);
    for (const [below, armed] of this.#armed) {
      if (below !== directory && isBeneath(below, path)) armed.broken = true;
    }
    this.#onEvent(file === null ? undefined : path);
  }
}

const isBeneath = (path: string, directory: string): boolean =>
  path === directory || path.startsWith(directory.endsWith(sep) ? directory : directory + sep);

/**
 * The directories that decide what a path leads to, each with the names in it that matter; undefined: all of them, in the
 * directory that a path itself is.
 */
type WantedNames = Map<string, Set<string> | undefined>;

function addDirectories(found: WantedNames, path: string): void {
  let directory: string = sep;
  let names = path.split(sep).filter((name) => name !== "");
  for (let links = 0; names.length > 0; ) {
    const [name = "", ...rest] = names;
    if (!found.has(directory)) found.set(directory, new Set());
    found.get(directory)?.add(name);
    const here = join(directory, name);
    let target: string | undefined;
    try {
      if (lstatSync(here).isSymbolicLink()) target = readlinkSync(here);
    } catch {
      return;
    }
    if (target === undefined) {
      directory = here;
      names = rest;
      continue;
    }
    if (++links > MAX_LINKS) return;
    names = [
      ...resolve(directory, target)
        .split(sep)
        .filter((part) => part !== ""),
      ...rest,
    ];
    directory = sep;
  }
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory()) found.set(directory, undefined);
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

import { type FSWatcher, statSync, watch } from "node:fs";
import { basename, dirname } from "node:path";

/**
 * Reports that something happened to a path or in it: watches the directory itself, and its name in the parent directory
 * (where a file, and a directory or link that is replaced, is seen). What happened is not reported: the listener reads
 * again. Network file systems may send no events, so a timer is needed as well.
 */
export class PathWatch {
  readonly #path: string;
  readonly #onEvent: () => void;
  #parent: Armed | undefined;
  #self: Armed | undefined;
  #stopped = false;

  constructor(path: string, onEvent: () => void) {
    this.#path = path;
    this.#onEvent = onEvent;
  }

  /**
   * Watches the existing files. Call it after every read, since inotify follows inodes, not names.
   * @returns whether a watch was set up: what happened before that was not reported
   */
  arm(): boolean {
    if (this.#stopped) return false;
    const before = [this.#parent, this.#self];
    const name = basename(this.#path);
    this.#parent = rearm(this.#parent, dirname(this.#path), (file) => {
      if (file !== null && file !== name) return;
      // Another directory may have the name now, even the inode number of the old one, whose watch died with it.
      if (this.#self) this.#self.broken = true;
      this.#onEvent();
    });
    this.#self = rearm(this.#self, this.#path, () => this.#onEvent());
    return [this.#parent, this.#self].some((armed, index) => armed !== undefined && armed !== before[index]);
  }

  stop(): void {
    this.#stopped = true;
    this.#parent?.watcher.close();
    this.#self?.watcher.close();
  }
}

interface Armed {
  watcher: FSWatcher;
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

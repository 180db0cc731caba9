import { type FSWatcher, statSync, watch } from "node:fs";
import { basename, dirname } from "node:path";

/**
 * Tells that something happened to a path or in it: the directory itself, and its name in the directory above it (a
 * file is only seen from there; a directory or link may be replaced, removed and made again). What happened is not
 * told, on purpose: whoever hears it looks again. Events may be missing (network file systems): look by time as well.
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

  /** Watches what is there now; to be called at every look, since inotify follows inodes, not names. */
  arm(): void {
    if (this.#stopped) return;
    const name = basename(this.#path);
    this.#parent = rearm(this.#parent, dirname(this.#path), (file) => {
      if (file !== null && file !== name) return;
      // Perhaps another directory by now, be it with the inode number of the old one, whose watch died with it.
      if (this.#self) this.#self.broken = true;
      this.#onEvent();
    });
    this.#self = rearm(this.#self, this.#path, () => this.#onEvent());
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

/** Keeps a watch that is still on the right directory, else makes a new one; undefined when there is none to watch. */
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
    return undefined; // Out of inotify watches, or gone again: the timer looks.
  }
}

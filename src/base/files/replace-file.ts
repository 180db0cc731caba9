import { closeSync, fchmodSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

interface ReplaceOptions {
  /** Survives a power failure right after it; costs a sync. */
  durable: boolean;
  /** Mode of directories that are missing; default 0750. */
  directoryMode?: number;
  /** Default 0600. */
  mode?: number;
}

/** {@link replaceFile}, in this thread or another one. */
export type ReplaceFile = (path: string, content: string | Uint8Array, options: ReplaceOptions) => void | Promise<void>;

/** Replaces a file as a whole: readers see the old content or the new. @throws the system's error. */
export function replaceFile(path: string, content: string | Uint8Array, options: ReplaceOptions): void {
  const temporary = `${path}.tmp`;
  mkdirSync(dirname(path), { recursive: true, mode: options.directoryMode ?? 0o750 });
  try {
    // An older file might have another mode.
    rmSync(temporary, { force: true });
    const file = openSync(temporary, "wx", 0o600);
    try {
      // Not writeSync: on a nearly full disk it writes a part and reports success.
      writeFileSync(file, content);
      // Not when it is opened: the umask takes bits away.
      if (options.mode !== undefined) fchmodSync(file, options.mode);
      if (options.durable) fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
    if (options.durable) syncDirectory(dirname(path));
  } catch (error) {
    // A partial file uses space on a full disk.
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** The names in a directory survive a power cut: a file system may keep a rename in memory for seconds. */
function syncDirectory(path: string): void {
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

/** Creates and removes a file: shows that the disk of a directory responds, now. @throws the system's error */
export function probeDirectory(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, `.probe-${process.pid}`);
  closeSync(openSync(path, "w", 0o600));
  rmSync(path);
}

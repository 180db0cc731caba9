import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { openFile } from "./open-file.ts";

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

/**
 * Writes the new content of a file next to it.
 * @returns `commit` puts it in the place of the file
 * @param content or what writes it to the path that it is given
 * @throws the system's error
 */
export function prepareFile(
  path: string,
  content: string | Uint8Array | ((scratch: string) => void),
  options: ReplaceOptions,
) {
  const scratch = `${path}.tmp`;
  mkdirSync(dirname(path), { recursive: true, mode: options.directoryMode ?? 0o750 });
  // A partial file uses space on a full disk.
  const discard = () => rmSync(scratch, { force: true });
  try {
    // An older file might have another mode.
    discard();
    if (typeof content === "function") content(scratch);
    // Not writeSync: on a nearly full disk it writes a part and reports success.
    else writeFileSync(scratch, content, { flag: "wx", mode: 0o600 });
    // Not when it is opened: the umask takes bits away.
    if (options.mode !== undefined) chmodSync(scratch, options.mode);
    if (options.durable) sync(scratch);
  } catch (error) {
    discard();
    throw error;
  }
  return { commit: () => renameSync(scratch, path), discard };
}

/** Replaces a file as a whole: readers see the old content or the new. @throws the system's error. */
export function replaceFile(...file: Parameters<typeof prepareFile>): void {
  const [path, , { durable }] = file;
  const prepared = prepareFile(...file);
  try {
    prepared.commit();
    // The name, too, survives a power cut: a file system may keep a rename in memory for seconds.
    if (durable) sync(dirname(path));
  } catch (error) {
    prepared.discard();
    throw error;
  }
}

/** The content of a file, or the names in a directory, survive a power cut from now on. @throws the system's error */
export function sync(path: string): void {
  using file = openFile(path, "r");
  fsyncSync(file.descriptor);
}

/** Creates and removes a file: shows that the disk of a directory responds, now. @throws the system's error */
export function probeDirectory(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, `.probe-${process.pid}`);
  closeSync(openSync(path, "w", 0o600));
  rmSync(path);
}

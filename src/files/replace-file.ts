import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

export interface ReplaceOptions {
  /** Survives a power cut right after it, at the price of a sync. */
  durable: boolean;
  /** Mode of directories that are missing; default 0750. */
  directoryMode?: number;
}

/** {@link replaceFile}, in this thread or another one. */
export type ReplaceFile = (path: string, content: string | Uint8Array, options: ReplaceOptions) => void | Promise<void>;

/** Replaces a file as a whole: readers see the old content or the new. Mode 0600. @throws the system's error. */
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
      if (options.durable) fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (error) {
    // A partial file takes room on a full disk.
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** {@link replaceFile} by the threads of the runtime. */
export async function replaceFileAsync(
  path: string,
  content: string | Uint8Array,
  options: ReplaceOptions,
): Promise<void> {
  const temporary = `${path}.tmp`;
  await mkdir(dirname(path), { recursive: true, mode: options.directoryMode ?? 0o750 });
  try {
    await rm(temporary, { force: true });
    const file = await open(temporary, "wx", 0o600);
    try {
      await file.writeFile(content);
      if (options.durable) await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {});
    throw error;
  }
}

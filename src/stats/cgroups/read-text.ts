import { readdirSync, readFileSync } from "node:fs";

/**
 * Text of a small kernel file, undefined when it is missing, its cgroup or process is gone, or it may not be read.
 * Synchronous on purpose: a read of /proc or /sys never waits for a disk, and the asynchronous way costs ten times as
 * much.
 */
export function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/** Names in a directory, empty when it cannot be read. */
export function readNames(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

/** Names of the directories in a directory, empty when it cannot be read. */
export function readSubdirectories(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
  } catch {
    return [];
  }
}

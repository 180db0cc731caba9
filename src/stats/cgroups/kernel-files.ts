import { readdirSync, readFileSync } from "node:fs";

/** Text of a small kernel file; undefined when it cannot be read. Synchronous on purpose: /proc and /sys never wait for a disk. */
export function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
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

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { readTextIfExists } from "../../base/files/bounded-read.ts";

const MAX_BYTES = 4096;

/** Origin of a root directory, in words for messages. */
type RootDirOrigin = "--root-dir" | "KUBELET_TS_ROOT_DIR" | "kubelet-ts use";

/** File of the user's default context: one line, the root directory of a kubelet. */
export const defaultContextPath = (environment: NodeJS.ProcessEnv = process.env): string =>
  join(environment.XDG_CONFIG_HOME || join(environment.HOME || homedir(), ".config"), "kubelet-ts", "root-dir");

/** The root directory that commands use without `--root-dir`; undefined when none was chosen. */
function readDefaultContext(path = defaultContextPath()): string | undefined {
  try {
    return readTextIfExists(path, MAX_BYTES)?.trim() || undefined;
  } catch {
    // A file that cannot be read chooses nothing.
    return undefined;
  }
}

/** @param rootDir undefined removes the choice */
export function writeDefaultContext(rootDir: string | undefined, path = defaultContextPath()): void {
  if (rootDir === undefined) return rmSync(path, { force: true });
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(path, `${rootDir}\n`, { mode: 0o600 });
}

/** The root directory of the flags, the environment or the default context, and which of them named it. */
export function chooseRootDir(
  flag: string | undefined,
  environment: NodeJS.ProcessEnv = process.env,
): { rootDir: string; origin: RootDirOrigin } | undefined {
  if (flag !== undefined) return { rootDir: flag, origin: "--root-dir" };
  if (environment.KUBELET_TS_ROOT_DIR)
    return { rootDir: environment.KUBELET_TS_ROOT_DIR, origin: "KUBELET_TS_ROOT_DIR" };
  const chosen = readDefaultContext(defaultContextPath(environment));
  return chosen === undefined ? undefined : { rootDir: chosen, origin: "kubelet-ts use" };
}

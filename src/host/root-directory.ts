import { accessSync, constants, mkdirSync } from "node:fs";

/**
 * Makes the root directory, if it is missing, and sees that we may use it.
 * @throws Error that names the way out; a file system that became read-only is none: pods that run go on.
 */
export function prepareRootDirectory(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "EROFS" && isThere(path)) return;
    throw new Error(
      `The root directory "${path}" cannot be used: ${explain(code) ?? message}. Run as root, or give a directory of your own with --root-dir`,
      { cause: error },
    );
  }
}

function isThere(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function explain(code: string | undefined): string | undefined {
  switch (code) {
    case "EACCES":
    case "EPERM":
      return "permission denied";
    case "EEXIST":
    case "ENOTDIR":
      return "there is a file in the way";
    case "ENOENT":
      return "it cannot be made there";
    case "EROFS":
      return "the file system is read-only";
    case "ENOSPC":
      return "the disk is full";
    default:
      return undefined;
  }
}

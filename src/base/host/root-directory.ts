import { accessSync, constants, mkdirSync } from "node:fs";
import { join } from "node:path";
import { unlessFailed } from "../text/error-message.ts";

/** Another process works on a root directory, it is another user's, or it cannot be used at all. */
export class RootDirectoryError extends Error {}

/**
 * Creates the root directory, and checks that it can be used; read-only is accepted: pods keep running.
 * @returns a warning, with its fix
 * @throws RootDirectoryError
 */
export function prepareRootDirectory(path: string): string | undefined {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    accessSync(path, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EROFS" && mayAccess(path, constants.R_OK | constants.X_OK)) {
      return `The root directory "${path}" is on a read-only file system: pods keep running, new ones cannot start and nothing is kept. Mount it writable, or set another directory with --root-dir`;
    }
    throw unusable(`The root directory "${path}"`, error);
  }
}

/** Whether we may use a path in these ways: `constants.R_OK` and the like. */
export const mayAccess = (path: string, mode: number): boolean =>
  unlessFailed(() => {
    accessSync(path, mode);
    return true;
  }) ?? false;

/** Problem and remedy by error code. */
const UNUSABLE: Readonly<Record<string, readonly [problem: string, remedy?: string]>> = {
  EACCES: ["permission denied", "Run as root"],
  EPERM: ["permission denied", "Run as root"],
  EEXIST: ["a part of the path is not a directory", "Remove it"],
  ENOTDIR: ["a part of the path is not a directory", "Remove it"],
  EISDIR: ["it is not a file", "Remove it"],
  ELOOP: ["it is not a file", "Remove it"],
  EROFS: ["the file system is read-only", "Mount it writable"],
  ENOSPC: ["the disk is full", "Free some space"],
  ENOENT: ["it cannot be created there"],
};

/** @param subject a root directory, or a file in it, as an error names it */
export function unusable(subject: string, error: unknown): RootDirectoryError {
  const { code = "", message } = error as NodeJS.ErrnoException;
  const [problem, remedy] = UNUSABLE[code] ?? [message];
  const fix = `${remedy ? `${remedy}, or set` : "Set"} another directory with --root-dir`;
  return new RootDirectoryError(`${subject} cannot be used: ${problem}. ${fix}`, { cause: error });
}

/** The socket of the Kubernetes API of the kubelet on a root directory. */
export const apiSocketOf = (rootDir: string): string => join(rootDir, "api.sock");

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
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "EROFS" && mayAccess(path, constants.R_OK | constants.X_OK)) {
      return `The root directory "${path}" is on a read-only file system: pods keep running, new ones cannot start and nothing is kept. Mount it writable, ${OTHER_DIRECTORY}`;
    }
    const { problem, remedy } = explain(code, message);
    throw new RootDirectoryError(`The root directory "${path}" cannot be used: ${problem}. ${remedy}`, {
      cause: error,
    });
  }
}

/** Whether we may use a path in these ways: `constants.R_OK` and the like. */
export const mayAccess = (path: string, mode: number): boolean =>
  unlessFailed(() => {
    accessSync(path, mode);
    return true;
  }) ?? false;

const OTHER_DIRECTORY = "or set another directory with --root-dir";

function explain(code: string | undefined, message: string): { problem: string; remedy: string } {
  switch (code) {
    case "EACCES":
    case "EPERM":
      return { problem: "permission denied", remedy: `Run as root, ${OTHER_DIRECTORY}` };
    case "EEXIST":
    case "ENOTDIR":
      return { problem: "a part of the path is not a directory", remedy: `Remove it, ${OTHER_DIRECTORY}` };
    case "EROFS":
      return { problem: "the file system is read-only", remedy: `Mount it writable, ${OTHER_DIRECTORY}` };
    case "ENOSPC":
      return { problem: "the disk is full", remedy: `Free some space, ${OTHER_DIRECTORY}` };
    default: {
      const problem = code === "ENOENT" ? "it cannot be created there" : message;
      return { problem, remedy: "Set another directory with --root-dir" };
    }
  }
}

/** The socket of the Kubernetes API of the kubelet on a root directory. */
export const apiSocketOf = (rootDir: string): string => join(rootDir, "api.sock");

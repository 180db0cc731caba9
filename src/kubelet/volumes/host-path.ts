import { closeSync, mkdirSync, openSync, type Stats, statSync } from "node:fs";
import type { HostPathVolumeSource } from "../../base/api/pod.ts";

/**
 * Checks, and for the `…OrCreate` types makes, the path of a hostPath volume. Without a type a missing path becomes a
 * directory, which Docker would otherwise do when the container starts.
 * @returns why the path does not match the type, in upstream's words, or undefined.
 */
export function prepareHostPath({ path, type }: HostPathVolumeSource): string | undefined {
  if (!path.startsWith("/")) return `hostPath must be absolute: ${path}`;
  const mustBe = (is: boolean | undefined, what: string) =>
    is ? undefined : `hostPath type check failed: ${path} is not a ${what}`;
  let stats: Stats | undefined;
  try {
    stats = statSync(path, { throwIfNoEntry: false });
    if (!stats && (type === "" || type === "DirectoryOrCreate")) {
      mkdirSync(path, { recursive: true, mode: 0o755 });
      return undefined;
    }
    if (!stats && type === "FileOrCreate") {
      closeSync(openSync(path, "a", 0o644));
      return undefined;
    }
  } catch (error) {
    return systemMessage(error, path);
  }
  switch (type) {
    case "":
      return undefined;
    case "Directory":
    case "DirectoryOrCreate":
      return mustBe(stats?.isDirectory(), "directory");
    case "File":
    case "FileOrCreate":
      return mustBe(stats?.isFile(), "file");
    case "Socket":
      return mustBe(stats?.isSocket(), "socket file");
    case "CharDevice":
      return mustBe(stats?.isCharacterDevice(), "character device");
    case "BlockDevice":
      return mustBe(stats?.isBlockDevice(), "block device");
    default:
      return type satisfies never;
  }
}

const GO_TEXTS: Readonly<Record<string, string>> = {
  ENOENT: "no such file or directory",
  ENOTDIR: "not a directory",
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  EROFS: "read-only file system",
  ENOSPC: "no space left on device",
  EEXIST: "file exists",
  ELOOP: "too many levels of symbolic links",
  ENAMETOOLONG: "file name too long",
};

/** A system error as Go words it: `open /a/b: no such file or directory`. */
function systemMessage(error: unknown, path: string): string {
  const { syscall, code, message } = error as NodeJS.ErrnoException;
  const text = code === undefined ? undefined : GO_TEXTS[code];
  return text === undefined ? message : `${syscall ?? "open"} ${path}: ${text}`;
}

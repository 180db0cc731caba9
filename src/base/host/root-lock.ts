import { closeSync, constants, fstatSync, ftruncateSync, lstatSync, openSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { readBoundedText, readTextIfExists } from "../files/bounded-read.ts";
import { unlessCode } from "../text/error-message.ts";
import { tryFlock } from "./flock.ts";

/** A process that uses a root directory, as its lock file describes it. No secrets. */
export interface InstanceInfo {
  pid: number;
  /** Semantic version, without `v`. */
  version: string;
  nodeName: string;
  rootDir: string;
  /** `run-once` has no servers, and ends soon. */
  mode: "supervise" | "run-once";
  /** URL of the read-only port, as this machine reaches it; undefined while it does not answer. */
  readOnlyUrl: string | undefined;
  /** As configured; 0 is off. */
  readOnlyPort: number;
  /** A Unix socket that answers as that port does, for the user of the process alone; undefined while there is none. */
  socketPath: string | undefined;
  /** e.g. `unix:///var/run/docker.sock`. */
  dockerEndpoint: string;
  /** Its addresses are not open yet. */
  isStarting?: true;
  /** Its static pod paths, absolute. */
  manifestPaths?: readonly string[];
  /** Where the page answers; absent while it does not. */
  pageUrl?: string | undefined;
}

export interface RootLock {
  /** Replaces what other processes read of this one. */
  publish(info: InstanceInfo): void;
  release(): void;
}

const LOCK_FILE = "kubelet-ts.lock";
export const COMMAND_SOCKET = "kubelet-ts.sock";
const MAX_INFO_BYTES = 16_384;
const MAX_TABLE_BYTES = 64 * 1024 * 1024;

/**
 * Makes sure that only one process uses a root directory, by an flock on `<root-dir>/kubelet-ts.lock`, or on the
 * directory where that is read-only and has no such file.
 * @returns undefined when another process has it
 * @throws Error when the file cannot be opened, or belongs to another user
 */
export async function lockRootDir(rootDir: string): Promise<RootLock | undefined> {
  const path = join(rootDir, LOCK_FILE);
  const { descriptor, isWritable } = openLockFile(path, rootDir);
  let isLocked = false;
  try {
    const { uid } = fstatSync(descriptor);
    if (isWritable && uid !== process.geteuid?.()) {
      throw new Error(`"${path}" belongs to user ${uid}: remove it, or use another --root-dir`);
    }
    isLocked = await tryFlock(descriptor);
  } finally {
    if (!isLocked) closeSync(descriptor);
  }
  if (!isLocked) return undefined;
  const write = (text: string) => {
    if (!isWritable) return;
    try {
      ftruncateSync(descriptor, 0);
      writeSync(descriptor, text, 0);
    } catch {
      // A full disk: commands find no kubelet, pods are not affected.
    }
  };
  return {
    publish: (info) => write(`${JSON.stringify({ ...info, startTime: readStartTime(info.pid) })}\n`),
    release: () => {
      write("");
      closeSync(descriptor);
    },
  };
}

function openLockFile(path: string, rootDir: string): { descriptor: number; isWritable: boolean } {
  const { O_RDWR, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_DIRECTORY } = constants;
  try {
    return { descriptor: openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600), isWritable: true };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EROFS") throw error;
  }
  // The disk may have become read-only while another process holds the lock.
  const held = unlessCode(["ENOENT"], () => openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  return { descriptor: held ?? openSync(rootDir, O_RDONLY | O_DIRECTORY), isWritable: false };
}

/** The process that uses a root directory; undefined when none does; "unreadable" when this user may not know. */
export function readInstance(rootDir: string): InstanceInfo | "unreadable" | undefined {
  let text: string | undefined;
  try {
    text = readTextIfExists(join(rootDir, LOCK_FILE), MAX_INFO_BYTES);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EACCES" ? "unreadable" : undefined;
  }
  const found = parseInstance(text ?? "");
  // A process that was killed leaves its file.
  return found && readStartTime(found.info.pid) === found.startTime ? found.info : undefined;
}

/** Root directories of kubelets that belong to this user or root, by their sockets in `/proc/net/unix`. */
export function listInstances(unixSockets = readBoundedText("/proc/net/unix", MAX_TABLE_BYTES)): string[] {
  const sockets = unixSockets.matchAll(/ (\/.+)$/gm);
  const paths = Array.from(sockets, ([, path]) => path!).filter((path) => path.endsWith(`/${COMMAND_SOCKET}`));
  return [...new Set(paths.map(dirname))].filter(isTrusted);
}

/** Whether only this user and root can replace the directory: another user must not pose as a kubelet. */
export function isTrusted(directory: string): boolean {
  const trusted = new Set([0, process.geteuid?.() ?? 0]);
  try {
    for (let path = directory; ; path = dirname(path)) {
      const stats = lstatSync(path);
      const isSticky = (stats.mode & 0o1000) !== 0;
      const isShared = (stats.mode & 0o022) !== 0 && !(isSticky && path !== directory);
      if (!stats.isDirectory() || !trusted.has(stats.uid) || isShared) return false;
      if (path === "/") return true;
    }
  } catch {
    return false;
  }
}

/**
 * Clock ticks since boot; with the pid it identifies a process. undefined for a process that has ended, also while its
 * parent has not asked for its exit code.
 */
function readStartTime(pid: number): number | undefined {
  const stat = readTextIfExists(`/proc/${pid}/stat`, 4096);
  // The name, in parentheses, may hold anything.
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields === undefined || fields[0] === "Z" ? undefined : Number(fields[19]);
}

function parseInstance(text: string): { info: InstanceInfo; startTime: number | undefined } | undefined {
  try {
    const { startTime, ...info } = JSON.parse(text) as Partial<InstanceInfo> & { startTime?: number };
    const { pid, version, nodeName, rootDir, mode, readOnlyUrl, readOnlyPort, dockerEndpoint, socketPath } = info;
    if (typeof pid !== "number" || typeof readOnlyPort !== "number") return undefined;
    const texts = [version, nodeName, rootDir, dockerEndpoint, readOnlyUrl ?? "", socketPath ?? ""];
    if (!texts.every((value) => typeof value === "string")) return undefined;
    if (mode !== "supervise" && mode !== "run-once") return undefined;
    return { info: info as InstanceInfo, startTime };
  } catch {
    return undefined;
  }
}

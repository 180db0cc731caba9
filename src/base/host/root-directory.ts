import * as fs from "node:fs";
import { dirname, join } from "node:path";
import * as v from "valibot";
import { readBoundedText, readTextIfExists } from "../files/whole-file.ts";
import { unlessCode, unlessFailed } from "../text/error-message.ts";
import { tryFlock } from "./flock.ts";
import { findSocketHolder } from "./port-holder.ts";

/** Another process works on a root directory, it is another user's, or it cannot be used at all. */
export class RootDirectoryError extends Error {}

/**
 * Creates the root directory, and checks that it can be used; read-only is accepted: pods keep running.
 * @returns a warning, with its fix
 * @throws RootDirectoryError
 */
export function prepareRootDirectory(path: string): string | undefined {
  try {
    fs.mkdirSync(path, { recursive: true, mode: 0o700 });
    fs.accessSync(path, fs.constants.W_OK | fs.constants.X_OK);
    return undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EROFS" && mayAccess(path, fs.constants.R_OK | fs.constants.X_OK)) {
      return `The root directory "${path}" is on a read-only file system: pods keep running, new ones cannot start and nothing is kept. Mount it writable, or set another directory with --root-dir`;
    }
    throw unusable(`The root directory "${path}"`, error);
  }
}

/** Whether we may use a path in these ways: `constants.R_OK` and the like. */
export const mayAccess = (path: string, mode: number): boolean =>
  unlessFailed(() => {
    fs.accessSync(path, mode);
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
function unusable(subject: string, error: unknown): RootDirectoryError {
  const { code = "", message } = error as NodeJS.ErrnoException;
  const [problem, remedy] = UNUSABLE[code] ?? [message];
  const fix = `${remedy ? `${remedy}, or set` : "Set"} another directory with --root-dir`;
  return new RootDirectoryError(`${subject} cannot be used: ${problem}. ${fix}`, { cause: error });
}

/** The socket of the Kubernetes API of the kubelet on a root directory. */
export const apiSocketOf = (rootDir: string): string => join(rootDir, "api.sock");

const LockFileSchema = v.object({
  pid: v.number(),
  /** Semantic version, without `v`. */
  version: v.string(),
  nodeName: v.string(),
  rootDir: v.string(),
  /** `run-once` has no servers, and ends soon. */
  mode: v.picklist(["supervise", "run-once"]),
  /** URL of the read-only port, as this machine reaches it; undefined while it does not answer. */
  readOnlyUrl: v.optional(v.string()),
  /** As configured; 0 is off. */
  readOnlyPort: v.number(),
  /** A Unix socket that answers as that port does, for the user of the process alone; undefined while there is none. */
  socketPath: v.optional(v.string()),
  /** e.g. `unix:///var/run/docker.sock`. */
  dockerEndpoint: v.string(),
  /** No address is open yet. */
  isStarting: v.optional(v.literal(true)),
  /** Static pod paths, absolute. */
  manifestPaths: v.optional(v.pipe(v.array(v.string()), v.readonly())),
  /** Address of the page; absent while it does not. */
  pageUrl: v.optional(v.string()),
  /** Start of the process. Unit: clock ticks since boot. */
  startTime: v.optional(v.number()),
});

/** A process that uses a root directory, as its lock file describes it. No secrets. */
export type InstanceInfo = Omit<v.InferOutput<typeof LockFileSchema>, "startTime"> & {
  /** It answers nothing: a signal has stopped it, or it hangs. */
  isSilent?: true;
};

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
 * @throws RootDirectoryError when it replaced one that is in use, or belongs to another user; Error when it cannot be opened
 */
export async function lockRootDir(rootDir: string): Promise<RootLock | undefined> {
  const path = join(rootDir, LOCK_FILE);
  const { descriptor, isWritable } = openLockFile(path, rootDir);
  let isLocked = false;
  try {
    const { uid } = fs.fstatSync(descriptor);
    if (isWritable && uid !== process.geteuid?.()) {
      throw new RootDirectoryError(`"${path}" belongs to user ${uid}: remove it, or use another --root-dir`);
    }
    const isFree = await tryFlock(descriptor);
    const inUse = isFree ? describeRemovedRoot(rootDir) : undefined;
    if (inUse !== undefined) throw new RootDirectoryError(inUse);
    isLocked = isFree;
  } finally {
    if (!isLocked) fs.closeSync(descriptor);
  }
  if (!isLocked) return undefined;
  const write = (text: string) => {
    if (!isWritable) return;
    try {
      // In place, and never empty: the block that the file has serves on a full disk too.
      fs.ftruncateSync(descriptor, fs.writeSync(descriptor, text, 0));
    } catch {
      // A full disk: commands cannot ask this kubelet, pods are not affected.
    }
  };
  return {
    publish: (info) => write(`${JSON.stringify({ ...info, startTime: readProcess(info.pid)?.startTime })}\n`),
    release: () => {
      write("\n");
      fs.closeSync(descriptor);
    },
  };
}

function openLockFile(path: string, rootDir: string): { descriptor: number; isWritable: boolean } {
  const { O_RDWR, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_DIRECTORY } = fs.constants;
  try {
    return { descriptor: fs.openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600), isWritable: true };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EROFS") throw unusable(`"${path}"`, error);
  }
  // The disk may have become read-only while another process holds the lock.
  const held = unlessCode(["ENOENT"], () => fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  return { descriptor: held ?? fs.openSync(rootDir, O_RDONLY | O_DIRECTORY), isWritable: false };
}

/** The process that uses a root directory; undefined when none does; "unreadable" when this user may not know. */
export function readInstance(rootDir: string): InstanceInfo | "unreadable" | undefined {
  let text: string | undefined;
  try {
    text = readTextIfExists(join(rootDir, LOCK_FILE), MAX_INFO_BYTES);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EACCES" ? "unreadable" : undefined;
  }
  const { output, success } = v.safeParse(v.pipe(v.string(), v.parseJson(), LockFileSchema), text);
  if (!success) return undefined;
  const { startTime, ...info } = output;
  const found = readProcess(info.pid);
  // A process that was killed leaves its file.
  if (found?.startTime !== startTime) return undefined;
  return { ...info, ...(found?.isStopped && { isSilent: true }) };
}

/** Root directories of kubelets that belong to this user or root, by their sockets in `/proc/net/unix`. */
export const listInstances = (unixSockets?: string): string[] =>
  [...commandSockets(unixSockets).keys()].filter(isTrusted);

/** The inodes of the sockets on which kubelets answer commands, by root directory, also of one that was removed. */
const commandSockets = (table = readBoundedText("/proc/net/unix", MAX_TABLE_BYTES)): Map<string, string> =>
  new Map(Array.from(table.matchAll(COMMAND_SOCKETS), ([, inode, rootDir]) => [rootDir!, inode!]));

const COMMAND_SOCKETS = new RegExp(` (\\d+) (/.+)/${COMMAND_SOCKET}$`, "gm");

/** Why a root directory is in use that names no process: its disk took no text, or it was removed under one of this user. */
export function describeNamelessHolder(rootDir: string): string | undefined {
  const { dev, ino } = fs.lstatSync(join(rootDir, LOCK_FILE), { throwIfNoEntry: false }) ?? {};
  const numbers = [(dev! >> 8) & 0xfff, (dev! & 0xff) | ((dev! >> 12) & 0xfff00)];
  const device = numbers.map((number) => number.toString(16).padStart(2, "0")).join(":");
  const lock = readBoundedText("/proc/locks", MAX_TABLE_BYTES).match(` FLOCK .* (\\d+) ${device}:${ino} `);
  if (!lock) return describeRemovedRoot(rootDir);
  return `a kubelet-ts (pid ${lock[1]}) uses the root directory "${rootDir}", but its ${LOCK_FILE} is empty: the disk was full or read-only when it started. Free some space, and start it again; its pods keep running`;
}

function describeRemovedRoot(rootDir: string): string | undefined {
  const inode = commandSockets().get(rootDir);
  const holder = inode && findSocketHolder([inode]);
  // Another user may give a socket any name, in a namespace of his own.
  if (!holder || holder.user !== process.geteuid?.()) return undefined;
  return `the root directory "${rootDir}" was removed while a kubelet-ts (pid ${holder.pid}) uses it: end that one with "kill ${holder.pid}", and start it again; its pods keep running`;
}

/** Whether only this user and root can replace the directory: another user must not pose as a kubelet. */
export function isTrusted(directory: string): boolean {
  const trusted = new Set([0, process.geteuid?.() ?? 0]);
  try {
    for (let path = directory; ; path = dirname(path)) {
      const stats = fs.lstatSync(path);
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
 * Clock ticks from boot to its start, which with the pid identify a process; undefined for one that has ended, also while
 * its parent has not asked for its exit code.
 */
function readProcess(pid: number): { startTime: number; isStopped: boolean } | undefined {
  const stat = readTextIfExists(`/proc/${pid}/stat`, 4096);
  // The name, in parentheses, may hold anything.
  const [state, ...fields] = stat?.slice(stat.lastIndexOf(")") + 2).split(" ") ?? [];
  return stat === undefined || state === "Z" ? undefined : { startTime: Number(fields[18]), isStopped: state === "T" };
}

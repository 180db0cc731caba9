import * as fs from "node:fs";
import { dirname, join } from "node:path";
import type { EmptyDirVolumeSource, HostAlias, HostPathVolumeSource, Pod, PodSpec } from "../../base/api/pod.ts";
import type { Threaded } from "../../base/concurrency/worker-pool.ts";
import { descriptorPath, openBeneath } from "../../base/files/beneath.ts";
import { removeTree } from "../../base/files/remove-tree.ts";
import {
  openFile,
  readBoundedText,
  readDescriptor,
  readTextIfExists,
  replaceFile,
} from "../../base/files/whole-file.ts";
import { messageOf, unlessCode, unlessFailed } from "../../base/text/error-message.ts";
import { ENV_FILE_LIMIT_BYTES } from "../../plan/environment.ts";
import { formatHostNetworkHosts, formatManagedHosts, type HostsFileNames } from "../../plan/pod-dns.ts";
import { bindSubPath, makeMountPoint, resolveOwnSubPath } from "./mount-points.ts";
import { Mounter } from "./mounter.ts";
import {
  applyEmptyDirOptions,
  type FileVolumeContent,
  type FileVolumePaths,
  type ObjectData,
  prepareEmptyDir,
  writeFileVolume,
  writeState,
} from "./own-volumes.ts";
import { applyFsGroup, makeDirectory, PodDirectories, type VolumePaths } from "./pod-directories.ts";

const mounter = new Mounter();

/**
 * Work on files of pods, on the host's disks. Arguments and results are plain data: the kubelet's own thread runs none of
 * it, because a file system may not answer, or take long.
 */
export const HOST_FILE_TASKS = {
  prepareHostPath,
  /** undefined for a path that is missing. */
  isDirectory: (path: string): boolean | undefined => fs.statSync(path, { throwIfNoEntry: false })?.isDirectory(),
  bindSubPath: (volumePath: string, subPath: string, target: string) =>
    bindSubPath(volumePath, subPath, target, mounter),
  resolveOwnSubPath,
  makeMountPoint,
  applyFsGroup,
  removeTrees(paths: readonly string[]): void {
    for (const path of paths) removeTree(path);
  },
  makePodDirectories: (rootDir: string, uid: string) => new PodDirectories(rootDir, uid).create(),
  /** Makes a directory and those above it, mode 0750. */
  makeDirectory: (path: string) => void fs.mkdirSync(path, { recursive: true, mode: 0o750 }),
  /** Names in each directory; none for one that is missing. */
  listAll: (directories: readonly string[]): string[][] =>
    directories.map((directory) => unlessCode(["ENOENT", "ENOTDIR"], () => fs.readdirSync(directory)) ?? []),
  prepareEmptyDir: (
    source: EmptyDirVolumeSource,
    pod: Pod,
    paths: VolumePaths,
    wanted: { flags: readonly string[]; state: string },
    canMount: boolean,
  ) => prepareEmptyDir(source, pod, paths, wanted, canMount ? mounter : undefined),
  applyEmptyDirOptions,
  writeVolumeState: writeState,
  writeFileVolume: (paths: FileVolumePaths, content: FileVolumeContent, canMount: boolean, ...data: ObjectData[]) =>
    writeFileVolume(paths, content, canMount ? mounter : undefined, data),
  readImageState,
  writeImageState,
  prepareExtraction,
  commitExtraction,
  readEnvFile,
  writeHostsFile,
  writeHostsFiles,
  makeTerminationLog,
  readTerminationLog,
  /** A file that is missing is success. */
  removeFile: (path: string) => fs.rmSync(path, { force: true }),
  overwriteFile: (path: string, text: string) => fs.writeFileSync(path, text),
  /** Text of a file of the administrator. @throws Error for one that is larger than `maxBytes` */
  readText: (path: string, maxBytes: number) => readBoundedText(path, maxBytes),
  /** As `readText`; undefined when there is no such file. */
  readTextIfExists: (path: string, maxBytes: number) => readTextIfExists(path, maxBytes),
};

/** The tasks of {@link HOST_FILE_TASKS}, run by other threads. Each call rejects at a deadline when the disk does not answer. */
export type HostFiles = Threaded<typeof HOST_FILE_TASKS>;

/** Text of a file in a volume, without leaving the volume; undefined when there is none. @throws Error for users */
function readEnvFile(directory: string, path: string): string | undefined {
  using held = unlessCode(["ENOENT"], () => openBeneath(directory, path));
  if (!held) return undefined;
  if (!held.stats.isFile()) throw new Error("not a regular file");
  if (held.stats.size > ENV_FILE_LIMIT_BYTES) throw new Error(`larger than ${ENV_FILE_LIMIT_BYTES} bytes`);
  return readBoundedText(descriptorPath(held.descriptor), ENV_FILE_LIMIT_BYTES);
}

/**
 * Checks, and for the `…OrCreate` types makes, the path of a hostPath volume. Without a type a missing path becomes a
 * directory, which Docker would otherwise do when the container starts.
 * @returns why the path does not match the type, in upstream's words, or undefined.
 */
export function prepareHostPath({ path, type }: HostPathVolumeSource): string | undefined {
  if (!path.startsWith("/")) return `hostPath must be absolute: ${path}`;
  const mustBe = (is: boolean | undefined, what: string) =>
    is ? undefined : `hostPath type check failed: ${path} is not a ${what}`;
  let stats: fs.Stats | undefined;
  try {
    stats = fs.statSync(path, { throwIfNoEntry: false });
    if (!stats && (type === "" || type === "DirectoryOrCreate")) {
      fs.mkdirSync(path, { recursive: true, mode: 0o755 });
      return undefined;
    }
    if (!stats && type === "FileOrCreate") {
      fs.closeSync(fs.openSync(path, "a", 0o644));
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

/** The image that was unpacked, or is to be mounted. */
interface ImageVolumeState {
  reference: string;
  imageId: string;
}

function writeImageState({ stateDirectory }: VolumePaths, state: ImageVolumeState): void {
  replaceFile(join(stateDirectory, "image"), JSON.stringify(state), { durable: false });
}

/** undefined for a volume that has not been set up, or whose state is torn: then it is set up again. */
function readImageState(paths: VolumePaths): ImageVolumeState | undefined {
  return unlessFailed(() => JSON.parse(readBoundedText(join(paths.stateDirectory, "image"), MAX_IMAGE_STATE_BYTES)));
}

const MAX_IMAGE_STATE_BYTES = 64 * 1024;

/** @returns an empty directory for the files of an image */
function prepareExtraction(directory: string): string {
  const fresh = `${directory}.new`;
  fs.rmSync(fresh, { recursive: true, force: true });
  makeDirectory(fresh, 0o755);
  return fresh;
}

/** Puts complete files in the place of earlier ones. */
function commitExtraction(fresh: string, directory: string): void {
  // Docker adds this file to every container; it is not part of the image.
  fs.rmSync(join(fresh, ".dockerenv"), { force: true });
  fs.rmSync(directory, { recursive: true, force: true });
  fs.renameSync(fresh, directory);
}

/** All that counts: a container may write any amount. Source: the kubelet. */
const LIMIT_BYTES = 4096;
/** Any user of the container may write it. */
const MODE = 0o666;
/** A container may put a link or a FIFO in its paths. */
const READ = fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK;

/** Creates the empty termination log of one run of a container. @throws the system's error */
function makeTerminationLog(path: string): void {
  fs.mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
  fs.writeFileSync(path, "");
  fs.chmodSync(path, MODE);
}

/** The end of a termination log; undefined when there is no regular file. */
export function readTerminationLog(path: string): string | undefined {
  using file = unlessFailed(() => openFile(path, READ));
  if (!file) return undefined;
  const stats = fs.fstatSync(file.descriptor);
  if (!stats.isFile()) return undefined;
  const bytes = Buffer.alloc(Math.min(stats.size, LIMIT_BYTES));
  const length = fs.readSync(file.descriptor, bytes, 0, bytes.length, Math.max(0, stats.size - LIMIT_BYTES));
  return bytes.toString("utf8", 0, length);
}

/** Longest hosts file of the machine that is copied. Unit: bytes. */
const MAX_HOSTS_BYTES = 1024 * 1024;

export interface HostsFileRequest {
  /** The fields of the pod that count: each request is copied to another thread. */
  spec: Pick<PodSpec, "hostNetwork" | "hostAliases">;
  podIps: readonly string[];
  names: HostsFileNames;
  services?: readonly HostAlias[];
  /** The machine's own file, copied for pods with host networking. */
  nodeHostsPath?: string;
}

/**
 * Writes the pod's /etc/hosts, to be bound into its containers once its addresses are known.
 * @param path `<pod>/etc-hosts`
 * @throws Error that names the file that cannot be written
 */
export function writeHostsFile(
  path: string,
  { spec, podIps, names, services = [], nodeHostsPath = "/etc/hosts" }: HostsFileRequest,
): void {
  const { hostNetwork, hostAliases } = spec;
  const text = hostNetwork
    ? formatHostNetworkHosts(readBoundedText(nodeHostsPath, MAX_HOSTS_BYTES), hostAliases, services)
    : formatManagedHosts(podIps, names, hostAliases, services);
  try {
    writeInPlace(path, text);
  } catch (cause) {
    // A write to an open descriptor fails without a path, e.g. ENOSPC.
    throw new Error(`Cannot write the pod's hosts file "${path}": ${messageOf(cause)}`, { cause });
  }
}

/** As {@link writeHostsFile}, for several pods. @returns what is wrong with those that cannot be written */
function writeHostsFiles(files: readonly Parameters<typeof writeHostsFile>[]): string[] {
  return files.flatMap((file) => {
    try {
      writeHostsFile(...file);
      return [];
    } catch (error) {
      return [(error as Error).message];
    }
  });
}

/**
 * A new file appears complete. An existing one keeps its inode, since containers hold it, and is left alone when it is
 * right. Containers may write to it: anything but a short regular file, or a link, is replaced.
 */
function writeInPlace(path: string, text: string): void {
  const flags = fs.constants.O_RDWR | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK;
  using file = unlessCode(["ENOENT", "ELOOP"], () => openFile(path, flags));
  if (file && overwrite(file.descriptor, text)) return;
  // Not replaceFile, which makes the directory: that of a pod that is gone stays gone.
  const fresh = `${path}.new`;
  fs.rmSync(fresh, { recursive: true, force: true });
  fs.writeFileSync(fresh, text, { flag: "wx" });
  fs.chmodSync(fresh, 0o644);
  fs.renameSync(fresh, path);
}

/** @returns false when the descriptor is not a regular file. */
function overwrite(descriptor: number, text: string): boolean {
  const stats = fs.fstatSync(descriptor);
  if (!stats.isFile()) return false;
  const wanted = Buffer.from(text);
  if (stats.size === wanted.length && wanted.equals(readDescriptor(descriptor, wanted.length))) return true;
  // A program that reads it now finds no empty file.
  fs.writeSync(descriptor, wanted, 0, wanted.length, 0);
  fs.ftruncateSync(descriptor, wanted.length);
  return true;
}

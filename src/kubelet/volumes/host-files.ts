import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import type { EmptyDirVolumeSource, Pod } from "../../base/api/pod.ts";
import type { Threaded } from "../../base/concurrency/worker-pool.ts";
import { descriptorPath, openBeneath } from "../../base/files/beneath.ts";
import { readBoundedText, readTextIfExists } from "../../base/files/bounded-read.ts";
import { removeTree } from "../../base/files/remove-tree.ts";
import { ENV_FILE_LIMIT_BYTES } from "../../plan/env-file.ts";
import { type EmptyDirPlace, prepareEmptyDir, writeState } from "./empty-dir.ts";
import { type FileVolumeContent, type FileVolumePlace, writeFileVolume } from "./file-volume.ts";
import { prepareHostPath } from "./host-path.ts";
import { commitExtraction, prepareExtraction, readImageState, writeImageState } from "./image-volume.ts";
import { Mounter } from "./mounter.ts";
import { makeMountPoint } from "./nested-mounts.ts";
import { writeHostsFile } from "./network-files.ts";
import { applyFsGroup } from "./ownership.ts";
import { PodDirectories } from "./pod-directories.ts";
import { bindSubPath, resolveOwnSubPath } from "./sub-path.ts";
import { makeTerminationLog, readTerminationLog } from "./termination-log.ts";

/**
 * Work on files of pods, on the host's disks. Arguments and results are plain data: the kubelet's own thread runs none of
 * it, because a file system may not answer, or take long.
 */
export const hostFileTasks = (mounter = new Mounter()) => ({
  prepareHostPath,
  /** undefined for a path that is missing. */
  isDirectory: (path: string): boolean | undefined => statSync(path, { throwIfNoEntry: false })?.isDirectory(),
  bindSubPath: (volumePath: string, subPath: string, target: string) =>
    bindSubPath(volumePath, subPath, target, mounter),
  resolveOwnSubPath,
  makeMountPoint,
  applyFsGroup,
  removeTree: (path: string) => removeTree(path),
  makePodDirectories: (rootDir: string, uid: string) => new PodDirectories(rootDir, uid).create(),
  /** Makes a directory and those above it, mode 0750. */
  makeDirectory: (path: string) => void mkdirSync(path, { recursive: true, mode: 0o750 }),
  /** Names in each directory; none for one that is missing. */
  listAll: (directories: readonly string[]): string[][] => directories.map(listNames),
  prepareEmptyDir: (source: EmptyDirVolumeSource, pod: Pod, place: EmptyDirPlace, canMount: boolean) =>
    prepareEmptyDir(source, pod, place, canMount ? mounter : undefined),
  writeVolumeState: writeState,
  writeFileVolume: (place: FileVolumePlace, content: FileVolumeContent, canMount: boolean) =>
    writeFileVolume(place, content, canMount ? mounter : undefined),
  readImageState,
  writeImageState,
  prepareExtraction,
  commitExtraction,
  readEnvFile,
  writeHostsFile,
  makeTerminationLog,
  readTerminationLog,
  /** A file that is missing is success. */
  removeFile: (path: string) => rmSync(path, { force: true }),
  /** Writes over a file of the engine. */
  overwriteFile: (path: string, text: string) => writeFileSync(path, text),
  /** Text of a file of the administrator. @throws Error for one that is larger than `maxBytes` */
  readText: (path: string, maxBytes: number) => readBoundedText(path, maxBytes),
  /** As `readText`; undefined when there is no such file. */
  readTextIfExists: (path: string, maxBytes: number) => readTextIfExists(path, maxBytes),
});

/** The tasks of {@link hostFileTasks}, run by other threads. Each call rejects at a deadline when the disk does not answer. */
export type HostFiles = Threaded<ReturnType<typeof hostFileTasks>>;

/** In this thread, without a deadline: for tests. */
export function localHostFiles(mounter?: Mounter): HostFiles {
  const tasks = Object.entries(hostFileTasks(mounter)) as [string, (...args: unknown[]) => unknown][];
  return Object.fromEntries(tasks.map(([name, task]) => [name, async (...args: unknown[]) => task(...args)])) as never;
}

function listNames(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw error;
  }
}

/** Text of a file in a volume, without leaving the volume; undefined when there is none. @throws Error for users */
function readEnvFile(directory: string, path: string): string | undefined {
  try {
    const held = openBeneath(directory, path);
    try {
      if (!held.stats.isFile()) throw new Error("not a regular file");
      if (held.stats.size > ENV_FILE_LIMIT_BYTES) throw new Error(`larger than ${ENV_FILE_LIMIT_BYTES} bytes`);
      return readBoundedText(descriptorPath(held.descriptor), ENV_FILE_LIMIT_BYTES);
    } finally {
      held.close();
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

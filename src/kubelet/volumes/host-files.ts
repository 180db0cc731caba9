import { mkdirSync, readdirSync, statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import type { EmptyDirVolumeSource, HostPathVolumeSource, Pod } from "../../base/api/pod.ts";
import { descriptorPath, openBeneath } from "../../base/files/beneath.ts";
import { readBoundedText } from "../../base/files/bounded-read.ts";
import { removeTree } from "../../base/files/remove-tree.ts";
import { ENV_FILE_LIMIT_BYTES } from "../../plan/env-file.ts";
import { type EmptyDirPlace, prepareEmptyDir, writeState } from "./empty-dir.ts";
import { type FileVolumeContent, type FileVolumePlace, writeFileVolume } from "./file-volume.ts";
import { prepareHostPath } from "./host-path.ts";
import {
  commitExtraction,
  type ImageVolumePlace,
  type ImageVolumeState,
  prepareExtraction,
  readImageState,
  writeImageState,
} from "./image-volume.ts";
import { Mounter } from "./mounter.ts";
import { makeMountPoint } from "./nested-mounts.ts";
import { applyFsGroup, type FsGroupOptions } from "./ownership.ts";
import { PodDirectories } from "./pod-directories.ts";
import { bindSubPath, resolveOwnSubPath } from "./sub-path.ts";

/**
 * Work on paths of pods, on the host's disks: it may wait for a file system that does not answer, or take long, so the
 * kubelet's thread does not do it. Each call rejects at a deadline. Arguments and results are plain data.
 */
export interface HostFiles {
  /** As {@link prepareHostPath}. */
  prepareHostPath(source: HostPathVolumeSource): Promise<string | undefined>;
  /** undefined for a path that is missing. */
  isDirectory(path: string): Promise<boolean | undefined>;
  /** As {@link bindSubPath}. */
  bindSubPath(volumePath: string, subPath: string, target: string): Promise<void>;
  /** As {@link resolveOwnSubPath}. */
  resolveOwnSubPath(volumePath: string, subPath: string): Promise<string>;
  /** As {@link makeMountPoint}. */
  makeMountPoint(directory: string, relative: string, isDirectory: boolean): Promise<void>;
  /** As {@link applyFsGroup}. */
  applyFsGroup(directory: string, options: FsGroupOptions): Promise<void>;
  /** As {@link removeTree}. */
  removeTree(path: string): Promise<void>;
  /** As `PodDirectories.create`. */
  makePodDirectories(rootDir: string, uid: string): Promise<void>;
  /** Makes a directory and those above it, mode 0750. */
  makeDirectory(path: string): Promise<void>;
  /** Names in each directory; none for one that is missing. */
  listAll(directories: readonly string[]): Promise<string[][]>;
  /** As {@link prepareEmptyDir}. */
  prepareEmptyDir(source: EmptyDirVolumeSource, pod: Pod, place: EmptyDirPlace, canMount: boolean): Promise<boolean>;
  /** As {@link writeState}. */
  writeVolumeState(stateDirectory: string, state: string): Promise<void>;
  /** As {@link writeFileVolume}. */
  writeFileVolume(place: FileVolumePlace, content: FileVolumeContent, canMount: boolean): Promise<boolean>;
  /** As {@link readImageState}. */
  readImageState(place: ImageVolumePlace): Promise<ImageVolumeState | undefined>;
  /** As {@link writeImageState}. */
  writeImageState(place: ImageVolumePlace, state: ImageVolumeState): Promise<void>;
  /** As {@link prepareExtraction}. */
  prepareExtraction(directory: string): Promise<string>;
  /** As {@link commitExtraction}. */
  commitExtraction(fresh: string, directory: string): Promise<void>;
  /** Text of a file in a volume, without leaving the volume; undefined when there is none. @throws Error for users */
  readEnvFile(directory: string, path: string): Promise<string | undefined>;
}

/** In this thread, without a deadline; for other threads and for tests. */
export class LocalHostFiles implements HostFiles {
  readonly #mounter: Mounter;

  constructor(mounter = new Mounter()) {
    this.#mounter = mounter;
  }

  async prepareHostPath(source: HostPathVolumeSource): Promise<string | undefined> {
    return prepareHostPath(source);
  }

  async isDirectory(path: string): Promise<boolean | undefined> {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory();
  }

  async bindSubPath(volumePath: string, subPath: string, target: string): Promise<void> {
    await bindSubPath(volumePath, subPath, target, this.#mounter);
  }

  async resolveOwnSubPath(volumePath: string, subPath: string): Promise<string> {
    return resolveOwnSubPath(volumePath, subPath);
  }

  async makeMountPoint(directory: string, relative: string, isDirectory: boolean): Promise<void> {
    makeMountPoint(directory, relative, isDirectory);
  }

  async applyFsGroup(directory: string, options: FsGroupOptions): Promise<void> {
    applyFsGroup(directory, options);
  }

  async removeTree(path: string): Promise<void> {
    removeTree(path);
  }

  async makePodDirectories(rootDir: string, uid: string): Promise<void> {
    new PodDirectories(rootDir, uid).create();
  }

  async makeDirectory(path: string): Promise<void> {
    mkdirSync(path, { recursive: true, mode: 0o750 });
  }

  async listAll(directories: readonly string[]): Promise<string[][]> {
    return directories.map((directory) => {
      try {
        return readdirSync(directory);
      } catch (error) {
        return noNames(error);
      }
    });
  }

  async prepareEmptyDir(
    source: EmptyDirVolumeSource,
    pod: Pod,
    place: EmptyDirPlace,
    canMount: boolean,
  ): Promise<boolean> {
    return await prepareEmptyDir(source, pod, place, canMount ? this.#mounter : undefined);
  }

  async writeVolumeState(stateDirectory: string, state: string): Promise<void> {
    writeState(stateDirectory, state);
  }

  async writeFileVolume(place: FileVolumePlace, content: FileVolumeContent, canMount: boolean): Promise<boolean> {
    return await writeFileVolume(place, content, canMount ? this.#mounter : undefined);
  }

  async readImageState(place: ImageVolumePlace): Promise<ImageVolumeState | undefined> {
    return readImageState(place);
  }

  async writeImageState(place: ImageVolumePlace, state: ImageVolumeState): Promise<void> {
    writeImageState(place, state);
  }

  async prepareExtraction(directory: string): Promise<string> {
    return prepareExtraction(directory);
  }

  async commitExtraction(fresh: string, directory: string): Promise<void> {
    commitExtraction(fresh, directory);
  }

  async readEnvFile(directory: string, path: string): Promise<string | undefined> {
    return readEnvFile(directory, path);
  }
}

/** {@link HostFiles.listAll} by the threads of the runtime. */
export async function listAllAsync(directories: readonly string[]): Promise<string[][]> {
  const names: string[][] = [];
  for (const directory of directories) names.push(await readdir(directory).catch(noNames));
  return names;
}

/** A directory that is missing has no names. */
function noNames(error: unknown): string[] {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOENT" || code === "ENOTDIR") return [];
  throw error;
}

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

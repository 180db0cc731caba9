import { statSync } from "node:fs";
import type { HostPathVolumeSource } from "../api/pod.ts";
import { removeTree } from "../files/remove-tree.ts";
import { prepareHostPath } from "./host-path.ts";
import { Mounter } from "./mounter.ts";
import { applyFsGroup, type FsGroupOptions } from "./ownership.ts";
import { bindSubPath } from "./sub-path.ts";

/**
 * Work on paths that pods or mounts influence: it may wait for a file system that does not answer, or take long, so the
 * kubelet's thread does not do it. Each call rejects at a deadline.
 */
export interface HostFiles {
  /** As {@link prepareHostPath}. */
  prepareHostPath(source: HostPathVolumeSource): Promise<string | undefined>;
  /** undefined for a path that is missing. */
  isDirectory(path: string): Promise<boolean | undefined>;
  /** As {@link bindSubPath}. */
  bindSubPath(volumePath: string, subPath: string, target: string): Promise<void>;
  /** As {@link applyFsGroup}. */
  applyFsGroup(directory: string, options: FsGroupOptions): Promise<void>;
  /** As {@link removeTree}. */
  removeTree(path: string): Promise<void>;
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

  async applyFsGroup(directory: string, options: FsGroupOptions): Promise<void> {
    applyFsGroup(directory, options);
  }

  async removeTree(path: string): Promise<void> {
    removeTree(path);
  }
}

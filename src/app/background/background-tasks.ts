import { readManifest } from "../../manifest/read-manifest.ts";
import { readManifests } from "../../sources/manifest-files.ts";
import { LocalHostFiles } from "../../volumes/host-files.ts";

const hostFiles = new LocalHostFiles();

/** Tasks for other threads. Arguments and results are copied between threads, so they are plain data. */
export const BACKGROUND_TASKS = {
  readManifest,
  readManifests,
  prepareHostPath: hostFiles.prepareHostPath.bind(hostFiles),
  isDirectory: hostFiles.isDirectory.bind(hostFiles),
  bindSubPath: hostFiles.bindSubPath.bind(hostFiles),
  applyFsGroup: hostFiles.applyFsGroup.bind(hostFiles),
  removeTree: hostFiles.removeTree.bind(hostFiles),
};

export type BackgroundTasks = typeof BACKGROUND_TASKS;

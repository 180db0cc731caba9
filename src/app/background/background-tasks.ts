import { rmSync, writeFileSync } from "node:fs";
import { readBoundedBytes, readBoundedText } from "../../files/bounded-read.ts";
import { replaceFile } from "../../files/replace-file.ts";
import { makeTerminationLog, readTerminationLog } from "../../kubelet/termination-log.ts";
import { readManifest } from "../../manifest/read-manifest.ts";
import { performLogLinkTask } from "../../runtime/log-link-files.ts";
import { readManifests } from "../../sources/manifest-files.ts";
import { LocalHostFiles } from "../../volumes/host-files.ts";
import { writeHostsFile } from "../../volumes/network-files.ts";

const hostFiles = new LocalHostFiles();

/** Tasks for other threads. Arguments and results are copied between threads, so they are plain data. */
export const BACKGROUND_TASKS = {
  readManifest,
  readManifests,
  replaceFile,
  performLogLinkTask,
  writeHostsFile,
  makeTerminationLog,
  readTerminationLog,
  removeFile: (path: string) => rmSync(path, { force: true }),
  overwriteFile: (path: string, text: string) => writeFileSync(path, text),
  readText: readBoundedText,
  readBytes: readBoundedBytes,
  prepareHostPath: hostFiles.prepareHostPath.bind(hostFiles),
  isDirectory: hostFiles.isDirectory.bind(hostFiles),
  bindSubPath: hostFiles.bindSubPath.bind(hostFiles),
  resolveOwnSubPath: hostFiles.resolveOwnSubPath.bind(hostFiles),
  makeMountPoint: hostFiles.makeMountPoint.bind(hostFiles),
  applyFsGroup: hostFiles.applyFsGroup.bind(hostFiles),
  removeTree: hostFiles.removeTree.bind(hostFiles),
  makePodDirectories: hostFiles.makePodDirectories.bind(hostFiles),
  makeDirectory: hostFiles.makeDirectory.bind(hostFiles),
  listAll: hostFiles.listAll.bind(hostFiles),
  prepareEmptyDir: hostFiles.prepareEmptyDir.bind(hostFiles),
  writeVolumeState: hostFiles.writeVolumeState.bind(hostFiles),
  writeFileVolume: hostFiles.writeFileVolume.bind(hostFiles),
  readImageState: hostFiles.readImageState.bind(hostFiles),
  writeImageState: hostFiles.writeImageState.bind(hostFiles),
  prepareUnpacking: hostFiles.prepareUnpacking.bind(hostFiles),
  keepUnpacked: hostFiles.keepUnpacked.bind(hostFiles),
  readEnvFile: hostFiles.readEnvFile.bind(hostFiles),
};

export type BackgroundTasks = typeof BACKGROUND_TASKS;

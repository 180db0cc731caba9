import { rmSync, writeFileSync } from "node:fs";
import { existsBeneath } from "../../base/files/beneath.ts";
import { readBoundedBytes, readBoundedText, readTextIfExists } from "../../base/files/bounded-read.ts";
import { probeDirectory, replaceFile } from "../../base/files/replace-file.ts";
import { readDirectoryTexts } from "../../base/files/text-files.ts";
import { findLog, readLog } from "../../base/host/log-directory.ts";
import { findPortHolder, findPortHolders } from "../../base/host/port-holder.ts";
import { killExecProcesses } from "../../docker/engine/exec-kill.ts";
import { performLogLinkTask } from "../../docker/log-link-files.ts";
import { makeTerminationLog, readTerminationLog } from "../../kubelet/termination-log.ts";
import { LocalHostFiles } from "../../kubelet/volumes/host-files.ts";
import { writeHostsFile } from "../../kubelet/volumes/network-files.ts";
import type { ReadManifestOptions } from "../../manifest/manifest-result.ts";
import { readManifest } from "../../manifest/read-manifest.ts";
import { listProcesses } from "../../server/page/process-list.ts";
import { readManifests } from "../../sources/manifest-files.ts";
import { readEncryptedManifest } from "../decrypt-manifest.ts";

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
  readTextIfExists,
  readEncryptedManifest: (bytes: Uint8Array, how: ReadManifestOptions, identityFile: string) =>
    readEncryptedManifest(bytes, how, identityFile, readManifest),
  probeDirectory,
  existsBeneath,
  readDirectoryTexts,
  findLog,
  readLog,
  findPortHolder: (port: number) => findPortHolder(port),
  findPortHolders,
  listProcesses: (containers: Parameters<typeof listProcesses>[0]) => listProcesses(containers),
  killExecProcesses,
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
  prepareExtraction: hostFiles.prepareExtraction.bind(hostFiles),
  commitExtraction: hostFiles.commitExtraction.bind(hostFiles),
  readEnvFile: hostFiles.readEnvFile.bind(hostFiles),
};

export type BackgroundTasks = typeof BACKGROUND_TASKS;

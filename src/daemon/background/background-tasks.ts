import { existsBeneath } from "../../base/files/beneath.ts";
import { probeDirectory, readBoundedBytes, readDirectoryTexts, replaceFile } from "../../base/files/whole-file.ts";
import { findLog, readLog } from "../../base/host/log-directory.ts";
import { findPortHolder, findPortHolders } from "../../base/host/port-holder.ts";
import { killExecProcesses } from "../../base/host/process-sample.ts";
import { performLogLinkTask } from "../../kubelet/log-links.ts";
import { HOST_FILE_TASKS } from "../../kubelet/volumes/host-files.ts";
import type { ReadManifestOptions } from "../../manifest/object-reading.ts";
import type { readManifest } from "../../manifest/read-manifest.ts";
import { listProcesses } from "../../server/page/process-list.ts";
import { readManifests } from "../../sources/manifest-files.ts";

/** Loaded where it is used: few threads read a manifest, and its schemas take longer to load than all other tasks. */
const loadReader = () => import("../../manifest/read-manifest.ts");

/** Tasks for other threads. Arguments and results are copied between threads, so they are plain data. */
export const BACKGROUND_TASKS = {
  ...HOST_FILE_TASKS,
  readManifest: async (...args: Parameters<typeof readManifest>) => (await loadReader()).readManifest(...args),
  readManifests,
  replaceFile,
  performLogLinkTask,
  readBytes: readBoundedBytes,
  readEncryptedManifest: async (bytes: Uint8Array, how: ReadManifestOptions, identityFile: string) => {
    const [{ readEncryptedManifest }, reader] = await Promise.all([import("../decrypt-manifest.ts"), loadReader()]);
    return readEncryptedManifest(bytes, how, identityFile, reader.readManifest);
  },
  probeDirectory,
  existsBeneath,
  readDirectoryTexts,
  findLog,
  readLog,
  findPortHolder: (port: number) => findPortHolder(port),
  findPortHolders,
  listProcesses: (containers: Parameters<typeof listProcesses>[0]) => listProcesses(containers),
  killExecProcesses,
};

export type BackgroundTasks = typeof BACKGROUND_TASKS;

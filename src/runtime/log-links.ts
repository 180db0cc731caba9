import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Logger } from "../model/logger.ts";
import { type LoggedPod, toContainerLogLinkName, toContainerLogPath, toPodLogDirName } from "./log-paths.ts";

export interface LogLinksOptions {
  /** `--pod-logs-dir`, usually /var/log/pods; "" makes no links. */
  podLogsDir: string;
  /** Usually /var/log/containers; "" makes none there. */
  containersLogsDir: string;
  /** Where the engine keeps the log of a container; "" when it keeps no file. */
  engineLogPath(containerId: string): string;
  log: Logger;
}

/** A container as far as its links go. */
export interface LoggedContainer {
  id: string;
  name: string;
  restartCount: number;
}

/** Where an engine with json-file logs keeps them; looking would cost an inspect per container. */
export const toEngineLogPath = (dockerRootDir: string, containerId: string) =>
  join(dockerRootDir, "containers", containerId, `${containerId}-json.log`);

const isErrno = (error: unknown, ...codes: string[]) =>
  codes.includes((error as { code?: string } | undefined)?.code ?? "");

/**
 * The symlinks by which log shippers find a container's log (issue 5, item 7):
 * `<podLogsDir>/<ns>_<pod>_<uid>/<container>/<n>.log` → Docker's json file, and
 * `<containersLogsDir>/<pod>_<ns>_<container>-<id>.log` → the first link. Nothing but symlinks and directories that are
 * empty is ever removed, and only what belongs to the pod in question. Every step may be repeated. Nothing is thrown:
 * a container runs as well without its link, so trouble is logged, once of each kind.
 */
export class LogLinks {
  readonly #options: LogLinksOptions;
  readonly #told = new Set<string>();

  constructor(options: LogLinksOptions) {
    this.#options = options;
  }

  /** Links the log of a container that was just created. */
  create(pod: { metadata: LoggedPod }, containerName: string, restartCount: number, containerId: string): void {
    this.#attempt(() => this.#create(pod, containerName, restartCount, containerId));
  }

  /** Removes the links of a container that is removed. */
  removeContainer(container: LoggedContainer, pod: LoggedPod): void {
    this.#attempt(() => this.#removeContainer(container, pod));
  }

  /** Removes everything of a pod that is gone. */
  removePod(pod: LoggedPod): void {
    this.#attempt(() => this.#removePod(pod));
  }

  #attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      const kind = (error as { code?: string }).code ?? (error as Error).message;
      if (this.#told.has(kind)) return;
      this.#told.add(kind);
      this.#options.log.warn("Links to container logs are not complete", { why: (error as Error).message });
    }
  }

  #create(pod: { metadata: LoggedPod }, containerName: string, restartCount: number, containerId: string): void {
    const { podLogsDir, containersLogsDir, engineLogPath } = this.#options;
    const path = toContainerLogPath(podLogsDir, pod.metadata, containerName, restartCount);
    const engineLog = engineLogPath(containerId);
    if (!path || !engineLog) return;
    replaceSymlink(engineLog, path);
    if (containersLogsDir) {
      replaceSymlink(path, join(containersLogsDir, toContainerLogLinkName(pod.metadata, containerName, containerId)));
    }
  }

  #removeContainer(container: LoggedContainer, pod: LoggedPod): void {
    const { podLogsDir, containersLogsDir } = this.#options;
    const path = toContainerLogPath(podLogsDir, pod, container.name, container.restartCount);
    if (containersLogsDir) {
      removeSymlink(join(containersLogsDir, toContainerLogLinkName(pod, container.name, container.id)));
    }
    // A container that was made again with the same number has the link now.
    if (path && readLink(path)?.includes(container.id) !== false) removeSymlink(path);
  }

  #removePod(pod: LoggedPod): void {
    const { podLogsDir, containersLogsDir } = this.#options;
    if (!podLogsDir) return;
    const directory = join(podLogsDir, toPodLogDirName(pod));
    if (containersLogsDir) {
      for (const name of listDirectory(containersLogsDir)) {
        const link = join(containersLogsDir, name);
        if (readLink(link)?.startsWith(`${directory}/`)) removeSymlink(link);
      }
    }
    for (const container of listDirectory(directory)) {
      const containerDirectory = join(directory, container);
      for (const name of listDirectory(containerDirectory)) removeSymlink(join(containerDirectory, name));
      removeEmptyDirectory(containerDirectory);
    }
    removeEmptyDirectory(directory);
  }
}

/** A reader never finds the name missing: the new link takes the place of the old one in one step. */
function replaceSymlink(target: string, path: string): void {
  if (readLink(path) === target) return;
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  try {
    symlinkSync(target, path);
  } catch (error) {
    if (!isErrno(error, "EEXIST")) throw error;
    if (readLink(path) === undefined) throw new Error(`"${path}" is in the way of a log link and is no symlink`);
    const temporary = join(dirname(path), `.${basename(path).slice(0, 200)}.${process.pid}.tmp`);
    removeSymlink(temporary);
    symlinkSync(target, temporary);
    renameSync(temporary, path);
  }
}

/** Target of a symlink; undefined when it is none or nothing. */
function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch (error) {
    if (isErrno(error, "ENOENT", "EINVAL", "ENOTDIR")) return undefined;
    throw error;
  }
}

function removeSymlink(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) unlinkSync(path);
}

function listDirectory(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR")) return [];
    throw error;
  }
}

function removeEmptyDirectory(path: string): void {
  try {
    rmdirSync(path);
  } catch (error) {
    // Somebody keeps a file of their own there.
    if (!isErrno(error, "ENOENT", "ENOTEMPTY", "EEXIST", "ENOTDIR")) throw error;
  }
}

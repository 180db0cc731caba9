import { existsSync, mkdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { type EntryName, HeldDirectory } from "../files/held-directory.ts";
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

const DIRECTORY_MODE = 0o755;

/**
 * The symlinks by which log shippers find a container's log:
 * `<podLogsDir>/<ns>_<pod>_<uid>/<container>/<n>.log` → Docker's json file, and
 * `<containersLogsDir>/<pod>_<ns>_<container>-<id>.log` → the first link. A pod may have a hostPath of these directories:
 * below them no link is followed, and nothing but symlinks and empty directories of the pod is removed. Every step may be
 * repeated. Nothing is thrown: a container runs as well without its links, so each kind of error is logged once.
 */
export class LogLinks {
  readonly #options: LogLinksOptions;
  readonly #loggedErrors = new Set<string>();

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

  /** Removes links to logs that the engine no longer has: what a process left that was killed. */
  sweep(): void {
    this.#attempt(() => this.#sweep());
  }

  #attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      const kind = (error as { code?: string }).code ?? (error as Error).message;
      if (this.#loggedErrors.has(kind)) return;
      this.#loggedErrors.add(kind);
      this.#options.log.warn("Links to container logs are not complete", { error: (error as Error).message });
    }
  }

  #create(pod: { metadata: LoggedPod }, containerName: string, restartCount: number, containerId: string): void {
    const { podLogsDir, containersLogsDir, engineLogPath } = this.#options;
    const path = toContainerLogPath(podLogsDir, pod.metadata, containerName, restartCount);
    const engineLog = engineLogPath(containerId);
    if (!path || !engineLog) return;
    mkdirSync(podLogsDir, { recursive: true, mode: DIRECTORY_MODE });
    using root = HeldDirectory.open(podLogsDir);
    using podDirectory = root.ensureChild(toPodLogDirName(pod.metadata), DIRECTORY_MODE);
    using directory = podDirectory.ensureChild(containerName, DIRECTORY_MODE);
    replaceSymlink(directory, basename(path), engineLog);
    if (!containersLogsDir) return;
    mkdirSync(containersLogsDir, { recursive: true, mode: DIRECTORY_MODE });
    using flat = HeldDirectory.open(containersLogsDir);
    replaceSymlink(flat, toContainerLogLinkName(pod.metadata, containerName, containerId), path);
  }

  #removeContainer(container: LoggedContainer, pod: LoggedPod): void {
    const { podLogsDir, containersLogsDir } = this.#options;
    using flat = openIfThere(containersLogsDir);
    if (flat) removeSymlink(flat, toContainerLogLinkName(pod, container.name, container.id));
    using root = openIfThere(podLogsDir);
    using podDirectory = root?.child(toPodLogDirName(pod));
    using directory = podDirectory?.child(container.name);
    const name = basename(toContainerLogPath(podLogsDir, pod, container.name, container.restartCount));
    // A container that was created again with the same number has the link now.
    if (directory?.readlink(name)?.includes(container.id)) removeSymlink(directory, name);
  }

  #removePod(pod: LoggedPod): void {
    const { podLogsDir, containersLogsDir } = this.#options;
    using root = openIfThere(podLogsDir);
    if (!root) return;
    const podName = toPodLogDirName(pod);
    using flat = openIfThere(containersLogsDir);
    for (const name of flat?.names() ?? []) {
      if (flat?.readlink(name)?.startsWith(`${join(podLogsDir, podName)}/`)) removeSymlink(flat, name);
    }
    this.#removeLinks(root, podName, () => true);
  }

  #sweep(): void {
    const { podLogsDir, containersLogsDir, engineLogPath } = this.#options;
    // Only links into the directory of this engine: another one may keep its logs elsewhere.
    const containers = dirname(dirname(engineLogPath("id")));
    if (!podLogsDir || containers === "." || !existsSync(containers)) return;
    const isDangling = (target: string) => target.startsWith(`${containers}/`) && !existsSync(target);
    using root = openIfThere(podLogsDir);
    for (const name of root?.names() ?? []) this.#removeLinks(root!, name, isDangling);
    using flat = openIfThere(containersLogsDir);
    for (const name of flat?.names() ?? []) {
      const target = flat?.readlink(name);
      if (flat && target?.startsWith(`${podLogsDir}/`) && !existsSync(target)) removeSymlink(flat, name);
    }
  }

  /** Removes matching links of one pod, and the directories that are empty after that. */
  #removeLinks(root: HeldDirectory, podName: EntryName, matches: (target: string) => boolean): void {
    using podDirectory = root.child(podName);
    if (!podDirectory) return;
    for (const container of podDirectory.names()) {
      using directory = podDirectory.child(container);
      for (const name of directory?.names() ?? []) {
        const target = directory?.readlink(name);
        if (target !== undefined && matches(target)) directory?.unlink(name);
      }
      if (directory) podDirectory.rmdir(container);
    }
    root.rmdir(podName);
  }
}

/** A reader never finds the name missing: the new link replaces the old one in one step. */
function replaceSymlink(directory: HeldDirectory, name: string, target: string): void {
  if (directory.readlink(name) === target) return;
  try {
    directory.symlink(target, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    if (directory.readlink(name) === undefined) {
      throw new Error(`"${name}" in "${directory.realPath()}" is in the way of a log link and is no symlink`);
    }
    const temporary = `.${name.slice(0, 200)}.${process.pid}.tmp`;
    removeSymlink(directory, temporary);
    directory.symlink(target, temporary);
    directory.rename(temporary, name);
  }
}

function removeSymlink(directory: HeldDirectory, name: EntryName): void {
  if (directory.readlink(name) !== undefined) directory.unlink(name);
}

/** undefined for a path that is not configured or not there. */
function openIfThere(path: string): HeldDirectory | undefined {
  return path !== "" && existsSync(path) ? HeldDirectory.open(path) : undefined;
}

import { existsSync, mkdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { Turns } from "../base/concurrency/turns.ts";
import { type EntryName, HeldDirectory } from "../base/files/held-directory.ts";
import { type LoggedPod, toContainerLogPath, toPodLogDirName } from "../base/model/log-path.ts";
import type { Logger } from "../base/model/logger.ts";
import { messageOf } from "../base/text/error-message.ts";

interface LogLinksOptions extends LogDirectories {
  /** Where the engine keeps the log of a container; "" when it keeps no file. */
  engineLogPath(containerId: string): string;
  log: Logger;
  /** Default: in this thread. */
  perform?: (directories: LogDirectories, task: LogLinkTask) => void | Promise<void>;
}

/** Changes that may wait for a disk; later ones are dropped. */
const MAX_WAITING = 1_000;

/**
 * The symlinks by which log shippers find a container's log, see {@link performLogLinkTask}. Changes are made one after the
 * other, and are not waited for: a container runs as well without its links. Nothing is thrown; each kind of error is
 * logged once.
 */
export class LogLinks {
  readonly #options: LogLinksOptions;
  readonly #loggedErrors = new Set<string>();
  readonly #turns = new Turns();
  #waiting = 0;

  constructor(options: LogLinksOptions) {
    this.#options = options;
  }

  create(pod: { metadata: LoggedPod }, containerName: string, restartCount: number, containerId: string): void {
    const engineLog = this.#options.engineLogPath(containerId);
    const { uid, name, namespace } = pod.metadata;
    this.#add({
      kind: "create",
      pod: { uid, name, namespace } as LoggedPod,
      containerName,
      restartCount,
      containerId,
      engineLog,
    });
  }

  removeContainer({ id, name, restartCount }: LoggedContainer, pod: LoggedPod): void {
    this.#add({ kind: "remove-container", container: { id, name, restartCount }, pod });
  }

  removePod(pod: LoggedPod): void {
    this.#add({ kind: "remove-pod", pod });
  }

  /** Removes links to logs that the engine no longer has: what a process left that was killed. */
  sweep(): void {
    this.#add({ kind: "sweep", engineContainersDir: dirname(dirname(this.#options.engineLogPath("id"))) });
  }

  #add(task: LogLinkTask): void {
    const { perform = performLogLinkTask, podLogsDir, containersLogsDir } = this.#options;
    if (podLogsDir === "") return;
    if (this.#waiting >= MAX_WAITING) return this.#report(new Error(`${MAX_WAITING} changes wait for the disk`));
    this.#waiting++;
    const done = this.#turns.run("", () => perform({ podLogsDir, containersLogsDir }, task));
    done
      .catch((error: unknown) => this.#report(error))
      .finally(() => {
        this.#waiting--;
      });
  }

  #report(error: unknown): void {
    const kind = (error as { code?: string }).code ?? messageOf(error);
    if (this.#loggedErrors.has(kind)) return;
    this.#loggedErrors.add(kind);
    this.#options.log.warn("Links to container logs are not complete", { error: messageOf(error) });
  }
}

/**
 * The link that log shippers look for: `<pod>_<namespace>_<container>-<container id>.log`, without its directory. Cut to
 * 255 characters, the ending stays. Source: kubelet's logSymlink.
 */
export function toContainerLogLinkName(pod: LoggedPod, containerName: string, containerId: string): string {
  const { name = "", namespace = "default" } = pod;
  const suffix = ".log";
  const stem = `${name}_${namespace}_${containerName}-${containerId}`;
  return stem.length + suffix.length > 255 ? `${stem.slice(0, 255 - suffix.length)}${suffix}` : stem + suffix;
}

interface LogDirectories {
  /** `--pod-logs-dir`, usually /var/log/pods; "" makes no links. */
  podLogsDir: string;
  /** Usually /var/log/containers; "" makes none there. */
  containersLogsDir: string;
}

interface LoggedContainer {
  id: string;
  name: string;
  restartCount: number;
}

const DIRECTORY_MODE = 0o755;

/** One change of the links, as plain data. */
type LogLinkTask =
  | {
      kind: "create";
      pod: LoggedPod;
      containerName: string;
      restartCount: number;
      containerId: string;
      /** "" when the engine keeps no file. */
      engineLog: string;
    }
  | { kind: "remove-container"; container: LoggedContainer; pod: LoggedPod }
  | { kind: "remove-pod"; pod: LoggedPod }
  /** Removes links to logs that the engine no longer has: what a process left that was killed. */
  | { kind: "sweep"; engineContainersDir: string };

/**
 * Changes the symlinks by which log shippers find a container's log:
 * `<podLogsDir>/<ns>_<pod>_<uid>/<container>/<n>.log` → Docker's json file, and
 * `<containersLogsDir>/<pod>_<ns>_<container>-<id>.log` → the first link. A pod may have a hostPath of these directories:
 * below them no link is followed, and nothing but symlinks and empty directories of the pod is removed. Every step may be
 * repeated.
 * @throws the system's error
 */
export function performLogLinkTask(directories: LogDirectories, task: LogLinkTask): void {
  switch (task.kind) {
    case "create":
      return createLinks(directories, task);
    case "remove-container": {
      const { container, pod } = task;
      using flat = openIfThere(directories.containersLogsDir);
      if (flat) removeSymlink(flat, toContainerLogLinkName(pod, container.name, container.id));
      using root = openIfThere(directories.podLogsDir);
      using podDirectory = root?.child(toPodLogDirName(pod));
      using directory = podDirectory?.child(container.name);
      const name = basename(toContainerLogPath(directories.podLogsDir, pod, container.name, container.restartCount));
      // A container that was created again with the same number has the link now.
      if (directory?.readlink(name)?.includes(container.id)) removeSymlink(directory, name);
      return;
    }
    case "remove-pod":
      return removePodLinks(directories, task.pod);
    case "sweep":
      return sweepLinks(directories, task.engineContainersDir);
    default:
      return task satisfies never;
  }
}

function createLinks(
  { podLogsDir, containersLogsDir }: LogDirectories,
  { pod, containerName, restartCount, containerId, engineLog }: Extract<LogLinkTask, { kind: "create" }>,
): void {
  const path = toContainerLogPath(podLogsDir, pod, containerName, restartCount);
  if (!path || !engineLog) return;
  mkdirSync(podLogsDir, { recursive: true, mode: DIRECTORY_MODE });
  using root = HeldDirectory.open(podLogsDir);
  using podDirectory = root.ensureChild(toPodLogDirName(pod), DIRECTORY_MODE);
  using directory = podDirectory.ensureChild(containerName, DIRECTORY_MODE);
  replaceSymlink(directory, basename(path), engineLog);
  if (!containersLogsDir) return;
  mkdirSync(containersLogsDir, { recursive: true, mode: DIRECTORY_MODE });
  using flat = HeldDirectory.open(containersLogsDir);
  replaceSymlink(flat, toContainerLogLinkName(pod, containerName, containerId), path);
}

function removePodLinks({ podLogsDir, containersLogsDir }: LogDirectories, pod: LoggedPod): void {
  using root = openIfThere(podLogsDir);
  if (!root) return;
  const podName = toPodLogDirName(pod);
  using flat = openIfThere(containersLogsDir);
  for (const name of flat?.names() ?? []) {
    if (flat?.readlink(name)?.startsWith(`${join(podLogsDir, podName)}/`)) removeSymlink(flat, name);
  }
  removeLinks(root, podName, () => true);
}

/** @param containers only links into this directory of the engine: another one may keep its logs elsewhere */
function sweepLinks({ podLogsDir, containersLogsDir }: LogDirectories, containers: string): void {
  if (!podLogsDir || containers === "." || !existsSync(containers)) return;
  const isDangling = (target: string) => target.startsWith(`${containers}/`) && !existsSync(target);
  using root = openIfThere(podLogsDir);
  for (const name of root?.names() ?? []) removeLinks(root!, name, isDangling);
  using flat = openIfThere(containersLogsDir);
  for (const name of flat?.names() ?? []) {
    const target = flat?.readlink(name);
    if (flat && target?.startsWith(`${podLogsDir}/`) && !existsSync(target)) removeSymlink(flat, name);
  }
}

/** Removes matching links of one pod, and the directories that are empty after that. */
function removeLinks(root: HeldDirectory, podName: EntryName, matches: (target: string) => boolean): void {
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

/** A reader never finds the name missing: the new link replaces the old one in one step. */
function replaceSymlink(directory: HeldDirectory, name: string, target: string): void {
  if (directory.readlink(name) === target) return;
  try {
    directory.symlink(target, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    if (directory.readlink(name) === undefined) {
      throw new Error(`"${name}" in "${directory.realPath()}" is not a symbolic link, so the log link cannot be made`);
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

function openIfThere(path: string): HeldDirectory | undefined {
  return path !== "" && existsSync(path) ? HeldDirectory.open(path) : undefined;
}

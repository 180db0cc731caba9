import { existsSync, mkdirSync } from "node:fs";
import { basename, join } from "node:path";
import { type EntryName, HeldDirectory } from "../base/files/held-directory.ts";
import type { PodRef } from "../base/model/pod-ref.ts";

/** A pod as its metadata or its containers' labels name it. */
export type LoggedPod = { [K in keyof PodRef]?: string | undefined };

/** `<namespace>_<name>_<uid>`, below `--pod-logs-dir`. */
export const toPodLogDirName = ({ namespace = "default", name = "", uid = "" }: LoggedPod) =>
  [namespace, name, uid].join("_");

/** `<podLogsDir>/<namespace>_<name>_<uid>/<container>/<restartCount>.log`; "" when podLogsDir is. */
export const toContainerLogPath = (podLogsDir: string, pod: LoggedPod, containerName: string, restartCount: number) =>
  podLogsDir && join(podLogsDir, toPodLogDirName(pod), containerName, `${restartCount}.log`);

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

/** Where logs and their links are. */
export interface LogPlaces {
  /** `--pod-logs-dir`, usually /var/log/pods; "" makes no links. */
  podLogsDir: string;
  /** Usually /var/log/containers; "" makes none there. */
  containersLogsDir: string;
}

/** A container as far as its links go. */
export interface LoggedContainer {
  id: string;
  name: string;
  restartCount: number;
}

const DIRECTORY_MODE = 0o755;

/** One change of the links, as plain data. */
export type LogLinkTask =
  | {
      /** The log of a container that was just created. */
      kind: "create";
      pod: LoggedPod;
      containerName: string;
      restartCount: number;
      containerId: string;
      /** "" when the engine keeps no file. */
      engineLog: string;
    }
  /** A container was removed. */
  | { kind: "remove-container"; container: LoggedContainer; pod: LoggedPod }
  /** A pod is gone, with everything. */
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
export function performLogLinkTask(places: LogPlaces, task: LogLinkTask): void {
  switch (task.kind) {
    case "create":
      return createLinks(places, task);
    case "remove-container":
      return removeContainerLinks(places, task.container, task.pod);
    case "remove-pod":
      return removePodLinks(places, task.pod);
    case "sweep":
      return sweepLinks(places, task.engineContainersDir);
    default:
      return task satisfies never;
  }
}

function createLinks(
  { podLogsDir, containersLogsDir }: LogPlaces,
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

function removeContainerLinks(
  { podLogsDir, containersLogsDir }: LogPlaces,
  container: LoggedContainer,
  pod: LoggedPod,
): void {
  using flat = openIfThere(containersLogsDir);
  if (flat) removeSymlink(flat, toContainerLogLinkName(pod, container.name, container.id));
  using root = openIfThere(podLogsDir);
  using podDirectory = root?.child(toPodLogDirName(pod));
  using directory = podDirectory?.child(container.name);
  const name = basename(toContainerLogPath(podLogsDir, pod, container.name, container.restartCount));
  // A container that was created again with the same number has the link now.
  if (directory?.readlink(name)?.includes(container.id)) removeSymlink(directory, name);
}

function removePodLinks({ podLogsDir, containersLogsDir }: LogPlaces, pod: LoggedPod): void {
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
function sweepLinks({ podLogsDir, containersLogsDir }: LogPlaces, containers: string): void {
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

/** undefined for a path that is not configured or not there. */
function openIfThere(path: string): HeldDirectory | undefined {
  return path !== "" && existsSync(path) ? HeldDirectory.open(path) : undefined;
}

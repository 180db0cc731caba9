import { realpathSync, statSync } from "node:fs";
import { unescapeMountPath } from "../text/mount-path.ts";
import { readBoundedText } from "./bounded-read.ts";

/** Hosts with many containers have some thousand mounts of about 200 bytes. Unit: bytes. */
const MAX_MOUNTINFO_BYTES = 64 * 1024 * 1024;

/** The mount points of a mountinfo text, in its order. Source: proc(5). */
export function parseMountPoints(mountInfo: string): string[] {
  return mountInfo
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => unescapeMountPath(line.split(" ")[4] ?? ""));
}

/** Every mount point that this process sees. */
export const listMountPoints = (): string[] =>
  parseMountPoints(readBoundedText("/proc/self/mountinfo", MAX_MOUNTINFO_BYTES));

/** The file system of a path. */
export interface FileSystemId {
  /** Where that file system is mounted. */
  mountPoint: string;
  /** `st_dev`; may differ after a reboot though the disk is the same. */
  device: number;
  bootId: string;
}

/** @throws the system's error. */
export function findFileSystem(path: string): FileSystemId {
  const real = realpathSync(path);
  return toFileSystemId(real, statSync(real).dev);
}

/** As {@link findFileSystem}, without access to the path. @param real without symbolic links @param device `st_dev` */
export function toFileSystemId(real: string, device: number): FileSystemId {
  const mounts = listMountPoints().map((mountPoint) => ({ mountPoint }));
  return {
    mountPoint: findMount(real, mounts)?.mountPoint ?? "",
    device,
    bootId: readBoundedText("/proc/sys/kernel/random/boot_id", 100).trim(),
  };
}

/** The mount that a path is on: the longest of those above it. */
export const findMount = <T extends { mountPoint: string }>(path: string, mounts: readonly T[]): T | undefined =>
  mounts
    .filter(({ mountPoint }) => mountPoint === "/" || path === mountPoint || path.startsWith(`${mountPoint}/`))
    .toSorted((a, b) => b.mountPoint.length - a.mountPoint.length)[0];

export function isSameFileSystem(a: FileSystemId, b: FileSystemId): boolean {
  return a.mountPoint === b.mountPoint && (a.bootId !== b.bootId || a.device === b.device);
}

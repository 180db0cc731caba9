import { realpathSync, statSync } from "node:fs";
import { readBoundedText } from "./whole-file.ts";

/** Hosts with many containers have some thousand mounts of about 200 bytes. Unit: bytes. */
const MAX_MOUNTINFO_BYTES = 64 * 1024 * 1024;

/** One line of a mountinfo. Source: proc(5). */
interface MountedFileSystem {
  /** `major:minor`. */
  device: string;
  /** The directory of the file system that is mounted. */
  root: string;
  mountPoint: string;
  type: string;
  source: string;
  /** Options of the file system itself, with commas. */
  options: string;
}

/** The mounts of a mountinfo text, in its order. */
export function parseMounts(mountInfo: string): MountedFileSystem[] {
  return mountInfo.split("\n").flatMap((line) => {
    const separator = line.indexOf(" - ");
    if (separator < 0) return [];
    const [, , device = "", root = "", mountPoint = ""] = line.slice(0, separator).split(" ").map(unescapeOctal);
    const [type = "", source = "", options = ""] = line
      .slice(separator + 3)
      .split(" ")
      .map(unescapeOctal);
    return [{ device, root, mountPoint, type, source, options }];
  });
}

/** Undoes octal escapes, `\040` for a space. */
const unescapeOctal = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

/** The mount points of a mountinfo text, in its order. */
export const parseMountPoints = (mountInfo: string): string[] =>
  parseMounts(mountInfo).map(({ mountPoint }) => mountPoint);

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

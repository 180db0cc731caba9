import { readBoundedText, SYSTEM_FILE_BYTES } from "../files/bounded-read.ts";
import { unescapeMountPath } from "../text/mount-path.ts";

/**
 * Where the kernel keeps what a container writes, for an engine that does not say so itself: with images in containerd
 * (the way of new engines) its inspect names no directory. "" when it is no overlay, or not this machine's.
 * @param pid of the container's main process on the host
 * @param containerId all 64 digits: a process that is not in a cgroup of that name is another one
 */
export function readWritableLayerPath(pid: number, containerId: string): string {
  if (pid <= 1) return "";
  try {
    const isOurs = readBoundedText(`/proc/${pid}/cgroup`, SYSTEM_FILE_BYTES).includes(containerId);
    return isOurs ? parseUpperDir(readBoundedText(`/proc/${pid}/mountinfo`, SYSTEM_FILE_BYTES)) : "";
  } catch {
    // It has ended, or may not be looked at.
    return "";
  }
}

/** `upperdir` of the overlay a process has for its root; "" when that is none. Source: proc(5), overlayfs's options. */
export function parseUpperDir(mountinfo: string): string {
  const root = mountinfo.split("\n").findLast((line) => line.split(" ", 5)[4] === "/") ?? "";
  const [type, , options = ""] = root.slice(root.indexOf(" - ") + 3).split(" ");
  return type === "overlay" ? unescapeMountPath(/(?:^|,)upperdir=([^,]*)/.exec(options)?.[1] ?? "") : "";
}

import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import type { HostAlias, Pod } from "../../base/api/pod.ts";
import { readBoundedText, readDescriptor } from "../../base/files/bounded-read.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { formatHostNetworkHosts, formatManagedHosts, type HostsFileNames } from "../../plan/hosts-file.ts";

/** Longest hosts file of the machine that is copied. Unit: bytes. */
const MAX_HOSTS_BYTES = 1024 * 1024;

/** Sources of the hosts file of a pod. */
export interface HostsFileRequest {
  pod: Pod;
  podIps: readonly string[];
  names: HostsFileNames;
  /** Names of Services, as addresses and names. */
  services?: readonly HostAlias[];
  /** The machine's own file, copied for pods with host networking. */
  nodeHostsPath?: string;
}

/**
 * Writes the pod's /etc/hosts, to be bound into its containers once its addresses are known.
 * @param path `<pod>/etc-hosts`
 * @throws Error that names the file that cannot be written
 */
export function writeHostsFile(
  path: string,
  { pod, podIps, names, services = [], nodeHostsPath = "/etc/hosts" }: HostsFileRequest,
): void {
  const { hostNetwork, hostAliases } = pod.spec;
  const text = hostNetwork
    ? formatHostNetworkHosts(readBoundedText(nodeHostsPath, MAX_HOSTS_BYTES), hostAliases, services)
    : formatManagedHosts(podIps, names, hostAliases, services);
  try {
    writeInPlace(path, text);
  } catch (cause) {
    // A write to an open descriptor fails without a path, e.g. ENOSPC.
    throw new Error(`Cannot write the pod's hosts file "${path}": ${messageOf(cause)}`, { cause });
  }
}

/**
 * A new file appears complete. An existing one keeps its inode, since containers hold it, and is left alone when it is
 * right. Containers may write to it: anything but a short regular file, or a link, is replaced.
 */
function writeInPlace(path: string, text: string): void {
  const descriptor = openForUpdate(path);
  try {
    if (descriptor !== undefined && overwrite(descriptor, text)) return;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
  const fresh = `${path}.new`;
  rmSync(fresh, { recursive: true, force: true });
  writeFileSync(fresh, text, { flag: "wx" });
  chmodSync(fresh, 0o644);
  renameSync(fresh, path);
}

function openForUpdate(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ELOOP") return undefined;
    throw error;
  }
}

/** @returns false when the descriptor is not a regular file. */
function overwrite(descriptor: number, text: string): boolean {
  const stats = fstatSync(descriptor);
  if (!stats.isFile()) return false;
  const wanted = Buffer.from(text);
  if (stats.size === wanted.length && wanted.equals(readDescriptor(descriptor, wanted.length))) return true;
  ftruncateSync(descriptor, 0);
  writeSync(descriptor, wanted, 0, wanted.length, 0);
  return true;
}

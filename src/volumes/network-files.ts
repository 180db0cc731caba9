import { chmodSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import type { Pod } from "../api/pod.ts";
import { formatHostNetworkHosts, formatManagedHosts, type HostsFileNames } from "../plan/hosts-file.ts";
import type { PodDirectories } from "./pod-directories.ts";

/**
 * Writes the pod's /etc/hosts to `<pod>/etc-hosts`, to be bound into its containers once its addresses are known. In
 * place, because containers hold the file itself.
 * @param nodeHostsPath the machine's own file, copied for pods with host networking.
 * @returns the path.
 */
export function writeHostsFile(
  directories: PodDirectories,
  pod: Pod,
  {
    podIps,
    names,
    nodeHostsPath = "/etc/hosts",
  }: { podIps: readonly string[]; names: HostsFileNames; nodeHostsPath?: string },
): string {
  const { hostNetwork, hostAliases } = pod.spec;
  const text = hostNetwork
    ? formatHostNetworkHosts(readFileSync(nodeHostsPath, "utf8"), hostAliases)
    : formatManagedHosts(podIps, names, hostAliases);
  writeInPlace(directories.etcHosts, text);
  return directories.etcHosts;
}

/** A file that does not exist yet appears complete; one that exists keeps its inode, and is left alone if right. */
function writeInPlace(path: string, text: string): void {
  const current = readIfThere(path);
  if (current === text) return;
  if (current !== undefined) {
    writeFileSync(path, text);
    return;
  }
  const fresh = `${path}.new`;
  rmSync(fresh, { force: true });
  writeFileSync(fresh, text);
  chmodSync(fresh, 0o644);
  renameSync(fresh, path);
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

import { join } from "node:path";
import type { Pod } from "../../base/api/pod.ts";
import { claimVolumeName } from "./docker-volume.ts";
import type { VolumeUsagePath } from "./volume-manager.ts";

/**
 * Directories of the claims of a pod on this machine, without access to the disk. NFS volumes are left out: a server that
 * does not answer would block the measurement.
 * @param claims names of claims by the name of the volume that took their place
 * @param engineDir the engine's own directory; undefined while it is not known
 */
export function claimUsagePaths(
  pod: Pod,
  claims: Readonly<Record<string, string>>,
  engineDir: string | undefined,
): VolumeUsagePath[] {
  return (pod.spec.volumes ?? []).flatMap(({ name, hostPath, persistentVolumeClaim }): VolumeUsagePath[] => {
    const bound = claims[name];
    // A PersistentVolume is shown with the figures of its file system. Source: the kubelet's local volume plugin.
    if (bound !== undefined && hostPath) {
      return [{ name, path: hostPath.path, method: "statfs", isEphemeral: false, claimName: bound }];
    }
    if (!persistentVolumeClaim || engineDir === undefined) return [];
    const { claimName } = persistentVolumeClaim;
    const path = join(engineDir, "volumes", claimVolumeName(pod, claimName), "_data");
    return [{ name, path, method: "du", isEphemeral: false, claimName }];
  });
}

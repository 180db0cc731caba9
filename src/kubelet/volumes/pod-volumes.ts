import type { Pod, Volume, VolumeMount } from "../../base/api/pod.ts";
import { containersOf } from "../../base/model/pod-containers.ts";
import { claimVolumeName, nfsVolumeName } from "./docker-volume.ts";
import { fileVolumePlugin } from "./file-volume.ts";
import type { MountSource } from "./mounts.ts";
import type { PluginName, PodDirectories } from "./pod-directories.ts";

/** Plugins with directories under those of a pod. */
export const PLUGINS: readonly PluginName[] = [
  "empty-dir",
  "configmap",
  "secret",
  "downward-api",
  "projected",
  "image",
  "nfs",
  "local-volume",
];

/** The plugin in whose directory under the pod's a volume is, if any. */
export function pluginOf(volume: Volume): PluginName | undefined {
  if (volume.emptyDir) return "empty-dir";
  if (volume.image) return "image";
  if (volume.hostPath?.local) return "local-volume";
  return volume.nfs ? "nfs" : fileVolumePlugin(volume);
}

/** Volumes that a container of the pod mounts, or reads an env file from; no others are ever set up. */
export function usedVolumes(pod: Pod): Volume[] {
  const used = new Set<string>();
  for (const container of containersOf(pod.spec)) {
    for (const { name } of [...(container.volumeMounts ?? []), ...(container.volumeDevices ?? [])]) used.add(name);
    for (const { valueFrom } of container.env ?? [])
      if (valueFrom?.fileKeyRef) used.add(valueFrom.fileKeyRef.volumeName);
  }
  return (pod.spec.volumes ?? []).filter(({ name }) => used.has(name));
}

export const mountsAsDevice = (pod: Pod, volume: string) =>
  containersOf(pod.spec).some(({ volumeDevices = [] }) => volumeDevices.some(({ name }) => name === volume));

export const sourceName = (volume: Volume) => Object.keys(volume).find((key) => key !== "name") ?? "none";

/** Where the files of a volume mount are; undefined for a volume that the pod does not have. */
export function mountSourceOf(pod: Pod, mount: VolumeMount, directories: PodDirectories): MountSource | undefined {
  const volume: Volume | undefined = pod.spec.volumes?.find(({ name }) => name === mount.name);
  if (!volume) return undefined;
  if (volume.hostPath) {
    const { path: hostPath, local } = volume.hostPath;
    const path = local?.mountOptions ? directories.volume("local-volume", volume.name) : hostPath;
    return { kind: "path", path, readOnly: false, isOurs: false, isManaged: false };
  }
  if (volume.emptyDir) {
    const path = directories.volume("empty-dir", volume.name);
    return { kind: "path", path, readOnly: false, isOurs: false, isManaged: true };
  }
  const plugin = fileVolumePlugin(volume);
  if (plugin) {
    const path = directories.volume(plugin, volume.name);
    return { kind: "path", path, readOnly: true, isOurs: true, isManaged: true };
  }
  if (volume.image) return { kind: "image", place: directories.place("image", volume.name) };
  if (volume.nfs) {
    const name = nfsVolumeName(pod.metadata.uid ?? "", { name: volume.name, nfs: volume.nfs });
    return { kind: "volume", name, readOnly: volume.nfs.readOnly ?? false };
  }
  if (volume.persistentVolumeClaim) {
    const { claimName, readOnly = false } = volume.persistentVolumeClaim;
    return { kind: "volume", name: claimVolumeName(pod, claimName), readOnly };
  }
  return undefined;
}

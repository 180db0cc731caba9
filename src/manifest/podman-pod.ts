import { createHash } from "node:crypto";
import type { Pod } from "../api/pod.ts";
import { containersOf } from "../model/pod-containers.ts";
import type { FieldPath } from "./field-path.ts";
import type { SupportNote } from "./support/find-unsupported.ts";
import { FOREIGN_ANNOTATION } from "./support/pod-annotations.ts";
import { checkDnsLabel, checkQualifiedName } from "./validate/names.ts";

/** Names that `podman kube generate` writes: names of volumes of the engine. */
const VOLUME_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/;
const MAX_CHARACTERS = 253;

/**
 * Accepts what only Kubernetes refuses of the pods that `podman kube generate` writes. Changes the pod in place.
 * @param path of the pod in its document
 */
export const adaptPodmanPod = (pod: Pod, path: FieldPath): SupportNote[] => [
  ...removeAnnotations(pod, path),
  ...renameVolumes(pod, path),
];

/** Podman 3.4 to 4.3 puts paths into keys: `bind-mount-options:/home/x/data`. */
function removeAnnotations({ metadata }: Pod, path: FieldPath): SupportNote[] {
  const { annotations } = metadata;
  if (!annotations) return [];
  const isMalformed = (key: string) => checkQualifiedName(key.toLowerCase()).length > 0;
  const names = Object.keys(annotations).filter((key) => FOREIGN_ANNOTATION.test(key) && isMalformed(key));
  return names.map((name) => {
    delete annotations[name];
    const message = "has no effect here and is left out: Kubernetes has no such names of annotations; podman reads it";
    return { code: "ignored", path: path.child("metadata").child("annotations").key(name), message };
  });
}

/**
 * Renames volumes whose names Kubernetes refuses, but `podman kube generate` writes: longer than 63 characters, with
 * upper case letters, `_` or `.`. References in the pod follow.
 */
function renameVolumes(pod: Pod, path: FieldPath): SupportNote[] {
  const { spec } = pod;
  const volumes = spec.volumes ?? [];
  const taken = new Set(volumes.map(({ name }) => name));
  const renamed = new Map<string, string>();
  const notes: SupportNote[] = [];
  for (const [index, volume] of volumes.entries()) {
    const { name } = volume;
    if (checkDnsLabel(name).length === 0 || name.length > MAX_CHARACTERS || !VOLUME_NAME.test(name)) continue;
    const label = toVolumeLabel(name);
    if (taken.has(label)) continue;
    taken.add(label);
    renamed.set(name, label);
    volume.name = label;
    const message = `is not a DNS label, which Kubernetes requires: the volume is named ${JSON.stringify(label)} here`;
    notes.push({ code: "ignored", path: path.child("spec").child("volumes").index(index).child("name"), message });
  }
  if (renamed.size === 0) return notes;
  const nameOf = (name: string) => renamed.get(name) ?? name;
  for (const container of [...containersOf(spec), ...(spec.ephemeralContainers ?? [])]) {
    for (const mount of container.volumeMounts ?? []) mount.name = nameOf(mount.name);
    for (const device of container.volumeDevices ?? []) device.name = nameOf(device.name);
    for (const { valueFrom } of container.env ?? []) {
      const file = valueFrom?.fileKeyRef;
      if (file) file.volumeName = nameOf(file.volumeName);
    }
  }
  return notes;
}

/** A DNS label that depends on the whole name. */
function toVolumeLabel(name: string): string {
  const hash = createHash("sha256").update(name).digest("hex").slice(0, 8);
  const readable = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 63 - hash.length - 1)
    .replace(/-+$/, "");
  return `${readable}-${hash}`;
}

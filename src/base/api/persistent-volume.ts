import * as v from "valibot";
import { ObjectMetaSchema } from "./meta.ts";
import { NodeSelectorSchema } from "./pod.ts";
import { oneOfPointer, raw, resourceList, text, textList, textPointer } from "./scalar.ts";
import {
  CLUSTER_VOLUME_NAMES,
  type ClusterVolumeName,
  HostPathVolumeSourceSchema,
  NFSVolumeSourceSchema,
} from "./volume.ts";

const clusterVolumes = Object.fromEntries(CLUSTER_VOLUME_NAMES.map((name) => [name, v.optional(raw)])) as Record<
  ClusterVolumeName,
  v.OptionalSchema<typeof raw, undefined>
>;

/** Source: core/v1 `PersistentVolume`; sources that need a cluster are kept as they are. */
export const PersistentVolumeSchema = v.object({
  metadata: ObjectMetaSchema,
  spec: v.object({
    capacity: v.optional(resourceList),
    accessModes: v.optional(textList),
    claimRef: v.optional(
      v.object({
        apiVersion: v.optional(text),
        kind: v.optional(text),
        namespace: v.optional(text),
        name: v.optional(text),
        uid: v.optional(text),
        resourceVersion: v.optional(text),
        fieldPath: v.optional(text),
      }),
    ),
    persistentVolumeReclaimPolicy: v.optional(text, "Retain"),
    storageClassName: v.optional(text),
    mountOptions: v.optional(textList),
    volumeMode: v.optional(oneOfPointer(["Block", "Filesystem"]), "Filesystem"),
    nodeAffinity: v.optional(v.object({ required: v.optional(NodeSelectorSchema) })),
    volumeAttributesClassName: v.optional(textPointer),
    hostPath: v.optional(HostPathVolumeSourceSchema),
    local: v.optional(v.object({ path: text, fsType: v.optional(textPointer) })),
    nfs: v.optional(NFSVolumeSourceSchema),
    ...clusterVolumes,
  }),
  status: v.optional(raw),
});
export type PersistentVolume = v.InferOutput<typeof PersistentVolumeSchema>;

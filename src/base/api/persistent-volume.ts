import * as v from "valibot";
import { ObjectMetaSchema } from "./meta.ts";
import { NodeSelectorSchema } from "./pod.ts";
import * as go from "./scalar.ts";
import {
  CLUSTER_VOLUME_NAMES,
  type ClusterVolumeName,
  HostPathVolumeSourceSchema,
  NFSVolumeSourceSchema,
} from "./volume.ts";

const clusterVolumes = Object.fromEntries(CLUSTER_VOLUME_NAMES.map((name) => [name, v.optional(go.raw)])) as Record<
  ClusterVolumeName,
  v.OptionalSchema<typeof go.raw, undefined>
>;

/** Source: core/v1 `PersistentVolume`; sources that need a cluster are kept as they are. */
export const PersistentVolumeSchema = v.object({
  metadata: ObjectMetaSchema,
  spec: v.object({
    capacity: v.optional(go.resourceList),
    accessModes: v.optional(go.textList),
    claimRef: v.optional(
      v.object({
        apiVersion: v.optional(go.text),
        kind: v.optional(go.text),
        namespace: v.optional(go.text),
        name: v.optional(go.text),
        uid: v.optional(go.text),
        resourceVersion: v.optional(go.text),
        fieldPath: v.optional(go.text),
      }),
    ),
    persistentVolumeReclaimPolicy: v.optional(go.text, "Retain"),
    storageClassName: v.optional(go.text),
    mountOptions: v.optional(go.textList),
    volumeMode: v.optional(go.oneOfPointer(["Block", "Filesystem"]), "Filesystem"),
    nodeAffinity: v.optional(v.object({ required: v.optional(NodeSelectorSchema) })),
    volumeAttributesClassName: v.optional(go.textPointer),
    hostPath: v.optional(HostPathVolumeSourceSchema),
    local: v.optional(v.object({ path: go.text, fsType: v.optional(go.textPointer) })),
    nfs: v.optional(NFSVolumeSourceSchema),
    ...clusterVolumes,
  }),
  status: v.optional(go.raw),
});
export type PersistentVolume = v.InferOutput<typeof PersistentVolumeSchema>;

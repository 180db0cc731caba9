import * as v from "valibot";
import { ObjectFieldSelectorSchema, ResourceFieldSelectorSchema } from "./environment.ts";
import {
  LabelSelectorSchema,
  ObjectMetaSchema,
  TypedLocalObjectReferenceSchema,
  TypedObjectReferenceSchema,
} from "./meta.ts";
import {
  flag,
  flagPointer,
  int32Pointer,
  int64Pointer,
  oneOf,
  oneOfPointer,
  quantityPointer,
  resourceList,
  text,
  textList,
  textMap,
  textPointer,
} from "./scalar.ts";
import { CLUSTER_VOLUMES } from "./volume-drivers.ts";

/** Source: core/v1 `HostPathVolumeSource`. `type` is defaulted to "" (no check). */
export const HostPathVolumeSourceSchema = v.object({
  path: text,
  type: v.optional(
    oneOfPointer(["", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"]),
    "",
  ),
});
export type HostPathVolumeSource = v.InferOutput<typeof HostPathVolumeSourceSchema> & {
  /** Present where the volume takes the place of a claim of a PersistentVolume of the kind `local`. */
  local?: LocalVolumeUse;
};

/** How a pod uses a PersistentVolume of the kind `local`. */
export interface LocalVolumeUse {
  /** The claim or the volume is for reading only: ownership is left alone. */
  readOnly: boolean;
  mountOptions?: readonly string[];
}

/** Source: core/v1 `EmptyDirVolumeSource`. */
export const EmptyDirVolumeSourceSchema = v.object({
  /** "", `Memory`, `HugePages` or `HugePages-<size>`; not checked upstream. */
  medium: v.optional(text),
  /** Canonical quantity of bytes. */
  sizeLimit: v.optional(quantityPointer),
});
export type EmptyDirVolumeSource = v.InferOutput<typeof EmptyDirVolumeSourceSchema>;

/** Source: core/v1 `KeyToPath`. */
export const KeyToPathSchema = v.object({ key: text, path: text, mode: v.optional(int32Pointer) });
export type KeyToPath = v.InferOutput<typeof KeyToPathSchema>;

/** Source: core/v1 `SecretVolumeSource`. */
export const SecretVolumeSourceSchema = v.object({
  secretName: v.optional(text),
  items: v.optional(v.array(KeyToPathSchema)),
  /** File mode bits as a number, e.g. 420 = 0644. */
  defaultMode: v.optional(int32Pointer, 420),
  optional: v.optional(flagPointer),
});
export type SecretVolumeSource = v.InferOutput<typeof SecretVolumeSourceSchema>;

/** Source: core/v1 `ConfigMapVolumeSource`. */
export const ConfigMapVolumeSourceSchema = v.object({
  name: v.optional(text),
  items: v.optional(v.array(KeyToPathSchema)),
  defaultMode: v.optional(int32Pointer, 420),
  optional: v.optional(flagPointer),
});
export type ConfigMapVolumeSource = v.InferOutput<typeof ConfigMapVolumeSourceSchema>;

/** Source: core/v1 `DownwardAPIVolumeFile`. */
export const DownwardAPIVolumeFileSchema = v.object({
  path: text,
  fieldRef: v.optional(ObjectFieldSelectorSchema),
  resourceFieldRef: v.optional(ResourceFieldSelectorSchema),
  mode: v.optional(int32Pointer),
});
export type DownwardAPIVolumeFile = v.InferOutput<typeof DownwardAPIVolumeFileSchema>;

/** Source: core/v1 `DownwardAPIVolumeSource`. */
export const DownwardAPIVolumeSourceSchema = v.object({
  items: v.optional(v.array(DownwardAPIVolumeFileSchema)),
  defaultMode: v.optional(int32Pointer, 420),
});
export type DownwardAPIVolumeSource = v.InferOutput<typeof DownwardAPIVolumeSourceSchema>;

/** Source: core/v1 `SecretProjection`, `ConfigMapProjection`. */
export const ObjectProjectionSchema = v.object({
  name: v.optional(text),
  items: v.optional(v.array(KeyToPathSchema)),
  optional: v.optional(flagPointer),
});
export type ObjectProjection = v.InferOutput<typeof ObjectProjectionSchema>;

/** Source: core/v1 `ServiceAccountTokenProjection`. */
export const ServiceAccountTokenProjectionSchema = v.object({
  audience: v.optional(text),
  expirationSeconds: v.optional(int64Pointer, 3600),
  path: text,
});

/** Source: core/v1 `ClusterTrustBundleProjection`. */
export const ClusterTrustBundleProjectionSchema = v.object({
  name: v.optional(textPointer),
  signerName: v.optional(textPointer),
  labelSelector: v.optional(LabelSelectorSchema),
  optional: v.optional(flagPointer),
  path: text,
});

/** Source: core/v1 `PodCertificateProjection`. */
export const PodCertificateProjectionSchema = v.object({
  signerName: v.optional(text),
  keyType: v.optional(text),
  maxExpirationSeconds: v.optional(int32Pointer),
  credentialBundlePath: v.optional(text),
  keyPath: v.optional(text),
  certificateChainPath: v.optional(text),
  userAnnotations: v.optional(textMap),
});

/** Source: core/v1 `VolumeProjection`: one of them is set. */
export const VolumeProjectionSchema = v.object({
  secret: v.optional(ObjectProjectionSchema),
  downwardAPI: v.optional(v.object({ items: v.optional(v.array(DownwardAPIVolumeFileSchema)) })),
  configMap: v.optional(ObjectProjectionSchema),
  serviceAccountToken: v.optional(ServiceAccountTokenProjectionSchema),
  clusterTrustBundle: v.optional(ClusterTrustBundleProjectionSchema),
  podCertificate: v.optional(PodCertificateProjectionSchema),
});
export type VolumeProjection = v.InferOutput<typeof VolumeProjectionSchema>;

/** Source: core/v1 `ProjectedVolumeSource`. */
export const ProjectedVolumeSourceSchema = v.object({
  sources: v.array(VolumeProjectionSchema),
  defaultMode: v.optional(int32Pointer, 420),
});
export type ProjectedVolumeSource = v.InferOutput<typeof ProjectedVolumeSourceSchema>;

/** Source: core/v1 `NFSVolumeSource`. */
export const NFSVolumeSourceSchema = v.object({ server: text, path: text, readOnly: v.optional(flag) });
export type NFSVolumeSource = v.InferOutput<typeof NFSVolumeSourceSchema> & {
  /** Those of the PersistentVolume, where the volume takes the place of a claim. */
  mountOptions?: readonly string[];
};

/** Source: core/v1 `PersistentVolumeClaimVolumeSource`. */
export const PersistentVolumeClaimVolumeSourceSchema = v.object({ claimName: text, readOnly: v.optional(flag) });
export type PersistentVolumeClaimVolumeSource = v.InferOutput<typeof PersistentVolumeClaimVolumeSourceSchema>;

/** Source: core/v1 `ImageVolumeSource`. */
export const ImageVolumeSourceSchema = v.object({
  reference: v.optional(text),
  /** Defaulted from the tag, as for containers. */
  pullPolicy: v.optional(oneOf(["Always", "IfNotPresent", "Never"])),
});
export type ImageVolumeSource = v.InferOutput<typeof ImageVolumeSourceSchema>;

/** Source: core/v1 `PersistentVolumeClaimSpec`. */
export const PersistentVolumeClaimSpecSchema = v.object({
  accessModes: v.optional(textList),
  selector: v.optional(LabelSelectorSchema),
  resources: v.object({ limits: v.optional(resourceList), requests: v.optional(resourceList) }),
  volumeName: v.optional(text),
  storageClassName: v.optional(textPointer),
  volumeMode: v.optional(oneOfPointer(["Block", "Filesystem"]), "Filesystem"),
  dataSource: v.optional(TypedLocalObjectReferenceSchema),
  dataSourceRef: v.optional(TypedObjectReferenceSchema),
  volumeAttributesClassName: v.optional(textPointer),
});

/** Source: core/v1 `EphemeralVolumeSource`. */
export const EphemeralVolumeSourceSchema = v.object({
  volumeClaimTemplate: v.optional(v.object({ metadata: ObjectMetaSchema, spec: PersistentVolumeClaimSpecSchema })),
  /** Only in 1.20. */
  readOnly: v.optional(flag),
});

/** One volume: a name and exactly one source; none means `emptyDir`. Source: core/v1 `Volume`. */
export const VolumeSchema = v.object({
  name: text,
  hostPath: v.optional(HostPathVolumeSourceSchema),
  emptyDir: v.optional(EmptyDirVolumeSourceSchema),
  gitRepo: v.optional(
    v.object({
      repository: text,
      revision: v.optional(text),
      directory: v.optional(text),
    }),
  ),
  secret: v.optional(SecretVolumeSourceSchema),
  nfs: v.optional(NFSVolumeSourceSchema),
  persistentVolumeClaim: v.optional(PersistentVolumeClaimVolumeSourceSchema),
  downwardAPI: v.optional(DownwardAPIVolumeSourceSchema),
  configMap: v.optional(ConfigMapVolumeSourceSchema),
  projected: v.optional(ProjectedVolumeSourceSchema),
  ...CLUSTER_VOLUMES,
  ephemeral: v.optional(EphemeralVolumeSourceSchema),
  image: v.optional(ImageVolumeSourceSchema),
});
export type Volume = v.InferOutput<typeof VolumeSchema> & {
  hostPath?: HostPathVolumeSource | undefined;
  nfs?: NFSVolumeSource | undefined;
};

/** Name of the field that says what a volume is. */
export type VolumeSourceName = Exclude<keyof Volume, "name">;

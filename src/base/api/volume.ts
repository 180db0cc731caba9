import * as v from "valibot";
import { ObjectFieldSelectorSchema, ResourceFieldSelectorSchema } from "./container.ts";
import {
  LabelSelectorSchema,
  LocalObjectReferenceSchema,
  ObjectMetaSchema,
  TypedLocalObjectReferenceSchema,
  TypedObjectReferenceSchema,
} from "./meta.ts";
import {
  flag,
  flagPointer,
  int32,
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

const source = <const T extends v.ObjectEntries>(fields: T) => v.optional(v.object(fields));
const anyText = v.optional(text);
const fsType = anyText;
const readOnly = v.optional(flag);
const secretRef = v.optional(LocalObjectReferenceSchema);

/**
 * Volume sources of core/v1 that need a cluster, a cloud or a driver: decoded and validated as upstream, then refused.
 */
const CLUSTER_VOLUMES = {
  gcePersistentDisk: source({ pdName: text, fsType, partition: v.optional(int32), readOnly }),
  awsElasticBlockStore: source({ volumeID: text, fsType, partition: v.optional(int32), readOnly }),
  iscsi: source({
    targetPortal: text,
    iqn: text,
    lun: int32,
    iscsiInterface: v.optional(text, "default"),
    fsType,
    readOnly,
    portals: v.optional(textList),
    chapAuthDiscovery: v.optional(flag),
    chapAuthSession: v.optional(flag),
    secretRef,
    initiatorName: v.optional(textPointer),
  }),
  glusterfs: source({ endpoints: text, path: text, readOnly }),
  rbd: source({
    monitors: textList,
    image: text,
    fsType,
    pool: v.optional(text, "rbd"),
    user: v.optional(text, "admin"),
    keyring: v.optional(text, "/etc/ceph/keyring"),
    secretRef,
    readOnly,
  }),
  flexVolume: source({ driver: text, fsType, secretRef, readOnly, options: v.optional(textMap) }),
  cinder: source({ volumeID: text, fsType, readOnly, secretRef }),
  cephfs: source({ monitors: textList, path: anyText, user: anyText, secretFile: anyText, secretRef, readOnly }),
  flocker: source({ datasetName: anyText, datasetUUID: anyText }),
  fc: source({
    targetWWNs: v.optional(textList),
    lun: v.optional(int32Pointer),
    fsType,
    readOnly,
    wwids: v.optional(textList),
  }),
  azureFile: source({ secretName: text, shareName: text, readOnly }),
  vsphereVolume: source({ volumePath: text, fsType, storagePolicyName: anyText, storagePolicyID: anyText }),
  quobyte: source({ registry: text, volume: text, readOnly, user: anyText, group: anyText, tenant: anyText }),
  azureDisk: source({
    diskName: text,
    diskURI: text,
    cachingMode: v.optional(oneOfPointer(["None", "ReadOnly", "ReadWrite"]), "ReadWrite"),
    fsType: v.optional(textPointer, "ext4"),
    readOnly: v.optional(flagPointer, false),
    kind: v.optional(oneOfPointer(["Shared", "Dedicated", "Managed"]), "Shared"),
  }),
  photonPersistentDisk: source({ pdID: text, fsType }),
  portworxVolume: source({ volumeID: text, fsType, readOnly }),
  scaleIO: source({
    gateway: text,
    system: text,
    secretRef: v.nullable(LocalObjectReferenceSchema),
    sslEnabled: v.optional(flag),
    protectionDomain: anyText,
    storagePool: anyText,
    storageMode: v.optional(text, "ThinProvisioned"),
    volumeName: anyText,
    fsType: v.optional(text, "xfs"),
    readOnly,
  }),
  storageos: source({ volumeName: anyText, volumeNamespace: anyText, fsType, readOnly, secretRef }),
  csi: source({
    driver: text,
    readOnly: v.optional(flagPointer),
    fsType: v.optional(textPointer),
    volumeAttributes: v.optional(textMap),
    nodePublishSecretRef: v.optional(LocalObjectReferenceSchema),
  }),
};
export type ClusterVolumeName = keyof typeof CLUSTER_VOLUMES;
export const CLUSTER_VOLUME_NAMES = Object.keys(CLUSTER_VOLUMES) as ClusterVolumeName[];

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
interface LocalVolumeUse {
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
  /** Permission bits of the directory as a number, e.g. 1023 = 01777. Since Kubernetes 1.36. */
  mode: v.optional(int32Pointer),
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

/** Source: core/v1 `ConfigMapVolumeSource`. */
export const ConfigMapVolumeSourceSchema = v.object({
  name: v.optional(text),
  items: v.optional(v.array(KeyToPathSchema)),
  defaultMode: v.optional(int32Pointer, 420),
  optional: v.optional(flagPointer),
});

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

/** Source: core/v1 `SecretProjection`, `ConfigMapProjection`. */
export const ObjectProjectionSchema = v.object({
  name: v.optional(text),
  items: v.optional(v.array(KeyToPathSchema)),
  optional: v.optional(flagPointer),
});

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

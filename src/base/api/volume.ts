import * as v from "valibot";
import { ObjectFieldSelectorSchema, ResourceFieldSelectorSchema } from "./container.ts";
import {
  LabelSelectorSchema,
  LocalObjectReferenceSchema,
  ObjectMetaSchema,
  TypedLocalObjectReferenceSchema,
  TypedObjectReferenceSchema,
} from "./meta.ts";
import * as go from "./scalar.ts";

const source = <const T extends v.ObjectEntries>(fields: T) => v.optional(v.object(fields));
const anyText = v.optional(go.text);
const fsType = anyText;
const readOnly = v.optional(go.flag);
const secretRef = v.optional(LocalObjectReferenceSchema);

/**
 * Volume sources of core/v1 that need a cluster, a cloud or a driver: decoded and validated as upstream, then refused.
 */
const CLUSTER_VOLUMES = {
  gcePersistentDisk: source({ pdName: go.text, fsType, partition: v.optional(go.int32), readOnly }),
  awsElasticBlockStore: source({ volumeID: go.text, fsType, partition: v.optional(go.int32), readOnly }),
  iscsi: source({
    targetPortal: go.text,
    iqn: go.text,
    lun: go.int32,
    iscsiInterface: v.optional(go.text, "default"),
    fsType,
    readOnly,
    portals: v.optional(go.textList),
    chapAuthDiscovery: v.optional(go.flag),
    chapAuthSession: v.optional(go.flag),
    secretRef,
    initiatorName: v.optional(go.textPointer),
  }),
  glusterfs: source({ endpoints: go.text, path: go.text, readOnly }),
  rbd: source({
    monitors: go.textList,
    image: go.text,
    fsType,
    pool: v.optional(go.text, "rbd"),
    user: v.optional(go.text, "admin"),
    keyring: v.optional(go.text, "/etc/ceph/keyring"),
    secretRef,
    readOnly,
  }),
  flexVolume: source({ driver: go.text, fsType, secretRef, readOnly, options: v.optional(go.textMap) }),
  cinder: source({ volumeID: go.text, fsType, readOnly, secretRef }),
  cephfs: source({ monitors: go.textList, path: anyText, user: anyText, secretFile: anyText, secretRef, readOnly }),
  flocker: source({ datasetName: anyText, datasetUUID: anyText }),
  fc: source({
    targetWWNs: v.optional(go.textList),
    lun: v.optional(go.int32Pointer),
    fsType,
    readOnly,
    wwids: v.optional(go.textList),
  }),
  azureFile: source({ secretName: go.text, shareName: go.text, readOnly }),
  vsphereVolume: source({ volumePath: go.text, fsType, storagePolicyName: anyText, storagePolicyID: anyText }),
  quobyte: source({ registry: go.text, volume: go.text, readOnly, user: anyText, group: anyText, tenant: anyText }),
  azureDisk: source({
    diskName: go.text,
    diskURI: go.text,
    cachingMode: v.optional(go.oneOfPointer(["None", "ReadOnly", "ReadWrite"]), "ReadWrite"),
    fsType: v.optional(go.textPointer, "ext4"),
    readOnly: v.optional(go.flagPointer, false),
    kind: v.optional(go.oneOfPointer(["Shared", "Dedicated", "Managed"]), "Shared"),
  }),
  photonPersistentDisk: source({ pdID: go.text, fsType }),
  portworxVolume: source({ volumeID: go.text, fsType, readOnly }),
  scaleIO: source({
    gateway: go.text,
    system: go.text,
    secretRef: v.nullable(LocalObjectReferenceSchema),
    sslEnabled: v.optional(go.flag),
    protectionDomain: anyText,
    storagePool: anyText,
    storageMode: v.optional(go.text, "ThinProvisioned"),
    volumeName: anyText,
    fsType: v.optional(go.text, "xfs"),
    readOnly,
  }),
  storageos: source({ volumeName: anyText, volumeNamespace: anyText, fsType, readOnly, secretRef }),
  csi: source({
    driver: go.text,
    readOnly: v.optional(go.flagPointer),
    fsType: v.optional(go.textPointer),
    volumeAttributes: v.optional(go.textMap),
    nodePublishSecretRef: v.optional(LocalObjectReferenceSchema),
  }),
};
export type ClusterVolumeName = keyof typeof CLUSTER_VOLUMES;
export const CLUSTER_VOLUME_NAMES = Object.keys(CLUSTER_VOLUMES) as ClusterVolumeName[];

/** Source: core/v1 `HostPathVolumeSource`. `type` is defaulted to "" (no check). */
export const HostPathVolumeSourceSchema = v.object({
  path: go.text,
  type: v.optional(
    go.oneOfPointer([
      "",
      "DirectoryOrCreate",
      "Directory",
      "FileOrCreate",
      "File",
      "Socket",
      "CharDevice",
      "BlockDevice",
    ]),
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
  medium: v.optional(go.text),
  /** Canonical quantity of bytes. */
  sizeLimit: v.optional(go.quantityPointer),
  /** Permission bits of the directory as a number, e.g. 1023 = 01777. Since Kubernetes 1.36. */
  mode: v.optional(go.int32Pointer),
});
export type EmptyDirVolumeSource = v.InferOutput<typeof EmptyDirVolumeSourceSchema>;

/** Source: core/v1 `KeyToPath`. */
export const KeyToPathSchema = v.object({ key: go.text, path: go.text, mode: v.optional(go.int32Pointer) });
export type KeyToPath = v.InferOutput<typeof KeyToPathSchema>;

/** Source: core/v1 `SecretVolumeSource`. */
export const SecretVolumeSourceSchema = v.object({
  secretName: v.optional(go.text),
  items: v.optional(v.array(KeyToPathSchema)),
  /** File mode bits as a number, e.g. 420 = 0644. */
  defaultMode: v.optional(go.int32Pointer, 420),
  optional: v.optional(go.flagPointer),
});

/** Source: core/v1 `ConfigMapVolumeSource`. */
export const ConfigMapVolumeSourceSchema = v.object({
  name: v.optional(go.text),
  items: v.optional(v.array(KeyToPathSchema)),
  defaultMode: v.optional(go.int32Pointer, 420),
  optional: v.optional(go.flagPointer),
});

/** Source: core/v1 `DownwardAPIVolumeFile`. */
export const DownwardAPIVolumeFileSchema = v.object({
  path: go.text,
  fieldRef: v.optional(ObjectFieldSelectorSchema),
  resourceFieldRef: v.optional(ResourceFieldSelectorSchema),
  mode: v.optional(go.int32Pointer),
});
export type DownwardAPIVolumeFile = v.InferOutput<typeof DownwardAPIVolumeFileSchema>;

/** Source: core/v1 `DownwardAPIVolumeSource`. */
export const DownwardAPIVolumeSourceSchema = v.object({
  items: v.optional(v.array(DownwardAPIVolumeFileSchema)),
  defaultMode: v.optional(go.int32Pointer, 420),
});

/** Source: core/v1 `SecretProjection`, `ConfigMapProjection`. */
export const ObjectProjectionSchema = v.object({
  name: v.optional(go.text),
  items: v.optional(v.array(KeyToPathSchema)),
  optional: v.optional(go.flagPointer),
});

/** Source: core/v1 `ServiceAccountTokenProjection`. */
export const ServiceAccountTokenProjectionSchema = v.object({
  audience: v.optional(go.text),
  expirationSeconds: v.optional(go.int64Pointer, 3600),
  path: go.text,
});

/** Source: core/v1 `ClusterTrustBundleProjection`. */
export const ClusterTrustBundleProjectionSchema = v.object({
  name: v.optional(go.textPointer),
  signerName: v.optional(go.textPointer),
  labelSelector: v.optional(LabelSelectorSchema),
  optional: v.optional(go.flagPointer),
  path: go.text,
});

/** Source: core/v1 `PodCertificateProjection`. */
export const PodCertificateProjectionSchema = v.object({
  signerName: v.optional(go.text),
  keyType: v.optional(go.text),
  maxExpirationSeconds: v.optional(go.int32Pointer),
  credentialBundlePath: v.optional(go.text),
  keyPath: v.optional(go.text),
  certificateChainPath: v.optional(go.text),
  userAnnotations: v.optional(go.textMap),
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
  defaultMode: v.optional(go.int32Pointer, 420),
});
export type ProjectedVolumeSource = v.InferOutput<typeof ProjectedVolumeSourceSchema>;

/** Source: core/v1 `NFSVolumeSource`. */
export const NFSVolumeSourceSchema = v.object({ server: go.text, path: go.text, readOnly: v.optional(go.flag) });
export type NFSVolumeSource = v.InferOutput<typeof NFSVolumeSourceSchema> & {
  /** Those of the PersistentVolume, where the volume takes the place of a claim. */
  mountOptions?: readonly string[];
};

/** Source: core/v1 `PersistentVolumeClaimVolumeSource`. */
export const PersistentVolumeClaimVolumeSourceSchema = v.object({ claimName: go.text, readOnly: v.optional(go.flag) });

/** Source: core/v1 `ImageVolumeSource`. */
export const ImageVolumeSourceSchema = v.object({
  reference: v.optional(go.text),
  /** Defaulted from the tag, as for containers. */
  pullPolicy: v.optional(go.oneOf(["Always", "IfNotPresent", "Never"])),
});
export type ImageVolumeSource = v.InferOutput<typeof ImageVolumeSourceSchema>;

/** Source: core/v1 `PersistentVolumeClaimSpec`. */
export const PersistentVolumeClaimSpecSchema = v.object({
  accessModes: v.optional(go.textList),
  selector: v.optional(LabelSelectorSchema),
  resources: v.object({ limits: v.optional(go.resourceList), requests: v.optional(go.resourceList) }),
  volumeName: v.optional(go.text),
  storageClassName: v.optional(go.textPointer),
  volumeMode: v.optional(go.oneOfPointer(["Block", "Filesystem"]), "Filesystem"),
  dataSource: v.optional(TypedLocalObjectReferenceSchema),
  dataSourceRef: v.optional(TypedObjectReferenceSchema),
  volumeAttributesClassName: v.optional(go.textPointer),
});

/** Source: core/v1 `EphemeralVolumeSource`. */
export const EphemeralVolumeSourceSchema = v.object({
  volumeClaimTemplate: v.optional(v.object({ metadata: ObjectMetaSchema, spec: PersistentVolumeClaimSpecSchema })),
  /** Only in 1.20. */
  readOnly: v.optional(go.flag),
});

/** One volume: a name and exactly one source; none means `emptyDir`. Source: core/v1 `Volume`. */
export const VolumeSchema = v.object({
  name: go.text,
  hostPath: v.optional(HostPathVolumeSourceSchema),
  emptyDir: v.optional(EmptyDirVolumeSourceSchema),
  gitRepo: v.optional(
    v.object({
      repository: go.text,
      revision: v.optional(go.text),
      directory: v.optional(go.text),
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

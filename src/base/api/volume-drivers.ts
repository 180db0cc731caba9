import * as v from "valibot";
import { LocalObjectReferenceSchema } from "./meta.ts";
import {
  flag,
  flagPointer,
  int32,
  int32Pointer,
  oneOfPointer,
  text,
  textList,
  textMap,
  textPointer,
} from "./scalar.ts";

// Volume sources that need a cluster, a cloud or a driver on the node. They are decoded and validated as upstream does,
// so that a mistake in them is reported as such, and then refused as unsupported.

/** Source: core/v1 `GCEPersistentDiskVolumeSource`. */
export const GCEPersistentDiskVolumeSourceSchema = v.object({
  pdName: text,
  fsType: v.optional(text),
  partition: v.optional(int32),
  readOnly: v.optional(flag),
});

/** Source: core/v1 `AWSElasticBlockStoreVolumeSource`. */
export const AWSElasticBlockStoreVolumeSourceSchema = v.object({
  volumeID: text,
  fsType: v.optional(text),
  partition: v.optional(int32),
  readOnly: v.optional(flag),
});

/** Source: core/v1 `GitRepoVolumeSource`. */
export const GitRepoVolumeSourceSchema = v.object({
  repository: text,
  revision: v.optional(text),
  directory: v.optional(text),
});

/** Source: core/v1 `ISCSIVolumeSource`. */
export const ISCSIVolumeSourceSchema = v.object({
  targetPortal: text,
  iqn: text,
  lun: int32,
  iscsiInterface: v.optional(text, "default"),
  fsType: v.optional(text),
  readOnly: v.optional(flag),
  portals: v.optional(textList),
  chapAuthDiscovery: v.optional(flag),
  chapAuthSession: v.optional(flag),
  secretRef: v.optional(LocalObjectReferenceSchema),
  initiatorName: v.optional(textPointer),
});

/** Source: core/v1 `GlusterfsVolumeSource`. */
export const GlusterfsVolumeSourceSchema = v.object({ endpoints: text, path: text, readOnly: v.optional(flag) });

/** Source: core/v1 `RBDVolumeSource`. */
export const RBDVolumeSourceSchema = v.object({
  monitors: textList,
  image: text,
  fsType: v.optional(text),
  pool: v.optional(text, "rbd"),
  user: v.optional(text, "admin"),
  keyring: v.optional(text, "/etc/ceph/keyring"),
  secretRef: v.optional(LocalObjectReferenceSchema),
  readOnly: v.optional(flag),
});

/** Source: core/v1 `FlexVolumeSource`. */
export const FlexVolumeSourceSchema = v.object({
  driver: text,
  fsType: v.optional(text),
  secretRef: v.optional(LocalObjectReferenceSchema),
  readOnly: v.optional(flag),
  options: v.optional(textMap),
});

/** Source: core/v1 `CinderVolumeSource`. */
export const CinderVolumeSourceSchema = v.object({
  volumeID: text,
  fsType: v.optional(text),
  readOnly: v.optional(flag),
  secretRef: v.optional(LocalObjectReferenceSchema),
});

/** Source: core/v1 `CephFSVolumeSource`. */
export const CephFSVolumeSourceSchema = v.object({
  monitors: textList,
  path: v.optional(text),
  user: v.optional(text),
  secretFile: v.optional(text),
  secretRef: v.optional(LocalObjectReferenceSchema),
  readOnly: v.optional(flag),
});

/** Source: core/v1 `FlockerVolumeSource`. */
export const FlockerVolumeSourceSchema = v.object({ datasetName: v.optional(text), datasetUUID: v.optional(text) });

/** Source: core/v1 `FCVolumeSource`. */
export const FCVolumeSourceSchema = v.object({
  targetWWNs: v.optional(textList),
  lun: v.optional(int32Pointer),
  fsType: v.optional(text),
  readOnly: v.optional(flag),
  wwids: v.optional(textList),
});

/** Source: core/v1 `AzureFileVolumeSource`. */
export const AzureFileVolumeSourceSchema = v.object({
  secretName: text,
  shareName: text,
  readOnly: v.optional(flag),
});

/** Source: core/v1 `VsphereVirtualDiskVolumeSource`. */
export const VsphereVirtualDiskVolumeSourceSchema = v.object({
  volumePath: text,
  fsType: v.optional(text),
  storagePolicyName: v.optional(text),
  storagePolicyID: v.optional(text),
});

/** Source: core/v1 `QuobyteVolumeSource`. */
export const QuobyteVolumeSourceSchema = v.object({
  registry: text,
  volume: text,
  readOnly: v.optional(flag),
  user: v.optional(text),
  group: v.optional(text),
  tenant: v.optional(text),
});

/** Source: core/v1 `AzureDiskVolumeSource`. */
export const AzureDiskVolumeSourceSchema = v.object({
  diskName: text,
  diskURI: text,
  cachingMode: v.optional(oneOfPointer(["None", "ReadOnly", "ReadWrite"]), "ReadWrite"),
  fsType: v.optional(textPointer, "ext4"),
  readOnly: v.optional(flagPointer, false),
  kind: v.optional(oneOfPointer(["Shared", "Dedicated", "Managed"]), "Shared"),
});

/** Source: core/v1 `PhotonPersistentDiskVolumeSource`. */
export const PhotonPersistentDiskVolumeSourceSchema = v.object({ pdID: text, fsType: v.optional(text) });

/** Source: core/v1 `PortworxVolumeSource`. */
export const PortworxVolumeSourceSchema = v.object({
  volumeID: text,
  fsType: v.optional(text),
  readOnly: v.optional(flag),
});

/** Source: core/v1 `ScaleIOVolumeSource`. */
export const ScaleIOVolumeSourceSchema = v.object({
  gateway: text,
  system: text,
  secretRef: v.nullable(LocalObjectReferenceSchema),
  sslEnabled: v.optional(flag),
  protectionDomain: v.optional(text),
  storagePool: v.optional(text),
  storageMode: v.optional(text, "ThinProvisioned"),
  volumeName: v.optional(text),
  fsType: v.optional(text, "xfs"),
  readOnly: v.optional(flag),
});

/** Source: core/v1 `StorageOSVolumeSource`. */
export const StorageOSVolumeSourceSchema = v.object({
  volumeName: v.optional(text),
  volumeNamespace: v.optional(text),
  fsType: v.optional(text),
  readOnly: v.optional(flag),
  secretRef: v.optional(LocalObjectReferenceSchema),
});

/** Source: core/v1 `CSIVolumeSource`. */
export const CSIVolumeSourceSchema = v.object({
  driver: text,
  readOnly: v.optional(flagPointer),
  fsType: v.optional(textPointer),
  volumeAttributes: v.optional(textMap),
  nodePublishSecretRef: v.optional(LocalObjectReferenceSchema),
});

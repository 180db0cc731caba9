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

/**
 * Volume sources of core/v1 that need a cluster, a cloud or a driver on the node. They are decoded and validated as upstream
 * does, so that a mistake in them is reported as such, and then refused as unsupported.
 */
export const CLUSTER_VOLUMES = {
  gcePersistentDisk: v.optional(
    v.object({
      pdName: text,
      fsType: v.optional(text),
      partition: v.optional(int32),
      readOnly: v.optional(flag),
    }),
  ),
  awsElasticBlockStore: v.optional(
    v.object({
      volumeID: text,
      fsType: v.optional(text),
      partition: v.optional(int32),
      readOnly: v.optional(flag),
    }),
  ),
  iscsi: v.optional(
    v.object({
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
    }),
  ),
  glusterfs: v.optional(v.object({ endpoints: text, path: text, readOnly: v.optional(flag) })),
  rbd: v.optional(
    v.object({
      monitors: textList,
      image: text,
      fsType: v.optional(text),
      pool: v.optional(text, "rbd"),
      user: v.optional(text, "admin"),
      keyring: v.optional(text, "/etc/ceph/keyring"),
      secretRef: v.optional(LocalObjectReferenceSchema),
      readOnly: v.optional(flag),
    }),
  ),
  flexVolume: v.optional(
    v.object({
      driver: text,
      fsType: v.optional(text),
      secretRef: v.optional(LocalObjectReferenceSchema),
      readOnly: v.optional(flag),
      options: v.optional(textMap),
    }),
  ),
  cinder: v.optional(
    v.object({
      volumeID: text,
      fsType: v.optional(text),
      readOnly: v.optional(flag),
      secretRef: v.optional(LocalObjectReferenceSchema),
    }),
  ),
  cephfs: v.optional(
    v.object({
      monitors: textList,
      path: v.optional(text),
      user: v.optional(text),
      secretFile: v.optional(text),
      secretRef: v.optional(LocalObjectReferenceSchema),
      readOnly: v.optional(flag),
    }),
  ),
  flocker: v.optional(v.object({ datasetName: v.optional(text), datasetUUID: v.optional(text) })),
  fc: v.optional(
    v.object({
      targetWWNs: v.optional(textList),
      lun: v.optional(int32Pointer),
      fsType: v.optional(text),
      readOnly: v.optional(flag),
      wwids: v.optional(textList),
    }),
  ),
  azureFile: v.optional(
    v.object({
      secretName: text,
      shareName: text,
      readOnly: v.optional(flag),
    }),
  ),
  vsphereVolume: v.optional(
    v.object({
      volumePath: text,
      fsType: v.optional(text),
      storagePolicyName: v.optional(text),
      storagePolicyID: v.optional(text),
    }),
  ),
  quobyte: v.optional(
    v.object({
      registry: text,
      volume: text,
      readOnly: v.optional(flag),
      user: v.optional(text),
      group: v.optional(text),
      tenant: v.optional(text),
    }),
  ),
  azureDisk: v.optional(
    v.object({
      diskName: text,
      diskURI: text,
      cachingMode: v.optional(oneOfPointer(["None", "ReadOnly", "ReadWrite"]), "ReadWrite"),
      fsType: v.optional(textPointer, "ext4"),
      readOnly: v.optional(flagPointer, false),
      kind: v.optional(oneOfPointer(["Shared", "Dedicated", "Managed"]), "Shared"),
    }),
  ),
  photonPersistentDisk: v.optional(v.object({ pdID: text, fsType: v.optional(text) })),
  portworxVolume: v.optional(
    v.object({
      volumeID: text,
      fsType: v.optional(text),
      readOnly: v.optional(flag),
    }),
  ),
  scaleIO: v.optional(
    v.object({
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
    }),
  ),
  storageos: v.optional(
    v.object({
      volumeName: v.optional(text),
      volumeNamespace: v.optional(text),
      fsType: v.optional(text),
      readOnly: v.optional(flag),
      secretRef: v.optional(LocalObjectReferenceSchema),
    }),
  ),
  csi: v.optional(
    v.object({
      driver: text,
      readOnly: v.optional(flagPointer),
      fsType: v.optional(textPointer),
      volumeAttributes: v.optional(textMap),
      nodePublishSecretRef: v.optional(LocalObjectReferenceSchema),
    }),
  ),
};
export type ClusterVolumeName = keyof typeof CLUSTER_VOLUMES;
export const CLUSTER_VOLUME_NAMES = Object.keys(CLUSTER_VOLUMES) as ClusterVolumeName[];

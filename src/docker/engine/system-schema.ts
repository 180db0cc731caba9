import * as v from "valibot";
import { flag, listOf, mapOf, text, textMap, whole } from "./shapes.ts";

/** `GET /version`. */
export const VersionSchema = v.object({
  /** The engine's, e.g. `20.10.24+dfsg1`. */
  Version: text,
  /** Highest API version it supports, e.g. `1.41`. */
  ApiVersion: text,
  /** Lowest one; "" on engines older than 1.24. */
  MinAPIVersion: text,
  Os: text,
  /** As Go names it: amd64, arm64. */
  Arch: text,
  KernelVersion: text,
  Components: listOf(v.object({ Name: text, Version: text })),
});
export type EngineVersion = v.InferOutput<typeof VersionSchema>;

/** `GET /info`. */
export const InfoSchema = v.object({
  ID: text,
  /** The machine's host name. */
  Name: text,
  ServerVersion: text,
  /** As `uname -m` says it: x86_64, aarch64. */
  Architecture: text,
  OSType: text,
  OperatingSystem: text,
  KernelVersion: text,
  NCPU: whole,
  MemTotal: whole,
  DockerRootDir: text,
  /** overlay2, or overlayfs with the containerd image store. */
  Driver: text,
  /** Pairs; with the containerd image store they hold `["driver-type","io.containerd.snapshotter.v1"]`. */
  DriverStatus: listOf(v.array(v.string())),
  LoggingDriver: text,
  /** cgroupfs, systemd or none. */
  CgroupDriver: text,
  /** "1" or "2"; "" on engines before 20.10. */
  CgroupVersion: text,
  /** `name=seccomp,profile=default`, `name=apparmor`, `name=rootless`, `name=userns`, … */
  SecurityOptions: listOf(v.string()),
  Runtimes: mapOf(v.unknown()),
  DefaultRuntime: text,
  LiveRestoreEnabled: flag,
  MemoryLimit: flag,
  PidsLimit: flag,
  Containers: whole,
  Images: whole,
  Warnings: listOf(v.string()),
  /** CDI devices, from API 1.50. */
  DiscoveredDevices: listOf(v.object({ Source: text, ID: text })),
  /** Where containerd keeps its state, from API 1.47 or so. */
  Containerd: v.nullish(v.object({ Address: text }), null),
  /** Registries that are trusted without TLS or without a known certificate. */
  RegistryConfig: v.nullish(
    v.object({ InsecureRegistryCIDRs: listOf(v.string()), IndexConfigs: mapOf(v.object({ Secure: flag })) }),
    null,
  ),
});
export type EngineInfoResponse = v.InferOutput<typeof InfoSchema>;

const UsageSchema = v.nullish(v.object({ TotalSize: whole }), null);

/** `GET /system/df` of both shapes: lists up to 1.51, sums from 1.52 (whose change log writes them with an s). */
export const DiskUsageSchema = v.pipe(
  v.object({
    LayersSize: whole,
    Containers: listOf(v.object({ SizeRw: whole })),
    Volumes: listOf(v.object({ UsageData: v.nullish(v.object({ Size: whole }), null) })),
    ImageUsage: UsageSchema,
    ImagesUsage: UsageSchema,
    ContainerUsage: UsageSchema,
    ContainersUsage: UsageSchema,
    VolumeUsage: UsageSchema,
    VolumesUsage: UsageSchema,
  }),
  v.transform((df) => {
    const ofContainers = df.Containers.reduce((sum, one) => sum + one.SizeRw, 0);
    const ofVolumes = df.Volumes.reduce((sum, one) => sum + Math.max(0, one.UsageData?.Size ?? 0), 0);
    return {
      /** Bytes of all image layers. */
      imagesBytes: (df.ImageUsage ?? df.ImagesUsage)?.TotalSize ?? df.LayersSize,
      /** Bytes of all writable layers. */
      containersBytes: (df.ContainerUsage ?? df.ContainersUsage)?.TotalSize ?? ofContainers,
      /** Bytes of all named volumes whose size is known. */
      volumesBytes: (df.VolumeUsage ?? df.VolumesUsage)?.TotalSize ?? ofVolumes,
    };
  }),
);
export type DiskUsage = v.InferOutput<typeof DiskUsageSchema>;

/** `GET /volumes/<name>`. */
export const VolumeSchema = v.object({
  Name: v.string(),
  Driver: text,
  /** On the host. */
  Mountpoint: text,
  Labels: textMap,
  Options: textMap,
});
export type DockerVolume = v.InferOutput<typeof VolumeSchema>;

export const VolumeListSchema = v.object({ Volumes: listOf(VolumeSchema) });

/** `GET /networks/<id>`. */
export const NetworkSchema = v.object({
  Id: v.string(),
  Name: text,
  /** bridge, host, none, overlay, macvlan, … */
  Driver: text,
  Internal: flag,
  IPAM: v.nullish(v.object({ Config: listOf(v.object({ Subnet: text, Gateway: text })) }), { Config: [] }),
  Labels: textMap,
  Options: textMap,
});
export type DockerNetwork = v.InferOutput<typeof NetworkSchema>;

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
  /** As Go names it: amd64, arm64. */
  Arch: text,
});

/** `GET /info`. */
export const InfoSchema = v.object({
  ServerVersion: text,
  /** As `uname -m` says it: x86_64, aarch64. */
  Architecture: text,
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
  Warnings: listOf(v.string()),
  Runtimes: mapOf(v.unknown()),
  LiveRestoreEnabled: flag,
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

/** `GET /system/df`: a sum up to 1.51, then by kind (which the change log writes with an s). */
export const DiskUsageSchema = v.object({ LayersSize: whole, ImageUsage: UsageSchema, ImagesUsage: UsageSchema });

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

/** `GET /networks/<id>`. */
export const NetworkSchema = v.object({
  Id: v.string(),
  Name: text,
  /** bridge, host, none, overlay, macvlan, … */
  Driver: text,
  IPAM: v.nullish(v.object({ Config: listOf(v.object({ Subnet: text, Gateway: text })) }), { Config: [] }),
  Labels: textMap,
  Options: textMap,
});
export type DockerNetwork = v.InferOutput<typeof NetworkSchema>;

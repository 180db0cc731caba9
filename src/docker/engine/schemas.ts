import * as v from "valibot";
import { flag, listOf, mapOf, nameSet, text, textMap, whole } from "../../base/api/docker-json.ts";

/** Addresses by network, "" while it does not run. API 1.52 has no others, and older ones repeat them here. */
const NetworkSettingsSchema = v.nullish(
  v.object({ Networks: mapOf(v.nullable(v.object({ IPAddress: text, GlobalIPv6Address: text }))) }),
  { Networks: {} },
);

/** An item of `GET /containers/json`. */
export const ContainerSummarySchema = v.object({
  Id: v.string(),
  /** With a leading `/`. */
  Names: listOf(v.string()),
  /** As given at creation, or the image's id when that name now means another image. */
  Image: text,
  ImageID: text,
  /** created, running, paused, restarting, removing, exited, dead. */
  State: text,
  Labels: textMap,
  NetworkSettings: NetworkSettingsSchema,
});
export type ContainerSummary = v.InferOutput<typeof ContainerSummarySchema>;

const ContainerStateSchema = v.object({
  /** created, running, paused, restarting, removing, exited, dead. */
  Status: text,
  Running: flag,
  Paused: flag,
  OOMKilled: flag,
  Dead: flag,
  /** On the host; 0 when not running. */
  Pid: whole,
  ExitCode: whole,
  /** Why the start failed, else "". */
  Error: text,
  /** RFC 3339; `0001-01-01T00:00:00Z` = never. */
  StartedAt: text,
  FinishedAt: text,
});

/** The fields of HostConfig that are read; the mapping, not this schema, builds what is sent. */
const HostConfigSchema = v.object({
  NetworkMode: text,
  CgroupParent: text,
  CpuShares: whole,
  CpuPeriod: whole,
  CpuQuota: whole,
  Memory: whole,
  MemorySwap: whole,
});

/** The fields that are read of a container's Config, and of an image's. */
const ContainerConfigSchema = v.object({
  User: text,
  Tty: flag,
  Env: listOf(v.string()),
  Cmd: v.nullish(v.array(v.string()), null),
  Entrypoint: v.nullish(v.array(v.string()), null),
  Image: text,
  WorkingDir: text,
  Volumes: nameSet,
  Labels: textMap,
  StopSignal: text,
  /** Durations in nanoseconds. */
  Healthcheck: v.nullish(
    v.object({ Test: listOf(v.string()), Interval: whole, Timeout: whole, StartPeriod: whole, Retries: whole }),
    null,
  ),
});

/** `GET /containers/<id>/json`. */
export const ContainerInspectSchema = v.object({
  Id: v.string(),
  /** RFC 3339 with nanoseconds. */
  Created: text,
  /** With a leading `/`. */
  Name: text,
  /** Image id, `sha256:…`. */
  Image: text,
  State: ContainerStateSchema,
  LogPath: text,
  ResolvConfPath: text,
  Config: ContainerConfigSchema,
  HostConfig: HostConfigSchema,
  GraphDriver: v.nullish(v.object({ Data: textMap }), { Data: {} }),
  NetworkSettings: NetworkSettingsSchema,
});
export type ContainerInspect = v.InferOutput<typeof ContainerInspectSchema>;

export const IdSchema = v.object({ Id: v.string() });

/** `GET /exec/<id>/json`. */
export const ExecInspectSchema = v.object({
  ID: v.string(),
  Running: flag,
  /** null while it runs and before it was started. */
  ExitCode: v.nullish(v.number(), null),
  /** On the host; 0 before it was started. */
  Pid: whole,
  ContainerID: text,
});
export type ExecInspect = v.InferOutput<typeof ExecInspectSchema>;

/** An item of `GET /images/json`. */
export const ImageSummarySchema = v.object({
  Id: v.string(),
  /** Without the `<none>:<none>` that older engines write for an untagged image. */
  RepoTags: v.pipe(
    listOf(v.string()),
    v.transform((tags) => tags.filter((tag) => tag !== "<none>:<none>")),
  ),
  RepoDigests: v.pipe(
    listOf(v.string()),
    v.transform((digests) => digests.filter((digest) => digest !== "<none>@<none>")),
  ),
  /** Unix seconds. */
  Created: whole,
  /** Bytes, shared layers included. */
  Size: whole,
  Labels: textMap,
});
export type ImageSummary = v.InferOutput<typeof ImageSummarySchema>;

/** `GET /images/<name>/json`. */
export const ImageInspectSchema = v.object({
  Id: v.string(),
  RepoTags: listOf(v.string()),
  RepoDigests: listOf(v.string()),
  /** As Go names it: amd64, arm64. */
  Architecture: text,
  Size: whole,
  /** Digests of the unpacked layers, lowest first: the same in every image store, unlike the id. */
  RootFS: v.nullish(v.object({ Layers: listOf(v.string()) }), { Layers: [] }),
  Config: v.nullish(ContainerConfigSchema, () => v.parse(ContainerConfigSchema, {})),
});
export type ImageInspect = v.InferOutput<typeof ImageInspectSchema>;

/** `GET /distribution/<name>/json`. */
export const DistributionSchema = v.object({
  /** One for an image without an index. `unknown` are attestations. */
  Platforms: listOf(v.object({ architecture: text, os: text })),
});
export type Distribution = v.InferOutput<typeof DistributionSchema>;

/** One line of a pull or a load (`JSONMessage`). `error` comes last, although the response began with 200. */
export const ProgressLineSchema = v.object({
  /** The layer's short id; "" for what concerns the whole image. */
  id: text,
  /** `Downloading`, `Pull complete`, … */
  status: text,
  /** Free text of a load. */
  stream: text,
  progressDetail: v.nullish(v.object({ current: whole, total: whole }), { current: 0, total: 0 }),
  error: text,
  errorDetail: v.nullish(v.object({ code: whole, message: text }), null),
});
export type ProgressLine = v.InferOutput<typeof ProgressLineSchema>;

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
  /** Its driver is iptables, nftables, or either with `+firewalld`. From API 1.49. */
  FirewallBackend: v.nullish(v.object({ Driver: text }), null),
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
  IPAM: v.nullish(v.object({ Config: listOf(v.object({ Subnet: text })) }), { Config: [] }),
  Options: textMap,
});
export type DockerNetwork = v.InferOutput<typeof NetworkSchema>;

import * as v from "valibot";
import { flag, listOf, mapOf, nameSet, text, textMap, whole } from "./shapes.ts";

/** One published port, as HostConfig.PortBindings and NetworkSettings.Ports write it. `HostPort` is a decimal text. */
const PortBindingSchema = v.object({ HostIp: text, HostPort: text });

/** Published ports by `8080/tcp`. */
export const PortMapSchema = mapOf(v.nullable(v.array(PortBindingSchema)));

/** A container's place in one network. All addresses are "" while it is not running. */
const EndpointSettingsSchema = v.object({
  IPAddress: text,
  IPPrefixLen: whole,
  Gateway: text,
  GlobalIPv6Address: text,
  MacAddress: text,
  Aliases: listOf(v.string()),
});

/** A mount of a container as it is. */
export const MountPointSchema = v.object({
  Type: text,
  Name: text,
  Source: text,
  Destination: text,
  Mode: text,
  RW: flag,
  Propagation: text,
});

/** An item of `GET /containers/json`. */
export const ContainerSummarySchema = v.object({
  Id: v.string(),
  /** With a leading `/`. */
  Names: listOf(v.string()),
  /** As given at creation, or the image's id when that name now means another image. */
  Image: text,
  ImageID: text,
  /** Unix seconds. */
  Created: whole,
  /** created, running, paused, restarting, removing, exited, dead. */
  State: text,
  /** For users: `Exited (0) 3 minutes ago`. */
  Status: text,
  Labels: textMap,
  Mounts: listOf(MountPointSchema),
  NetworkSettings: v.nullish(v.object({ Networks: mapOf(v.nullable(EndpointSettingsSchema)) }), { Networks: {} }),
});
export type ContainerSummary = v.InferOutput<typeof ContainerSummarySchema>;

const ContainerStateSchema = v.object({
  /** created, running, paused, restarting, removing, exited, dead. */
  Status: text,
  Running: flag,
  Paused: flag,
  Restarting: flag,
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
  IpcMode: text,
  PidMode: text,
  UTSMode: text,
  UsernsMode: text,
  CgroupParent: text,
  PortBindings: PortMapSchema,
  Binds: listOf(v.string()),
  Privileged: flag,
  ReadonlyRootfs: flag,
  CpuShares: whole,
  CpuPeriod: whole,
  CpuQuota: whole,
  NanoCpus: whole,
  CpusetCpus: text,
  Memory: whole,
  MemorySwap: whole,
  MemoryReservation: whole,
  OomScoreAdj: whole,
  PidsLimit: v.nullish(v.number(), null),
  Sysctls: textMap,
  LogConfig: v.nullish(v.object({ Type: text, Config: textMap }), { Type: "", Config: {} }),
});

/** The fields that are read of a container's Config, and of an image's. */
export const ContainerConfigSchema = v.object({
  Hostname: text,
  Domainname: text,
  User: text,
  Tty: flag,
  OpenStdin: flag,
  StdinOnce: flag,
  Env: listOf(v.string()),
  Cmd: v.nullish(v.array(v.string()), null),
  Entrypoint: v.nullish(v.array(v.string()), null),
  Image: text,
  WorkingDir: text,
  Volumes: nameSet,
  ExposedPorts: nameSet,
  Labels: textMap,
  StopSignal: text,
  Healthcheck: v.nullish(v.object({ Test: listOf(v.string()) }), null),
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
  Mounts: listOf(MountPointSchema),
  /** Bytes of the writable layer; only on request (`size`). */
  SizeRw: v.nullish(v.number()),
  GraphDriver: v.nullish(v.object({ Name: text, Data: v.nullish(textMap, {}) }), { Name: "", Data: {} }),
  /** Addresses are listed per network only: API 1.52 has no others, and older ones repeat them there. */
  NetworkSettings: v.nullish(
    v.object({ SandboxKey: text, Ports: PortMapSchema, Networks: mapOf(v.nullable(EndpointSettingsSchema)) }),
    { SandboxKey: "", Ports: {}, Networks: {} },
  ),
});
export type ContainerInspect = v.InferOutput<typeof ContainerInspectSchema>;

/** `Warnings` are for users, e.g. `Your kernel does not support swap limit capabilities`. */
export const ContainerCreatedSchema = v.object({ Id: v.string(), Warnings: listOf(v.string()) });
export type ContainerCreated = v.InferOutput<typeof ContainerCreatedSchema>;

export const ContainerWaitSchema = v.object({
  StatusCode: v.number(),
  Error: v.nullish(v.object({ Message: text }), null),
});

export const ContainerUpdatedSchema = v.object({ Warnings: listOf(v.string()) });

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

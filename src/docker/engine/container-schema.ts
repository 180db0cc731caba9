import * as v from "valibot";
import { flag, listOf, mapOf, nameSet, text, textMap, whole } from "./shapes.ts";

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
export const ContainerConfigSchema = v.object({
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
  GraphDriver: v.nullish(v.object({ Data: textMap }), { Data: {} }),
  /** Addresses, "" while it does not run. API 1.52 has no others, and older ones repeat them here. */
  NetworkSettings: v.nullish(
    v.object({ Networks: mapOf(v.nullable(v.object({ IPAddress: text, GlobalIPv6Address: text }))) }),
    { Networks: {} },
  ),
});
export type ContainerInspect = v.InferOutput<typeof ContainerInspectSchema>;

/** `Warnings` are for users, e.g. `Your kernel does not support swap limit capabilities`. */
export const ContainerCreatedSchema = v.object({ Id: v.string(), Warnings: listOf(v.string()) });
export type ContainerCreated = v.InferOutput<typeof ContainerCreatedSchema>;

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

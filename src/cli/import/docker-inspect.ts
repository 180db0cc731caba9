import * as v from "valibot";
import { flag, listOf, mapOf, nameSet, text, textMap, whole } from "../../docker/engine/schemas.ts";

/** Published ports by `8080/tcp`. */
const PortMapSchema = mapOf(v.nullable(v.array(v.object({ HostIp: text, HostPort: text }))));

/** A mount of a container as it is. */
const MountPointSchema = v.object({
  Type: text,
  Name: text,
  Source: text,
  Destination: text,
  Mode: text,
  RW: flag,
  Propagation: text,
});

const ConfigSchema = v.looseObject({
  Hostname: text,
  Domainname: text,
  User: text,
  ExposedPorts: nameSet,
  Tty: flag,
  OpenStdin: flag,
  StdinOnce: flag,
  Env: listOf(v.string()),
  Cmd: listOf(v.string()),
  Entrypoint: listOf(v.string()),
  /** Durations in nanoseconds; 0 is the default of the engine. */
  Healthcheck: v.nullish(
    v.object({ Test: listOf(v.string()), Interval: whole, Timeout: whole, StartPeriod: whole, Retries: whole }),
  ),
  Image: text,
  WorkingDir: text,
  Labels: textMap,
  StopSignal: text,
  /** Seconds; null is the default of the engine. */
  StopTimeout: v.nullish(v.number()),
});

export const HostConfigSchema = v.looseObject({
  NetworkMode: text,
  PidMode: text,
  IpcMode: text,
  PortBindings: PortMapSchema,
  RestartPolicy: v.nullish(v.object({ Name: text, MaximumRetryCount: whole }), () => ({
    Name: "",
    MaximumRetryCount: 0,
  })),
  CapAdd: listOf(v.string()),
  CapDrop: listOf(v.string()),
  Dns: listOf(v.string()),
  DnsOptions: listOf(v.string()),
  DnsSearch: listOf(v.string()),
  ExtraHosts: listOf(v.string()),
  GroupAdd: listOf(v.string()),
  Privileged: flag,
  ReadonlyRootfs: flag,
  SecurityOpt: listOf(v.string()),
  Tmpfs: textMap,
  /** Bytes. */
  ShmSize: whole,
  Sysctls: textMap,
  CpuShares: whole,
  CpuPeriod: whole,
  CpuQuota: whole,
  NanoCpus: whole,
  /** Bytes. */
  Memory: whole,
  MemoryReservation: whole,
  Devices: listOf(v.object({ PathOnHost: text, PathInContainer: text, CgroupPermissions: text })),
  Mounts: listOf(
    v.looseObject({
      Type: text,
      Target: text,
      ReadOnly: flag,
      TmpfsOptions: v.nullish(v.object({ SizeBytes: whole, Mode: whole })),
      VolumeOptions: v.nullish(v.object({ Subpath: text })),
    }),
  ),
});

/** Fields that are read of `GET /containers/<id>/json`. Fields of HostConfig that are not listed are kept as they are. */
export const InspectedContainerSchema = v.object({
  Id: v.string(),
  /** With a leading `/`. */
  Name: text,
  /** Id of the image. */
  Image: text,
  Config: ConfigSchema,
  HostConfig: HostConfigSchema,
  Mounts: listOf(MountPointSchema),
  NetworkSettings: v.nullish(
    v.object({
      Ports: PortMapSchema,
      Networks: mapOf(
        v.nullable(
          v.object({
            Aliases: listOf(v.string()),
            IPAMConfig: v.nullish(v.object({ IPv4Address: text, IPv6Address: text })),
          }),
        ),
      ),
    }),
    () => ({ Ports: {}, Networks: {} }),
  ),
});
export type InspectedContainer = v.InferOutput<typeof InspectedContainerSchema>;

/** Fields that are read of `GET /images/<name>/json`. */
export const InspectedImageSchema = v.object({
  Id: v.string(),
  RepoTags: listOf(v.string()),
  Config: v.nullish(ConfigSchema, () => v.parse(ConfigSchema, {})),
});
export type InspectedImage = v.InferOutput<typeof InspectedImageSchema>;

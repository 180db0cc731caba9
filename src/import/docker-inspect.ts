import * as v from "valibot";

/** Docker (Go) writes `null` for empty lists and maps, and some versions lack fields. */
const text = v.nullish(v.string(), "");
const flag = v.nullish(v.boolean(), false);
const whole = v.nullish(v.number(), 0);
const list = <const S extends v.GenericSchema>(item: S) => v.nullish(v.array(item), () => []);
const map = <const S extends v.GenericSchema>(value: S) => v.nullish(v.record(v.string(), value), () => ({}));

const ports = map(v.nullable(v.array(v.object({ HostIp: text, HostPort: text }))));

const ConfigSchema = v.looseObject({
  Hostname: text,
  Domainname: text,
  User: text,
  ExposedPorts: map(v.unknown()),
  Tty: flag,
  OpenStdin: flag,
  StdinOnce: flag,
  Env: list(v.string()),
  Cmd: list(v.string()),
  Entrypoint: list(v.string()),
  /** Durations in nanoseconds; 0 is the default of the engine. */
  Healthcheck: v.nullish(
    v.object({ Test: list(v.string()), Interval: whole, Timeout: whole, StartPeriod: whole, Retries: whole }),
  ),
  Image: text,
  WorkingDir: text,
  Labels: map(v.string()),
  StopSignal: text,
  /** Seconds; null is the default of the engine. */
  StopTimeout: v.nullish(v.number()),
});

const HostConfigSchema = v.looseObject({
  NetworkMode: text,
  PidMode: text,
  IpcMode: text,
  PortBindings: ports,
  RestartPolicy: v.nullish(v.object({ Name: text, MaximumRetryCount: whole }), () => ({
    Name: "",
    MaximumRetryCount: 0,
  })),
  CapAdd: list(v.string()),
  CapDrop: list(v.string()),
  Dns: list(v.string()),
  DnsOptions: list(v.string()),
  DnsSearch: list(v.string()),
  ExtraHosts: list(v.string()),
  GroupAdd: list(v.string()),
  Privileged: flag,
  ReadonlyRootfs: flag,
  SecurityOpt: list(v.string()),
  Tmpfs: map(v.string()),
  /** Bytes. */
  ShmSize: whole,
  Sysctls: map(v.string()),
  CpuShares: whole,
  CpuPeriod: whole,
  CpuQuota: whole,
  NanoCpus: whole,
  /** Bytes. */
  Memory: whole,
  MemoryReservation: whole,
  Devices: list(v.object({ PathOnHost: text, PathInContainer: text, CgroupPermissions: text })),
  Mounts: list(
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
  Mounts: list(
    v.object({
      Type: text,
      Name: text,
      Source: text,
      Destination: text,
      Mode: text,
      RW: flag,
      Propagation: text,
    }),
  ),
  NetworkSettings: v.nullish(
    v.object({
      Ports: ports,
      Networks: map(
        v.nullable(
          v.object({
            Aliases: list(v.string()),
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
  RepoTags: list(v.string()),
  Config: v.nullish(ConfigSchema, () => v.parse(ConfigSchema, {})),
});
export type InspectedImage = v.InferOutput<typeof InspectedImageSchema>;

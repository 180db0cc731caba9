import * as v from "valibot";
import { flag, listOf, mapOf, nameSet, text, textMap, whole } from "../../base/api/docker-json.ts";
import type { ImportNotes } from "./pod-parts.ts";

const NOT_CARRIED = "is not carried over";

/** Settings of HostConfig that a manifest cannot express: the flag of `docker run`, the alternative, a value without a note. */
const SETTINGS: Readonly<Record<string, readonly [flag: string, alternative?: string | undefined, usual?: unknown]>> = {
  AutoRemove: ["--rm", "the pod stays until its manifest is removed"],
  BlkioWeight: ["--blkio-weight"],
  BlkioWeightDevice: ["--blkio-weight-device"],
  BlkioDeviceReadBps: ["--device-read-bps"],
  BlkioDeviceReadIOps: ["--device-read-iops"],
  BlkioDeviceWriteBps: ["--device-write-bps"],
  BlkioDeviceWriteIOps: ["--device-write-iops"],
  CgroupParent: ["--cgroup-parent", "pods have cgroups of their own below --cgroup-root"],
  CpuRealtimePeriod: ["--cpu-rt-period"],
  CpuRealtimeRuntime: ["--cpu-rt-runtime"],
  CpusetCpus: ["--cpuset-cpus"],
  CpusetMems: ["--cpuset-mems"],
  DeviceCgroupRules: ["--device-cgroup-rule", "give the devices as hostPath volumes"],
  DeviceRequests: ["--gpus", "make the GPU runtime the default of the engine and set NVIDIA_VISIBLE_DEVICES"],
  KernelMemory: ["--kernel-memory"],
  Links: ["--link", "put both pods into one network (kubelet-ts.io/network)"],
  MemorySwappiness: ["--memory-swappiness", undefined, -1],
  OomKillDisable: ["--oom-kill-disable"],
  OomScoreAdj: ["--oom-score-adj", "it follows from requests and limits"],
  PidsLimit: ["--pids-limit", "--pod-max-pids limits all pods", -1],
  Runtime: ["--runtime", "make it the default runtime of the engine", "runc"],
  StorageOpt: ["--storage-opt", "set resources.limits.ephemeral-storage"],
  UTSMode: ["--uts"],
  UsernsMode: ["--userns"],
};

/** Fields that repeat others, that only Windows has, or that every container has. */
const IGNORED = new Set(
  `Binds Cgroup CgroupnsMode ConsoleSize ContainerIDFile CpuCount CpuPercent IOMaximumBandwidth IOMaximumIOps Isolation
  KernelMemoryTCP MaskedPaths MemorySwap PublishAllPorts ReadonlyPaths VolumeDriver VolumesFrom`.split(/\s+/),
);

/** The advice on a field of HostConfig that a manifest cannot express. */
export function adviceOf(field: string): string {
  const [, alternative] = SETTINGS[field] ?? [];
  return alternative === undefined ? NOT_CARRIED : `${NOT_CARRIED}: ${alternative}`;
}

const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === "" ||
  value === 0 ||
  value === false ||
  (typeof value === "object" && Object.keys(value).length === 0);

/** Names the settings of a container that a manifest cannot express. Fields of the schema are carried over. */
export function noteSettings({ Config, HostConfig }: InspectedContainer, notes: ImportNotes): void {
  for (const [field, value] of Object.entries(HostConfig)) {
    if (field in HostConfigSchema.entries || IGNORED.has(field) || isEmpty(value)) continue;
    const [flag = `HostConfig.${field}`, , usual] = SETTINGS[field] ?? [];
    if (value !== usual) notes.add(flag, adviceOf(field));
  }
  const { Memory, MemorySwap } = HostConfig;
  // Docker sets the swap to the memory limit once more unless it is set.
  if (typeof MemorySwap === "number" && MemorySwap !== 0 && MemorySwap !== 2 * Memory) {
    notes.add("--memory-swap", `${NOT_CARRIED}: pods with a memory limit have no swap`);
  }
  if (!isEmpty(Config.Domainname)) notes.add("--domainname", `${NOT_CARRIED}: set hostname and subdomain`);
  if (!isEmpty(Config.MacAddress)) notes.add("--mac-address", NOT_CARRIED);
}

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
    v.object({
      Test: listOf(v.string()),
      Interval: whole,
      Timeout: whole,
      StartPeriod: whole,
      StartInterval: whole,
      Retries: whole,
    }),
  ),
  Image: text,
  WorkingDir: text,
  Labels: textMap,
  StopSignal: text,
  /** Seconds; null is the default of the engine. */
  StopTimeout: v.nullish(v.number()),
});

const HostConfigSchema = v.looseObject({
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
  Init: flag,
  LogConfig: v.nullish(v.object({ Type: text, Config: textMap }), () => ({ Type: "", Config: {} })),
  Sysctls: textMap,
  CpuShares: whole,
  CpuPeriod: whole,
  CpuQuota: whole,
  NanoCpus: whole,
  /** Bytes. */
  Memory: whole,
  MemoryReservation: whole,
  Ulimits: listOf(v.object({ Name: text, Soft: whole, Hard: whole })),
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
            Links: listOf(v.string()),
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

import { HostConfigSchema, type InspectedContainer } from "./docker-inspect.ts";
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
  Init: ["--init", "shareProcessNamespace: true lets the pause process reap"],
  KernelMemory: ["--kernel-memory"],
  Links: ["--link", "put both pods into one network (kubelet-ts.io/network)"],
  MemorySwappiness: ["--memory-swappiness", undefined, -1],
  OomKillDisable: ["--oom-kill-disable"],
  OomScoreAdj: ["--oom-score-adj", "it follows from requests and limits"],
  PidsLimit: ["--pids-limit", "--pod-max-pids limits all pods", -1],
  Runtime: ["--runtime", "make it the default runtime of the engine", "runc"],
  StorageOpt: ["--storage-opt", "set resources.limits.ephemeral-storage"],
  UTSMode: ["--uts"],
  Ulimits: ["--ulimit", "set default-ulimits in /etc/docker/daemon.json"],
  UsernsMode: ["--userns"],
};

/** Fields that repeat others, that only Windows has, or that every container has. */
const IGNORED = new Set(
  `Binds Cgroup CgroupnsMode ConsoleSize ContainerIDFile CpuCount CpuPercent IOMaximumBandwidth IOMaximumIOps Isolation
  KernelMemoryTCP LogConfig MaskedPaths MemorySwap PublishAllPorts ReadonlyPaths VolumeDriver VolumesFrom`.split(/\s+/),
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
  noteLog(HostConfig.LogConfig, notes);
  const { Memory, MemorySwap } = HostConfig;
  // Docker sets the swap to the memory limit once more unless it is set.
  if (typeof MemorySwap === "number" && MemorySwap !== 0 && MemorySwap !== 2 * Memory) {
    notes.add("--memory-swap", `${NOT_CARRIED}: pods with a memory limit have no swap`);
  }
  if (!isEmpty(Config.Domainname)) notes.add("--domainname", `${NOT_CARRIED}: set hostname and subdomain`);
  if (!isEmpty(Config.MacAddress)) notes.add("--mac-address", NOT_CARRIED);
}

function noteLog(logConfig: unknown, notes: ImportNotes): void {
  const { Type = "", Config = {} } = (logConfig ?? {}) as { Type?: string; Config?: Record<string, string> | null };
  if (Type !== "" && Type !== "json-file") {
    notes.add("--log-driver", `${Type} is not carried over: logs of pods are files (json-file)`);
  }
  for (const name of Object.keys(Config ?? {})) {
    const advice =
      name === "max-size" || name === "max-file"
        ? "--container-log-max-size and --container-log-max-files hold for all pods"
        : "logs of pods have no options of their own";
    notes.add(`--log-opt ${name}`, `${NOT_CARRIED}: ${advice}`);
  }
}

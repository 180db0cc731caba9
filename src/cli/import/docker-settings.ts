import { HostConfigSchema, type InspectedContainer } from "./docker-inspect.ts";
import type { ImportNotes } from "./pod-parts.ts";

/** A setting of HostConfig that a manifest cannot express. */
interface Setting {
  /** The flag of `docker run`. */
  flag: string;
  /** The way out. */
  advice: string;
  /** Values that need no note, besides empty ones. */
  usual?: readonly unknown[];
}

const NOT_CARRIED = "is not carried over";

/** Settings by their field; fields that are neither here nor in the schema are named by the name of the field. */
const SETTINGS: Readonly<Record<string, Setting>> = {
  AutoRemove: { flag: "--rm", advice: `${NOT_CARRIED}: the pod stays until its manifest is removed` },
  BlkioWeight: { flag: "--blkio-weight", advice: NOT_CARRIED },
  BlkioWeightDevice: { flag: "--blkio-weight-device", advice: NOT_CARRIED },
  BlkioDeviceReadBps: { flag: "--device-read-bps", advice: NOT_CARRIED },
  BlkioDeviceReadIOps: { flag: "--device-read-iops", advice: NOT_CARRIED },
  BlkioDeviceWriteBps: { flag: "--device-write-bps", advice: NOT_CARRIED },
  BlkioDeviceWriteIOps: { flag: "--device-write-iops", advice: NOT_CARRIED },
  CgroupParent: {
    flag: "--cgroup-parent",
    advice: `${NOT_CARRIED}: pods have cgroups of their own below --cgroup-root`,
  },
  CpuRealtimePeriod: { flag: "--cpu-rt-period", advice: NOT_CARRIED },
  CpuRealtimeRuntime: { flag: "--cpu-rt-runtime", advice: NOT_CARRIED },
  CpusetCpus: { flag: "--cpuset-cpus", advice: NOT_CARRIED },
  CpusetMems: { flag: "--cpuset-mems", advice: NOT_CARRIED },
  DeviceCgroupRules: { flag: "--device-cgroup-rule", advice: `${NOT_CARRIED}: give the devices as hostPath volumes` },
  DeviceRequests: {
    flag: "--gpus",
    advice: `${NOT_CARRIED}: make the GPU runtime the default of the engine and set NVIDIA_VISIBLE_DEVICES`,
  },
  Init: { flag: "--init", advice: `${NOT_CARRIED}: shareProcessNamespace: true lets the pause process reap` },
  KernelMemory: { flag: "--kernel-memory", advice: NOT_CARRIED },
  Links: { flag: "--link", advice: `${NOT_CARRIED}: put both pods into one network (kubelet-ts.io/network)` },
  MemorySwappiness: { flag: "--memory-swappiness", advice: NOT_CARRIED, usual: [-1] },
  OomKillDisable: { flag: "--oom-kill-disable", advice: NOT_CARRIED },
  OomScoreAdj: { flag: "--oom-score-adj", advice: `${NOT_CARRIED}: it follows from requests and limits` },
  PidsLimit: { flag: "--pids-limit", advice: `${NOT_CARRIED}: --pod-max-pids limits all pods`, usual: [-1] },
  Runtime: { flag: "--runtime", advice: `${NOT_CARRIED}: make it the default runtime of the engine`, usual: ["runc"] },
  StorageOpt: { flag: "--storage-opt", advice: `${NOT_CARRIED}: set resources.limits.ephemeral-storage` },
  UTSMode: { flag: "--uts", advice: NOT_CARRIED },
  Ulimits: { flag: "--ulimit", advice: `${NOT_CARRIED}: set default-ulimits in /etc/docker/daemon.json` },
  UsernsMode: { flag: "--userns", advice: NOT_CARRIED },
};

/** Fields that repeat others, that only Windows has, or that every container has. */
const IGNORED = new Set(
  `Binds Cgroup CgroupnsMode ConsoleSize ContainerIDFile CpuCount CpuPercent IOMaximumBandwidth IOMaximumIOps Isolation
  KernelMemoryTCP LogConfig MaskedPaths MemorySwap PublishAllPorts ReadonlyPaths VolumeDriver VolumesFrom`.split(/\s+/),
);

/** The advice on a field of HostConfig that a manifest cannot express. */
export const adviceOf = (field: string): string => SETTINGS[field]?.advice ?? NOT_CARRIED;

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
    const setting = SETTINGS[field];
    if (!setting) notes.add(`HostConfig.${field}`, NOT_CARRIED);
    else if (!setting.usual?.includes(value)) notes.add(setting.flag, setting.advice);
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

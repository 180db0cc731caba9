import type { MachineInfo } from "../api/machine-info.ts";
import type { DiskCounters } from "../cgroups/proc.ts";
import type { DirectoryUsage, FsCapacity } from "../stats/disk-usage.ts";

/** What `/metrics/cadvisor` shows beside the sample. */
export interface CadvisorFacts {
  machine: MachineInfo;
  engineVersion: string;
  kernelVersion: string;
  /** e.g. `Debian GNU/Linux 12 (bookworm)`. */
  osVersion: string;
  /** By directory, of the last scan. */
  disk: ReadonlyMap<string, DirectoryUsage>;
  /** The engine's file system and its device, e.g. `/dev/vda`; undefined when it cannot be asked. */
  engineFs: { device: string; capacity: FsCapacity } | undefined;
  filesystems: readonly NodeFilesystem[];
  /** File system of the kubelet's root directory. */
  nodeFs: FsCapacity | undefined;
}

/** One file system of the node with the counters of its disk. */
export interface NodeFilesystem {
  device: string;
  mountPoint: string;
  capacity: FsCapacity;
  counters: DiskCounters | undefined;
}

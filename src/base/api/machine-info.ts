/** Response of `/spec/`. Source: cAdvisor's `info/v1.MachineInfo` as kubelet 1.20 prints it (oracle 94). */
export interface MachineInfo {
  /** Always Go's zero time there. */
  timestamp: string;
  num_cores: number;
  num_physical_cores: number;
  num_sockets: number;
  cpu_frequency_khz: number;
  /** Bytes. */
  memory_capacity: number;
  memory_by_type: Record<string, { capacity: number; dimm_count: number }>;
  nvm: NvmInfo;
  hugepages: HugePagesInfo[];
  machine_id: string;
  system_uuid: string;
  boot_id: string;
  filesystems: FilesystemInfo[];
  /** Keyed by `major:minor`. */
  disk_map: Record<string, DiskInfo>;
  network_devices: NetworkDeviceInfo[];
  topology: NumaNodeInfo[];
  cloud_provider: string;
  instance_type: string;
  instance_id: string;
}

export interface NvmInfo {
  memory_mode_capacity: number;
  "app direct_mode_capacity": number;
  avg_power_budget: number;
}

export interface HugePagesInfo {
  /** KiB. */
  page_size: number;
  num_pages: number;
}

export interface FilesystemInfo {
  /** Block device, or the mount point of a tmpfs. */
  device: string;
  /** Bytes. */
  capacity: number;
  type: string;
  inodes: number;
  has_inodes: boolean;
}

export interface DiskInfo {
  name: string;
  major: number;
  minor: number;
  /** Bytes. */
  size: number;
  scheduler: string;
}

export interface NetworkDeviceInfo {
  name: string;
  mac_address: string;
  /** Mbit/s; -1 or 0 where the driver does not know. */
  speed: number;
  /** Bytes. */
  mtu: number;
}

export interface CacheInfo {
  /** Bytes. */
  size: number;
  type: string;
  level: number;
}

export interface CoreInfo {
  core_id: number;
  thread_ids: number[];
  caches: CacheInfo[];
  socket_id: number;
}

export interface NumaNodeInfo {
  node_id: number;
  /** Bytes. */
  memory: number;
  hugepages: HugePagesInfo[];
  cores: CoreInfo[];
  /** Shared by several cores (level 3). */
  caches: CacheInfo[];
}

/** Bodies of `POST /containers/create` and `…/update` as far as we send them; names and units are the Engine API's. */

export interface PortBinding {
  /** "" for all addresses. */
  HostIp: string;
  /** Decimal; a string in the API. */
  HostPort: string;
}

export interface LogConfig {
  /** e.g. `json-file`. */
  Type: string;
  Config: Record<string, string>;
}

/** GPUs and CDI devices. `Count` -1 means all; `DeviceIDs` and `Count` exclude each other. */
export interface DeviceRequest {
  /** "" lets the engine choose by capability; `cdi` since 1.44. */
  Driver: string;
  Count?: number;
  DeviceIDs?: string[];
  /** An OR of ANDs, e.g. `[["gpu"]]`. */
  Capabilities?: string[][];
}

export interface DeviceMapping {
  PathOnHost: string;
  PathInContainer: string;
  /** e.g. `rwm`. */
  CgroupPermissions: string;
}

/** The `Mounts` form of a mount; `Binds` is the older, shorter one. */
export interface MountPoint {
  Type: "bind" | "volume" | "image";
  Source?: string;
  Target: string;
  ReadOnly?: boolean;
  BindOptions?: {
    Propagation?: "rprivate" | "rshared" | "rslave";
    /** Since 1.44: read-only for this mount, not for those below it. */
    ReadOnlyNonRecursive?: boolean;
    /** Since 1.44: refuse to start unless the mounts below are read-only as well. */
    ReadOnlyForceRecursive?: boolean;
  };
  VolumeOptions?: {
    NoCopy?: boolean;
    /** Since 1.45. */
    Subpath?: string;
  };
  /** Since 1.48. */
  ImageOptions?: { Subpath?: string };
}

export interface HostConfig {
  CpuShares?: number;
  /** Microseconds. */
  CpuPeriod?: number;
  /** Microseconds per period; 0 leaves as it is, -1 lifts the limit. */
  CpuQuota?: number;
  /** Bytes; 0 leaves as it is. */
  Memory?: number;
  /** Bytes of memory plus swap; -1 is unlimited swap. */
  MemorySwap?: number;
  /** 0 and -1 mean unlimited. */
  PidsLimit?: number;
  Init?: boolean;
  Ulimits?: readonly { Name: string; Soft: number; Hard: number }[];
  Binds?: string[];
  Mounts?: MountPoint[];
  LogConfig?: LogConfig;
  NetworkMode?: string;
  IpcMode?: string;
  PidMode?: string;
  UTSMode?: string;
  UsernsMode?: string;
  PortBindings?: Record<string, PortBinding[]>;
  RestartPolicy?: { Name: "no" };
  CapAdd?: string[];
  CapDrop?: string[];
  Dns?: string[];
  DnsOptions?: string[];
  DnsSearch?: string[];
  GroupAdd?: string[];
  OomScoreAdj?: number;
  Privileged?: boolean;
  ReadonlyRootfs?: boolean;
  SecurityOpt?: string[];
  Sysctls?: Record<string, string>;
  Runtime?: string;
  CgroupParent?: string;
  Devices?: DeviceMapping[];
  DeviceRequests?: DeviceRequest[];
  /** Absent: the engine's own list. Empty: nothing is masked. */
  MaskedPaths?: string[];
  ReadonlyPaths?: string[];
}

export interface EndpointConfig {
  /** Further names in a network of its own DNS; the default bridge has none and refuses them. */
  Aliases?: string[];
  /** A fixed address; only in a network with a subnet of its own. */
  IPAMConfig?: { IPv4Address?: string; IPv6Address?: string };
}

/** Body of `POST /containers/create`; the container's name travels in the query. */
export interface ContainerCreateBody {
  Hostname?: string;
  /** `uid`, `uid:gid` or a name of the image's /etc/passwd. */
  User?: string;
  ExposedPorts?: Record<string, Record<string, never>>;
  Tty?: boolean;
  OpenStdin?: boolean;
  StdinOnce?: boolean;
  /** `NAME=value`. */
  Env?: string[];
  Cmd?: string[];
  Entrypoint?: string[];
  /** Reference or id. */
  Image: string;
  WorkingDir?: string;
  Labels?: Record<string, string>;
  /** `["NONE"]` switches the image's health check off. */
  Healthcheck?: { Test: string[] };
  /** e.g. `SIGTERM`. */
  StopSignal?: string;
  HostConfig: HostConfig;
  NetworkingConfig?: { EndpointsConfig: Record<string, EndpointConfig> };
}

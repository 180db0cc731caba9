/** Resource watched by an eviction or pressure threshold. Source: kubelet's `evictionapi.Signal`. */
export type EvictionSignal =
  | "memory.available"
  | "nodefs.available"
  | "nodefs.inodesFree"
  | "imagefs.available"
  | "imagefs.inodesFree"
  | "pid.available";

/** A threshold is met when the signal falls below `quantity` (bytes, inodes or pids) or `percentage` of the capacity. */
export type EvictionThreshold =
  | { signal: EvictionSignal; quantity: number }
  | { signal: EvictionSignal; percentage: number };

/** One request header of the URL source; the value is secret and never leaves the process but in that request. */
export interface SecretHeader {
  name: string;
  value: string;
}

export interface NodeTaint {
  key: string;
  value: string;
  effect: "NoSchedule" | "PreferNoSchedule" | "NoExecute";
}

/** How long a shutdown waits for pods of this priority and above, up to the next. Source: upstream's type. */
export interface ShutdownPeriod {
  priority: number;
  shutdownGracePeriodSeconds: number;
}

/**
 * Everything that can be set, after defaults, file, drop-ins and flags were laid over one another. Units are in the
 * names; durations are milliseconds; "" and an empty list mean "not set"; a port of 0 is off.
 * Each member is declared by a row of src/config/option-rows/: flag, field of the configuration file, default, syntax,
 * description, and whether a change takes effect without a restart.
 */
export interface KubeletOptions {
  // Node
  /** Lower-cased suffix of every pod name; "" = the machine's host name. */
  hostnameOverride: string;
  /** Reported as hostIP and InternalIP; "" = found out from the default route. */
  nodeIp: string;
  /** Extra labels of the node, for nodeSelector and the downward API. */
  nodeLabels: Readonly<Record<string, string>>;
  nodeTaints: readonly NodeTaint[];
  /** Absolute. */
  rootDir: string;
  /** Absolute; holds `.cur` and `.lkg`. */
  dynamicConfigDir: string;
  /** 0 = a configuration is never on trial. */
  configTrialPeriodMs: number;
  /** Absolute; for the serving certificate. */
  certDir: string;
  maxPods: number;
  /** 0 = no limit by cores. */
  podsPerCore: number;
  failSwapOn: boolean;
  /** Our own RLIMIT_NOFILE. */
  maxOpenFiles: number;
  /** Our own oom_score_adj, -1000…1000. */
  oomScoreAdj: number;
  featureGates: Readonly<Record<string, boolean>>;

  // Cluster
  /** Absolute; "" = standalone. */
  kubeconfig: string;
  /** Absolute; "" = none. */
  bootstrapKubeconfig: string;
  registerNode: boolean;
  registerSchedulable: boolean;
  cloudProvider: "" | "external";
  /** "" = none. */
  providerId: string;
  nodeStatusUpdateFrequencyMs: number;
  nodeStatusReportFrequencyMs: number;
  nodeLeaseDurationSeconds: number;
  /** -1 = all. */
  nodeStatusMaxImages: number;
  /** Requests per second; 0 = no limit. */
  kubeApiQps: number;
  kubeApiBurst: number;
  enableControllerAttachDetach: boolean;
  rotateCertificates: boolean;
  rotateServerCertificates: boolean;

  // Sources
  /** `--pod-manifest-path`, `staticPodPath`, and `--config` in its meaning of 1.4. Absolute, in that order. */
  podManifestPaths: readonly string[];
  /** http, https and unix URLs, in the order given. */
  manifestUrls: readonly string[];
  manifestUrlHeaders: readonly SecretHeader[];
  /** PEM file of the only CAs trusted for `https:` manifest URLs; "" = the system's. */
  manifestUrlCaFile: string;
  manifestUrlClientCertFile: string;
  manifestUrlClientKeyFile: string;
  /** File with the age identities that decrypt manifests; "" = none. */
  manifestIdentityFile: string;
  /** Whole request, body included. */
  manifestUrlTimeoutMs: number;
  fileCheckFrequencyMs: number;
  httpCheckFrequencyMs: number;
  /** The longest time between two lists of all containers. */
  syncFrequencyMs: number;
  /** How unknown fields in a manifest are treated. */
  validate: "strict" | "standard" | "warn" | "ignore";
  /** `serial`: of several edited pods one is changed at a time, and a failure stops the others. */
  rollout: "parallel" | "serial";

  // Run once
  runOnce: boolean;
  /** State of the pods that `--runonce` waits for. */
  runOnceWait: "ready" | "running" | "completed" | "none";
  /** How long `--runonce` waits for all pods; 0 = without limit. */
  runOnceTimeoutMs: number;
  output: "text" | "json" | "yaml";

  // Engine and images
  /** `unix:///…`; "" = DOCKER_HOST, then /var/run/docker.sock. */
  dockerEndpoint: string;
  /** "" = the pause image built into the binary. */
  podInfraContainerImage: string;
  /** Longest wait for an answer of the engine, but for pulls, logs, waits. */
  runtimeRequestTimeoutMs: number;
  /** For pods without the annotation: `never`, `digest`, `semver:RANGE`. */
  imageUpdate: string;
  /** When registries are asked: five fields of cron. */
  imageUpdateSchedule: string;
  /** When images may be exchanged: `always`, or five fields of cron and a length. */
  imageUpdateWindow: string;
  /** Longest random delay of a scheduled look-up. */
  imageUpdateJitterMs: number;
  /** A pull without progress for this time is cancelled. */
  imagePullProgressDeadlineMs: number;
  serializeImagePulls: boolean;
  /** Pulls at a time when they are not serialized; 0 = no limit. */
  maxParallelImagePulls: number;
  /** Pulls per second; 0 = no limit. */
  registryPullQps: number;
  registryBurst: number;
  /** Image archives loaded before the first sync; "" = none. */
  imagesDir: string;
  imageCredentialProviderConfig: string;
  imageCredentialProviderBinDir: string;

  // Pods
  allowPrivileged: boolean;
  /** Names, or prefixes that end in `*`. */
  allowedUnsafeSysctls: readonly string[];
  /** true: RuntimeDefault where a pod does not set a profile; false: Unconfined, as kubelet 1.20. */
  seccompDefault: boolean;
  /** Parent cgroup of `kubepods`; "" = the root. */
  cgroupRoot: string;
  /** Cgroups that the summary shows as system containers; "" = none. */
  kubeletCgroups: string;
  runtimeCgroups: string;
  systemCgroups: string;
  cgroupsPerQos: boolean;
  /** "" = the engine's. */
  cgroupDriver: "" | "cgroupfs" | "systemd";
  cpuCfsQuota: boolean;
  cpuCfsQuotaPeriodMs: number;
  /** pids of one pod; -1 = no limit. */
  podPidsLimit: number;
  memorySwap: "NoSwap" | "LimitedSwap";
  /** false writes memory.oom.group (cgroup v2), so that all of a container dies of OOM; undefined: as the cgroups can. */
  singleProcessOomKill: boolean | undefined;
  /** The longest crash-loop back-off. */
  crashLoopBackOffMaxMs: number;
  keepTerminatedPodVolumes: boolean;
  /** `cni`; else the engine makes the network of pods. */
  networkPlugin: string;
  /** Absolute, as the two below. */
  cniConfDir: string;
  cniBinDirs: readonly string[];
  cniCacheDir: string;
  clusterDns: readonly string[];
  clusterDomain: string;
  /** Base of every resolv.conf; "" = none. */
  resolvConf: string;

  // Logs of containers
  containerLogMaxSizeBytes: number;
  containerLogMaxFiles: number;
  /** `<ns>_<name>_<uid>/<container>/<n>.log`; "" = no symlinks. */
  podLogsDir: string;
  /** Directory of symlinks for log shippers; "" = none. */
  containersLogsDir: string;

  // Servers
  enableServer: boolean;
  /** Names of metrics that /metrics/resource leaves out. */
  disabledMetrics: readonly string[];
  /** Address of the authenticated server. */
  address: string;
  port: number;
  /** `--address` when it was set, else loopback. */
  readOnlyAddress: string;
  readOnlyPort: number;
  /** true: literal env values are shown on the read-only port. */
  readOnlyFull: boolean;
  /** Listen address of the local Kubernetes API. */
  localApiAddress: string;
  /** 0 = no TLS port; the Unix socket answers in any case. */
  localApiPort: number;
  /** CSV of bearer tokens of the local API; "" = none. */
  tokenAuthFile: string;
  healthzBindAddress: string;
  healthzPort: number;
  cadvisorBindAddress: string;
  cadvisorPort: number;
  enableDebuggingHandlers: boolean;
  /** Needs `enableDebuggingHandlers` too. */
  enableSystemLogHandler: boolean;
  streamingConnectionIdleTimeoutMs: number;
  anonymousAuth: boolean;
  /** `Webhook` without a kubeconfig denies every request. */
  authorizationMode: "AlwaysAllow" | "AlwaysDeny" | "Webhook";
  authorizationWebhookCacheAuthorizedTtlMs: number;
  authorizationWebhookCacheUnauthorizedTtlMs: number;
  authenticationTokenWebhook: boolean;
  authenticationTokenWebhookCacheTtlMs: number;
  clientCaFile: string;
  tlsCertFile: string;
  tlsPrivateKeyFile: string;
  tlsMinVersion: "VersionTLS12" | "VersionTLS13";
  /** IANA names; empty = the runtime's choice. */
  tlsCipherSuites: readonly string[];

  // Garbage and pressure
  /** Per cent of the image disk. */
  imageGcHighThresholdPercent: number;
  imageGcLowThresholdPercent: number;
  minimumImageTtlMs: number;
  /** 0 = age does not matter. */
  imageMaximumGcAgeMs: number;
  minimumContainerTtlMs: number;
  maximumDeadContainersPerContainer: number;
  /** -1 = no limit. */
  maximumDeadContainers: number;
  evictionHard: readonly EvictionThreshold[];
  /** Each has its entry in `evictionSoftGracePeriodMs`. */
  evictionSoft: readonly EvictionThreshold[];
  /** How long a soft threshold must be met continuously before it counts. */
  evictionSoftGracePeriodMs: Readonly<Partial<Record<EvictionSignal, number>>>;
  evictionMinimumReclaim: readonly EvictionThreshold[];
  /** true: signals that `evictionHard` does not name kept their defaults when the options were resolved. */
  mergeDefaultEvictionSettings: boolean;
  evictionPressureTransitionMs: number;
  /** -1 = the pod's own grace period. */
  evictionMaxPodGracePeriodSeconds: number;
  volumeStatsAggPeriodMs: number;
  /** Canonical quantities by resource: cpu, memory, ephemeral-storage, pid. */
  systemReserved: Readonly<Record<string, string>>;
  kubeReserved: Readonly<Record<string, string>>;
  shutdownGracePeriodMs: number;
  shutdownGracePeriodCriticalPodsMs: number;
  /** In place of the two above. */
  shutdownGracePeriodByPodPriority: readonly ShutdownPeriod[];

  // Events and logs of our own
  /** Events per second; 0 = no limit. Upstream's 50 spares an API server, which is not there: nothing is dropped unasked. */
  eventRecordQps: number;
  eventBurst: number;
  /** 0 info; 2 debug; 4 trace. */
  verbosity: number;
  logFormat: "text" | "json" | "journald";
  /** A log file is written there when set. */
  logDir: string;
  logToStderr: boolean;
}

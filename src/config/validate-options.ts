import { didYouMean } from "../base/text/nearest-name.ts";
import { isManifestUrl } from "../base/text/url.ts";
import { type KubeletOptions, OPTION_TABLE, type Origins } from "./option-table.ts";

export type Purpose = "run" | "show";

/** Checks rules between options, and rules that the kind of an option cannot express. Source: kubelet's ValidateKubeletConfiguration. */
export function checkOptions(
  options: KubeletOptions,
  origins: Origins,
  positionals: readonly string[],
  purpose: Purpose,
): { warnings: string[]; errors: string[] } {
  const warnings: string[] = [];
  const errors: string[] = [];
  const at = (option: keyof KubeletOptions) => (origins[option] === "default" ? "" : ` (${origins[option]})`);

  if (options.imageGcLowThresholdPercent >= options.imageGcHighThresholdPercent) {
    errors.push(
      `the low image GC threshold ${options.imageGcLowThresholdPercent}${at("imageGcLowThresholdPercent")} must be below the high one ${options.imageGcHighThresholdPercent}${at("imageGcHighThresholdPercent")}`,
    );
  }
  if (options.imageMaximumGcAgeMs > 0 && options.imageMaximumGcAgeMs <= options.minimumImageTtlMs) {
    errors.push(
      `the maximum age of images${at("imageMaximumGcAgeMs")} must be above the minimum${at("minimumImageTtlMs")}`,
    );
  }
  if (options.serializeImagePulls && options.maxParallelImagePulls > 1) {
    errors.push(
      `${options.maxParallelImagePulls} parallel pulls${at("maxParallelImagePulls")} need --serialize-image-pulls=false`,
    );
  }
  for (const { signal } of options.evictionSoft) {
    if (options.evictionSoftGracePeriodMs[signal] === undefined) {
      errors.push(
        `the soft eviction threshold of ${signal}${at("evictionSoft")} needs --eviction-soft-grace-period=${signal}=…`,
      );
    }
  }
  if (options.shutdownGracePeriodCriticalPodsMs > options.shutdownGracePeriodMs) {
    errors.push(
      `shutdownGracePeriodCriticalPods${at("shutdownGracePeriodCriticalPodsMs")} must not be longer than shutdownGracePeriod`,
    );
  }
  if (
    options.shutdownGracePeriodByPodPriority.length > 0 &&
    options.shutdownGracePeriodMs + options.shutdownGracePeriodCriticalPodsMs > 0
  ) {
    errors.push(
      `shutdownGracePeriodByPodPriority${at("shutdownGracePeriodByPodPriority")} replaces shutdownGracePeriod${at("shutdownGracePeriodMs")}: remove one of them`,
    );
  }
  for (const option of ["shutdownGracePeriodMs", "shutdownGracePeriodCriticalPodsMs"] as const) {
    if (options[option] > 0 && options[option] < 1000) {
      errors.push(`${option.replace(/Ms$/, "")}${at(option)} must be 0s or at least 1s`);
    }
  }
  for (const [first, second] of PAIRS) {
    if ((options[first] === "") === (options[second] === "")) continue;
    const [given, missing] = options[first] === "" ? [second, first] : [first, second];
    errors.push(`${flagOf(given)} requires ${flagOf(missing)}`);
  }
  if (options.rootDir === "") errors.push(`the root directory${at("rootDir")} is empty: name one, or remove the flag`);
  for (const option of ["hostnameOverride", "clusterDomain"] as const) {
    if (options[option] !== "" && !isDnsName(options[option])) {
      errors.push(
        `${JSON.stringify(options[option])}${at(option)} is not a DNS name: lower-case letters, digits, - and .`,
      );
    }
  }
  if (options.runOnce && options.enableServer && origins.enableServer !== "default") {
    errors.push(`--runonce serves no ports: remove enableServer${at("enableServer")}`);
  }
  if (!options.runOnce && positionals.includes("-")) errors.push("standard input (-) is read once: add --runonce");
  for (const option of ["output", "runOnceWait", "runOnceTimeoutMs"] as const) {
    const isUsed = options.runOnce || (option === "output" && purpose === "show");
    if (!isUsed && origins[option].startsWith("--")) warnings.push(`${flagOf(option)} has no effect without --runonce`);
  }
  if (!options.logToStderr && options.logDir === "") {
    warnings.push(`logging to the terminal${at("logToStderr")} stays on: there is no --log-dir`);
  }
  if (options.manifestUrlHeaders.length > 0 && options.manifestUrls.length === 0 && !positionals.some(isManifestUrl)) {
    warnings.push(`--manifest-url-header has no effect without --manifest-url`);
  }
  if (!NETWORK_PLUGINS.has(options.networkPlugin)) {
    errors.push(
      `the network plugin ${JSON.stringify(options.networkPlugin)}${at("networkPlugin")} is not known: use cni, or none for Docker's networks`,
    );
  }
  checkWebhooks();
  checkPorts();
  return { warnings, errors };

  /** Configuration files of clusters ask for both: standalone they are read as the refusal that is safe. */
  function checkWebhooks(): void {
    if (options.kubeconfig !== "") return;
    const report = (option: keyof KubeletOptions) => (origins[option].startsWith("--") ? errors : warnings);
    if (options.authorizationMode === "Webhook") {
      report("authorizationMode").push(
        `the authorization mode Webhook${at("authorizationMode")} denies every request without --kubeconfig; use AlwaysAllow (with --client-ca-file) or AlwaysDeny`,
      );
    }
    if (options.authenticationTokenWebhook) {
      report("authenticationTokenWebhook").push(
        `bearer tokens${at("authenticationTokenWebhook")} cannot be reviewed without --kubeconfig; use --client-ca-file`,
      );
    }
  }

  function checkPorts(): void {
    if (options.runOnce) return;
    const servers = [
      ["--healthz-port", options.healthzPort],
      ["--read-only-port", options.enableServer ? options.readOnlyPort : 0],
      ["--cadvisor-port", options.enableServer ? options.cadvisorPort : 0],
      ["--port", options.enableServer ? options.port : 0],
    ] as const;
    const taken = new Map<number, string>();
    for (const [flag, port] of servers) {
      const other = port === 0 ? undefined : taken.get(port);
      if (other) errors.push(`${flag} and ${other} are both ${port}`);
      taken.set(port, flag);
    }
  }
}

/** Options that are given together, or not at all. */
const PAIRS = [
  ["tlsCertFile", "tlsPrivateKeyFile"],
  ["manifestUrlClientCertFile", "manifestUrlClientKeyFile"],
  ["imageCredentialProviderConfig", "imageCredentialProviderBinDir"],
] as const;

const flagOf = (option: keyof KubeletOptions): string =>
  `--${OPTION_TABLE.find((row) => row.is === "option" && row.option === option)?.flag}`;

/** The empty ones mean the engine's own network, as in dockershim. */
const NETWORK_PLUGINS: ReadonlySet<string> = new Set(["cni", "", "bridge", "noop", "no-op", "kubernetes.io/no-op"]);

function isDnsName(name: string): boolean {
  return name.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\.?$/.test(name);
}

function gates(names: string): ReadonlySet<string> {
  return new Set(names.trim().split(/\s+/));
}

/** Gates of features that are always on. */
const ALWAYS_ON = gates(`
  AppArmor AppArmorFields ConfigurableFSGroupPolicy ContainerRestartRules ContainerStopSignals CPUCFSQuotaPeriod
  CRIContainerLogRotation CustomCPUCFSQuotaPeriod EnvFiles EphemeralContainers EventedPLEG ExecProbeTimeout
  GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority GRPCContainerProbe HugePageStorageMediumSize
  ImageMaximumGCAge ImageVolume ImmutableEphemeralVolumes InPlacePodVerticalScaling KubeletConfigFile
  KubeletCrashLoopBackOffMax KubeletCredentialProviders KubeletPSI LocalStorageCapacityIsolation NodeLease NodeSwap
  NonPreemptingPriority PodHostIPs PodLevelResources PodOverhead PodLifecycleSleepAction
  PodLifecycleSleepActionAllowZero PodReadyToStartContainersCondition ProbeTerminationGracePeriod ProcMountType
  RecursiveReadOnlyMounts RelaxedEnvironmentVariableValidation RotateKubeletClientCertificate
  RotateKubeletServerCertificate RunAsGroup RuntimeClass SCTPSupport SeccompDefault SetHostnameAsFQDN
  SidecarContainers SizeMemoryBackedVolumes StartupProbe SupportNodePidsLimit SupportPodPidsLimit Sysctls
  TokenRequest TokenRequestProjection VolumeSubpath`);

/** Gates of features that do not exist here. */
const ALWAYS_OFF = gates(`
  Accelerators AttachVolumeLimit BlockVolume CPUManager CSIBlockVolume CSIDriverRegistry CSIInlineVolume
  CSIMigration CSINodeInfo CSIServiceAccountToken CSIVolumeFSGroupPolicy DevicePlugins DownwardAPIHugePages
  DynamicKubeletConfig DynamicResourceAllocation ExpandCSIVolumes ExpandInUsePersistentVolumes
  GenericEphemeralVolume KubeletPodResources KubeletTracing LocalStorageCapacityIsolationFSQuotaMonitoring
  MemoryManager MemoryQoS NodeLogQuery PreventStaticPodAPIReferences QOSReserved TopologyManager
  UserNamespacesSupport WindowsHostNetwork`);

/** Gates of API servers, schedulers and controllers: clusters give all their programs the same list. */
const OF_OTHERS = gates(`
  AllowInsecureBackendProxy AnyVolumeDataSource APIListChunking APIPriorityAndFairness APIResponseCompression
  APIServerIdentity BalanceAttachedNodeVolumes BoundServiceAccountTokenVolume CSIStorageCapacity
  DefaultPodTopologySpread EndpointSlice EndpointSliceNodeName EndpointSliceProxying
  EndpointSliceTerminatingCondition EvenPodsSpread ExpandPersistentVolumes HPAContainerMetrics HPAScaleToZero
  IPv6DualStack LegacyNodeRoleBehavior MixedProtocolLBService NodeDisruptionExclusion PodDisruptionBudget
  RemoveSelfLink RootCAConfigMap ServerSideApply ServiceAccountIssuerDiscovery ServiceAppProtocol
  ServiceLBNodePortControl ServiceNodeExclusion ServiceTopology StorageObjectInUseProtection StorageVersionAPI
  TTLAfterFinished VolumePVCDataSource VolumeSnapshotDataSource WarningHeaders`);

/** One warning per gate whose setting differs from the actual behavior. Gates change nothing. */
export function featureGateWarnings(gates: Readonly<Record<string, boolean>>): string[] {
  const warnings: string[] = [];
  for (const [name, on] of Object.entries(gates)) {
    if (ALWAYS_ON.has(name)) {
      if (!on) warnings.push(`feature gate ${name} cannot be switched off`);
    } else if (ALWAYS_OFF.has(name)) {
      if (on) warnings.push(`feature gate ${name} has no effect: there is no such feature here`);
    } else if (!OF_OTHERS.has(name) && name !== "AllAlpha" && name !== "AllBeta") {
      const hint = didYouMean(name, [...ALWAYS_ON, ...ALWAYS_OFF, ...OF_OTHERS]);
      warnings.push(`feature gate ${name} is unknown${hint}`);
    }
  }
  return warnings;
}

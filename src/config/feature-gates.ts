import { nearestName } from "../base/text/nearest-name.ts";

/** Gates of features that are always on. */
const ALWAYS_ON = new Set(
  `
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
    TokenRequest TokenRequestProjection VolumeSubpath`
    .trim()
    .split(/\s+/),
);

/** Gates of features that do not exist here. */
const ALWAYS_OFF = new Set(
  `
    Accelerators AttachVolumeLimit BlockVolume CPUManager CSIBlockVolume CSIDriverRegistry CSIInlineVolume CSIMigration
    CSINodeInfo CSIServiceAccountToken CSIVolumeFSGroupPolicy DevicePlugins DownwardAPIHugePages DynamicKubeletConfig
    DynamicResourceAllocation ExpandCSIVolumes ExpandInUsePersistentVolumes GenericEphemeralVolume KubeletPodResources
    KubeletTracing LocalStorageCapacityIsolationFSQuotaMonitoring MemoryManager MemoryQoS NodeLogQuery
    PreventStaticPodAPIReferences QOSReserved TopologyManager UserNamespacesSupport WindowsHostNetwork`
    .trim()
    .split(/\s+/),
);

/** Gates of API servers, schedulers and controllers: clusters give all their programs the same list. */
const OF_OTHERS = new Set(
  `
    AllowInsecureBackendProxy AnyVolumeDataSource APIListChunking APIPriorityAndFairness APIResponseCompression
    APIServerIdentity BalanceAttachedNodeVolumes BoundServiceAccountTokenVolume CSIStorageCapacity
    DefaultPodTopologySpread EndpointSlice EndpointSliceNodeName EndpointSliceProxying
    EndpointSliceTerminatingCondition EvenPodsSpread ExpandPersistentVolumes HPAContainerMetrics HPAScaleToZero
    IPv6DualStack LegacyNodeRoleBehavior MixedProtocolLBService NodeDisruptionExclusion PodDisruptionBudget
    RemoveSelfLink RootCAConfigMap ServerSideApply ServiceAccountIssuerDiscovery ServiceAppProtocol
    ServiceLBNodePortControl ServiceNodeExclusion ServiceTopology StorageObjectInUseProtection StorageVersionAPI
    TTLAfterFinished VolumePVCDataSource VolumeSnapshotDataSource WarningHeaders`
    .trim()
    .split(/\s+/),
);

/** One warning per gate whose setting differs from the actual behaviour. Gates change nothing. */
export function featureGateWarnings(gates: Readonly<Record<string, boolean>>): string[] {
  const warnings: string[] = [];
  for (const [name, on] of Object.entries(gates)) {
    if (ALWAYS_ON.has(name)) {
      if (!on) warnings.push(`feature gate ${name} cannot be switched off`);
    } else if (ALWAYS_OFF.has(name)) {
      if (on) warnings.push(`feature gate ${name} has no effect: there is no such feature here`);
    } else if (!OF_OTHERS.has(name) && name !== "AllAlpha" && name !== "AllBeta") {
      const nearest = nearestName(name, [...ALWAYS_ON, ...ALWAYS_OFF, ...OF_OTHERS]);
      warnings.push(`feature gate ${name} is unknown${nearest ? `; did you mean ${nearest}?` : ""}`);
    }
  }
  return warnings;
}

import { nearestName } from "../text/nearest-name.ts";

/** Gates of features that are always on. */
const ALWAYS_ON = new Set([
  "AppArmor",
  "AppArmorFields",
  "ConfigurableFSGroupPolicy",
  "ContainerRestartRules",
  "ContainerStopSignals",
  "CustomCPUCFSQuotaPeriod",
  "EnvFiles",
  "EphemeralContainers",
  "EventedPLEG",
  "ExecProbeTimeout",
  "GRPCContainerProbe",
  "GracefulNodeShutdown",
  "GracefulNodeShutdownBasedOnPodPriority",
  "ImageMaximumGCAge",
  "ImageVolume",
  "InPlacePodVerticalScaling",
  "KubeletConfigFile",
  "KubeletCrashLoopBackOffMax",
  "KubeletPSI",
  "LocalStorageCapacityIsolation",
  "NodeSwap",
  "PodHostIPs",
  "PodLevelResources",
  "PodLifecycleSleepAction",
  "PodLifecycleSleepActionAllowZero",
  "PodReadyToStartContainersCondition",
  "ProbeTerminationGracePeriod",
  "ProcMountType",
  "RecursiveReadOnlyMounts",
  "RelaxedEnvironmentVariableValidation",
  "SeccompDefault",
  "SetHostnameAsFQDN",
  "SidecarContainers",
  "SizeMemoryBackedVolumes",
  "StartupProbe",
  "SupportPodPidsLimit",
  "SupportNodePidsLimit",
  "Sysctls",
]);

/** Gates of features that do not exist here: they need an API server, or were removed upstream. */
const ALWAYS_OFF = new Set([
  "Accelerators",
  "CPUManager",
  "CSIMigration",
  "DevicePlugins",
  "DynamicKubeletConfig",
  "DynamicResourceAllocation",
  "KubeletPodResources",
  "KubeletTracing",
  "MemoryManager",
  "MemoryQoS",
  "NodeLogQuery",
  "PreventStaticPodAPIReferences",
  "QOSReserved",
  "RotateKubeletClientCertificate",
  "RotateKubeletServerCertificate",
  "TopologyManager",
  "UserNamespacesSupport",
  "WindowsHostNetwork",
]);

/** One warning per gate whose setting differs from the actual behaviour. Gates change nothing. */
export function featureGateWarnings(gates: Readonly<Record<string, boolean>>): string[] {
  const warnings: string[] = [];
  for (const [name, on] of Object.entries(gates)) {
    if (ALWAYS_ON.has(name)) {
      if (!on) warnings.push(`feature gate ${name} cannot be switched off`);
    } else if (ALWAYS_OFF.has(name)) {
      if (on) warnings.push(`feature gate ${name} has no effect: there is no such feature here`);
    } else if (name !== "AllAlpha" && name !== "AllBeta") {
      const nearest = nearestName(name, [...ALWAYS_ON, ...ALWAYS_OFF]);
      warnings.push(`feature gate ${name} is unknown${nearest ? `; did you mean ${nearest}?` : ""}`);
    }
  }
  return warnings;
}

import { nearestName } from "../text/nearest-name.ts";

/** What these gates would switch is always on here. */
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
  "ImageMaximumGCAge",
  "ImageVolume",
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

/** What these gates would switch does not exist here: it needs an API server, or was removed upstream. */
const ALWAYS_OFF = new Set([
  "Accelerators",
  "CPUManager",
  "CSIMigration",
  "DevicePlugins",
  "DynamicKubeletConfig",
  "DynamicResourceAllocation",
  "GracefulNodeShutdown",
  "GracefulNodeShutdownBasedOnPodPriority",
  "InPlacePodVerticalScaling",
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

/** One line per gate whose setting will not be what somebody asked for. No gate ever changes anything. */
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

import * as v from "valibot";
import * as go from "./scalar.ts";

/** Source: core/v1 `ObjectFieldSelector`. */
export const ObjectFieldSelectorSchema = v.object({
  apiVersion: v.optional(go.text, "v1"),
  fieldPath: go.text,
});
export type ObjectFieldSelector = v.InferOutput<typeof ObjectFieldSelectorSchema>;

/** Source: core/v1 `ResourceFieldSelector`. */
export const ResourceFieldSelectorSchema = v.object({
  /** Required in volumes; in env the container itself when absent. */
  containerName: v.optional(go.text),
  /** e.g. `limits.memory`. */
  resource: go.text,
  /** Canonical quantity; `0` means 1. */
  divisor: go.quantity,
});
export type ResourceFieldSelector = v.InferOutput<typeof ResourceFieldSelectorSchema>;

/** Source: core/v1 `ConfigMapKeySelector`, `SecretKeySelector`. */
export const KeySelectorSchema = v.object({
  name: v.optional(go.text),
  key: go.text,
  optional: v.optional(go.flagPointer),
});

/** Source: core/v1 `FileKeySelector`. */
export const FileKeySelectorSchema = v.object({
  volumeName: go.text,
  path: go.text,
  key: go.text,
  optional: v.optional(go.flagPointer, false),
});
export type FileKeySelector = v.InferOutput<typeof FileKeySelectorSchema>;

/** Source: core/v1 `EnvVarSource`: exactly one is set. */
export const EnvVarSourceSchema = v.object({
  fieldRef: v.optional(ObjectFieldSelectorSchema),
  resourceFieldRef: v.optional(ResourceFieldSelectorSchema),
  configMapKeyRef: v.optional(KeySelectorSchema),
  secretKeyRef: v.optional(KeySelectorSchema),
  fileKeyRef: v.optional(FileKeySelectorSchema),
});
export type EnvVarSource = v.InferOutput<typeof EnvVarSourceSchema>;

/** Source: core/v1 `EnvVar`. */
export const EnvVarSchema = v.object({
  name: go.text,
  value: v.optional(go.text),
  valueFrom: v.optional(EnvVarSourceSchema),
});
export type EnvVar = v.InferOutput<typeof EnvVarSchema>;

/** Source: core/v1 `ConfigMapEnvSource`, `SecretEnvSource`. */
export const EnvSourceSchema = v.object({
  name: v.optional(go.text),
  optional: v.optional(go.flagPointer),
});

/** Source: core/v1 `EnvFromSource`: one of the two is set. */
export const EnvFromSourceSchema = v.object({
  prefix: v.optional(go.text),
  configMapRef: v.optional(EnvSourceSchema),
  secretRef: v.optional(EnvSourceSchema),
});
export type EnvFromSource = v.InferOutput<typeof EnvFromSourceSchema>;

/** Source: core/v1 `ExecAction`: argv, run without a shell. */
export const ExecActionSchema = v.object({ command: v.optional(go.textList) });
export type ExecAction = v.InferOutput<typeof ExecActionSchema>;

/** Source: core/v1 `HTTPHeader`. */
export const HTTPHeaderSchema = v.object({ name: go.text, value: go.text });

/** Source: core/v1 `HTTPGetAction`. */
export const HTTPGetActionSchema = v.object({
  path: v.optional(go.text, "/"),
  /** A number, or the name of a container port. */
  port: go.intOrString,
  /** Default: the pod IP. */
  host: v.optional(go.text),
  scheme: v.optional(go.oneOf(["HTTP", "HTTPS"]), "HTTP"),
  httpHeaders: v.optional(v.array(HTTPHeaderSchema)),
});
export type HTTPGetAction = v.InferOutput<typeof HTTPGetActionSchema>;

/** Source: core/v1 `TCPSocketAction`. */
export const TCPSocketActionSchema = v.object({
  /** A number, or the name of a container port. */
  port: go.intOrString,
  /** Default: the pod IP. */
  host: v.optional(go.text),
});
export type TCPSocketAction = v.InferOutput<typeof TCPSocketActionSchema>;

/** Source: core/v1 `GRPCAction`: grpc.health.v1 Check. */
export const GRPCActionSchema = v.object({
  port: go.int32,
  service: v.optional(go.textPointer, ""),
});
export type GRPCAction = v.InferOutput<typeof GRPCActionSchema>;

/** Source: core/v1 `SleepAction`. */
export const SleepActionSchema = v.object({ seconds: go.int64 });

/** When and how often one container is probed, and by what. Source: core/v1 `Probe`. */
export const ProbeSchema = v.object({
  exec: v.optional(ExecActionSchema),
  httpGet: v.optional(HTTPGetActionSchema),
  tcpSocket: v.optional(TCPSocketActionSchema),
  grpc: v.optional(GRPCActionSchema),
  /** Wait after container start before the first attempt. Absent is 0. */
  initialDelaySeconds: v.optional(go.int32),
  timeoutSeconds: v.optional(go.int32, 1),
  periodSeconds: v.optional(go.int32, 10),
  successThreshold: v.optional(go.int32, 1),
  failureThreshold: v.optional(go.int32, 3),
  /** Overrides the pod's grace period when this probe kills. */
  terminationGracePeriodSeconds: v.optional(go.int64Pointer),
});
export type Probe = v.InferOutput<typeof ProbeSchema>;

/** Source: core/v1 `LifecycleHandler`. */
export const LifecycleHandlerSchema = v.object({
  exec: v.optional(ExecActionSchema),
  httpGet: v.optional(HTTPGetActionSchema),
  tcpSocket: v.optional(TCPSocketActionSchema),
  sleep: v.optional(SleepActionSchema),
});
export type LifecycleHandler = v.InferOutput<typeof LifecycleHandlerSchema>;

/** Source: core/v1 `Lifecycle`. */
export const LifecycleSchema = v.object({
  postStart: v.optional(LifecycleHandlerSchema),
  preStop: v.optional(LifecycleHandlerSchema),
  /** e.g. `SIGUSR1`; overrides the image's STOPSIGNAL. */
  stopSignal: v.optional(go.textPointer),
});
export type Lifecycle = v.InferOutput<typeof LifecycleSchema>;

/** Source: core/v1 `Capabilities`. */
export const CapabilitiesSchema = v.object({ add: v.optional(go.textList), drop: v.optional(go.textList) });

/** Without `CAP_`. Source: capabilities(7), Linux 6.12. */
export const CAPABILITIES: readonly string[] = (
  "ALL AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER " +
  "FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE MKNOD NET_ADMIN NET_BIND_SERVICE " +
  "NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP SETUID SYSLOG SYS_ADMIN SYS_BOOT SYS_CHROOT SYS_MODULE SYS_NICE " +
  "SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG WAKE_ALARM"
).split(" ");

/** Whether an engine takes the name: any case, with `CAP_` or without it. Source: moby's `NormalizeLegacyCapabilities`. */
export const isCapability = (name: string): boolean =>
  CAPABILITIES.includes(name.toUpperCase().replace(/^CAP_(?!ALL$)/, ""));

/** Source: core/v1 `SELinuxOptions`. */
export const SELinuxOptionsSchema = v.object({
  user: v.optional(go.text),
  role: v.optional(go.text),
  type: v.optional(go.text),
  level: v.optional(go.text),
});

/** Source: core/v1 `WindowsSecurityContextOptions`. */
export const WindowsSecurityContextOptionsSchema = v.object({
  gmsaCredentialSpecName: v.optional(go.textPointer),
  gmsaCredentialSpec: v.optional(go.textPointer),
  runAsUserName: v.optional(go.textPointer),
  hostProcess: v.optional(go.flagPointer),
});

/** Source: core/v1 `SeccompProfile`. */
export const SeccompProfileSchema = v.object({
  type: go.oneOf(["Localhost", "RuntimeDefault", "Unconfined"]),
  /** Relative to the node's seccomp directory; only with `Localhost`. */
  localhostProfile: v.optional(go.textPointer),
});
export type SeccompProfile = v.InferOutput<typeof SeccompProfileSchema>;

/** Source: core/v1 `AppArmorProfile`. */
export const AppArmorProfileSchema = v.object({
  type: go.oneOf(["Localhost", "RuntimeDefault", "Unconfined"]),
  /** Name of a loaded profile; only with `Localhost`. */
  localhostProfile: v.optional(go.textPointer),
});
export type AppArmorProfile = v.InferOutput<typeof AppArmorProfileSchema>;

/** Fields of a container and of a pod. */
const OF_BOTH = {
  seLinuxOptions: v.optional(SELinuxOptionsSchema),
  windowsOptions: v.optional(WindowsSecurityContextOptionsSchema),
  runAsUser: v.optional(go.int64Pointer),
  runAsGroup: v.optional(go.int64Pointer),
  runAsNonRoot: v.optional(go.flagPointer),
  seccompProfile: v.optional(SeccompProfileSchema),
  appArmorProfile: v.optional(AppArmorProfileSchema),
};

/** Source: core/v1 `SecurityContext`, of one container. */
export const SecurityContextSchema = v.object({
  capabilities: v.optional(CapabilitiesSchema),
  privileged: v.optional(go.flagPointer),
  ...OF_BOTH,
  readOnlyRootFilesystem: v.optional(go.flagPointer),
  allowPrivilegeEscalation: v.optional(go.flagPointer),
  procMount: v.optional(go.oneOfPointer(["Default", "Unmasked"])),
});
export type SecurityContext = v.InferOutput<typeof SecurityContextSchema>;

/** Source: core/v1 `Sysctl`. */
export const SysctlSchema = v.object({ name: go.text, value: go.text });

/** Source: core/v1 `PodSecurityContext`. */
export const PodSecurityContextSchema = v.object({
  ...OF_BOTH,
  supplementalGroups: v.optional(v.array(go.int64)),
  supplementalGroupsPolicy: v.optional(go.oneOfPointer(["Merge", "Strict"])),
  fsGroup: v.optional(go.int64Pointer),
  sysctls: v.optional(v.array(SysctlSchema)),
  fsGroupChangePolicy: v.optional(go.oneOfPointer(["OnRootMismatch", "Always"])),
  seLinuxChangePolicy: v.optional(go.oneOfPointer(["Recursive", "MountOption"])),
});

/** Source: core/v1 `ContainerPort`. */
export const ContainerPortSchema = v.object({
  name: v.optional(go.text),
  hostPort: v.optional(go.int32),
  containerPort: go.int32,
  protocol: v.optional(go.oneOf(["TCP", "UDP", "SCTP"]), "TCP"),
  hostIP: v.optional(go.text),
});
export type ContainerPort = v.InferOutput<typeof ContainerPortSchema>;

/** Source: core/v1 `ResourceClaim` of a container. */
export const ResourceClaimSchema = v.object({ name: go.text, request: v.optional(go.text) });

/** Source: core/v1 `ResourceRequirements`. Requests are filled from limits. */
export const ResourceRequirementsSchema = v.object({
  limits: v.optional(go.resourceList),
  requests: v.optional(go.resourceList),
  claims: v.optional(v.array(ResourceClaimSchema)),
});
export type ResourceRequirements = v.InferOutput<typeof ResourceRequirementsSchema>;

/** Source: core/v1 `ContainerResizePolicy`. */
export const ContainerResizePolicySchema = v.object({
  resourceName: go.text,
  restartPolicy: go.oneOf(["NotRequired", "RestartContainer"]),
});
export type ContainerResizePolicy = v.InferOutput<typeof ContainerResizePolicySchema>;

/** Source: core/v1 `ContainerRestartRule`. */
export const ContainerRestartRuleSchema = v.object({
  action: go.oneOf(["Restart", "RestartAllContainers"]),
  exitCodes: v.optional(
    v.object({
      operator: go.oneOf(["In", "NotIn"]),
      values: v.optional(v.array(go.int32)),
    }),
  ),
});

/** Source: core/v1 `VolumeMount`. */
export const VolumeMountSchema = v.object({
  name: go.text,
  readOnly: v.optional(go.flag),
  recursiveReadOnly: v.optional(go.oneOfPointer(["Disabled", "IfPossible", "Enabled"])),
  mountPath: go.text,
  subPath: v.optional(go.text),
  mountPropagation: v.optional(go.oneOfPointer(["None", "HostToContainer", "Bidirectional"])),
  subPathExpr: v.optional(go.text),
});
export type VolumeMount = v.InferOutput<typeof VolumeMountSchema>;

/** Source: core/v1 `VolumeDevice`. */
export const VolumeDeviceSchema = v.object({ name: go.text, devicePath: go.text });

/** One container, regular or init. Source: core/v1 `Container`. */
export const ContainerSchema = v.object({
  name: go.text,
  /** Absent only in templates; a valid static pod always has one. */
  image: v.optional(go.text),
  command: v.optional(go.textList),
  args: v.optional(go.textList),
  workingDir: v.optional(go.text),
  ports: v.optional(v.array(ContainerPortSchema)),
  envFrom: v.optional(v.array(EnvFromSourceSchema)),
  env: v.optional(v.array(EnvVarSchema)),
  resources: ResourceRequirementsSchema,
  resizePolicy: v.optional(v.array(ContainerResizePolicySchema)),
  /** `Always` on an init container makes it a sidecar. */
  restartPolicy: v.optional(go.oneOfPointer(["Always", "OnFailure", "Never"])),
  restartPolicyRules: v.optional(v.array(ContainerRestartRuleSchema)),
  volumeMounts: v.optional(v.array(VolumeMountSchema)),
  volumeDevices: v.optional(v.array(VolumeDeviceSchema)),
  livenessProbe: v.optional(ProbeSchema),
  readinessProbe: v.optional(ProbeSchema),
  startupProbe: v.optional(ProbeSchema),
  lifecycle: v.optional(LifecycleSchema),
  terminationMessagePath: v.optional(go.text, "/dev/termination-log"),
  terminationMessagePolicy: v.optional(go.oneOf(["File", "FallbackToLogsOnError"]), "File"),
  /** Defaulted from the tag of the image: `Always` for `latest` or none. */
  imagePullPolicy: v.optional(go.oneOf(["Always", "IfNotPresent", "Never"])),
  securityContext: v.optional(SecurityContextSchema),
  stdin: v.optional(go.flag),
  stdinOnce: v.optional(go.flag),
  tty: v.optional(go.flag),
});
export type Container = v.InferOutput<typeof ContainerSchema>;

/** A container added to a running pod, e.g. by `kubectl debug`; it is never restarted. Source: core/v1 `EphemeralContainer`. */
export const EphemeralContainerSchema = v.object({
  ...ContainerSchema.entries,
  /** Container whose process namespace it joins. */
  targetContainerName: v.optional(go.text),
});
export type EphemeralContainer = v.InferOutput<typeof EphemeralContainerSchema>;

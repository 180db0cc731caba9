import * as v from "valibot";
import { EnvFromSourceSchema, EnvVarSchema } from "./environment.ts";
import { LifecycleSchema, ProbeSchema } from "./probe.ts";
import { flag, int32, oneOf, oneOfPointer, resourceList, text, textList } from "./scalar.ts";
import { SecurityContextSchema } from "./security-context.ts";

/** Source: core/v1 `ContainerPort`. */
export const ContainerPortSchema = v.object({
  name: v.optional(text),
  hostPort: v.optional(int32),
  containerPort: int32,
  protocol: v.optional(oneOf(["TCP", "UDP", "SCTP"]), "TCP"),
  hostIP: v.optional(text),
});
export type ContainerPort = v.InferOutput<typeof ContainerPortSchema>;

/** Source: core/v1 `ResourceClaim` of a container. */
export const ResourceClaimSchema = v.object({ name: text, request: v.optional(text) });

/** Source: core/v1 `ResourceRequirements`. Requests are filled from limits. */
export const ResourceRequirementsSchema = v.object({
  limits: v.optional(resourceList),
  requests: v.optional(resourceList),
  claims: v.optional(v.array(ResourceClaimSchema)),
});
export type ResourceRequirements = v.InferOutput<typeof ResourceRequirementsSchema>;

/** Source: core/v1 `ContainerResizePolicy`. */
export const ContainerResizePolicySchema = v.object({
  resourceName: text,
  restartPolicy: oneOf(["NotRequired", "RestartContainer"]),
});
export type ContainerResizePolicy = v.InferOutput<typeof ContainerResizePolicySchema>;

/** Source: core/v1 `ContainerRestartRule`. */
export const ContainerRestartRuleSchema = v.object({
  action: oneOf(["Restart", "RestartAllContainers"]),
  exitCodes: v.optional(
    v.object({
      operator: oneOf(["In", "NotIn"]),
      values: v.optional(v.array(int32)),
    }),
  ),
});
export type ContainerRestartRule = v.InferOutput<typeof ContainerRestartRuleSchema>;

/** Source: core/v1 `VolumeMount`. */
export const VolumeMountSchema = v.object({
  name: text,
  readOnly: v.optional(flag),
  recursiveReadOnly: v.optional(oneOfPointer(["Disabled", "IfPossible", "Enabled"])),
  mountPath: text,
  subPath: v.optional(text),
  mountPropagation: v.optional(oneOfPointer(["None", "HostToContainer", "Bidirectional"])),
  subPathExpr: v.optional(text),
});
export type VolumeMount = v.InferOutput<typeof VolumeMountSchema>;

/** Source: core/v1 `VolumeDevice`. */
export const VolumeDeviceSchema = v.object({ name: text, devicePath: text });
export type VolumeDevice = v.InferOutput<typeof VolumeDeviceSchema>;

/** One container, regular or init. Source: core/v1 `Container`. */
export const ContainerSchema = v.object({
  name: text,
  /** Absent only in templates; a valid static pod always has one. */
  image: v.optional(text),
  command: v.optional(textList),
  args: v.optional(textList),
  workingDir: v.optional(text),
  ports: v.optional(v.array(ContainerPortSchema)),
  envFrom: v.optional(v.array(EnvFromSourceSchema)),
  env: v.optional(v.array(EnvVarSchema)),
  resources: ResourceRequirementsSchema,
  resizePolicy: v.optional(v.array(ContainerResizePolicySchema)),
  /** `Always` on an init container makes it a sidecar. */
  restartPolicy: v.optional(oneOfPointer(["Always", "OnFailure", "Never"])),
  restartPolicyRules: v.optional(v.array(ContainerRestartRuleSchema)),
  volumeMounts: v.optional(v.array(VolumeMountSchema)),
  volumeDevices: v.optional(v.array(VolumeDeviceSchema)),
  livenessProbe: v.optional(ProbeSchema),
  readinessProbe: v.optional(ProbeSchema),
  startupProbe: v.optional(ProbeSchema),
  lifecycle: v.optional(LifecycleSchema),
  terminationMessagePath: v.optional(text, "/dev/termination-log"),
  terminationMessagePolicy: v.optional(oneOf(["File", "FallbackToLogsOnError"]), "File"),
  /** Defaulted from the tag of the image: `Always` for `latest` or none. */
  imagePullPolicy: v.optional(oneOf(["Always", "IfNotPresent", "Never"])),
  securityContext: v.optional(SecurityContextSchema),
  stdin: v.optional(flag),
  stdinOnce: v.optional(flag),
  tty: v.optional(flag),
});
export type Container = v.InferOutput<typeof ContainerSchema>;

/** A container added to a running pod, e.g. by `kubectl debug`; it is never restarted. Source: core/v1 `EphemeralContainer`. */
export const EphemeralContainerSchema = v.object({
  ...ContainerSchema.entries,
  /** Container whose process namespace it joins. */
  targetContainerName: v.optional(text),
});
export type EphemeralContainer = v.InferOutput<typeof EphemeralContainerSchema>;

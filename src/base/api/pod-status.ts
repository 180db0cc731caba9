import * as v from "valibot";
import { ResourceRequirementsSchema } from "./container.ts";
import * as go from "./scalar.ts";

/** Source: core/v1 `PodCondition`. */
export const PodConditionSchema = v.object({
  type: go.text,
  observedGeneration: v.optional(go.int64),
  status: go.oneOf(["True", "False", "Unknown"]),
  lastProbeTime: v.optional(go.time),
  lastTransitionTime: v.optional(go.time),
  /** CamelCase, for programs. */
  reason: v.optional(go.text),
  message: v.optional(go.text),
});
export type PodCondition = v.InferOutput<typeof PodConditionSchema>;

/** Source: core/v1 `ContainerStateWaiting`. */
export const ContainerStateWaitingSchema = v.object({ reason: v.optional(go.text), message: v.optional(go.text) });

/** Source: core/v1 `ContainerStateRunning`. */
export const ContainerStateRunningSchema = v.object({ startedAt: v.optional(go.time) });

/** Source: core/v1 `ContainerStateTerminated`. */
export const ContainerStateTerminatedSchema = v.object({
  exitCode: go.int32,
  signal: v.optional(go.int32),
  reason: v.optional(go.text),
  message: v.optional(go.text),
  startedAt: v.optional(go.time),
  finishedAt: v.optional(go.time),
  /** `docker://<id>`. */
  containerID: v.optional(go.text),
});
export type ContainerStateTerminated = v.InferOutput<typeof ContainerStateTerminatedSchema>;

/** At most one is set; none means waiting. Source: core/v1 `ContainerState`. */
export const ContainerStateSchema = v.object({
  waiting: v.optional(ContainerStateWaitingSchema),
  running: v.optional(ContainerStateRunningSchema),
  terminated: v.optional(ContainerStateTerminatedSchema),
});
export type ContainerState = v.InferOutput<typeof ContainerStateSchema>;

/** Source: core/v1 `VolumeMountStatus`. */
export const VolumeMountStatusSchema = v.object({
  name: go.text,
  mountPath: go.text,
  readOnly: v.optional(go.flag),
  recursiveReadOnly: v.optional(go.oneOfPointer(["Disabled", "IfPossible", "Enabled"])),
});

/** Source: core/v1 `ContainerUser`. */
export const ContainerUserSchema = v.object({
  linux: v.optional(v.object({ uid: go.int64, gid: go.int64, supplementalGroups: v.optional(v.array(go.int64)) })),
});

/** Source: core/v1 `ContainerStatus`. */
export const ContainerStatusSchema = v.object({
  name: go.text,
  state: ContainerStateSchema,
  /** State of the container before this one. */
  lastState: ContainerStateSchema,
  ready: go.flag,
  restartCount: go.int32,
  image: go.text,
  imageID: go.text,
  /** `docker://<id>`. */
  containerID: v.optional(go.text),
  started: v.optional(go.flagPointer),
  allocatedResources: v.optional(go.resourceList),
  resources: v.optional(ResourceRequirementsSchema),
  volumeMounts: v.optional(v.array(VolumeMountStatusSchema)),
  user: v.optional(ContainerUserSchema),
  stopSignal: v.optional(go.textPointer),
  allocatedResourcesStatus: v.optional(v.array(go.raw)),
});
export type ContainerStatus = v.InferOutput<typeof ContainerStatusSchema>;

/** Source: core/v1 `PodStatus`. */
export const PodStatusSchema = v.object({
  observedGeneration: v.optional(go.int64),
  phase: v.optional(go.oneOf(["Pending", "Running", "Succeeded", "Failed", "Unknown"])),
  conditions: v.optional(v.array(PodConditionSchema)),
  message: v.optional(go.text),
  reason: v.optional(go.text),
  nominatedNodeName: v.optional(go.text),
  hostIP: v.optional(go.text),
  hostIPs: v.optional(v.array(v.object({ ip: go.text }))),
  podIP: v.optional(go.text),
  podIPs: v.optional(v.array(v.object({ ip: v.optional(go.text) }))),
  startTime: v.optional(go.timePointer),
  initContainerStatuses: v.optional(v.array(ContainerStatusSchema)),
  containerStatuses: v.optional(v.array(ContainerStatusSchema)),
  qosClass: v.optional(go.oneOf(["Guaranteed", "Burstable", "BestEffort"])),
  ephemeralContainerStatuses: v.optional(v.array(ContainerStatusSchema)),
  resize: v.optional(go.text),
  resourceClaimStatuses: v.optional(v.array(go.raw)),
});
export type PodStatus = v.InferOutput<typeof PodStatusSchema>;
export type PodPhase = NonNullable<PodStatus["phase"]>;
export type QOSClass = NonNullable<PodStatus["qosClass"]>;

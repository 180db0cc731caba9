import * as v from "valibot";
import { ResourceRequirementsSchema } from "./container.ts";
import {
  flag,
  flagPointer,
  int32,
  int64,
  oneOf,
  oneOfPointer,
  raw,
  resourceList,
  text,
  textPointer,
  time,
  timePointer,
} from "./scalar.ts";

/** Source: core/v1 `PodCondition`. */
export const PodConditionSchema = v.object({
  type: text,
  observedGeneration: v.optional(int64),
  status: oneOf(["True", "False", "Unknown"]),
  lastProbeTime: v.optional(time),
  lastTransitionTime: v.optional(time),
  /** CamelCase, for programs. */
  reason: v.optional(text),
  message: v.optional(text),
});
export type PodCondition = v.InferOutput<typeof PodConditionSchema>;

/** Source: core/v1 `ContainerStateWaiting`. */
export const ContainerStateWaitingSchema = v.object({ reason: v.optional(text), message: v.optional(text) });

/** Source: core/v1 `ContainerStateRunning`. */
export const ContainerStateRunningSchema = v.object({ startedAt: v.optional(time) });

/** Source: core/v1 `ContainerStateTerminated`. */
export const ContainerStateTerminatedSchema = v.object({
  exitCode: int32,
  signal: v.optional(int32),
  reason: v.optional(text),
  message: v.optional(text),
  startedAt: v.optional(time),
  finishedAt: v.optional(time),
  /** `docker://<id>`. */
  containerID: v.optional(text),
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
  name: text,
  mountPath: text,
  readOnly: v.optional(flag),
  recursiveReadOnly: v.optional(oneOfPointer(["Disabled", "IfPossible", "Enabled"])),
});

/** Source: core/v1 `ContainerUser`. */
export const ContainerUserSchema = v.object({
  linux: v.optional(v.object({ uid: int64, gid: int64, supplementalGroups: v.optional(v.array(int64)) })),
});

/** Source: core/v1 `ContainerStatus`. */
export const ContainerStatusSchema = v.object({
  name: text,
  state: ContainerStateSchema,
  /** State of the container before this one. */
  lastState: ContainerStateSchema,
  ready: flag,
  restartCount: int32,
  image: text,
  imageID: text,
  /** `docker://<id>`. */
  containerID: v.optional(text),
  started: v.optional(flagPointer),
  allocatedResources: v.optional(resourceList),
  resources: v.optional(ResourceRequirementsSchema),
  volumeMounts: v.optional(v.array(VolumeMountStatusSchema)),
  user: v.optional(ContainerUserSchema),
  stopSignal: v.optional(textPointer),
  allocatedResourcesStatus: v.optional(v.array(raw)),
});
export type ContainerStatus = v.InferOutput<typeof ContainerStatusSchema>;

/** Source: core/v1 `PodStatus`. */
export const PodStatusSchema = v.object({
  observedGeneration: v.optional(int64),
  phase: v.optional(oneOf(["Pending", "Running", "Succeeded", "Failed", "Unknown"])),
  conditions: v.optional(v.array(PodConditionSchema)),
  message: v.optional(text),
  reason: v.optional(text),
  nominatedNodeName: v.optional(text),
  hostIP: v.optional(text),
  hostIPs: v.optional(v.array(v.object({ ip: text }))),
  podIP: v.optional(text),
  podIPs: v.optional(v.array(v.object({ ip: v.optional(text) }))),
  startTime: v.optional(timePointer),
  initContainerStatuses: v.optional(v.array(ContainerStatusSchema)),
  containerStatuses: v.optional(v.array(ContainerStatusSchema)),
  qosClass: v.optional(oneOf(["Guaranteed", "Burstable", "BestEffort"])),
  ephemeralContainerStatuses: v.optional(v.array(ContainerStatusSchema)),
  resize: v.optional(text),
  resourceClaimStatuses: v.optional(v.array(raw)),
});
export type PodStatus = v.InferOutput<typeof PodStatusSchema>;
export type PodPhase = NonNullable<PodStatus["phase"]>;
export type QOSClass = NonNullable<PodStatus["qosClass"]>;

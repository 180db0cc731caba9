import * as v from "valibot";
import {
  ContainerSchema,
  EphemeralContainerSchema,
  PodSecurityContextSchema,
  ResourceRequirementsSchema,
} from "./container.ts";
import { LabelSelectorSchema, LocalObjectReferenceSchema, ObjectMetaSchema } from "./meta.ts";
import * as go from "./scalar.ts";
import { VolumeSchema } from "./volume.ts";

export type * from "./container.ts";
export type * from "./meta.ts";
export type { ResourceList } from "./scalar.ts";
export type * from "./volume.ts";

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

/** Source: core/v1 `NodeSelectorRequirement`. */
export const NodeSelectorRequirementSchema = v.object({
  key: go.text,
  operator: go.oneOf(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
  values: v.optional(go.textList),
});

/** Source: core/v1 `NodeSelectorTerm`. */
export const NodeSelectorTermSchema = v.object({
  matchExpressions: v.optional(v.array(NodeSelectorRequirementSchema)),
  matchFields: v.optional(v.array(NodeSelectorRequirementSchema)),
});
export type NodeSelectorTerm = v.InferOutput<typeof NodeSelectorTermSchema>;

/** Source: core/v1 `NodeSelector`. */
export const NodeSelectorSchema = v.object({ nodeSelectorTerms: v.array(NodeSelectorTermSchema) });
export type NodeSelector = v.InferOutput<typeof NodeSelectorSchema>;

/** Source: core/v1 `PreferredSchedulingTerm`. */
export const PreferredSchedulingTermSchema = v.object({ weight: go.int32, preference: NodeSelectorTermSchema });

/** Source: core/v1 `NodeAffinity`. */
export const NodeAffinitySchema = v.object({
  requiredDuringSchedulingIgnoredDuringExecution: v.optional(NodeSelectorSchema),
  preferredDuringSchedulingIgnoredDuringExecution: v.optional(v.array(PreferredSchedulingTermSchema)),
});

/** Source: core/v1 `PodAffinityTerm`. */
export const PodAffinityTermSchema = v.object({
  labelSelector: v.optional(LabelSelectorSchema),
  namespaces: v.optional(go.textList),
  topologyKey: go.text,
  namespaceSelector: v.optional(LabelSelectorSchema),
  matchLabelKeys: v.optional(go.textList),
  mismatchLabelKeys: v.optional(go.textList),
});
export type PodAffinityTerm = v.InferOutput<typeof PodAffinityTermSchema>;

/** Source: core/v1 `PodAffinity`, `PodAntiAffinity`. */
export const PodAffinitySchema = v.object({
  requiredDuringSchedulingIgnoredDuringExecution: v.optional(v.array(PodAffinityTermSchema)),
  preferredDuringSchedulingIgnoredDuringExecution: v.optional(
    v.array(v.object({ weight: go.int32, podAffinityTerm: PodAffinityTermSchema })),
  ),
});
export type PodAffinity = v.InferOutput<typeof PodAffinitySchema>;

/** Source: core/v1 `Affinity`. */
export const AffinitySchema = v.object({
  nodeAffinity: v.optional(NodeAffinitySchema),
  podAffinity: v.optional(PodAffinitySchema),
  podAntiAffinity: v.optional(PodAffinitySchema),
});
export type Affinity = v.InferOutput<typeof AffinitySchema>;

/** Source: core/v1 `TopologySpreadConstraint`. */
export const TopologySpreadConstraintSchema = v.object({
  maxSkew: go.int32,
  topologyKey: go.text,
  whenUnsatisfiable: go.oneOf(["DoNotSchedule", "ScheduleAnyway"]),
  labelSelector: v.optional(LabelSelectorSchema),
  minDomains: v.optional(go.int32Pointer),
  nodeAffinityPolicy: v.optional(go.oneOfPointer(["Honor", "Ignore"])),
  nodeTaintsPolicy: v.optional(go.oneOfPointer(["Honor", "Ignore"])),
  matchLabelKeys: v.optional(go.textList),
});
export type TopologySpreadConstraint = v.InferOutput<typeof TopologySpreadConstraintSchema>;

/** Source: core/v1 `HostAlias`. */
export const HostAliasSchema = v.object({ ip: v.optional(go.text), hostnames: v.optional(go.textList) });
export type HostAlias = v.InferOutput<typeof HostAliasSchema>;

/** Source: core/v1 `PodDNSConfigOption`. */
export const PodDNSConfigOptionSchema = v.object({ name: v.optional(go.text), value: v.optional(go.textPointer) });

/** Source: core/v1 `PodDNSConfig`. */
export const PodDNSConfigSchema = v.object({
  nameservers: v.optional(go.textList),
  searches: v.optional(go.textList),
  options: v.optional(v.array(PodDNSConfigOptionSchema)),
});

/** Source: core/v1 `Toleration`. */
export const TolerationSchema = v.object({
  key: v.optional(go.text),
  operator: v.optional(go.oneOf(["Exists", "Equal", "Gt", "Lt"])),
  value: v.optional(go.text),
  effect: v.optional(go.oneOf(["NoSchedule", "PreferNoSchedule", "NoExecute"])),
  tolerationSeconds: v.optional(go.int64Pointer),
});
export type Toleration = v.InferOutput<typeof TolerationSchema>;

/** Source: core/v1 `PodReadinessGate`. */
export const PodReadinessGateSchema = v.object({ conditionType: go.text });

/** Source: core/v1 `PodOS`. */
export const PodOSSchema = v.object({ name: go.oneOf(["linux", "windows"]) });

/** Source: core/v1 `PodSchedulingGate`. */
export const PodSchedulingGateSchema = v.object({ name: go.text });

/** Source: core/v1 `PodResourceClaim`. */
export const PodResourceClaimSchema = v.object({
  name: go.text,
  resourceClaimName: v.optional(go.textPointer),
  resourceClaimTemplateName: v.optional(go.textPointer),
});

/** Source: core/v1 `WorkloadReference`. */
export const WorkloadReferenceSchema = v.object({
  name: go.text,
  podGroup: go.text,
  podGroupReplicaKey: v.optional(go.text),
});

/** Source: core/v1 `PodSpec`. */
export const PodSpecSchema = v.object({
  volumes: v.optional(v.array(VolumeSchema)),
  initContainers: v.optional(v.array(ContainerSchema)),
  containers: v.array(ContainerSchema),
  ephemeralContainers: v.optional(v.array(EphemeralContainerSchema)),
  restartPolicy: v.optional(go.oneOf(["Always", "OnFailure", "Never"]), "Always"),
  terminationGracePeriodSeconds: v.optional(go.int64Pointer, 30),
  activeDeadlineSeconds: v.optional(go.int64Pointer),
  dnsPolicy: v.optional(go.oneOf(["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]), "ClusterFirst"),
  nodeSelector: v.optional(go.textMap),
  serviceAccountName: v.optional(go.text),
  serviceAccount: v.optional(go.text),
  automountServiceAccountToken: v.optional(go.flagPointer),
  nodeName: v.optional(go.text),
  hostNetwork: v.optional(go.flag),
  hostPID: v.optional(go.flag),
  hostIPC: v.optional(go.flag),
  shareProcessNamespace: v.optional(go.flagPointer),
  securityContext: v.optional(PodSecurityContextSchema, {}),
  imagePullSecrets: v.optional(v.array(LocalObjectReferenceSchema)),
  hostname: v.optional(go.text),
  subdomain: v.optional(go.text),
  affinity: v.optional(AffinitySchema),
  schedulerName: v.optional(go.text, "default-scheduler"),
  tolerations: v.optional(v.array(TolerationSchema)),
  hostAliases: v.optional(v.array(HostAliasSchema)),
  priorityClassName: v.optional(go.text),
  priority: v.optional(go.int32Pointer),
  dnsConfig: v.optional(PodDNSConfigSchema),
  readinessGates: v.optional(v.array(PodReadinessGateSchema)),
  runtimeClassName: v.optional(go.textPointer),
  enableServiceLinks: v.optional(go.flagPointer, true),
  preemptionPolicy: v.optional(go.oneOfPointer(["PreemptLowerPriority", "Never"])),
  overhead: v.optional(go.resourceList),
  topologySpreadConstraints: v.optional(v.array(TopologySpreadConstraintSchema)),
  setHostnameAsFQDN: v.optional(go.flagPointer),
  os: v.optional(PodOSSchema),
  hostUsers: v.optional(go.flagPointer),
  schedulingGates: v.optional(v.array(PodSchedulingGateSchema)),
  resourceClaims: v.optional(v.array(PodResourceClaimSchema)),
  /** Resources of the pod as a whole. */
  resources: v.optional(ResourceRequirementsSchema),
  /** Overrides `hostname` and `subdomain` inside the pod. */
  hostnameOverride: v.optional(go.textPointer),
  workloadRef: v.optional(WorkloadReferenceSchema),
});
export type PodSpec = v.InferOutput<typeof PodSpecSchema>;

/** A pod with every default filled in. Zero values are absent, quantities canonical. Source: core/v1 `Pod`. */
export const PodSchema = v.object({
  metadata: ObjectMetaSchema,
  spec: PodSpecSchema,
  status: v.optional(PodStatusSchema),
});
export type Pod = v.InferOutput<typeof PodSchema>;

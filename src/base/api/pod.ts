import * as v from "valibot";
import {
  ContainerSchema,
  EphemeralContainerSchema,
  PodSecurityContextSchema,
  ResourceRequirementsSchema,
} from "./container.ts";
import { LabelSelectorSchema, LocalObjectReferenceSchema, ObjectMetaSchema } from "./meta.ts";
import { PodStatusSchema } from "./pod-status.ts";
import {
  flag,
  flagPointer,
  int32,
  int32Pointer,
  int64Pointer,
  oneOf,
  oneOfPointer,
  resourceList,
  text,
  textList,
  textMap,
  textPointer,
} from "./scalar.ts";
import { VolumeSchema } from "./volume.ts";

export type * from "./container.ts";
export type * from "./meta.ts";
export type * from "./pod-status.ts";
export type { ResourceList } from "./scalar.ts";
export type * from "./volume.ts";

/** Source: core/v1 `NodeSelectorRequirement`. */
export const NodeSelectorRequirementSchema = v.object({
  key: text,
  operator: oneOf(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
  values: v.optional(textList),
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
export const PreferredSchedulingTermSchema = v.object({ weight: int32, preference: NodeSelectorTermSchema });

/** Source: core/v1 `NodeAffinity`. */
export const NodeAffinitySchema = v.object({
  requiredDuringSchedulingIgnoredDuringExecution: v.optional(NodeSelectorSchema),
  preferredDuringSchedulingIgnoredDuringExecution: v.optional(v.array(PreferredSchedulingTermSchema)),
});

/** Source: core/v1 `PodAffinityTerm`. */
export const PodAffinityTermSchema = v.object({
  labelSelector: v.optional(LabelSelectorSchema),
  namespaces: v.optional(textList),
  topologyKey: text,
  namespaceSelector: v.optional(LabelSelectorSchema),
  matchLabelKeys: v.optional(textList),
  mismatchLabelKeys: v.optional(textList),
});
export type PodAffinityTerm = v.InferOutput<typeof PodAffinityTermSchema>;

/** Source: core/v1 `PodAffinity`, `PodAntiAffinity`. */
export const PodAffinitySchema = v.object({
  requiredDuringSchedulingIgnoredDuringExecution: v.optional(v.array(PodAffinityTermSchema)),
  preferredDuringSchedulingIgnoredDuringExecution: v.optional(
    v.array(v.object({ weight: int32, podAffinityTerm: PodAffinityTermSchema })),
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
  maxSkew: int32,
  topologyKey: text,
  whenUnsatisfiable: oneOf(["DoNotSchedule", "ScheduleAnyway"]),
  labelSelector: v.optional(LabelSelectorSchema),
  minDomains: v.optional(int32Pointer),
  nodeAffinityPolicy: v.optional(oneOfPointer(["Honor", "Ignore"])),
  nodeTaintsPolicy: v.optional(oneOfPointer(["Honor", "Ignore"])),
  matchLabelKeys: v.optional(textList),
});
export type TopologySpreadConstraint = v.InferOutput<typeof TopologySpreadConstraintSchema>;

/** Source: core/v1 `HostAlias`. */
export const HostAliasSchema = v.object({ ip: v.optional(text), hostnames: v.optional(textList) });
export type HostAlias = v.InferOutput<typeof HostAliasSchema>;

/** Source: core/v1 `PodDNSConfigOption`. */
export const PodDNSConfigOptionSchema = v.object({ name: v.optional(text), value: v.optional(textPointer) });

/** Source: core/v1 `PodDNSConfig`. */
export const PodDNSConfigSchema = v.object({
  nameservers: v.optional(textList),
  searches: v.optional(textList),
  options: v.optional(v.array(PodDNSConfigOptionSchema)),
});

/** Source: core/v1 `Toleration`. */
export const TolerationSchema = v.object({
  key: v.optional(text),
  operator: v.optional(oneOf(["Exists", "Equal", "Gt", "Lt"])),
  value: v.optional(text),
  effect: v.optional(oneOf(["NoSchedule", "PreferNoSchedule", "NoExecute"])),
  tolerationSeconds: v.optional(int64Pointer),
});
export type Toleration = v.InferOutput<typeof TolerationSchema>;

/** Source: core/v1 `PodReadinessGate`. */
export const PodReadinessGateSchema = v.object({ conditionType: text });

/** Source: core/v1 `PodOS`. */
export const PodOSSchema = v.object({ name: oneOf(["linux", "windows"]) });

/** Source: core/v1 `PodSchedulingGate`. */
export const PodSchedulingGateSchema = v.object({ name: text });

/** Source: core/v1 `PodResourceClaim`. */
export const PodResourceClaimSchema = v.object({
  name: text,
  resourceClaimName: v.optional(textPointer),
  resourceClaimTemplateName: v.optional(textPointer),
});

/** Source: core/v1 `WorkloadReference`. */
export const WorkloadReferenceSchema = v.object({
  name: text,
  podGroup: text,
  podGroupReplicaKey: v.optional(text),
});

/** Source: core/v1 `PodSpec`. */
export const PodSpecSchema = v.object({
  volumes: v.optional(v.array(VolumeSchema)),
  initContainers: v.optional(v.array(ContainerSchema)),
  containers: v.array(ContainerSchema),
  ephemeralContainers: v.optional(v.array(EphemeralContainerSchema)),
  restartPolicy: v.optional(oneOf(["Always", "OnFailure", "Never"]), "Always"),
  terminationGracePeriodSeconds: v.optional(int64Pointer, 30),
  activeDeadlineSeconds: v.optional(int64Pointer),
  dnsPolicy: v.optional(oneOf(["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]), "ClusterFirst"),
  nodeSelector: v.optional(textMap),
  serviceAccountName: v.optional(text),
  serviceAccount: v.optional(text),
  automountServiceAccountToken: v.optional(flagPointer),
  nodeName: v.optional(text),
  hostNetwork: v.optional(flag),
  hostPID: v.optional(flag),
  hostIPC: v.optional(flag),
  shareProcessNamespace: v.optional(flagPointer),
  securityContext: v.optional(PodSecurityContextSchema, {}),
  imagePullSecrets: v.optional(v.array(LocalObjectReferenceSchema)),
  hostname: v.optional(text),
  subdomain: v.optional(text),
  affinity: v.optional(AffinitySchema),
  schedulerName: v.optional(text, "default-scheduler"),
  tolerations: v.optional(v.array(TolerationSchema)),
  hostAliases: v.optional(v.array(HostAliasSchema)),
  priorityClassName: v.optional(text),
  priority: v.optional(int32Pointer),
  dnsConfig: v.optional(PodDNSConfigSchema),
  readinessGates: v.optional(v.array(PodReadinessGateSchema)),
  runtimeClassName: v.optional(textPointer),
  enableServiceLinks: v.optional(flagPointer, true),
  preemptionPolicy: v.optional(oneOfPointer(["PreemptLowerPriority", "Never"])),
  overhead: v.optional(resourceList),
  topologySpreadConstraints: v.optional(v.array(TopologySpreadConstraintSchema)),
  setHostnameAsFQDN: v.optional(flagPointer),
  os: v.optional(PodOSSchema),
  hostUsers: v.optional(flagPointer),
  schedulingGates: v.optional(v.array(PodSchedulingGateSchema)),
  resourceClaims: v.optional(v.array(PodResourceClaimSchema)),
  /** Resources of the pod as a whole. */
  resources: v.optional(ResourceRequirementsSchema),
  /** Overrides `hostname` and `subdomain` inside the pod. */
  hostnameOverride: v.optional(textPointer),
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

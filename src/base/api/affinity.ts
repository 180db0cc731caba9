import * as v from "valibot";
import { LabelSelectorSchema } from "./meta.ts";
import { int32, int32Pointer, oneOf, oneOfPointer, text, textList } from "./scalar.ts";

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
export type NodeAffinity = v.InferOutput<typeof NodeAffinitySchema>;

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

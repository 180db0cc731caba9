import * as v from "valibot";
import { LabelSelectorSchema, ObjectMetaSchema } from "./meta.ts";
import { PodSpecSchema } from "./pod.ts";
import { flag, int32, int32Pointer, int64, intOrString, raw, text, textMap } from "./scalar.ts";
import { PersistentVolumeClaimSpecSchema } from "./volume.ts";

/** Source: core/v1 `PodTemplateSpec`. */
export const PodTemplateSpecSchema = v.object({
  metadata: v.optional(ObjectMetaSchema, {}),
  spec: PodSpecSchema,
});
export type PodTemplateSpec = v.InferOutput<typeof PodTemplateSpecSchema>;

/** Source: apps/v1 `RollingUpdateDeployment`. Defaults: 25% each, filled in by `applyDeploymentDefaults`. */
export const RollingUpdateSchema = v.object({
  maxUnavailable: v.optional(intOrString),
  maxSurge: v.optional(intOrString),
});

export type RollingUpdate = v.InferOutput<typeof RollingUpdateSchema>;

/** Source: apps/v1 `DeploymentStrategy`. */
export const DeploymentStrategySchema = v.object({
  type: v.optional(text, "RollingUpdate"),
  rollingUpdate: v.optional(RollingUpdateSchema),
});

/** Source: apps/v1 `DeploymentSpec`; `rollbackTo` is of extensions/v1beta1. */
export const DeploymentSpecSchema = v.object({
  replicas: v.optional(int32Pointer, 1),
  selector: v.optional(LabelSelectorSchema),
  template: PodTemplateSpecSchema,
  strategy: v.optional(DeploymentStrategySchema, { type: "RollingUpdate" }),
  minReadySeconds: v.optional(int32),
  revisionHistoryLimit: v.optional(int32Pointer),
  paused: v.optional(flag),
  progressDeadlineSeconds: v.optional(int32Pointer),
  rollbackTo: v.optional(raw),
});
export type DeploymentSpec = v.InferOutput<typeof DeploymentSpecSchema>;

/** Source: apps/v1 `Deployment`. The status of a manifest is not read. */
export const DeploymentSchema = v.object({
  metadata: ObjectMetaSchema,
  spec: DeploymentSpecSchema,
  status: v.optional(raw),
});
export type Deployment = v.InferOutput<typeof DeploymentSchema>;

/** Source: apps/v1 `ReplicaSet`. */
export const ReplicaSetSchema = v.object({
  metadata: ObjectMetaSchema,
  spec: v.object({
    replicas: v.optional(int32Pointer, 1),
    minReadySeconds: v.optional(int32),
    selector: v.optional(LabelSelectorSchema),
    template: PodTemplateSpecSchema,
  }),
  status: v.optional(raw),
});
export type ReplicaSet = v.InferOutput<typeof ReplicaSetSchema>;

/** Source: core/v1 `ReplicationController`. Its selector is a plain map. */
export const ReplicationControllerSchema = v.object({
  metadata: ObjectMetaSchema,
  spec: v.object({
    replicas: v.optional(int32Pointer, 1),
    minReadySeconds: v.optional(int32),
    selector: v.optional(textMap),
    template: PodTemplateSpecSchema,
  }),
  status: v.optional(raw),
});
export type ReplicationController = v.InferOutput<typeof ReplicationControllerSchema>;

/** Source: core/v1 `PersistentVolumeClaim`. */
export const PersistentVolumeClaimSchema = v.object({
  metadata: ObjectMetaSchema,
  spec: PersistentVolumeClaimSpecSchema,
  status: v.optional(raw),
});
export type PersistentVolumeClaim = v.InferOutput<typeof PersistentVolumeClaimSchema>;

/** Source: apps/v1 `StatefulSet`; the fields after `minReadySeconds` came after 1.20. */
export const StatefulSetSchema = v.object({
  metadata: ObjectMetaSchema,
  spec: v.object({
    replicas: v.optional(int32Pointer, 1),
    selector: v.optional(LabelSelectorSchema),
    template: PodTemplateSpecSchema,
    volumeClaimTemplates: v.optional(
      v.array(
        v.object({ apiVersion: v.optional(text), kind: v.optional(text), ...PersistentVolumeClaimSchema.entries }),
      ),
    ),
    serviceName: v.optional(text),
    podManagementPolicy: v.optional(text, "OrderedReady"),
    updateStrategy: v.optional(
      v.object({
        type: v.optional(text, "RollingUpdate"),
        rollingUpdate: v.optional(
          v.object({ partition: v.optional(int32Pointer), maxUnavailable: v.optional(intOrString) }),
        ),
      }),
      { type: "RollingUpdate" },
    ),
    revisionHistoryLimit: v.optional(int32Pointer, 10),
    minReadySeconds: v.optional(int32),
    persistentVolumeClaimRetentionPolicy: v.optional(
      v.object({ whenDeleted: v.optional(text), whenScaled: v.optional(text) }),
    ),
    ordinals: v.optional(v.object({ start: v.optional(int32) })),
  }),
  status: v.optional(raw),
});
export type StatefulSet = v.InferOutput<typeof StatefulSetSchema>;

/** Source: apps/v1 `DaemonSet`. `templateGeneration` is of extensions/v1beta1. */
export const DaemonSetSchema = v.object({
  metadata: ObjectMetaSchema,
  spec: v.object({
    selector: v.optional(LabelSelectorSchema),
    template: PodTemplateSpecSchema,
    updateStrategy: v.optional(
      v.object({ type: v.optional(text, "RollingUpdate"), rollingUpdate: v.optional(RollingUpdateSchema) }),
      { type: "RollingUpdate" },
    ),
    minReadySeconds: v.optional(int32),
    revisionHistoryLimit: v.optional(int32Pointer, 10),
    templateGeneration: v.optional(int64),
  }),
  status: v.optional(raw),
});
export type DaemonSet = v.InferOutput<typeof DaemonSetSchema>;

import * as v from "valibot";
import { LabelSelectorSchema, ObjectMetaSchema } from "./meta.ts";
import { PodSpecSchema } from "./pod.ts";
import * as go from "./scalar.ts";
import { PersistentVolumeClaimSpecSchema } from "./volume.ts";

/** Source: core/v1 `PodTemplateSpec`. */
export const PodTemplateSpecSchema = v.object({
  metadata: v.optional(ObjectMetaSchema, {}),
  spec: PodSpecSchema,
});
export type PodTemplateSpec = v.InferOutput<typeof PodTemplateSpecSchema>;

/** An object with this spec. The status of a manifest is not read. */
const objectOf = <const S extends v.GenericSchema>(spec: S) =>
  v.object({ metadata: ObjectMetaSchema, spec, status: v.optional(go.raw) });

/** Fields that the specs of pod controllers share. */
const CONTROLLER_FIELDS = {
  selector: v.optional(LabelSelectorSchema),
  template: PodTemplateSpecSchema,
  minReadySeconds: v.optional(go.int32),
};
const REPLICA_FIELDS = { replicas: v.optional(go.int32Pointer, 1), ...CONTROLLER_FIELDS };

/** Source: apps/v1 `RollingUpdateDeployment`. Defaults: 25% each, filled in by `applyDeploymentDefaults`. */
export const RollingUpdateSchema = v.object({
  maxUnavailable: v.optional(go.intOrString),
  maxSurge: v.optional(go.intOrString),
});

export type RollingUpdate = v.InferOutput<typeof RollingUpdateSchema>;

/** Source: apps/v1 `DeploymentStrategy`. */
export const DeploymentStrategySchema = v.object({
  type: v.optional(go.text, "RollingUpdate"),
  rollingUpdate: v.optional(RollingUpdateSchema),
});

/** Source: apps/v1 `DeploymentSpec`; `rollbackTo` is of extensions/v1beta1. */
export const DeploymentSpecSchema = v.object({
  ...REPLICA_FIELDS,
  strategy: v.optional(DeploymentStrategySchema, { type: "RollingUpdate" }),
  revisionHistoryLimit: v.optional(go.int32Pointer),
  paused: v.optional(go.flag),
  progressDeadlineSeconds: v.optional(go.int32Pointer),
  rollbackTo: v.optional(go.raw),
});
export type DeploymentSpec = v.InferOutput<typeof DeploymentSpecSchema>;

/** Source: apps/v1 `Deployment`. */
export const DeploymentSchema = objectOf(DeploymentSpecSchema);
export type Deployment = v.InferOutput<typeof DeploymentSchema>;

/** Source: apps/v1 `ReplicaSet`. */
export const ReplicaSetSchema = objectOf(v.object(REPLICA_FIELDS));
export type ReplicaSet = v.InferOutput<typeof ReplicaSetSchema>;

/** Source: core/v1 `ReplicationController`. Its selector is a plain map. */
export const ReplicationControllerSchema = objectOf(v.object({ ...REPLICA_FIELDS, selector: v.optional(go.textMap) }));
export type ReplicationController = v.InferOutput<typeof ReplicationControllerSchema>;

/** Source: core/v1 `PersistentVolumeClaim`. */
export const PersistentVolumeClaimSchema = objectOf(PersistentVolumeClaimSpecSchema);
export type PersistentVolumeClaim = v.InferOutput<typeof PersistentVolumeClaimSchema>;

/** Source: apps/v1 `StatefulSet`; `minReadySeconds`, `persistentVolumeClaimRetentionPolicy` and `ordinals` came after 1.20. */
export const StatefulSetSchema = objectOf(
  v.object({
    ...REPLICA_FIELDS,
    volumeClaimTemplates: v.optional(
      v.array(
        v.object({
          apiVersion: v.optional(go.text, "v1"),
          kind: v.optional(go.text, "PersistentVolumeClaim"),
          ...PersistentVolumeClaimSchema.entries,
        }),
      ),
    ),
    serviceName: v.optional(go.text),
    podManagementPolicy: v.optional(go.text, "OrderedReady"),
    updateStrategy: v.optional(
      v.object({
        type: v.optional(go.text, "RollingUpdate"),
        rollingUpdate: v.optional(
          v.object({ partition: v.optional(go.int32Pointer), maxUnavailable: v.optional(go.intOrString) }),
        ),
      }),
      { type: "RollingUpdate", rollingUpdate: {} },
    ),
    revisionHistoryLimit: v.optional(go.int32Pointer, 10),
    persistentVolumeClaimRetentionPolicy: v.optional(
      v.object({ whenDeleted: v.optional(go.text), whenScaled: v.optional(go.text) }),
    ),
    ordinals: v.optional(v.object({ start: v.optional(go.int32) })),
  }),
);
export type StatefulSet = v.InferOutput<typeof StatefulSetSchema>;

/** Source: apps/v1 `DaemonSet`. `templateGeneration` is of extensions/v1beta1. */
export const DaemonSetSchema = objectOf(
  v.object({
    ...CONTROLLER_FIELDS,
    updateStrategy: v.optional(
      v.object({ type: v.optional(go.text, "RollingUpdate"), rollingUpdate: v.optional(RollingUpdateSchema) }),
      { type: "RollingUpdate" },
    ),
    revisionHistoryLimit: v.optional(go.int32Pointer, 10),
    templateGeneration: v.optional(go.int64),
  }),
);
export type DaemonSet = v.InferOutput<typeof DaemonSetSchema>;

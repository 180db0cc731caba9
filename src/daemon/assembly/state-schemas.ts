/** Shapes of the files in `<root-dir>/state`: a file of another shape is set aside at start. */
import * as v from "valibot";
import { EphemeralContainerSchema, ResourceRequirementsSchema } from "../../base/api/container.ts";
import type { PersistentVolume } from "../../base/api/persistent-volume.ts";
import { PodStatusSchema } from "../../base/api/pod-status.ts";
import type { DesiredPod } from "../../base/model/desired-pod.ts";
import type { StoredProbeResults } from "../../base/model/prober.ts";
import type { ClaimRecord } from "../../controllers/claims.ts";
import type { WorkloadRecord } from "../../controllers/workload-record.ts";
import type { StoredCordon } from "../../kubelet/node-cordon.ts";
import type { Completion } from "../../kubelet/pod-status-tracker.ts";
import type { StoredEphemeralContainers } from "../../kubelet/revision-selector.ts";
import type { StoredRollouts } from "../../kubelet/rollout-manager.ts";
import type { ImageUpdateRecord } from "../../plan/image-updates.ts";
import type { StoredAllocations } from "../../plan/node-admission.ts";
import type { ServiceAddress } from "../../plan/service-environment.ts";

const TextSchema = v.string();
const ProbeResultSchema = v.exactOptional(v.picklist(["success", "failure"]));

export const ContainerIdsSchema = v.array(TextSchema);

export const ServicesSchema: v.GenericSchema<unknown, readonly ServiceAddress[]> = v.array(
  v.object({
    name: TextSchema,
    namespace: TextSchema,
    clusterIP: v.optional(TextSchema, ""),
    ports: v.array(v.object({ name: v.optional(TextSchema), port: v.number(), protocol: v.optional(TextSchema) })),
  }),
);

/** Names and handlers. */
export const RuntimeClassesSchema = v.array(v.tuple([TextSchema, TextSchema]));

export const PodsToCleanUpSchema = v.array(
  v.object({
    uid: v.pipe(TextSchema, v.minLength(1)),
    name: TextSchema,
    namespace: TextSchema,
    sourceId: v.exactOptional(TextSchema),
  }),
);

export const EphemeralContainersSchema: v.GenericSchema<unknown, StoredEphemeralContainers> = v.array(
  v.tuple([TextSchema, v.array(EphemeralContainerSchema)]),
);

export const AllocationsSchema: v.GenericSchema<unknown, StoredAllocations> = v.record(
  TextSchema,
  v.record(TextSchema, ResourceRequirementsSchema),
);

export const CordonSchema: v.GenericSchema<unknown, StoredCordon> = v.object({
  cordon: v.exactOptional(v.object({ since: v.pipe(TextSchema, v.isoTimestamp()), assigned: v.array(TextSchema) })),
});

export const EvictionsSchema = v.array(
  v.tuple([
    TextSchema,
    v.object({
      reason: TextSchema,
      message: TextSchema,
      revision: TextSchema,
      since: v.pipe(TextSchema, v.isoTimestamp()),
    }),
  ]),
);

export const CompletionsSchema = v.record(
  TextSchema,
  v.custom<Completion>((value) => v.is(CompletionSchema, value), "a completion"),
);
const CompletionSchema = v.object({
  runRevision: TextSchema,
  end: v.object({
    phase: v.picklist(["Succeeded", "Failed"]),
    reason: v.optional(TextSchema),
    message: v.optional(TextSchema),
  }),
  status: PodStatusSchema,
});

export const KnownImagesSchema = v.record(TextSchema, v.object({ names: v.array(TextSchema), unusedMs: v.number() }));

export const ProbeResultsSchema: v.GenericSchema<unknown, [string, StoredProbeResults][]> = v.array(
  v.tuple([
    TextSchema,
    v.object({
      startedAtMs: v.number(),
      readiness: ProbeResultSchema,
      liveness: ProbeResultSchema,
      startup: ProbeResultSchema,
    }),
  ]),
);

/** Fields that decide over pods; the others follow from the workload itself. */
const WorkloadRecordSchema = v.looseObject({
  uid: TextSchema,
  createdAt: v.pipe(TextSchema, v.isoTimestamp()),
  generation: v.number(),
  revisions: v.record(
    TextSchema,
    v.looseObject({ hash: TextSchema, name: TextSchema, uid: TextSchema, template: v.looseObject({}) }),
  ),
  pods: v.array(v.looseObject({ name: TextSchema, uid: TextSchema, revision: TextSchema })),
});

export const WorkloadsSchema = v.object({
  records: v.record(
    TextSchema,
    v.custom<WorkloadRecord>((value) => v.is(WorkloadRecordSchema, value), "a workload"),
  ),
  claims: v.record(TextSchema, TextSchema),
  claimRecords: v.exactOptional(
    v.record(
      TextSchema,
      v.custom<ClaimRecord>(
        (value) => v.is(v.looseObject({ uid: TextSchema, createdAt: TextSchema, spec: v.looseObject({}) }), value),
        "a claim",
      ),
    ),
  ),
  volumes: v.exactOptional(
    v.record(
      TextSchema,
      v.custom<PersistentVolume>(
        (value) => v.is(v.looseObject({ metadata: v.looseObject({}), spec: v.looseObject({}) }), value),
        "a volume",
      ),
    ),
  ),
});

/** No resourceVersion handed out is above it. */
export const ResourceVersionSchema = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

/** Pods as this program stored them; their manifests were validated when they were read. */
const StoredPodSchema = v.custom<DesiredPod>(
  (value) =>
    v.is(
      v.looseObject({
        revision: TextSchema,
        origin: TextSchema,
        pod: v.looseObject({
          metadata: v.looseObject({ uid: TextSchema }),
          spec: v.looseObject({ containers: v.array(v.looseObject({ name: TextSchema })) }),
        }),
      }),
      value,
    ),
  "a pod",
);

export const RolloutsSchema: v.GenericSchema<unknown, StoredRollouts> = v.array(
  v.tuple([
    TextSchema,
    v.object({
      ready: StoredPodSchema,
      rejected: v.exactOptional(v.object({ revision: TextSchema, message: TextSchema })),
    }),
  ]),
);

const ImagePinSchema = v.looseObject({ ref: TextSchema, tag: TextSchema });

export const ImageUpdatesSchema: v.GenericSchema<unknown, ImageUpdateRecord[]> = v.array(
  v.custom<ImageUpdateRecord>(
    (value) =>
      v.is(
        v.looseObject({
          owner: TextSchema,
          image: TextSchema,
          current: v.exactOptional(ImagePinSchema),
          former: v.exactOptional(ImagePinSchema),
          candidate: v.exactOptional(ImagePinSchema),
          trial: v.exactOptional(v.looseObject({ pods: v.array(TextSchema), starts: v.number() })),
          rejected: v.array(v.looseObject({ ref: TextSchema, why: TextSchema, at: TextSchema })),
        }),
        value,
      ),
    "an image update",
  ),
);

import { join } from "node:path";
import * as v from "valibot";
import { EphemeralContainerSchema, ResourceRequirementsSchema } from "../../base/api/container.ts";
import type { PersistentVolume } from "../../base/api/persistent-volume.ts";
import { PodConditionSchema, PodStatusSchema } from "../../base/api/pod.ts";
import { StateFile } from "../../base/host/state-file.ts";
import type { DesiredPod } from "../../base/model/desired-state.ts";
import type { ClaimRecord, WorkloadRecord } from "../../controllers/workload-records.ts";
import type { Completion } from "../../kubelet/pod-records.ts";
import type { ImageUpdateRecord } from "../../plan/image-updates.ts";
import type { NodeContext } from "./node-context.ts";

const text = v.string();
const texts = v.array(text);
const timestamp = v.pipe(text, v.isoTimestamp());
const probeResult = v.exactOptional(v.picklist(["success", "failure"]));
const uidAndName = { uid: text, name: text };

/** Checks some fields of a record that this program wrote; those decide over pods, and the others follow from them. */
const recordOf = <T>(entries: v.ObjectEntries) =>
  v.custom<T>((value) => v.is(v.looseObject(entries), value), "another record");

const workload = recordOf<WorkloadRecord>({
  uid: text,
  createdAt: timestamp,
  generation: v.number(),
  revisions: v.record(text, v.looseObject({ ...uidAndName, hash: text, template: v.looseObject({}) })),
  pods: v.array(v.looseObject({ ...uidAndName, revision: text })),
});
/** Its manifest was validated when it was read. */
const storedPod = recordOf<DesiredPod>({
  revision: text,
  origin: text,
  pod: v.looseObject({
    metadata: v.looseObject({ uid: text }),
    spec: v.looseObject({ containers: v.array(v.looseObject({ name: text })) }),
  }),
});
const imagePin = v.exactOptional(v.looseObject({ ref: text, tag: text }));
const imageUpdate = recordOf<ImageUpdateRecord>({
  owner: text,
  image: text,
  current: imagePin,
  former: imagePin,
  candidate: imagePin,
  trial: v.exactOptional(v.looseObject({ pods: texts, starts: v.number() })),
  rejected: v.array(v.looseObject({ ref: text, why: text, at: text })),
});
const completion = recordOf<Completion>({
  runRevision: text,
  end: v.object({
    phase: v.picklist(["Succeeded", "Failed"]),
    reason: v.optional(text),
    message: v.optional(text),
  }),
  status: PodStatusSchema,
});

/** Survives a power cut right after a write. */
const durable = <T>(schema: v.GenericSchema<unknown, T>) => ({ schema, durable: true });
/** May be lost in a power cut, which no container outlives. */
const volatile = <T>(schema: v.GenericSchema<unknown, T>) => ({ schema, durable: false });

/** The files of `<root-dir>/state` by name: one of another shape is set aside at start. */
export const STATE_FILES = {
  allocations: durable(v.record(text, v.record(text, ResourceRequirementsSchema))),
  completions: durable(v.record(text, completion)),
  conditions: volatile(v.array(v.tuple([text, v.array(PodConditionSchema)]))),
  /** Cordon, labels and annotations of the node, as clients have set them. */
  cordon: durable(
    v.object({
      cordon: v.exactOptional(v.object({ since: timestamp, assigned: texts })),
      labels: v.exactOptional(v.record(text, text)),
      annotations: v.exactOptional(v.record(text, text)),
    }),
  ),
  /** Containers that a shutdown of the node terminated. */
  "cut-off": durable(texts),
  /** Manifests that pods run, while their edit waits. */
  "earlier-manifests": durable(v.array(v.tuple([text, storedPod]))),
  "ephemeral-containers": durable(v.array(v.tuple([text, v.array(EphemeralContainerSchema)]))),
  events: volatile(
    v.array(
      v.object({
        ref: v.object({
          ...uidAndName,
          namespace: text,
          kind: v.exactOptional(text),
          apiVersion: v.exactOptional(text),
        }),
        event: v.object({
          type: v.picklist(["Normal", "Warning"]),
          reason: text,
          message: text,
          fieldPath: v.exactOptional(text),
        }),
        name: text,
        count: v.number(),
        firstMs: v.number(),
        lastMs: v.number(),
      }),
    ),
  ),
  evictions: durable(
    v.array(v.tuple([text, v.object({ reason: text, message: text, revision: text, since: timestamp })])),
  ),
  "image-updates": durable(v.array(imageUpdate)),
  /** When objects of files and URLs appeared, by kind, namespace and name. */
  "first-seen": durable(v.array(v.tuple([text, text]))),
  "images-used": volatile(v.record(text, v.object({ names: texts, unusedMs: v.number() }))),
  "oom-killed": volatile(texts),
  /** Pods with something left to clean up. */
  pods: durable(
    v.array(
      v.object({
        uid: v.pipe(text, v.minLength(1)),
        name: text,
        namespace: text,
        sourceId: v.exactOptional(text),
        isRemoved: v.exactOptional(v.literal(true)),
      }),
    ),
  ),
  probes: volatile(
    v.array(
      v.tuple([
        text,
        v.object({ startedAtMs: v.number(), readiness: probeResult, liveness: probeResult, startup: probeResult }),
      ]),
    ),
  ),
  /** No resourceVersion handed out is above it. */
  "resource-version": durable(v.pipe(v.number(), v.safeInteger(), v.minValue(0))),
  rollouts: durable(
    v.array(
      v.tuple([
        text,
        v.object({ ready: storedPod, rejected: v.exactOptional(v.object({ revision: text, message: text })) }),
      ]),
    ),
  ),
  /** Names and handlers. */
  "runtime-classes": volatile(v.array(v.tuple([text, text]))),
  "service-addresses": durable(
    v.object({
      range: text,
      clusterIps: v.record(text, text),
      ports: v.record(text, text),
      nodePorts: v.record(text, v.number()),
    }),
  ),
  services: volatile(
    v.array(
      v.object({
        name: text,
        namespace: text,
        clusterIP: v.optional(text, ""),
        ports: v.array(v.object({ name: v.optional(text), port: v.number(), protocol: v.optional(text) })),
      }),
    ),
  ),
  workloads: durable(
    v.object({
      records: v.record(text, workload),
      claims: v.record(text, text),
      claimRecords: v.record(text, recordOf<ClaimRecord>({ uid: text, createdAt: text, spec: v.looseObject({}) })),
      volumes: v.record(text, recordOf<PersistentVolume>({ metadata: v.looseObject({}), spec: v.looseObject({}) })),
    }),
  ),
};

type StateFileName = keyof typeof STATE_FILES;
type StateOf<N extends StateFileName> = v.InferOutput<(typeof STATE_FILES)[N]["schema"]>;

/** `<root-dir>/state/<name>-<node>.json`, with the name under which the root directory was first used. */
export function openStateFile<N extends StateFileName>(
  { options, owner, clock, logger, background }: NodeContext,
  name: N,
): StateFile<StateOf<N>> {
  const { schema, durable } = STATE_FILES[name];
  const path = join(options.rootDir, "state", `${name}-${owner.nodeName}.json`);
  const parse = (data: unknown) => v.parse(schema, data) as StateOf<N>;
  const warn = (message: string) => logger.warn(message);
  return new StateFile(path, { version: 1, durable, parse }, clock, warn, background.tasks.replaceFile);
}

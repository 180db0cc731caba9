import * as v from "valibot";
import { formatSelector, hasCondition, type LabelSelector, ObjectMetaSchema } from "../../base/api/meta.ts";
import { PodTemplateSpecSchema } from "../../base/api/workload.ts";
import { memoized } from "../../base/model/memoized.ts";
import { isRecord } from "../../base/text/json.ts";
import type { ApiObject } from "../object-store.ts";
import { formatSince } from "../printers/rows.ts";
import { READ_VERBS } from "../resource-definition.ts";
import {
  apiKind,
  count,
  type Fields,
  fixedSpec,
  forbidden,
  formatLabels,
  isOther,
  manifestKind,
  numberOf,
  readObject,
  specOf,
  statusOf,
  text,
  without,
  workloadKind,
} from "./define-kind.ts";

/** Kinds that controllers turn into pods. Source: kubectl's printers, and the selectable fields of batch/v1 and core/v1. */

const readyOf = (key: string) => (object: ApiObject) =>
  `${numberOf(statusOf(object)[key])}/${numberOf(specOf(object).replicas ?? 1)}`;

interface Template {
  metadata?: { labels?: unknown };
  spec?: { containers?: { name: string; image?: string }[]; nodeSelector?: unknown };
}
const podSpecOf = (template: unknown) => (template as Template | undefined)?.spec;
const containersOf = (object: ApiObject) => podSpecOf(specOf(object).template)?.containers ?? [];
const WIDE = [
  text("Containers", (it) => containersOf(it).map(({ name }) => name), 1),
  text("Images", (it) => containersOf(it).map(({ image }) => image), 1),
  text("Selector", (it) => formatSelector((specOf(it).selector ?? {}) as LabelSelector) || "<none>", 1),
];

/** How long a Job has run, or ran. */
function durationOf(object: ApiObject, now: Date): string {
  const { startTime, completionTime } = statusOf(object) as { startTime?: string; completionTime?: string };
  return startTime === undefined ? "" : formatSince(startTime, completionTime ? new Date(completionTime) : now);
}

const REPLICAS = [
  count("Desired", (it) => specOf(it).replicas ?? 1),
  count("Current", (it) => statusOf(it).replicas),
  count("Ready", (it) => statusOf(it).readyReplicas),
];

/** The three of 1.20, and those that later versions let change. */
const MUTABLE_OF_STATEFUL_SET: ReadonlySet<string> = new Set([
  "replicas",
  "template",
  "updateStrategy",
  "minReadySeconds",
  "ordinals",
  "persistentVolumeClaimRetentionPolicy",
  "revisionHistoryLimit",
]);

export const DEPLOYMENT = workloadKind({
  kind: "Deployment",
  shortNames: ["deploy"],
  columns: [
    text("Ready", readyOf("readyReplicas")),
    count("Up-to-date", (it) => statusOf(it).updatedReplicas),
    count("Available", (it) => statusOf(it).availableReplicas),
    ...WIDE,
  ],
});

export const REPLICA_SET = workloadKind({
  kind: "ReplicaSet",
  firstStatus: () => ({ replicas: 0 }),
  shortNames: ["rs"],
  columns: [...REPLICAS, ...WIDE],
});

export const CONTROLLER_REVISION = manifestKind({
  group: "apps",
  kind: "ControllerRevision",
  verbs: READ_VERBS,
  decode: undefined,
  columns: [
    // `statefulset.apps/db`
    text("Controller", ({ metadata }) => {
      const owner = metadata.ownerReferences?.find(({ controller }) => controller);
      return owner ? `${owner.kind.toLowerCase()}.apps/${owner.name}` : "<none>";
    }),
    { name: "Revision", type: "integer", value: (it) => numberOf((it as unknown as Fields).revision) },
  ],
});

export const STATEFUL_SET = workloadKind({
  kind: "StatefulSet",
  firstStatus: () => ({ replicas: 0 }),
  validateUpdate: (next, previous) => {
    const [after, before] = [next, previous].map((object) => without(specOf(object), MUTABLE_OF_STATEFUL_SET));
    const message =
      "updates to statefulset spec for fields other than 'replicas', 'template', and 'updateStrategy' are forbidden";
    return isOther(after, before) ? [forbidden("spec", message)] : [];
  },
  shortNames: ["sts"],
  columns: [text("Ready", readyOf("readyReplicas")), ...WIDE],
});

export const DAEMON_SET = workloadKind({
  kind: "DaemonSet",
  shortNames: ["ds"],
  subresources: ["status"],
  firstStatus: () => ({ currentNumberScheduled: 0, desiredNumberScheduled: 0, numberMisscheduled: 0, numberReady: 0 }),
  columns: [
    count("Desired", (it) => statusOf(it).desiredNumberScheduled),
    count("Current", (it) => statusOf(it).currentNumberScheduled),
    count("Ready", (it) => statusOf(it).numberReady),
    count("Up-to-date", (it) => statusOf(it).updatedNumberScheduled),
    count("Available", (it) => statusOf(it).numberAvailable),
    text("Node Selector", (it) => formatLabels(podSpecOf(specOf(it).template)?.nodeSelector)),
    ...WIDE,
  ],
});

/**
 * A Job with the selector and the labels of its pods, which its uid determines, and which are its own labels when it has
 * none. The kept object does not have them: its file is a manifest, where they must be absent. Source: batch/v1's
 * `generateSelector` and `SetDefaults_Job`.
 */
const showJobSelector = memoized((job: ApiObject): ApiObject => {
  const spec = (job.spec ?? {}) as Fields;
  if (spec.manualSelector === true || spec.selector !== undefined || job.metadata.uid === undefined) return job;
  const template = fieldsOf(spec.template);
  const metadata = fieldsOf(template.metadata);
  const labels = { ...fieldsOf(metadata.labels), ...generatedLabels(job) };
  const selector = { matchLabels: { [CONTROLLER_UID]: job.metadata.uid } };
  const shown = Object.keys(job.metadata.labels ?? {}).length > 0 ? job.metadata : { ...job.metadata, labels };
  const pods = { ...template, metadata: { ...metadata, labels } };
  return { ...job, metadata: shown as ApiObject["metadata"], spec: { ...spec, selector, template: pods } };
});

export const JOB = workloadKind({
  group: "batch",
  kind: "Job",
  orphansByDefault: true,
  validateUpdate: fixedSpec("completions", "completionMode", "selector", "template"),
  subresources: ["status"],
  columns: [
    text(
      "Status",
      (it) => ["Complete", "Failed", "Suspended"].find((type) => hasCondition(statusOf(it), type)) ?? "Running",
    ),
    text("Completions", (it) => `${numberOf(statusOf(it).succeeded)}/${numberOf(specOf(it).completions ?? 1)}`),
    text("Duration", durationOf),
    ...WIDE,
  ],
  decode: (job, options) => readObject(withoutJobSelector(job), options),
  complete: showJobSelector,
  fields: { "status.successful": (it) => String(numberOf(statusOf(it).succeeded)) },
});

export const CRON_JOB = workloadKind({
  group: "batch",
  // Source: kubectl before 1.21 describes CronJobs in this version.
  otherVersions: [{ version: "v1beta1", orphansByDefault: true }],
  validateUpdate: () => [],
  kind: "CronJob",
  shortNames: ["cj"],
  subresources: ["status"],
  columns: [
    text("Schedule", (it) => specOf(it).schedule),
    text("Timezone", (it) => specOf(it).timeZone ?? "<none>"),
    text("Suspend", (it) => (specOf(it).suspend === true ? "True" : "False")),
    count("Active", (it) => ((statusOf(it).active ?? []) as unknown[]).length),
    text("Last Schedule", (it, now) => {
      const { lastScheduleTime } = statusOf(it) as { lastScheduleTime?: string };
      return lastScheduleTime ? formatSince(lastScheduleTime, now) : "<none>";
    }),
    // Those of the pods of its Jobs.
    ...WIDE.map((column) => ({
      ...column,
      value: (object: ApiObject, now: Date) =>
        column.value({ ...object, spec: fieldsOf(specOf(object).jobTemplate).spec }, now),
    })),
  ],
});

export const REPLICATION_CONTROLLER = workloadKind({
  group: "",
  validateUpdate: () => [],
  kind: "ReplicationController",
  firstStatus: () => ({ replicas: 0 }),
  orphansByDefault: true,
  shortNames: ["rc"],
  columns: [...REPLICAS, ...WIDE],
  fields: { "status.replicas": (it) => String(numberOf(statusOf(it).replicas)) },
});

/** Nothing makes pods of it. */
export const POD_TEMPLATE = apiKind({
  kind: "PodTemplate",
  schema: v.object({ metadata: ObjectMetaSchema, template: v.optional(PodTemplateSpecSchema) }),
  columns: [
    text("Containers", ({ template }) => podSpecOf(template)?.containers?.map(({ name }) => name)),
    text("Images", ({ template }) => podSpecOf(template)?.containers?.map(({ image }) => image)),
    text("Pod Labels", ({ template }) => formatLabels((template as Template | undefined)?.metadata?.labels)),
  ],
});

/** A Job that a client sends back: without what {@link showJobSelector} added. */
function withoutJobSelector(job: ApiObject): ApiObject {
  const { uid } = job.metadata;
  const { selector, ...spec } = (job.spec ?? {}) as Fields;
  const isGenerated = Bun.deepEquals(selector, { matchLabels: { [CONTROLLER_UID]: uid } });
  if (uid === undefined || !isGenerated || spec.manualSelector === true) return job;
  const template = fieldsOf(spec.template);
  const { labels, ...metadata } = fieldsOf(template.metadata);
  const generated: Fields = generatedLabels(job);
  const own = Object.entries(fieldsOf(labels)).filter(([name, value]) => generated[name] !== value);
  const rest = { ...metadata, ...(own.length > 0 && { labels: Object.fromEntries(own) }) };
  const { labels: shown, ...unlabeled } = job.metadata;
  const kept = Bun.deepEquals(shown, labels) ? unlabeled : job.metadata;
  return { ...job, metadata: kept, spec: { ...spec, template: { ...template, metadata: rest } } };
}

const CONTROLLER_UID = "batch.kubernetes.io/controller-uid";

const generatedLabels = ({ metadata: { uid, name } }: ApiObject) => ({
  "controller-uid": uid,
  "job-name": name,
  [CONTROLLER_UID]: uid,
  "batch.kubernetes.io/job-name": name,
});

const fieldsOf = (value: unknown): Fields => (isRecord(value) ? value : {});

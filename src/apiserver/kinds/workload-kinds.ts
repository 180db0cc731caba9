import type { ApiObject } from "../api-object.ts";
import { formatSince } from "../printers/age.ts";
import type { PlainSubresource, ResourceDefinition } from "../resource-definition.ts";
import { formatLabelSelector, formatLabels } from "./cells.ts";
import type { ReadSubmitted } from "./decode-manifest.ts";
import { refuseFixedFields } from "./immutable-fields.ts";
import { showJobSelector, withoutJobSelector } from "./job-selector.ts";
import { count, type Fields, type KindRow, numberOf, specOf, statusOf, text, toDefinition } from "./kind-row.ts";
import { SERVICE } from "./service-kind.ts";
import { VOLUME_ROWS } from "./volume-kinds.ts";

const readyOf = (key: string) => (object: ApiObject) =>
  `${numberOf(statusOf(object)[key])}/${numberOf(specOf(object).replicas ?? 1)}`;

interface Template {
  spec?: { containers?: { name: string; image?: string }[]; nodeSelector?: unknown };
}
const podSpecOf = (template: unknown) => (template as Template | undefined)?.spec;
const containersOf = (object: ApiObject) => podSpecOf(specOf(object).template)?.containers ?? [];
const SELECTOR = text("Selector", (it) => formatLabelSelector(specOf(it).selector), 1);
const CONTAINERS = [
  text(
    "Containers",
    (it) =>
      containersOf(it)
        .map(({ name }) => name)
        .join(","),
    1,
  ),
  text(
    "Images",
    (it) =>
      containersOf(it)
        .map(({ image }) => image)
        .join(","),
    1,
  ),
];

const WIDE = [...CONTAINERS, SELECTOR];

/** How long a Job has run, or ran. */
function durationOf(object: ApiObject, now: Date): string {
  const { startTime, completionTime } = statusOf(object) as { startTime?: string; completionTime?: string };
  return startTime === undefined ? "" : formatSince(startTime, completionTime ? new Date(completionTime) : now);
}

function jobState(object: ApiObject): string {
  const conditions = (statusOf(object).conditions ?? []) as { type: string; status: string }[];
  const is = (type: string) => conditions.some((it) => it.type === type && it.status === "True");
  return is("Complete") ? "Complete" : is("Failed") ? "Failed" : is("Suspended") ? "Suspended" : "Running";
}

const lastSchedule = (object: ApiObject, now: Date) => {
  const { lastScheduleTime } = statusOf(object) as { lastScheduleTime?: string };
  return lastScheduleTime ? formatSince(lastScheduleTime, now) : "<none>";
};

/** Those of the pods of its Jobs. */
const CRON_JOB_WIDE = [...CONTAINERS, SELECTOR].map((column) => ({
  ...column,
  value: (object: ApiObject, now: Date) => column.value({ ...object, spec: specOf(jobTemplateOf(object)) }, now),
}));
const jobTemplateOf = (object: ApiObject) => (specOf(object).jobTemplate ?? {}) as ApiObject;

const scalable: readonly PlainSubresource[] = ["status", "scale"];
const REPLICAS = [
  count("Desired", (it) => specOf(it).replicas ?? 1),
  count("Current", (it) => statusOf(it).replicas),
  count("Ready", (it) => statusOf(it).readyReplicas),
];

/** `statefulset.apps/db` */
function controllerOf({ metadata }: ApiObject): string {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller);
  return owner ? `${owner.kind.toLowerCase()}.apps/${owner.name}` : "<none>";
}

/** Source: kubectl's printers, and the selectable fields of batch/v1 and core/v1. */
const ROWS: readonly KindRow[] = [
  {
    group: "apps",
    kind: "Deployment",
    validateUpdate: refuseFixedFields,
    plural: "deployments",
    shortNames: ["deploy"],
    categories: ["all"],
    subresources: scalable,
    columns: [
      text("Ready", readyOf("readyReplicas")),
      count("Up-to-date", (it) => statusOf(it).updatedReplicas),
      count("Available", (it) => statusOf(it).availableReplicas),
      ...WIDE,
    ],
    description: "Deployment enables declarative updates for Pods and ReplicaSets.",
  },
  {
    group: "apps",
    kind: "ReplicaSet",
    validateUpdate: refuseFixedFields,
    plural: "replicasets",
    shortNames: ["rs"],
    categories: ["all"],
    subresources: scalable,
    columns: [...REPLICAS, ...WIDE],
    description: "ReplicaSet ensures that a specified number of pod replicas are running at any given time.",
  },
  {
    group: "apps",
    kind: "ControllerRevision",
    plural: "controllerrevisions",
    isReadOnly: true,
    columns: [
      text("Controller", (it) => controllerOf(it)),
      { name: "Revision", type: "integer", value: (it) => numberOf((it as unknown as Fields).revision) },
    ],
    description: "ControllerRevision is a template that a StatefulSet or DaemonSet has or had.",
  },
  {
    group: "apps",
    kind: "StatefulSet",
    validateUpdate: refuseFixedFields,
    plural: "statefulsets",
    shortNames: ["sts"],
    categories: ["all"],
    subresources: scalable,
    columns: [text("Ready", readyOf("readyReplicas")), ...WIDE],
    description: "StatefulSet represents a set of pods with consistent identities.",
  },
  {
    group: "apps",
    kind: "DaemonSet",
    validateUpdate: refuseFixedFields,
    plural: "daemonsets",
    shortNames: ["ds"],
    categories: ["all"],
    subresources: ["status"],
    columns: [
      count("Desired", (it) => statusOf(it).desiredNumberScheduled),
      count("Current", (it) => statusOf(it).currentNumberScheduled),
      count("Ready", (it) => statusOf(it).numberReady),
      count("Up-to-date", (it) => statusOf(it).updatedNumberScheduled),
      count("Available", (it) => statusOf(it).numberAvailable),
      text("Node Selector", (it) => formatLabels(podSpecOf(specOf(it).template)?.nodeSelector)),
      ...WIDE,
    ],
    description: "DaemonSet represents the configuration of a daemon set.",
  },
  {
    group: "batch",
    kind: "Job",
    validateUpdate: refuseFixedFields,
    plural: "jobs",
    categories: ["all"],
    subresources: ["status"],
    columns: [
      text("Status", jobState),
      text("Completions", (it) => `${numberOf(statusOf(it).succeeded)}/${numberOf(specOf(it).completions ?? 1)}`),
      text("Duration", durationOf),
      ...WIDE,
    ],
    beforeDecode: withoutJobSelector,
    complete: showJobSelector,
    fields: { "status.successful": (it) => String(numberOf(statusOf(it).succeeded)) },
    description: "Job represents the configuration of a single job.",
  },
  {
    group: "batch",
    // Source: kubectl before 1.21 describes CronJobs in this version.
    otherVersions: ["v1beta1"],
    kind: "CronJob",
    plural: "cronjobs",
    shortNames: ["cj"],
    categories: ["all"],
    subresources: ["status"],
    columns: [
      text("Schedule", (it) => specOf(it).schedule),
      text("Timezone", (it) => specOf(it).timeZone ?? "<none>"),
      text("Suspend", (it) => (specOf(it).suspend === true ? "True" : "False")),
      count("Active", (it) => ((statusOf(it).active ?? []) as unknown[]).length),
      text("Last Schedule", lastSchedule),
      ...CRON_JOB_WIDE,
    ],
    description: "CronJob represents the configuration of a single cron job.",
  },
  {
    group: "",
    kind: "ReplicationController",
    plural: "replicationcontrollers",
    shortNames: ["rc"],
    categories: ["all"],
    subresources: scalable,
    columns: [...REPLICAS, ...CONTAINERS, text("Selector", (it) => formatLabels(specOf(it).selector), 1)],
    fields: { "status.replicas": (it) => String(numberOf(statusOf(it).replicas)) },
    description: "ReplicationController represents the configuration of a replication controller.",
  },
  SERVICE,
  ...VOLUME_ROWS,
];

/** Kinds that controllers turn into pods, and what belongs to them. */
export const workloadKinds = (read: ReadSubmitted): ResourceDefinition[] => ROWS.map((row) => toDefinition(read, row));

import { firstThree, formatAge } from "../../apiserver/printers/rows.ts";
import type { CoreEvent } from "../../base/api/event.ts";
import type { Ingress, IngressBackend } from "../../base/api/ingress.ts";
import type { CronJob, Job } from "../../base/api/job.ts";
import { formatSelector, type LabelSelector, type ObjectMeta } from "../../base/api/meta.ts";
import type { Pod } from "../../base/api/pod.ts";
import type { Service, ServicePort } from "../../base/api/service.ts";
import type { DaemonSet, Deployment, PodTemplateSpec, ReplicaSet, StatefulSet } from "../../base/api/workload.ts";
import { endpointsOf, type ServiceBackend } from "../../plan/service-endpoints.ts";
import type { ApiObject } from "../client/api-client.ts";
import {
  type DescribeTimes,
  describeAnnotations,
  describeContainer,
  describeEvents,
  describeOwner,
  describeVolume,
  pairs,
  tolerationLines,
} from "./describe-pods-and-nodes.ts";
import { Description } from "./text-table.ts";

/** Surroundings of a described object. */
interface ObjectSurroundings {
  /** The object's own, oldest first. */
  events: readonly CoreEvent[];
  /** The pods that the object selects or owns. */
  pods: readonly Pod[];
  /** Pods and addresses to which clients of a Service are sent. */
  backends?: readonly ServiceBackend[] | undefined;
  /** ReplicaSets of a Deployment. */
  replicaSets?: readonly ApiObject[];
  /** `file:line` of its manifest, if it is known. */
  manifest: string | undefined;
  times: DescribeTimes;
}

/** `kubelet-ts describe` of kinds other than Pod and Node, in kubectl's layout. */
export function describeObject(object: ApiObject, around: ObjectSurroundings): string {
  const { kind, metadata } = object;
  const out = new Description();
  out.field(0, "Name", metadata.name);
  if (metadata.namespace !== undefined) out.field(0, "Namespace", metadata.namespace);
  out.optional(0, "Manifest", around.manifest);
  const describe = DESCRIBERS[kind] ?? describeOther;
  describe(out, object as never, (object.status ?? {}) as ObjectStatus, around);
  if (kind !== "Secret" && kind !== "Namespace") describeEvents(out, around.events, around.times.now);
  return out.toString();
}

/** Writes all after the name, up to the events. */
type Describe<T = ApiObject> = (out: Description, object: T, status: ObjectStatus, around: ObjectSurroundings) => void;

const describeNamespace: Describe = (out, object, { phase }) => {
  describeLabels(out, object.metadata);
  out.field(0, "Status", phase);
};

const describeOther: Describe = (out, object) => {
  describeLabels(out, object.metadata);
  describeFields(out, 0, withoutShown(object));
};

/** Counters and times of a status; absent ones count as 0. */
interface ObjectStatus {
  conditions?: { type: string; status: string; reason?: string }[];
  phase?: string;
  startTime?: string;
  completionTime?: string;
  lastScheduleTime?: string;
  active?: number | { name?: string }[];
  [counter: string]: unknown;
}

const count = (status: ObjectStatus, name: string): number => Number(status[name] ?? 0);

const describeDeployment: Describe<Deployment> = (out, { metadata, spec }, status, { times, replicaSets = [] }) => {
  out.field(0, "CreationTimestamp", times.toText(metadata.creationTimestamp));
  describeLabels(out, metadata);
  out.field(0, "Selector", selectorText(spec.selector));
  const parts = [
    `${spec.replicas ?? 1} desired`,
    `${count(status, "updatedReplicas")} updated`,
    `${count(status, "replicas")} total`,
    `${count(status, "availableReplicas")} available`,
    `${count(status, "unavailableReplicas")} unavailable`,
  ];
  out.field(0, "Replicas", parts.join(" | "));
  out.field(0, "StrategyType", spec.strategy?.type);
  out.field(0, "MinReadySeconds", spec.minReadySeconds ?? 0);
  const rolling = spec.strategy?.rollingUpdate;
  if (rolling) {
    const text = `${rolling.maxUnavailable ?? "25%"} max unavailable, ${rolling.maxSurge ?? "25%"} max surge`;
    out.field(0, "RollingUpdateStrategy", text);
  }
  describeTemplate(out, spec.template);
  describeConditions(out, status);
  const [newest, ...others] = replicaSets.toSorted((a, b) => revisionOf(b) - revisionOf(a));
  const old = others.filter((set) => replicasOf(set) > 0);
  out.field(0, "OldReplicaSets", old.map(replicaSetText).join(", ") || "<none>");
  out.field(0, "NewReplicaSet", newest ? replicaSetText(newest) : "<none>");
};

const revisionOf = ({ metadata }: ApiObject): number =>
  Number(metadata.annotations?.["deployment.kubernetes.io/revision"] ?? 0);

const replicasOf = (set: ApiObject): number => (set.spec as { replicas?: number } | undefined)?.replicas ?? 0;

const replicaSetText = (set: ApiObject): string =>
  `${set.metadata.name} (${count((set.status ?? {}) as ObjectStatus, "replicas")}/${replicasOf(set)} replicas created)`;

const describeReplicaSet: Describe<ReplicaSet> = (out, { metadata, spec }, status, { pods }) => {
  out.field(0, "Selector", selectorText(spec.selector));
  describeLabels(out, metadata);
  describeOwner(out, metadata.ownerReferences);
  out.field(0, "Replicas", `${count(status, "replicas")} current / ${spec.replicas ?? 1} desired`);
  out.field(0, "Pods Status", podsText(pods));
  describeTemplate(out, spec.template);
  describeConditions(out, status);
};

const describeStatefulSet: Describe<StatefulSet> = (out, { metadata, spec }, status, { times, pods }) => {
  out.field(0, "CreationTimestamp", times.toText(metadata.creationTimestamp));
  out.field(0, "Selector", selectorText(spec.selector));
  describeLabels(out, metadata);
  out.field(0, "Replicas", `${spec.replicas ?? 1} desired | ${count(status, "replicas")} total`);
  out.field(0, "Update Strategy", spec.updateStrategy?.type);
  const partition = spec.updateStrategy?.rollingUpdate?.partition;
  if (partition !== undefined && partition !== null) out.field(1, "Partition", partition);
  out.field(0, "Pods Status", podsText(pods));
  describeTemplate(out, spec.template);
  out.block(0, "Volume Claims", spec.volumeClaimTemplates ?? [], ({ metadata, spec: claim }) => {
    out.field(1, "Name", metadata.name);
    out.field(1, "StorageClass", claim.storageClassName ?? "");
    out.list(1, "Labels", pairs(metadata.labels, "="));
    out.list(1, "Annotations", pairs(metadata.annotations, "="));
    out.field(1, "Capacity", claim.resources?.requests?.storage ?? "<default>");
    out.field(1, "Access Modes", `[${(claim.accessModes ?? []).join(" ")}]`);
  });
};

const describeDaemonSet: Describe<DaemonSet> = (out, { metadata, spec }, status, { pods }) => {
  out.field(0, "Selector", selectorText(spec.selector));
  out.field(0, "Node-Selector", pairs(spec.template.spec.nodeSelector, "=").join(",") || "<none>");
  describeLabels(out, metadata);
  for (const [title, counter] of [
    ["Desired Number of Nodes Scheduled", "desiredNumberScheduled"],
    ["Current Number of Nodes Scheduled", "currentNumberScheduled"],
    ["Number of Nodes Scheduled with Up-to-date Pods", "updatedNumberScheduled"],
    ["Number of Nodes Scheduled with Available Pods", "numberAvailable"],
    ["Number of Nodes Misscheduled", "numberMisscheduled"],
  ] as const) {
    out.line(0, `${title}: ${count(status, counter)}`);
  }
  out.field(0, "Pods Status", podsText(pods));
  describeTemplate(out, spec.template);
};

const describeJob: Describe<Job> = (out, { metadata, spec }, status, { times }) => {
  out.field(0, "Selector", selectorText(spec.selector));
  describeLabels(out, metadata);
  describeOwner(out, metadata.ownerReferences);
  describeJobNumbers(out, spec);
  out.optional(0, "Completion Mode", spec.completionMode ?? undefined);
  if (spec.suspend) out.field(0, "Suspend", true);
  out.optional(0, "Backoff Limit", spec.backoffLimit ?? undefined);
  const { startTime, completionTime } = status;
  if (startTime) out.field(0, "Start Time", times.toText(startTime));
  if (completionTime) out.field(0, "Completed At", times.toText(completionTime));
  if (startTime && completionTime)
    out.field(0, "Duration", formatAge(Date.parse(completionTime) - Date.parse(startTime)));
  if (spec.activeDeadlineSeconds) out.field(0, "Active Deadline Seconds", `${spec.activeDeadlineSeconds}s`);
  const ended = `${count(status, "succeeded")} Succeeded / ${count(status, "failed")} Failed`;
  const ready = status.ready === undefined ? "" : ` (${count(status, "ready")} Ready)`;
  out.field(0, "Pods Statuses", `${count(status, "active")} Active${ready} / ${ended}`);
  describeTemplate(out, spec.template);
};

const describeCronJob: Describe<CronJob> = (out, { metadata, spec }, { lastScheduleTime, active }, { times }) => {
  describeLabels(out, metadata);
  out.field(0, "Schedule", spec.schedule);
  out.optional(0, "Time Zone", spec.timeZone ?? undefined);
  out.field(0, "Concurrency Policy", spec.concurrencyPolicy);
  out.field(0, "Suspend", spec.suspend ?? false);
  out.field(0, "Successful Job History Limit", spec.successfulJobsHistoryLimit ?? "<unset>");
  out.field(0, "Failed Job History Limit", spec.failedJobsHistoryLimit ?? "<unset>");
  const { startingDeadlineSeconds, jobTemplate } = spec;
  out.field(0, "Starting Deadline Seconds", startingDeadlineSeconds ? `${startingDeadlineSeconds}s` : "<unset>");
  const job = jobTemplate.spec;
  out.field(0, "Selector", job.selector ? selectorText(job.selector) : "<unset>");
  describeJobNumbers(out, job);
  if (job.activeDeadlineSeconds) out.field(0, "Active Deadline Seconds", `${job.activeDeadlineSeconds}s`);
  describeTemplate(out, job.template);
  out.field(0, "Last Schedule Time", lastScheduleTime ? times.toText(lastScheduleTime) : "<unset>");
  const jobs = Array.isArray(active) ? active.map(({ name }) => name ?? "") : [];
  out.field(0, "Active Jobs", jobs.join(", ") || "<none>");
};

function describeJobNumbers(out: Description, { parallelism, completions }: Job["spec"]): void {
  out.field(0, "Parallelism", parallelism ?? "<unset>");
  out.field(0, "Completions", completions ?? "<unset>");
}

function describeLabels(out: Description, { labels, annotations = {} }: ObjectMeta): void {
  out.list(0, "Labels", pairs(labels, "="));
  describeAnnotations(out, 0, annotations);
}

const selectorText = (selector: LabelSelector | Readonly<Record<string, string>> = {}): string =>
  formatSelector(selector) || "<none>";

/** Source: kubectl's `getPodStatusForController`. */
function podsText(pods: readonly Pod[]): string {
  const of = (phase: string) => pods.filter(({ status }) => (status?.phase ?? "Pending") === phase).length;
  return `${of("Running")} Running / ${of("Pending")} Waiting / ${of("Succeeded")} Succeeded / ${of("Failed")} Failed`;
}

/** Source: kubectl's `DescribePodTemplate`. */
function describeTemplate(out: Description, { metadata, spec }: PodTemplateSpec): void {
  out.heading(0, "Pod Template");
  out.list(1, "Labels", pairs(metadata?.labels, "="));
  if (Object.keys(metadata?.annotations ?? {}).length > 0) describeAnnotations(out, 1, metadata?.annotations ?? {});
  out.optional(1, "Service Account", spec.serviceAccountName);
  for (const [title, containers] of [
    ["Init Containers", spec.initContainers ?? []],
    ["Containers", spec.containers],
  ] as const) {
    if (containers.length > 0) out.heading(1, title);
    for (const container of containers) describeContainer(out, container, undefined, String, true);
  }
  out.block(1, "Volumes", spec.volumes ?? [], (volume) => describeVolume(out, volume, true));
  out.optional(1, "Priority Class Name", spec.priorityClassName);
  out.list(1, "Node-Selectors", pairs(spec.nodeSelector, "="));
  out.list(1, "Tolerations", tolerationLines(spec.tolerations));
}

function describeConditions(out: Description, { conditions = [] }: ObjectStatus): void {
  if (conditions.length === 0) return;
  out.heading(0, "Conditions");
  out.table(
    ["Type", "Status", "Reason"],
    conditions.map(({ type, status, reason = "" }) => [type, status, reason]),
  );
}

/** Source: kubectl's `describeService`. */
const describeService: Describe<Service> = (out, { metadata, spec }, _, { backends = [] }) => {
  describeLabels(out, metadata);
  out.field(0, "Selector", pairs(spec.selector, "=").join(",") || "<none>");
  out.field(0, "Type", spec.type);
  out.optional(0, "IP Family Policy", spec.ipFamilyPolicy ?? undefined);
  out.field(0, "IP Families", spec.ipFamilies?.join(",") || "<none>");
  out.field(0, "IP", spec.clusterIP ?? "");
  out.field(0, "IPs", spec.clusterIPs?.join(",") || "<none>");
  out.optional(0, "External IPs", spec.externalIPs?.join(","));
  out.optional(0, "External Name", spec.externalName);
  for (const each of spec.ports ?? []) {
    const { name, port, protocol, targetPort = port, nodePort } = each;
    const shown = name || "<unset>";
    out.cells(0, ["Port:", shown, `${port}/${protocol}`]);
    out.field(0, "TargetPort", `${targetPort}/${protocol}`);
    if (nodePort) out.cells(0, ["NodePort:", shown, `${nodePort}/${protocol}`]);
    out.field(0, "Endpoints", endpointsText(each, backends));
  }
  out.field(0, "Session Affinity", spec.sessionAffinity ?? "None");
  out.optional(0, "External Traffic Policy", spec.externalTrafficPolicy);
};

/** Addresses that clients are sent to. Source: kubectl's `formatEndpoints`. */
function endpointsText(port: ServicePort, backends: readonly ServiceBackend[]): string {
  const addresses = (["IPv4", "IPv6"] as const).flatMap((family) =>
    endpointsOf(port, backends, family).map(({ ip, port: number }) =>
      family === "IPv4" ? `${ip}:${number}` : `[${ip}]:${number}`,
    ),
  );
  return firstThree(addresses) || "<none>";
}

const backendText = ({ service }: IngressBackend): string =>
  `${service?.name ?? ""}:${service?.port?.name ?? service?.port?.number ?? ""}`;

/** Source: kubectl's `describeIngressV1`, without the addresses behind Services. */
const describeIngress: Describe<Ingress> = (out, { metadata, spec }, { loadBalancer }) => {
  out.list(0, "Labels", pairs(metadata.labels, "="));
  const { ingress = [] } = (loadBalancer ?? {}) as { ingress?: { ip?: string }[] };
  out.field(0, "Address", ingress.flatMap(({ ip }) => ip ?? []).join(","));
  out.field(0, "Ingress Class", spec.ingressClassName ?? "<none>");
  const fallback = spec.defaultBackend ? backendText(spec.defaultBackend) : "<default>";
  out.field(0, "Default backend", fallback);
  if (spec.tls) out.heading(0, "TLS");
  for (const { secretName, hosts = [] } of spec.tls ?? []) {
    out.line(1, secretName ? `${secretName} terminates ${hosts.join(",")}` : `SNI routes ${hosts.join(",")}`);
  }
  out.heading(0, "Rules");
  const rules = (spec.rules ?? []).flatMap(({ host, http }) => (http ? [{ host, paths: http.paths ?? [] }] : []));
  const rows = rules.flatMap(({ host, paths }) => [
    [host || "*", ""],
    ...paths.map(({ path = "", backend }) => ["", path, backendText(backend)]),
  ]);
  out.table(["Host", "Path", "Backends"], rows.length > 0 ? rows : [["*", "*", fallback]]);
  describeAnnotations(out, 0, metadata.annotations ?? {});
};

/** Source: kubectl's `ConfigMapDescriber`. */
const describeConfigMap: Describe = (out, object) => {
  describeLabels(out, object.metadata);
  const { data = {}, binaryData = {} } = object as {
    data?: Record<string, string>;
    binaryData?: Record<string, string>;
  };
  for (const line of ["", "Data", "===="]) out.line(0, line);
  for (const [key, value] of Object.entries(data)) {
    out.line(0, `${key}:`);
    out.line(0, "----");
    for (const line of [...value.split("\n"), ""]) out.line(0, line);
  }
  for (const line of ["", "BinaryData", "===="]) out.line(0, line);
  for (const [key, value] of Object.entries(binaryData)) {
    out.line(0, `${key}: ${Buffer.from(value, "base64").length} bytes`);
  }
  out.line(0, "");
};

/** Sizes only. Source: kubectl's `describeSecret`. */
const describeSecret: Describe = (out, object) => {
  describeLabels(out, object.metadata);
  const { type, data = {} } = object as { type?: string; data?: Record<string, string> };
  out.line(0, "");
  out.field(0, "Type", type ?? "Opaque");
  for (const line of ["", "Data", "===="]) out.line(0, line);
  for (const [key, value] of Object.entries(data)) {
    out.field(0, key, `${Buffer.from(value, "base64").length} bytes`);
  }
};

/** Fields of the metadata that are printed above the others, and managedFields, which only programs read. */
const SHOWN = ["name", "namespace", "labels", "annotations", "managedFields"];

const withoutShown = ({ metadata, ...rest }: ApiObject): Record<string, unknown> => ({
  ...rest,
  metadata: Object.fromEntries(Object.entries(metadata).filter(([field]) => !SHOWN.includes(field))),
});

/** Any object, field by field. Source: kubectl's `printUnstructuredContent`. */
function describeFields(out: Description, depth: number, fields: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(fields).toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (Array.isArray(value)) {
      out.heading(depth, titleOf(name));
      for (const item of value as unknown[]) {
        if (isFields(item)) describeFields(out, depth + 1, item);
        else out.line(depth + 1, String(item));
      }
    } else if (isFields(value)) {
      out.heading(depth, titleOf(name));
      describeFields(out, depth + 1, value);
    } else out.field(depth, titleOf(name), value === null ? "<nil>" : String(value));
  }
}

const isFields = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

const ACRONYMS = new Set(["API", "URL", "UID", "OSB", "GUID"]);

/** `apiVersion` as `API Version`; a name with other characters stays. Source: kubectl's `smartLabelFor`. */
function titleOf(name: string): string {
  if (!/^[A-Za-z-]+$/.test(name)) return name;
  const words = name.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+|-/g) ?? [name];
  return words
    .map((word) =>
      ACRONYMS.has(word.toUpperCase()) ? word.toUpperCase() : `${word.charAt(0).toUpperCase()}${word.slice(1)}`,
    )
    .join(" ");
}

/** Kinds with a layout of their own. Source: kubectl's `describeDeployment`, `describeJob` and their neighbors. */
const DESCRIBERS: Readonly<Record<string, Describe<never>>> = {
  Deployment: describeDeployment,
  ReplicaSet: describeReplicaSet,
  ReplicationController: describeReplicaSet,
  StatefulSet: describeStatefulSet,
  DaemonSet: describeDaemonSet,
  Job: describeJob,
  CronJob: describeCronJob,
  Service: describeService,
  Ingress: describeIngress,
  ConfigMap: describeConfigMap,
  Secret: describeSecret,
  Namespace: describeNamespace,
};

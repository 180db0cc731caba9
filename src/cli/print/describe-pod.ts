import { formatSince } from "../../apiserver/printers/age.ts";
import { eventAge } from "../../apiserver/printers/event-row.ts";
import type { CoreEvent } from "../../base/api/event.ts";
import type { Pod, PodStatus, Toleration } from "../../base/api/pod.ts";
import { describeContainer, describeVolume, seccompText } from "./describe-container.ts";
import { Description, toCell } from "./text-table.ts";

export interface DescribeTimes {
  now: Date;
  /** A time of the API, in the time zone of the user. */
  toText: (time: string | null | undefined) => string;
}

/** An annotation longer than this begins on a line of its own. */
const LONG_ANNOTATION = 140;

/**
 * `kubelet-ts describe pod`, in kubectl's layout.
 * @param events of this pod alone, oldest first
 * @param manifest `file:line` of its manifest, if it is known
 */
export function describePod(pod: Pod, events: readonly CoreEvent[], times: DescribeTimes, manifest?: string): string {
  const { metadata, spec, status = {} } = pod;
  const out = new Description();
  out.field(0, "Name", metadata.name);
  out.field(0, "Namespace", metadata.namespace ?? "default");
  out.optional(0, "Manifest", manifest);
  out.optional(0, "Priority", spec.priority);
  out.optional(0, "Priority Class Name", spec.priorityClassName);
  out.optional(0, "Runtime Class Name", spec.runtimeClassName);
  out.optional(0, "Service Account", spec.serviceAccountName);
  out.field(0, "Node", spec.nodeName ? [spec.nodeName, status.hostIP].filter(Boolean).join("/") : "<none>");
  if (status.startTime) out.field(0, "Start Time", times.toText(status.startTime));
  out.list(0, "Labels", pairs(metadata.labels, "="));
  describeAnnotations(out, 0, metadata.annotations ?? {});
  describePhase(out, pod, times.now);
  out.optional(0, "Reason", status.reason);
  out.optional(0, "Message", status.message);
  out.optional(0, "SeccompProfile", seccompText(spec.securityContext?.seccompProfile));
  out.field(0, "IP", status.podIP ?? "");
  out.block(0, "IPs", status.podIPs ?? [], ({ ip }) => out.field(1, "IP", ip));
  describeOwner(out, metadata.ownerReferences);
  out.optional(0, "NominatedNodeName", status.nominatedNodeName);
  for (const [title, containers, statuses] of [
    ["Init Containers", spec.initContainers ?? [], status.initContainerStatuses ?? []],
    ["Containers", spec.containers, status.containerStatuses ?? []],
    ["Ephemeral Containers", spec.ephemeralContainers ?? [], status.ephemeralContainerStatuses ?? []],
  ] as const) {
    if (containers.length > 0) out.heading(0, title);
    for (const container of containers) {
      const status = statuses.find(({ name }) => name === container.name);
      describeContainer(out, container, status, times.toText);
    }
  }
  describeReadinessGates(out, pod);
  describeConditions(out, status);
  out.block(0, "Volumes", spec.volumes ?? [], (volume) => describeVolume(out, volume));
  out.optional(0, "QoS Class", status.qosClass);
  out.list(0, "Node-Selectors", pairs(spec.nodeSelector, "="));
  out.list(0, "Tolerations", tolerationLines(spec.tolerations));
  describeEvents(out, events, times.now);
  return out.toString();
}

/** Sorted lines `key<between>value`. */
export const pairs = (map: Readonly<Record<string, string>> | undefined, between: string) =>
  Object.entries(map ?? {})
    .map(([key, value]) => `${key}${between}${value}`)
    .sort();

/** The whole object once more. */
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

export function describeAnnotations(
  out: Description,
  depth: number,
  annotations: Readonly<Record<string, string>>,
): void {
  const shown = Object.entries(annotations)
    .filter(([key]) => key !== LAST_APPLIED)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => {
      const text = value.trimEnd();
      if (text.length + key.length <= LONG_ANNOTATION && !text.includes("\n")) return `${key}: ${text}`;
      return [`${key}:`, ...text.split("\n").map((line) => `  ${line}`)].join("\n");
    });
  out.list(depth, "Annotations", shown);
}

function describePhase(out: Description, { metadata, status }: Pod, now: Date): void {
  const { deletionTimestamp, deletionGracePeriodSeconds } = metadata;
  if (!deletionTimestamp) return out.field(0, "Status", status?.phase);
  out.field(0, "Status", `Terminating (lasts ${formatSince(deletionTimestamp, now)})`);
  out.field(0, "Termination Grace Period", `${deletionGracePeriodSeconds ?? 0}s`);
}

function describeReadinessGates(out: Description, { spec, status }: Pod): void {
  if (!spec.readinessGates?.length) return;
  out.heading(0, "Readiness Gates");
  out.cells(1, ["Type", "Status"]);
  for (const { conditionType } of spec.readinessGates) {
    const condition = status?.conditions?.find(({ type }) => type === conditionType);
    out.cells(1, [conditionType, condition?.status ?? "<none>"]);
  }
}

/** The object that manages this one. */
export function describeOwner(out: Description, owners: DescribedObject["metadata"]["ownerReferences"] = []): void {
  const owner = owners.find(({ controller }) => controller);
  if (owner) out.field(0, "Controlled By", `${owner.kind}/${owner.name}`);
}

function describeConditions(out: Description, { conditions = [] }: PodStatus): void {
  if (conditions.length === 0) return;
  out.heading(0, "Conditions");
  const hasReasons = conditions.some(({ reason }) => reason);
  out.cells(1, ["Type", "Status", ...(hasReasons ? ["Reason", "Message"] : [])]);
  for (const { type, status, reason = "", message = "" } of conditions) {
    out.cells(1, [type, status, ...(hasReasons ? [reason, toCell(message)] : [])]);
  }
}

/** One line each, sorted. */
export const tolerationLines = (tolerations: readonly Toleration[] = []): string[] =>
  tolerations.map(tolerationText).sort();

/** Source: kubectl's `printTolerationsMultiline`. */
function tolerationText({ key = "", value, effect, operator, tolerationSeconds }: Toleration): string {
  const what = `${key}${value ? `=${value}` : ""}${effect ? `:${effect}` : ""}`;
  const exists = operator === "Exists" && !value ? "op=Exists" : "";
  const time = tolerationSeconds === undefined ? "" : `for ${tolerationSeconds}s`;
  return [what, exists, time].filter(Boolean).join(" ");
}

/** The events, as the last block of a description. @param events oldest first */
export function describeEvents(out: Description, events: readonly CoreEvent[], now: Date): void {
  if (events.length === 0) return out.field(0, "Events", "<none>");
  out.heading(0, "Events");
  const rows = events.map((event) => [
    event.type,
    event.reason,
    eventAge(event, now),
    event.source.component,
    toCell(event.message),
  ]);
  // kubectl underlines this column by one more.
  out.cells(1, ["Type", "Reason", "Age", "From", "Message"]);
  out.cells(1, ["----", "------", "----", "----", "-------"]);
  for (const row of rows) out.cells(1, row);
}

/** An object of the API, whose fields beyond the metadata depend on its kind. */
export interface DescribedObject {
  kind: string;
  metadata: {
    name?: string;
    namespace?: string;
    creationTimestamp?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    ownerReferences?: readonly { kind: string; name: string; controller?: boolean | undefined }[] | undefined;
  };
  [field: string]: unknown;
}

/** Surroundings of a described object. */
export interface ObjectSurroundings {
  /** The object's own, oldest first. */
  events: readonly CoreEvent[];
  /** The pods that the object selects or owns. */
  pods: readonly Pod[];
  /** ReplicaSets of a Deployment. */
  replicaSets?: readonly DescribedObject[];
  /** `file:line` of its manifest, if it is known. */
  manifest: string | undefined;
  times: DescribeTimes;
}

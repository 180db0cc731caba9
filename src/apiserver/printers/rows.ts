import type { CoreEvent } from "../../base/api/event.ts";
import { type Condition, hasCondition } from "../../base/api/meta.ts";
import type { Container, ContainerStatus, Pod, PodStatus } from "../../base/api/pod.ts";
import { memoized } from "../../base/model/memoized.ts";

/** A column of `kubectl get`, for an object of one type. */
export interface PrintedColumn<T> {
  name: string;
  cell: (object: T, now: Date) => string;
  /** Shown with `-o wide` alone. */
  isWide?: true;
}

/** The first three of a list, and how many more there are; "" for none. Source: kubectl's printers. */
export function firstThree(items: readonly string[]): string {
  const more = items.length - 3;
  return `${items.slice(0, 3).join(",")}${more > 0 ? ` + ${more} more...` : ""}`;
}

const SECOND = 1;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

/** Ages up to this limit (seconds) are shown in these units; the smaller unit is left out when it is 0. */
const STEPS: readonly { below: number; unit: [number, string]; rest?: [number, string] }[] = [
  { below: 2 * MINUTE, unit: [SECOND, "s"] },
  { below: 10 * MINUTE, unit: [MINUTE, "m"], rest: [SECOND, "s"] },
  { below: 3 * HOUR, unit: [MINUTE, "m"] },
  { below: 8 * HOUR, unit: [HOUR, "h"], rest: [MINUTE, "m"] },
  { below: 2 * DAY, unit: [HOUR, "h"] },
  { below: 8 * DAY, unit: [DAY, "d"], rest: [HOUR, "h"] },
  { below: 2 * YEAR, unit: [DAY, "d"] },
  { below: 8 * YEAR, unit: [YEAR, "y"], rest: [DAY, "d"] },
  { below: Number.POSITIVE_INFINITY, unit: [YEAR, "y"] },
];

/**
 * An age as kubectl prints it: `43s`, `5m32s`, `12m`, `3h20m`, `2d4h`. Clock differences below two seconds count
 * as 0. Source: apimachinery's `HumanDuration`.
 */
export function formatAge(ms: number): string {
  const seconds = Math.trunc(ms / 1000);
  if (seconds < -1) return "<invalid>";
  const age = Math.max(0, seconds);
  const { unit, rest } = STEPS.find(({ below }) => age < below)!;
  const whole = `${Math.floor(age / unit[0])}${unit[1]}`;
  if (!rest) return whole;
  const left = Math.floor((age % unit[0]) / rest[0]);
  return left === 0 ? whole : `${whole}${left}${rest[1]}`;
}

/** How long ago a time of the API was; `<unknown>` for none. */
export function formatSince(time: string | null | undefined, now: Date): string {
  const date = parseTime(time);
  return date ? formatAge(now.getTime() - date.getTime()) : "<unknown>";
}

/** A time of the API; undefined for none, for Go's zero time and for what is not a time. */
export function parseTime(time: string | null | undefined): Date | undefined {
  const ms = Date.parse(time ?? "");
  return Number.isNaN(ms) || ms <= 0 ? undefined : new Date(ms);
}

/**
 * A time as kubectl's descriptions have it: `Sat, 21 Nov 2026 08:26:23 +0000`.
 * @param offsetMinutes east of Greenwich
 */
export function formatLongTime(time: string | null | undefined, offsetMinutes: (at: Date) => number): string {
  const date = parseTime(time);
  if (!date) return "<unknown>";
  const offset = offsetMinutes(date);
  const local = new Date(date.getTime() + offset * 60_000).toUTCString();
  const two = (value: number) => String(value).padStart(2, "0");
  const size = Math.abs(offset);
  const zone = `${offset < 0 ? "-" : "+"}${two(Math.floor(size / 60))}${two(size % 60)}`;
  return local.replace("GMT", zone);
}

/** One line of `kubelet-ts get pods`. */
interface PodSummaryLine {
  ready: number;
  total: number;
  /** A reason of the pod or of a container, `Running`, `Init:0/2`, … */
  status: string;
  restarts: number;
  lastRestart: Date | undefined;
}

/** Source: kubectl's `printPod`. */
export const POD_COLUMNS: readonly PrintedColumn<Pod>[] = [
  { name: "Name", cell: ({ metadata }) => metadata.name ?? "" },
  { name: "Ready", cell: (pod) => `${summarizePod(pod).ready}/${summarizePod(pod).total}` },
  { name: "Status", cell: (pod) => summarizePod(pod).status },
  { name: "Restarts", cell: (pod, now) => formatRestarts(summarizePod(pod), now) },
  { name: "Age", cell: (pod, now) => formatSince(creationTime(pod), now) },
  { name: "IP", cell: ({ status }) => status?.podIP || "<none>", isWide: true },
  { name: "Node", cell: ({ spec }) => spec.nodeName || "<none>", isWide: true },
  { name: "Nominated Node", cell: ({ status }) => status?.nominatedNodeName || "<none>", isWide: true },
  { name: "Readiness Gates", cell: formatReadinessGates, isWide: true },
];

/** `2 (5m ago)`; `0` for none. */
function formatRestarts({ restarts, lastRestart }: PodSummaryLine, now: Date): string {
  return restarts > 0 && lastRestart
    ? `${restarts} (${formatSince(lastRestart.toISOString(), now)} ago)`
    : `${restarts}`;
}

/** Static pods have no creation time: their age counts from the time the node started them. */
export const creationTime = ({ metadata, status }: Pod): string | undefined =>
  metadata.creationTimestamp ?? status?.startTime ?? metadata.annotations?.["kubernetes.io/config.seen"];

/** The cells of a pod that its status determines; computed once for each version of the pod. */
export const summarizePod = memoized(({ spec, metadata, status = {} }: Pod): PodSummaryLine => {
  const sidecars = new Set((spec.initContainers ?? []).filter(isSidecar).map(({ name }) => name));
  const phase = status.phase ?? "Unknown";
  const total = spec.containers.length + sidecars.size;
  const init = summarizeInit(status.initContainerStatuses ?? [], sidecars, spec.initContainers?.length ?? 0);
  const base = { status: status.reason || phase, total };
  const line =
    init.reason !== undefined && !hasCondition(status, "Initialized")
      ? { ...base, ready: init.ready, status: init.reason, ...restartsOf(status.initContainerStatuses ?? []) }
      : {
          ...base,
          ...summarizeMains(status, init.reason ?? base.status, init.ready),
          ...restartsOf([
            ...(status.initContainerStatuses ?? []).filter(({ name }) => sidecars.has(name)),
            ...(status.containerStatuses ?? []),
          ]),
        };
  const isTerminating = metadata.deletionTimestamp && phase !== "Succeeded" && phase !== "Failed";
  return isTerminating ? { ...line, status: "Terminating" } : line;
});

const isSidecar = ({ restartPolicy }: Container) => restartPolicy === "Always";

/** The first init container that blocks the rest gives the reason; undefined: none does. */
function summarizeInit(
  statuses: readonly ContainerStatus[],
  sidecars: ReadonlySet<string>,
  count: number,
): { reason: string | undefined; ready: number } {
  let ready = 0;
  for (const [index, { name, state, started, ready: isReady }] of statuses.entries()) {
    if (state.terminated?.exitCode === 0) continue;
    if (sidecars.has(name) && started) {
      if (isReady) ready++;
      continue;
    }
    const { terminated, waiting } = state;
    if (terminated) return { reason: `Init:${terminatedReason(terminated)}`, ready };
    const isStuck = waiting?.reason && waiting.reason !== "PodInitializing";
    return { reason: isStuck ? `Init:${waiting.reason}` : `Init:${index}/${count}`, ready };
  }
  return { reason: undefined, ready };
}

/** The first of the main containers that waits or has ended gives the reason. */
function summarizeMains(status: PodStatus, reason: string, readyBefore: number): { status: string; ready: number } {
  let ready = readyBefore;
  let shown = reason;
  let hasRunning = false;
  for (const { state, ready: isReady } of (status.containerStatuses ?? []).toReversed()) {
    const { waiting, terminated, running } = state;
    if (waiting?.reason) shown = waiting.reason;
    else if (terminated) shown = terminatedReason(terminated);
    else if (isReady && running) {
      hasRunning = true;
      ready++;
    }
  }
  // One container has completed while another one runs.
  if (shown === "Completed" && hasRunning) shown = hasCondition(status, "Ready") ? "Running" : "NotReady";
  return { status: shown, ready };
}

function terminatedReason({ reason, signal, exitCode }: NonNullable<ContainerStatus["state"]["terminated"]>): string {
  if (reason) return reason;
  return signal ? `Signal:${signal}` : `ExitCode:${exitCode}`;
}

function restartsOf(statuses: readonly ContainerStatus[]): Pick<PodSummaryLine, "restarts" | "lastRestart"> {
  const ends = statuses.flatMap(({ lastState }) => parseTime(lastState?.terminated?.finishedAt) ?? []);
  return {
    restarts: statuses.reduce((sum, { restartCount }) => sum + restartCount, 0),
    lastRestart: ends.toSorted((a, b) => b.getTime() - a.getTime())[0],
  };
}

/** `1/2` gates met; `<none>` without gates. */
function formatReadinessGates({ spec, status = {} }: Pod): string {
  const gates = spec.readinessGates ?? [];
  if (gates.length === 0) return "<none>";
  return `${gates.filter(({ conditionType }) => hasCondition(status, conditionType)).length}/${gates.length}`;
}

/** The part of the response of `/node` that is read. Source: core/v1 `Node`. */
export interface NodeObject {
  kind: "Node";
  apiVersion: "v1";
  metadata: {
    name: string;
    creationTimestamp?: string | null;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  };
  spec: { unschedulable?: boolean; taints?: { key: string; value?: string; effect: string }[] };
  status: {
    capacity?: Record<string, string>;
    allocatable?: Record<string, string>;
    conditions?: Condition[];
    addresses?: { type: string; address: string }[];
    nodeInfo?: Partial<Record<NodeInfoField, string>>;
  };
}

/** Source: core/v1 `NodeSystemInfo`. */
export type NodeInfoField =
  | "machineID"
  | "systemUUID"
  | "bootID"
  | "kernelVersion"
  | "osImage"
  | "operatingSystem"
  | "architecture"
  | "containerRuntimeVersion"
  | "kubeletVersion";

const ROLE_PREFIX = "node-role.kubernetes.io/";

const addressOf = ({ status }: NodeObject, type: string) =>
  status.addresses?.find((known) => known.type === type)?.address || "<none>";

/** Source: kubectl's `printNode`. */
export const NODE_COLUMNS: readonly PrintedColumn<NodeObject>[] = [
  { name: "Name", cell: ({ metadata }) => metadata.name },
  { name: "Status", cell: nodeStatus },
  { name: "Roles", cell: nodeRoles },
  { name: "Age", cell: ({ metadata }, now) => formatSince(metadata.creationTimestamp, now) },
  { name: "Version", cell: ({ status }) => status.nodeInfo?.kubeletVersion ?? "" },
  { name: "Internal-IP", cell: (node) => addressOf(node, "InternalIP"), isWide: true },
  { name: "External-IP", cell: (node) => addressOf(node, "ExternalIP"), isWide: true },
  { name: "OS-Image", cell: ({ status }) => status.nodeInfo?.osImage || "<unknown>", isWide: true },
  { name: "Kernel-Version", cell: ({ status }) => status.nodeInfo?.kernelVersion || "<unknown>", isWide: true },
  {
    name: "Container-Runtime",
    cell: ({ status }) => status.nodeInfo?.containerRuntimeVersion || "<unknown>",
    isWide: true,
  },
];

/** From labels `node-role.kubernetes.io/<role>`. */
export function nodeRoles({ metadata }: NodeObject): string {
  const roles = Object.keys(metadata.labels ?? {}).flatMap((key) =>
    key.startsWith(ROLE_PREFIX) ? key.slice(ROLE_PREFIX.length) : [],
  );
  return roles.sort().join(",") || "<none>";
}

/** Unlike kubectl's, it names a pressure: no scheduler reports it here. */
function nodeStatus({ spec, status }: NodeObject): string {
  const conditions = status.conditions ?? [];
  const ready = conditions.find(({ type }) => type === "Ready");
  const pressures = conditions.filter((it) => it.type.endsWith("Pressure") && it.status === "True");
  return [
    ready ? (ready.status === "True" ? "Ready" : "NotReady") : "Unknown",
    ...pressures.map(({ type }) => type),
    ...(spec.unschedulable ? ["SchedulingDisabled"] : []),
  ].join(",");
}

/** Newer clients write the time of the first one, and a series, alone. Source: kubectl's `printEvent`. */
const firstOf = ({ firstTimestamp, eventTime }: CoreEvent) => firstTimestamp ?? eventTime;
const lastOf = (event: CoreEvent) => event.series?.lastObservedTime ?? event.lastTimestamp ?? firstOf(event);

/** Source: kubectl's `printEvent`. */
export const EVENT_COLUMNS: readonly PrintedColumn<CoreEvent>[] = [
  { name: "Last Seen", cell: (event, now) => formatSince(lastOf(event), now) },
  { name: "Type", cell: ({ type }) => type },
  { name: "Reason", cell: ({ reason }) => reason },
  { name: "Object", cell: ({ involvedObject: { kind, name } }) => `${kind.toLowerCase()}/${name}` },
  { name: "Subobject", cell: ({ involvedObject }) => involvedObject.fieldPath ?? "", isWide: true },
  { name: "Source", cell: ({ source }) => [source.component, source.host].join(", "), isWide: true },
  { name: "Message", cell: ({ message }) => message.trim() },
  { name: "First Seen", cell: (event, now) => formatSince(firstOf(event), now), isWide: true },
  { name: "Count", cell: ({ series, count }) => String(series?.count ?? count ?? 1), isWide: true },
  { name: "Name", cell: ({ metadata }) => metadata.name, isWide: true },
];

/** `5m32s`, or `10s (x4 over 3m)` for what happened more than once. Source: kubectl's descriptions. */
export function eventAge({ count, firstTimestamp, lastTimestamp }: CoreEvent, now: Date): string {
  const last = formatSince(lastTimestamp, now);
  return count > 1 ? `${last} (x${count} over ${formatSince(firstTimestamp, now)})` : last;
}

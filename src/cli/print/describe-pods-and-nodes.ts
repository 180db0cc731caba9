import { LAST_APPLIED } from "../../apiserver/managed-fields.ts";
import {
  creationTime,
  eventAge,
  formatSince,
  type NodeInfoField,
  type NodeObject,
  nodeRoles,
} from "../../apiserver/printers/rows.ts";
import type { CoreEvent } from "../../base/api/event.ts";
import type { ObjectMeta } from "../../base/api/meta.ts";
import type {
  Container,
  ContainerPort,
  ContainerState,
  ContainerStatus,
  EnvVar,
  Pod,
  PodStatus,
  Probe,
  ResourceList,
  SeccompProfile,
  Toleration,
  Volume,
} from "../../base/api/pod.ts";
import { formatBytes, formatMillis, quantityToMilli, quantityToWhole } from "../../base/api/quantity.ts";
import { computePodTotal, cpuMillisOf, hugePageNamesOf } from "../../plan/pod-resources.ts";
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
export function describeOwner(out: Description, owners: ObjectMeta["ownerReferences"] = []): void {
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

/**
 * One container below its heading. Source: kubectl's `describeContainers`.
 * @param toTime of a time of the API
 * @param ofTemplate kubectl indents the names of a template's containers by one more
 */
export function describeContainer(
  out: Description,
  container: Container,
  status: ContainerStatus | undefined,
  toTime: (time: string | null | undefined) => string,
  ofTemplate = false,
): void {
  out.heading(1, `${ofTemplate ? " " : ""}${container.name}`);
  if (!ofTemplate) out.field(2, "Container ID", status?.containerID ?? "");
  out.field(2, "Image", container.image ?? "");
  if (!ofTemplate) out.field(2, "Image ID", status?.imageID ?? "");
  const ports = container.ports ?? [];
  const many = ports.length > 1 ? "s" : "";
  out.field(2, `Port${many}`, ports.map(portText).join(", ") || "<none>");
  out.field(2, `Host Port${many}`, ports.map(hostPortText).join(", ") || "<none>");
  out.optional(2, "SeccompProfile", seccompText(container.securityContext?.seccompProfile));
  describeWords(out, "Command", container.command ?? []);
  describeWords(out, "Args", container.args ?? []);
  if (status) {
    describeState(out, "State", status.state, toTime);
    if (status.lastState?.terminated) describeState(out, "Last State", status.lastState, toTime);
    out.field(2, "Ready", status.ready);
    out.field(2, "Restart Count", status.restartCount);
  }
  const { limits = {}, requests = {} } = container.resources ?? {};
  if (Object.keys(limits).length > 0) out.map(2, "Limits", limits);
  if (Object.keys(requests).length > 0) out.map(2, "Requests", requests);
  out.optional(2, "Liveness", container.livenessProbe && probeText(container.livenessProbe));
  out.optional(2, "Readiness", container.readinessProbe && probeText(container.readinessProbe));
  out.optional(2, "Startup", container.startupProbe && probeText(container.startupProbe));
  describeEnvironment(out, container);
  const mounts = (container.volumeMounts ?? []).toSorted((a, b) => (a.mountPath < b.mountPath ? -1 : 1));
  out.block(2, "Mounts", mounts, ({ mountPath, name, readOnly, subPath }) => {
    const flags = [readOnly ? "ro" : "rw", ...(subPath ? [`path="${subPath}"`] : [])];
    out.line(3, `${mountPath} from ${name} (${flags.join(",")})`);
  });
}

/** `RuntimeDefault`, `Localhost (profiles/x.json)`. */
function seccompText(profile: SeccompProfile | undefined): string | undefined {
  return profile && (profile.localhostProfile ? `${profile.type} (${profile.localhostProfile})` : profile.type);
}

const portText = ({ containerPort, protocol = "TCP", name }: ContainerPort) =>
  `${containerPort}/${protocol}${name ? ` (${name})` : ""}`;

const hostPortText = ({ hostPort = 0, hostIP, protocol = "TCP" }: ContainerPort) =>
  `${hostIP && hostPort ? `${hostIP}:` : ""}${hostPort}/${protocol}`;

function describeWords(out: Description, title: string, words: readonly string[]): void {
  if (words.length === 0) return;
  out.heading(2, title);
  // A script is one word of many lines.
  for (const line of words.join("\n").trimEnd().split("\n")) out.line(3, line);
}

function describeState(
  out: Description,
  title: string,
  { running, terminated, waiting }: ContainerState,
  toTime: (time: string | null | undefined) => string,
): void {
  if (running) {
    out.field(2, title, "Running");
    out.field(3, "Started", toTime(running.startedAt));
  } else if (terminated) {
    out.field(2, title, "Terminated");
    out.optional(3, "Reason", terminated.reason);
    out.optional(3, "Message", terminated.message?.trimEnd());
    out.field(3, "Exit Code", terminated.exitCode);
    if (terminated.signal) out.field(3, "Signal", terminated.signal);
    out.field(3, "Started", toTime(terminated.startedAt));
    out.field(3, "Finished", toTime(terminated.finishedAt));
  } else {
    out.field(2, title, "Waiting");
    out.optional(3, "Reason", waiting?.reason);
    // Kubectl leaves it out; here it often is all there is to go by.
    out.optional(3, "Message", waiting?.message?.trimEnd());
  }
}

/** `http-get http://:80/ delay=0s timeout=1s period=10s #success=1 #failure=3`. Source: kubectl's `DescribeProbe`. */
export function probeText(probe: Probe): string {
  const { initialDelaySeconds = 0, timeoutSeconds = 1, periodSeconds = 10 } = probe;
  const { successThreshold = 1, failureThreshold = 3 } = probe;
  const times = `delay=${initialDelaySeconds}s timeout=${timeoutSeconds}s period=${periodSeconds}s`;
  return `${attemptText(probe)} ${times} #success=${successThreshold} #failure=${failureThreshold}`;
}

function attemptText({ exec, httpGet, tcpSocket, grpc }: Probe): string {
  if (exec) return `exec [${(exec.command ?? []).join(" ")}]`;
  if (httpGet) {
    const { scheme = "HTTP", host = "", port, path = "/" } = httpGet;
    return `http-get ${scheme.toLowerCase()}://${host}:${port}${path.startsWith("/") ? "" : "/"}${path}`;
  }
  if (tcpSocket) return `tcp-socket ${tcpSocket.host ?? ""}:${tcpSocket.port}`;
  if (grpc) return `grpc <pod>:${grpc.port} ${grpc.service ?? ""}`.trimEnd();
  return "unknown";
}

function describeEnvironment(out: Description, { envFrom = [], env = [] }: Container): void {
  if (envFrom.length > 0) out.heading(2, "Environment Variables from");
  for (const { prefix, configMapRef, secretRef } of envFrom) {
    const source = configMapRef ?? secretRef;
    const kind = configMapRef ? "ConfigMap" : "Secret";
    const withPrefix = prefix ? ` with prefix '${prefix}'` : "";
    out.cells(3, [source?.name ?? "", `${kind}${withPrefix}`, optionalText(source?.optional)]);
  }
  out.block(2, "Environment", env, (variable) => out.field(3, variable.name, variableText(variable)));
}

/** Where a value comes from; the server shows no values of Secrets, and others only on request. */
function variableText({ value, valueFrom }: EnvVar): string {
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef } = valueFrom ?? {};
  if (fieldRef) return `(${fieldRef.apiVersion || "v1"}:${fieldRef.fieldPath})`;
  if (resourceFieldRef) return `(${resourceFieldRef.resource})`;
  const keyRef = configMapKeyRef ?? secretKeyRef;
  const keyText = (text: string, optional: boolean | undefined) =>
    `<set to the key ${text}>  ${optionalText(optional)}`;
  if (keyRef) {
    const kind = configMapKeyRef ? "of config map" : "in secret";
    return keyText(`'${keyRef.key}' ${kind} '${keyRef.name ?? ""}'`, keyRef.optional);
  }
  if (fileKeyRef) {
    const { key, path, volumeName, optional } = fileKeyRef;
    return keyText(`'${key}' of file '${path}' in volume '${volumeName}'`, optional);
  }
  return value ?? "";
}

const optionalText = (optional: boolean | undefined) => `Optional: ${optional ?? false}`;

type Fields = Readonly<Record<string, readonly [field: string, otherwise: string]>>;

/** Types of volumes: their descriptions and fields. Source: kubectl's `describeVolumes`. */
const VOLUMES: Readonly<Record<string, readonly [description: string, fields: Fields]>> = {
  emptyDir: [
    "EmptyDir (a temporary directory that shares a pod's lifetime)",
    { Medium: ["medium", ""], SizeLimit: ["sizeLimit", "<unset>"] },
  ],
  hostPath: ["HostPath (bare host directory volume)", { Path: ["path", ""], HostPathType: ["type", ""] }],
  secret: [
    "Secret (a volume populated by a Secret)",
    { SecretName: ["secretName", ""], Optional: ["optional", "false"] },
  ],
  configMap: ["ConfigMap (a volume populated by a ConfigMap)", { Name: ["name", ""], Optional: ["optional", "false"] }],
  nfs: [
    "NFS (an NFS mount that lasts the lifetime of a pod)",
    { Server: ["server", ""], Path: ["path", ""], ReadOnly: ["readOnly", "false"] },
  ],
  persistentVolumeClaim: [
    "PersistentVolumeClaim (a volume of the Docker engine)",
    { ClaimName: ["claimName", ""], ReadOnly: ["readOnly", "false"] },
  ],
  downwardAPI: ["DownwardAPI (a volume populated by information about the pod)", {}],
  projected: ["Projected (a volume that contains injected data from multiple sources)", {}],
  image: [
    "Image (a container image or OCI artifact)",
    { Reference: ["reference", ""], PullPolicy: ["pullPolicy", ""] },
  ],
};

/** Sources of a projected volume. */
const PROJECTIONS: Readonly<Record<string, Fields>> = {
  secret: { SecretName: ["name", ""], Optional: ["optional", "false"] },
  configMap: { ConfigMapName: ["name", ""], Optional: ["optional", "false"] },
  downwardAPI: { DownwardAPI: ["", "true"] },
  serviceAccountToken: { TokenExpirationSeconds: ["expirationSeconds", ""] },
};

function describeFields(out: Description, fields: Fields, source: object = {}): void {
  for (const [title, [field, otherwise]] of Object.entries(fields)) {
    out.field(2, title, String((source as Record<string, unknown>)[field] ?? otherwise));
  }
}

/** One volume below its heading. @param ofTemplate as for containers */
export function describeVolume(out: Description, { name, ...sources }: Volume, ofTemplate = false): void {
  out.heading(1, `${ofTemplate ? " " : ""}${name}`);
  const [[type, source] = ["EmptyDir", {}]] = Object.entries(sources);
  const [description, fields] = VOLUMES[type] ?? [type, {}];
  out.field(2, "Type", description);
  describeFields(out, fields, source);
  if (sources.downwardAPI) {
    out.heading(2, "Items");
    for (const { fieldRef, resourceFieldRef, path } of sources.downwardAPI.items ?? []) {
      out.line(3, `${fieldRef?.fieldPath ?? resourceFieldRef?.resource ?? ""} -> ${path}`);
    }
  }
  for (const projection of sources.projected?.sources ?? []) {
    const [[kind, given] = ["", {}]] = Object.entries(projection);
    describeFields(out, PROJECTIONS[kind] ?? { Source: ["", kind] }, given);
  }
}

const SYSTEM_INFO: readonly (readonly [title: string, field: NodeInfoField])[] = [
  ["Machine ID", "machineID"],
  ["System UUID", "systemUUID"],
  ["Boot ID", "bootID"],
  ["Kernel Version", "kernelVersion"],
  ["OS Image", "osImage"],
  ["Operating System", "operatingSystem"],
  ["Architecture", "architecture"],
  ["Container Runtime Version", "containerRuntimeVersion"],
  ["Kubelet Version", "kubeletVersion"],
];

/** `kubelet-ts describe node`, in kubectl's layout. @param pods all of the node. @param events of the node alone */
export function describeNode(
  node: NodeObject,
  pods: readonly Pod[],
  events: readonly CoreEvent[],
  times: DescribeTimes,
): string {
  const { metadata, spec, status } = node;
  const out = new Description();
  out.field(0, "Name", metadata.name);
  out.field(0, "Roles", nodeRoles(node));
  out.list(0, "Labels", pairs(metadata.labels, "="));
  describeAnnotations(out, 0, metadata.annotations ?? {});
  out.field(0, "CreationTimestamp", times.toText(metadata.creationTimestamp));
  out.list(
    0,
    "Taints",
    (spec.taints ?? []).map(({ key, value, effect }) => `${key}${value ? `=${value}` : ""}:${effect}`),
  );
  out.field(0, "Unschedulable", String(spec.unschedulable ?? false));
  out.heading(0, "Conditions");
  out.table(
    ["Type", "Status", "LastHeartbeatTime", "LastTransitionTime", "Reason", "Message"],
    (status.conditions ?? []).map((it) => [
      it.type,
      it.status,
      times.toText(it.lastHeartbeatTime),
      times.toText(it.lastTransitionTime),
      it.reason ?? "",
      toCell(it.message ?? ""),
    ]),
  );
  out.heading(0, "Addresses");
  for (const { type, address } of status.addresses ?? []) out.field(1, type, address);
  out.map(0, "Capacity", status.capacity ?? {});
  out.map(0, "Allocatable", status.allocatable ?? {});
  out.heading(0, "System Info");
  for (const [title, field] of SYSTEM_INFO) out.field(1, title, status.nodeInfo?.[field]);
  describePods(out, pods.filter(isLive), status.allocatable ?? {}, times.now);
  describeEvents(out, events, times.now);
  return out.toString();
}

const isLive = ({ status }: Pod) => status?.phase !== "Succeeded" && status?.phase !== "Failed";

/** One resource of the node. */
interface Share {
  /** All that pods may have. */
  of: number;
  amountIn: (list: ResourceList | undefined) => number;
  toText: (amount: number) => string;
}

/** Requests and limits of all pods. Source: kubectl's `describeNodeResource`. */
function describePods(
  out: Description,
  pods: readonly Pod[],
  allocatable: Readonly<Record<string, string>>,
  now: Date,
): void {
  const share = (name: string): Share => ({
    of: quantityToWhole(allocatable[name] ?? "0"),
    amountIn: (list) => quantityToWhole(list?.[name] ?? "0"),
    toText: formatBytes,
  });
  const cpu: Share = { of: quantityToMilli(allocatable.cpu ?? "0"), amountIn: cpuMillisOf, toText: formatMillis };
  const memory = share("memory");
  const amount = (chosen: readonly Pod[], { of, amountIn, toText }: Share, kind: "requests" | "limits") => {
    const sum = chosen.reduce((total, pod) => total + computePodTotal(pod, kind, amountIn), 0);
    return `${toText(sum)} (${of === 0 ? 0 : Math.floor((sum * 100) / of)}%)`;
  };
  out.field(0, "Non-terminated Pods", `(${pods.length} in total)`);
  out.table(
    ["Namespace", "Name", "CPU Requests", "CPU Limits", "Memory Requests", "Memory Limits", "Age"],
    pods.map((pod) => [
      pod.metadata.namespace ?? "default",
      pod.metadata.name ?? "",
      amount([pod], cpu, "requests"),
      amount([pod], cpu, "limits"),
      amount([pod], memory, "requests"),
      amount([pod], memory, "limits"),
      formatSince(creationTime(pod), now),
    ]),
  );
  out.heading(0, "Allocated resources");
  out.line(1, "(Total limits may be over 100 percent, i.e., overcommitted.)");
  out.table(
    ["Resource", "Requests", "Limits"],
    [
      ["cpu", cpu] as const,
      ["memory", memory] as const,
      ...["ephemeral-storage", ...hugePageNamesOf(allocatable).sort()].map((name) => [name, share(name)] as const),
    ].map(([name, of]) => [name, amount(pods, of, "requests"), amount(pods, of, "limits")]),
  );
}

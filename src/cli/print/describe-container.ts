import type {
  Container,
  ContainerPort,
  ContainerState,
  ContainerStatus,
  EnvVar,
  Probe,
  SeccompProfile,
  Volume,
} from "../../base/api/pod.ts";
import type { Description } from "./text-table.ts";

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
export function seccompText(profile: SeccompProfile | undefined): string | undefined {
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
  const place = (text: string, optional: boolean | undefined) => `<set to the key ${text}>  ${optionalText(optional)}`;
  if (keyRef) {
    const kind = configMapKeyRef ? "of config map" : "in secret";
    return place(`'${keyRef.key}' ${kind} '${keyRef.name ?? ""}'`, keyRef.optional);
  }
  if (fileKeyRef) {
    const { key, path, volumeName, optional } = fileKeyRef;
    return place(`'${key}' of file '${path}' in volume '${volumeName}'`, optional);
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

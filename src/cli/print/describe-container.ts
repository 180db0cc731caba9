import type {
  Container,
  ContainerPort,
  ContainerState,
  ContainerStatus,
  DownwardAPIVolumeFile,
  EnvVar,
  Probe,
  SeccompProfile,
  Volume,
  VolumeProjection,
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
  for (const [title, list] of [
    ["Limits", container.resources?.limits],
    ["Requests", container.resources?.requests],
  ] as const) {
    const entries = Object.entries(list ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1));
    if (entries.length > 0) out.heading(2, title);
    for (const [name, quantity] of entries) out.field(3, name, quantity);
  }
  out.optional(2, "Liveness", container.livenessProbe && probeText(container.livenessProbe));
  out.optional(2, "Readiness", container.readinessProbe && probeText(container.readinessProbe));
  out.optional(2, "Startup", container.startupProbe && probeText(container.startupProbe));
  describeEnvironment(out, container);
  const mounts = (container.volumeMounts ?? []).toSorted((a, b) => (a.mountPath < b.mountPath ? -1 : 1));
  if (mounts.length === 0) out.field(2, "Mounts", "<none>");
  else out.heading(2, "Mounts");
  for (const { mountPath, name, readOnly, subPath } of mounts) {
    const flags = [readOnly ? "ro" : "rw", ...(subPath ? [`path="${subPath}"`] : [])];
    out.line(3, `${mountPath} from ${name} (${flags.join(",")})`);
  }
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
  if (env.length === 0) return out.field(2, "Environment", "<none>");
  out.heading(2, "Environment");
  for (const variable of env) out.field(3, variable.name, variableText(variable));
}

/** Where a value comes from; the server shows no values of Secrets, and others only on request. */
function variableText({ value, valueFrom }: EnvVar): string {
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef } = valueFrom ?? {};
  if (fieldRef) return `(${fieldRef.apiVersion || "v1"}:${fieldRef.fieldPath})`;
  if (resourceFieldRef) return `(${resourceFieldRef.resource})`;
  if (configMapKeyRef) {
    const { key, name = "", optional } = configMapKeyRef;
    return `<set to the key '${key}' of config map '${name}'>  ${optionalText(optional)}`;
  }
  if (secretKeyRef) {
    const { key, name = "", optional } = secretKeyRef;
    return `<set to the key '${key}' in secret '${name}'>  ${optionalText(optional)}`;
  }
  if (fileKeyRef) {
    const { key, path, volumeName, optional } = fileKeyRef;
    return `<set to the key '${key}' of file '${path}' in volume '${volumeName}'>  ${optionalText(optional)}`;
  }
  return value ?? "";
}

const optionalText = (optional: boolean | undefined) => `Optional: ${optional ?? false}`;

/** One volume below its heading. Source: kubectl's `describeVolumes`. @param ofTemplate as for containers */
export function describeVolume(out: Description, volume: Volume, ofTemplate = false): void {
  out.heading(1, `${ofTemplate ? " " : ""}${volume.name}`);
  const { emptyDir, hostPath, secret, configMap, nfs, persistentVolumeClaim, downwardAPI, projected, image } = volume;
  const type = (text: string) => out.field(2, "Type", text);
  if (emptyDir) {
    type("EmptyDir (a temporary directory that shares a pod's lifetime)");
    out.field(2, "Medium", emptyDir.medium ?? "");
    out.field(2, "SizeLimit", emptyDir.sizeLimit ?? "<unset>");
  } else if (hostPath) {
    type("HostPath (bare host directory volume)");
    out.field(2, "Path", hostPath.path);
    out.field(2, "HostPathType", hostPath.type ?? "");
  } else if (secret) {
    type("Secret (a volume populated by a Secret)");
    out.field(2, "SecretName", secret.secretName ?? "");
    out.field(2, "Optional", String(secret.optional ?? false));
  } else if (configMap) {
    type("ConfigMap (a volume populated by a ConfigMap)");
    out.field(2, "Name", configMap.name ?? "");
    out.field(2, "Optional", String(configMap.optional ?? false));
  } else if (nfs) {
    type("NFS (an NFS mount that lasts the lifetime of a pod)");
    out.field(2, "Server", nfs.server);
    out.field(2, "Path", nfs.path);
    out.field(2, "ReadOnly", String(nfs.readOnly ?? false));
  } else if (persistentVolumeClaim) {
    type("PersistentVolumeClaim (a volume of the Docker engine)");
    out.field(2, "ClaimName", persistentVolumeClaim.claimName);
    out.field(2, "ReadOnly", String(persistentVolumeClaim.readOnly ?? false));
  } else if (downwardAPI) {
    type("DownwardAPI (a volume populated by information about the pod)");
    describeItems(out, downwardAPI.items ?? []);
  } else if (projected) {
    type("Projected (a volume that contains injected data from multiple sources)");
    for (const source of projected.sources) describeProjection(out, source);
  } else if (image) {
    type("Image (a container image or OCI artifact)");
    out.field(2, "Reference", image.reference ?? "");
    out.field(2, "PullPolicy", image.pullPolicy ?? "");
  } else {
    type(Object.keys(volume).find((name) => name !== "name") ?? "EmptyDir");
  }
}

function describeItems(out: Description, items: readonly DownwardAPIVolumeFile[]): void {
  out.heading(2, "Items");
  for (const { fieldRef, resourceFieldRef, path } of items) {
    out.line(3, `${fieldRef?.fieldPath ?? resourceFieldRef?.resource ?? ""} -> ${path}`);
  }
}

function describeProjection(out: Description, source: VolumeProjection): void {
  const { secret, configMap, downwardAPI, serviceAccountToken } = source;
  if (secret) {
    out.field(2, "SecretName", secret.name ?? "");
    out.field(2, "Optional", String(secret.optional ?? false));
  } else if (configMap) {
    out.field(2, "ConfigMapName", configMap.name ?? "");
    out.field(2, "Optional", String(configMap.optional ?? false));
  } else if (downwardAPI) {
    out.field(2, "DownwardAPI", "true");
  } else if (serviceAccountToken) {
    out.field(2, "TokenExpirationSeconds", serviceAccountToken.expirationSeconds);
  } else {
    out.field(2, "Source", Object.keys(source)[0] ?? "");
  }
}

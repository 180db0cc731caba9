import {
  CONTAINER_LABELS_ANNOTATION,
  EMPTY_DIR_OPTIONS_ANNOTATION,
  FILL_VOLUMES_ANNOTATION,
  INIT_ANNOTATION,
  LOG_OPTIONS_ANNOTATION,
  parseLogOptions,
  requiredFormat,
  ULIMITS_ANNOTATION,
} from "../../base/api/annotations.ts";
import { compareQuantities, parseQuantity } from "../../base/api/quantity.ts";
import { isRecord, type Json } from "../../base/text/json.ts";
import { withoutExpansion } from "../../plan/environment.ts";
import { SAFE_SYSCTLS } from "../../plan/security-profiles.ts";
import { isTrue, type JsonMap, splitWords, toSeconds } from "./compose-text.ts";

/** The result of an import. */
export interface Imported {
  /** ConfigMaps and Secrets before the pods that use them. */
  manifests: object[];
  /** Steps before the pods run, and each setting that is not carried over. */
  notes: readonly string[];
}

/** Collects what an import cannot carry over; one line per key. */
export class ImportNotes {
  readonly lines: string[] = [];

  /** Notes for the keys of one part, e.g. `services.web.`. @param nameOf the name of a key in notes */
  of(prefix: string, nameOf = (key: string): string => key): ImportNotes {
    const part = new ImportNotes();
    part.add = (key, message) => this.add(prefix + nameOf(key), message);
    return part;
  }

  /** The same line is added once. */
  add(key: string, message: string): void {
    const line = `${key}: ${message}`;
    if (!this.lines.includes(line)) this.lines.push(line);
  }
}

/** Text of a scalar; undefined for null, lists and maps. */
export const textOf = (value: unknown): string | undefined =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;

/** A list of texts; a single text counts as a list of one. */
export const textsOf = (value: unknown): string[] =>
  (Array.isArray(value) ? value : [value]).flatMap((item) => textOf(item) ?? []);

export const listOf = (value: Json | undefined): readonly Json[] => (Array.isArray(value) ? value : []);

/** A command, which may be a line of a shell. */
export const wordsOf = (command: Json | undefined): string[] | undefined => {
  if (command === undefined || command === null) return undefined;
  return typeof command === "string" ? splitWords(command) : textsOf(command);
};

/** A map, or a list of `NAME=value`; without a value undefined. */
export const pairsOf = (value: Json | undefined, separator: string | RegExp = "="): [string, string | undefined][] =>
  isRecord(value)
    ? Object.entries(value).map(([key, item]) => [key, textOf(item)])
    : textsOf(value).map((text) => {
        const at = text.search(separator);
        return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
      });

/** The DNS label nearest to a name. */
export const toDnsLabel = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 63)
    .replace(/^-+|-+$/g, "") || "x";

/** The `mountPropagation` of a bind: that of Kubernetes is recursive. */
export function propagationOf(mode: string | undefined, isPrivileged: boolean, notes: ImportNotes, at: string): object {
  if (mode === "rslave" || (mode === "rshared" && isPrivileged))
    return { mountPropagation: mode === "rslave" ? "HostToContainer" : "Bidirectional" };
  if (mode === "rshared" || mode === "shared" || mode === "slave") {
    const carried = mode === "slave" ? "write rslave" : "write rshared, in a privileged container";
    notes.add(at, `the propagation ${mode} is not carried over: ${carried}`);
  }
  return {};
}

/** `base`, or with a number behind it when it is taken; takes it. */
export function uniqueName(base: string, taken: Set<string>): string {
  let name = base;
  for (let count = 2; taken.has(name); count++) name = `${base.slice(0, 58)}-${count}`;
  taken.add(name);
  return name;
}

/** The members that are neither undefined nor empty. */
export const present = <T>(members: { readonly [name: string]: T | undefined }): { [name: string]: T } =>
  Object.fromEntries(
    Object.entries(members).flatMap(([name, value]) => {
      const isEmpty = typeof value === "object" && Object.keys(value as object).length === 0;
      return value === undefined || value === "" || isEmpty ? [] : [[name, value] as const];
    }),
  );

export interface ImportedPort {
  containerPort: number;
  hostPort?: number;
  hostIP?: string;
  protocol?: string;
}

/** @param protocol of any case */
export const toPort = (containerPort: number, hostPort?: number, hostIP = "", protocol = "TCP"): ImportedPort => ({
  containerPort,
  ...(hostPort !== undefined && { hostPort }),
  ...(hostPort !== undefined && !["", "0.0.0.0", "::"].includes(hostIP) && { hostIP }),
  ...(protocol.toUpperCase() !== "TCP" && { protocol: protocol.toUpperCase() }),
});

/** Quantities by the name of their resource. */
type Amounts = Readonly<Record<string, string>>;

/** A service as a container of a pod. Members that are absent or empty leave their fields out. */
export interface Member {
  name: string;
  /** In the words of Compose. */
  service: JsonMap;
  notes: ImportNotes;
  /** Fields of the container that need no more than their names. */
  fields: object;
  variables: ReadonlyMap<string, string>;
  mounts: readonly object[];
  /** Ports of the machine that lead to all pods of a Deployment. */
  published?: readonly ImportedPort[];
  limits: Amounts;
  requests: Amounts;
  labels: readonly (readonly [key: string, value: string])[];
  /** Groups, or else users, that files of its ConfigMaps and Secrets are for. */
  fileGroups: readonly string[];
}

/** A pod without its containers, which is what its first service asks for. */
interface PodSettings {
  name: string;
  /** Pods of a Deployment; absent for a pod. */
  replicas: number | undefined;
  sharesProcesses: boolean;
  annotations: Readonly<Record<string, string>>;
  /** `name=address` or `name:address`. */
  hosts: readonly string[];
  /** The address of the machine that `host-gateway` means; undefined when it is not known. */
  hostGateway?: string | undefined;
  volumes: PodVolumes;
}

/**
 * @param before containers that run one after another before the others start
 * @returns the pod or the Deployment, preceded by the Secrets with the variables of its containers
 */
export function toPodManifests(
  pod: PodSettings,
  members: readonly [Member, ...Member[]],
  before: readonly Member[],
): object[] {
  const secrets: object[] = [];
  const [{ service }] = members;
  const withSecret = (member: Member) => {
    const { env, secret } = toVariables(member.variables, `${member.name}-env`);
    if (secret) secrets.push(secret);
    return toContainer(member, env);
  };
  const [initContainers, containers] = [before.map(withSecret), members.map(withSecret)];
  const stopSeconds = members.flatMap((member) => toSeconds(textOf(member.service.stop_grace_period) ?? "10s") ?? []);
  const { labels, annotations } = splitLabels(members);
  const nameservers = textsOf(service.dns);
  const dnsOptions = textsOf(service.dns_opt).map((option) => {
    const [name, value] = option.split(":");
    return { name, ...(value !== undefined && { value }) };
  });
  const manifest = {
    metadata: present({
      name: pod.name,
      labels,
      annotations: present({ ...annotations, ...pod.volumes.annotations(), ...pod.annotations }),
    }),
    spec: present({
      os: members.some((member) => member.service.stop_signal) ? { name: "linux" } : {},
      hostNetwork: service.network_mode === "host" || undefined,
      hostPID: service.pid === "host" || undefined,
      hostIPC: service.ipc === "host" || undefined,
      shareProcessNamespace: pod.sharesProcesses || undefined,
      runtimeClassName: service.runtime === "runc" ? undefined : textOf(service.runtime),
      hostAliases: toHostAliases(pod, members[0]),
      dnsPolicy: nameservers.length > 0 ? "None" : undefined,
      dnsConfig: present({ nameservers, searches: textsOf(service.dns_search), options: dnsOptions }),
      ...hostnameOf(members[0]),
      securityContext: podSecurityOf(members),
      // Variables of Services would be added to those that are given.
      enableServiceLinks: false,
      initContainers,
      containers,
      volumes: pod.volumes.volumes,
      restartPolicy: pod.replicas === undefined ? restartPolicyOf(members) : "Always",
      terminationGracePeriodSeconds: stopSeconds.length > 0 ? Math.max(...stopSeconds) : undefined,
    }),
  };
  if (pod.replicas === undefined) return [...secrets, { apiVersion: "v1", kind: "Pod", ...manifest }];
  return [...secrets, ...toDeployment(pod.name, pod.replicas, manifest, members)];
}

/** The label by which a Deployment and its Service know their pods. */
const NAME_LABEL = "app.kubernetes.io/name";

/** @returns the Deployment, and a Service that publishes the ports of its pods on the machine */
function toDeployment(
  name: string,
  replicas: number,
  { metadata, spec }: { metadata: { labels?: object; annotations?: object }; spec: object },
  members: readonly Member[],
): object[] {
  const matchLabels = { [NAME_LABEL]: name };
  const template = {
    metadata: present({ labels: { ...metadata.labels, ...matchLabels }, annotations: metadata.annotations }),
    spec,
  };
  const deployment = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name },
    spec: { replicas, selector: { matchLabels }, template },
  };
  for (const { service, notes } of members) {
    const restart = restartOf(service);
    if (!/^(always|unless-stopped)$/.test(restart)) {
      notes.add("restart", `${restart} is not carried over: containers of a Deployment are always restarted`);
    }
  }
  const ports = members.flatMap((member) => member.published ?? []);
  if (ports.length === 0) return [deployment];
  const service = {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: `${name}-published` },
    spec: {
      type: "LoadBalancer",
      selector: matchLabels,
      ports: ports.map(({ containerPort, hostPort, protocol }) => ({
        name: `p${hostPort}${protocol === undefined ? "" : `-${protocol.toLowerCase()}`}`,
        port: hostPort,
        targetPort: containerPort,
        ...(protocol !== undefined && { protocol }),
      })),
    },
  };
  return [deployment, service];
}

function toContainer(given: Member, env: object[]): object {
  const { name, service, fields, limits, requests, mounts } = given;
  // `docker run --stop-signal` takes `INT` too.
  const stopSignal = textOf(service.stop_signal)?.replace(/^(?!SIG|\d|$)/, "SIG");
  return present({
    name,
    ...fields,
    workingDir: textOf(service.working_dir),
    env,
    resources: present({ limits, requests: requestsOf(limits, requests) }),
    ...probesOf(given),
    securityContext: containerSecurityOf(given),
    volumeMounts: mounts,
    tty: isTrue(service.tty) || undefined,
    stdin: isTrue(service.stdin_open) || undefined,
    stdinOnce: isTrue(service["x-stdin-once"]) || undefined,
    lifecycle: present({ ...hooksOf(given), stopSignal }),
  });
}

/** The commands after the start and before the stop: a container has one of each. */
function hooksOf({ service, notes }: Member): { [name: string]: object | undefined } {
  const hookOf = (key: "post_start" | "pre_stop") => {
    const [hook, ...others] = listOf(service[key]);
    const command = isRecord(hook) ? wordsOf(hook.command) : undefined;
    if (others.length > 0) notes.add(key, "only the first command is carried over: a container has one");
    return command && { exec: { command } };
  };
  return { postStart: hookOf("post_start"), preStop: hookOf("pre_stop") };
}

/**
 * Docker reserves nothing for a limit; without a request Kubernetes would reserve all of it, and refuse pods beyond the node.
 * A request above the limit is invalid; Docker allows it.
 */
function requestsOf(limits: Amounts, requests: Amounts): Amounts {
  const within = ([name, request]: readonly [string, string]) => {
    const [asked, limit] = [parseQuantity(request), parseQuantity(limits[name] ?? "")];
    return [name, asked && limit && compareQuantities(asked, limit) > 0 ? limits[name] : request];
  };
  const unreserved = ["cpu", "memory"].flatMap((name) => (name in limits ? [[name, "0"]] : []));
  return Object.fromEntries([...unreserved, ...Object.entries(requests).map(within)]);
}

/** User, capabilities, privileges and security options as a container's securityContext. */
function containerSecurityOf(given: Member): object {
  const { service, notes } = given;
  const [user = "", privileged] = [textOf(service.user), isTrue(service.privileged)];
  const ids = /^(\d+)(?::(\d+))?$/.exec(user.replace(/\broot\b/g, "0"));
  if (user !== "" && !ids) notes.add("user", `${user} is not a number: set runAsUser and runAsGroup`);
  if (privileged) notes.add("privileged", "start kubelet-ts with --allow-privileged");
  const bare = (names: Json | undefined) => textsOf(names).map((name) => name.replace(/^CAP_/, ""));
  return present({
    ...(ids && { runAsUser: Number(ids[1]), ...(ids[2] !== undefined && { runAsGroup: Number(ids[2]) }) }),
    capabilities: present({ add: bare(service.cap_add), drop: bare(service.cap_drop) }),
    privileged: privileged || undefined,
    readOnlyRootFilesystem: isTrue(service.read_only) || undefined,
    ...securityOptionsOf(given),
  });
}

function securityOptionsOf({ service, notes }: Member): object {
  const result: Record<string, unknown> = {};
  const labels: Record<string, string> = {};
  for (const option of textsOf(service.security_opt)) {
    const [, name = "", value = ""] = /^([^=:]+)[=:]?(.*)$/s.exec(option) ?? [];
    const label = /^(user|role|type|level):(.*)$/.exec(value);
    if (name === "no-new-privileges") {
      if (value !== "false") result.allowPrivilegeEscalation = false;
    } else if (name === "apparmor") {
      result.appArmorProfile =
        value === "unconfined" ? { type: "Unconfined" } : { type: "Localhost", localhostProfile: value };
    } else if (name === "seccomp" && value === "unconfined") result.seccompProfile = { type: "Unconfined" };
    else if (name === "systempaths" && value === "unconfined") result.procMount = "Unmasked";
    else if (name === "seccomp" && value === "builtin") result.seccompProfile = { type: "RuntimeDefault" };
    // The type of processes that SELinux leaves alone.
    else if (name === "label" && value === "disable") labels.type = "spc_t";
    else if (name === "label" && label) labels[label[1]!] = label[2]!;
    else if (name === "seccomp") {
      const message = "put the profile below <root-dir>/seccomp and set seccompProfile.localhostProfile";
      notes.add(`security_opt.${name}`, message);
    } else notes.add(`security_opt.${name}`, "is not carried over");
  }
  return { ...result, seLinuxOptions: labels };
}

function podSecurityOf(members: readonly [Member, ...Member[]]): object {
  const sysctls = new Map<string, string>();
  const groups = new Set<number>();
  const [fileGroup, ...others] = new Set(members.flatMap((member) => member.fileGroups));
  const [{ notes }] = members;
  for (const other of others)
    notes.add("gid", `${other} is not carried over: files of a pod have one group (${fileGroup})`);
  for (const member of members) {
    for (const [name, value = ""] of pairsOf(member.service.sysctls)) {
      sysctls.set(name, value);
      if (!SAFE_SYSCTLS.includes(name)) {
        member.notes.add(`sysctls.${name}`, `start kubelet-ts with --allowed-unsafe-sysctls=${name}`);
      }
    }
    for (const group of textsOf(member.service.group_add)) {
      if (/^\d+$/.test(group)) groups.add(Number(group));
      else member.notes.add(`group_add.${group}`, "is not a number: set supplementalGroups");
    }
  }
  const list = Array.from(sysctls, ([name, value]) => ({ name, value }));
  const fsGroup = fileGroup === undefined ? undefined : Number(fileGroup);
  return present({ sysctls: list, fsGroup, supplementalGroups: [...groups] });
}

/** As a restart policy of Docker: `always`, `on-failure:3`. */
function restartOf({ restart, deploy }: JsonMap): string {
  const policy = isRecord(deploy) && isRecord(deploy.restart_policy) ? deploy.restart_policy : {};
  const condition = textOf(policy.condition);
  if (condition === "any") return "always";
  const written = textOf(restart) ?? "no";
  return condition === "on-failure" && !/^(always|unless-stopped|on-failure)/.test(written) ? condition : written;
}

function restartPolicyOf(members: readonly [Member, ...Member[]]): string {
  const policies = members.map(({ service, notes }) => {
    const [name, attempts] = restartOf(service).split(":");
    if (attempts !== undefined) notes.add("restart", "attempts are not limited: delays grow to five minutes");
    return name;
  });
  const names = new Set(policies);
  if (names.size > 1) members[0].notes.add("restart", "a pod has one restartPolicy: the strongest is used");
  if (names.has("always") || names.has("unless-stopped")) return "Always";
  return names.has("on-failure") ? "OnFailure" : "Never";
}

/** A host name with dots is an override; one that Kubernetes has no such names for is the nearest label. */
function hostnameOf({ service, notes }: Member): object {
  const hostname = textOf(service.hostname) ?? "";
  const label = toDnsLabel(hostname);
  if (hostname === "" || label === hostname) return hostname === "" ? {} : { hostname };
  const isDomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$/.test(hostname);
  if (isDomain && hostname.length <= 64 && service.network_mode !== "host") return { hostnameOverride: hostname };
  notes.add("hostname", `${hostname} is not a DNS name: the host name is ${label}`);
  return { hostname: label };
}

function toHostAliases({ hosts, hostGateway }: PodSettings, { notes }: Member): object[] {
  return hosts.flatMap((entry) => {
    const [, hostname = "", address = ""] = /^([^=:]+)[=:](.*)$/.exec(entry) ?? [];
    const isGateway = address === "host-gateway" && hostGateway !== undefined;
    const ip = isGateway ? hostGateway : address.replace(/^\[|\]$/g, "");
    if (isGateway) notes.add("extra_hosts", `${hostname} is ${ip}, the address of docker0 on this machine`);
    if (/^[\d.]+$|:/.test(ip)) return [{ ip, hostnames: [hostname] }];
    notes.add("extra_hosts", `${entry} is not carried over: the address must be given`);
    return [];
  });
}

const MAX_FAILURES = 2 ** 31 - 1;

/**
 * A health check as a readiness probe: it only reports and does not restart the container. With an interval of its own until the
 * first success, which a startup probe has that never gives up.
 */
function probesOf({ service: { healthcheck: check }, notes }: Member): object {
  if (!isRecord(check) || isTrue(check.disable)) return {};
  const test = typeof check.test === "string" ? ["CMD-SHELL", check.test] : textsOf(check.test ?? []);
  const [kind, ...words] = test;
  if (kind === undefined || kind === "NONE") return {};
  const message = "becomes a readinessProbe, which only reports: use a livenessProbe to restart the container";
  notes.add("healthcheck", message);
  const probe = {
    exec: { command: (kind === "CMD-SHELL" ? ["/bin/sh", "-c", words.join(" ")] : words).map(withoutExpansion) },
    periodSeconds: toSeconds(textOf(check.interval) ?? "30s") ?? 30,
    timeoutSeconds: toSeconds(textOf(check.timeout) ?? "30s") ?? 30,
  };
  const hasStart = toSeconds(textOf(check.start_period) ?? "") !== undefined;
  const startSeconds = hasStart ? toSeconds(textOf(check.start_interval) ?? "") : undefined;
  return {
    ...(startSeconds && { startupProbe: { ...probe, periodSeconds: startSeconds, failureThreshold: MAX_FAILURES } }),
    readinessProbe: { ...probe, failureThreshold: Number(textOf(check.retries) ?? 3) },
  };
}

const LOGS_ARE_FILES =
  "is not carried over: logs of pods are files (json-file), of which max-size and max-file can be set";

/** The log options that a pod may have. */
function logOptionsOf({ service: { logging }, notes }: Member): string[] {
  const { driver, options } = isRecord(logging) ? logging : {};
  const isFile = ["json-file", "local", undefined].includes(textOf(driver));
  if (!isFile) notes.add("logging.driver", LOGS_ARE_FILES);
  return pairsOf(options ?? []).flatMap(([name, value = ""]) => {
    if (isFile && parseLogOptions(`${name}=${value}`) !== undefined) return [`${name}=${value}`];
    notes.add(`logging.options.${name}`, LOGS_ARE_FILES);
    return [];
  });
}

/** `nofile=1024:65536`. */
const ulimitsOf = ({ service: { ulimits } }: Member): string[] =>
  Object.entries(isRecord(ulimits) ? ulimits : {}).map(
    ([limit, value]) =>
      `${limit}=${isRecord(value) ? `${textOf(value.soft)}:${textOf(value.hard)}` : (textOf(value) ?? "")}`,
  );

const QUALIFIED_NAME = /^(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const LABEL_VALUE = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

/** Docker's labels, on the containers, and on the pod where Kubernetes has such labels; limits of processes; options of logs; an init process. */
function splitLabels(members: readonly Member[]) {
  const given = members.flatMap((member) => member.labels);
  const labels = given.filter(([key, value]) => QUALIFIED_NAME.test(key) && LABEL_VALUE.test(value));
  const lines = given.map(([key, value]) => `${key}=${value}`);
  const usable = lines.filter((line) => !line.includes("\n") && !requiredFormat(CONTAINER_LABELS_ANNOTATION, line));
  if (usable.length < lines.length) {
    const [{ notes }] = members as [Member];
    for (const line of lines.filter((one) => !usable.includes(one)))
      notes.add(`labels.${line.split("=", 1)[0]}`, "is not carried over");
  }
  const ulimits = members.flatMap(ulimitsOf);
  const logOptions = new Map(members.flatMap(logOptionsOf).map((option) => [option.split("=", 1)[0], option]));
  const annotations = {
    ...(usable.length > 0 && { [CONTAINER_LABELS_ANNOTATION]: usable.join("\n") }),
    ...(ulimits.length > 0 && { [ULIMITS_ANNOTATION]: ulimits.join(",") }),
    ...(logOptions.size > 0 && { [LOG_OPTIONS_ANNOTATION]: [...logOptions.values()].join(",") }),
    ...(members.some(({ service }) => isTrue(service.init)) && { [INIT_ANNOTATION]: "true" }),
  };
  return { labels: Object.fromEntries(labels), annotations };
}

/** Names of environment variables whose values are likely to be secret. */
const SECRET_NAME = /PASS(?:WORD|WD|PHRASE)?(?:$|_)|SECRET|TOKEN|API_?KEY|(?:^|_)KEY(?:$|_)|CREDENTIAL/i;
/** A URL with a password: `postgres://user:password@host`. */
const SECRET_VALUE = /:\/\/[^\s/:@]*:[^\s/@]+@/;

/** Variables of a container. Values that look secret are moved to a Secret of that name. */
function toVariables(variables: ReadonlyMap<string, string>, secretName: string) {
  const stringData: Record<string, string> = {};
  const env = [...variables].map(([name, value]) => {
    const isSecret = SECRET_NAME.test(name) || SECRET_VALUE.test(value);
    if (value === "" || !isSecret || !/^[-._a-zA-Z0-9]+$/.test(name)) return { name, value: withoutExpansion(value) };
    stringData[name] = value;
    return { name, valueFrom: { secretKeyRef: { name: secretName, key: name } } };
  });
  const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: secretName }, stringData };
  return { env, secret: Object.keys(stringData).length > 0 ? secret : undefined };
}

/** A device of the machine, with its type as hostPath names it. */
export interface HostDevice {
  path: string;
  type: "CharDevice" | "BlockDevice";
}
/** The device of that path, or those below a directory; none for anything else. */
export type FindDevices = (path: string) => readonly HostDevice[];

export interface VolumeMount {
  name: string;
  mountPath: string;
}

/** Volumes of one pod. */
export class PodVolumes {
  readonly volumes: object[] = [];
  /** Names of the volumes that start with the files of the image. */
  readonly filled = new Set<string>();
  /** Modes, owners and mount options of emptyDirs: `run:mode=0755`. */
  readonly emptyDirOptions: string[] = [];
  readonly #taken = new Set<string>();
  /** Names of the volumes by their source, so that containers of one pod share them. */
  readonly #names = new Map<string, string>();

  /** A mount of a volume, which is added unless the pod has it. A directory of its own is never shared. */
  mount(mountPath: string, source: object, extra: object = {}): VolumeMount {
    const key = JSON.stringify(source) + ("emptyDir" in source ? this.volumes.length : "");
    const name = this.#names.getOrInsertComputed(key, () => {
      const name = uniqueName(toDnsLabel(mountPath), this.#taken);
      this.volumes.push({ name, ...source });
      return name;
    });
    return { name, mountPath, ...extra };
  }

  /** Annotations of the pod about its volumes; empty texts for those that it does not need. */
  annotations() {
    return {
      [FILL_VOLUMES_ANNOTATION]: [...this.filled].join(","),
      [EMPTY_DIR_OPTIONS_ANNOTATION]: this.emptyDirOptions.join(";"),
    };
  }
}

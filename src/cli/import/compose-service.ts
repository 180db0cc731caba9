import { isRecord, type Json } from "../../base/text/json.ts";
import { SAFE_SYSCTLS } from "../../plan/sysctls.ts";
import { parseEnvFile, splitWords, toQuantity, toSeconds } from "./compose-text.ts";
import { ComposeVolumes, type VolumeContext } from "./compose-volumes.ts";
import { adviceOf } from "./docker-settings.ts";
import { type ImportNotes, textOf, textsOf, toDnsLabel, withoutExpansion } from "./import-notes.ts";
import { labelKind, probeOf, some, toDnsConfig, toHostAliases, toVariables } from "./pod-parts.ts";

interface ServiceContext extends VolumeContext {
  /** All services of the file. */
  services: { readonly [name: string]: Json };
  /** Gets the Docker volumes that the pods use by name. */
  claims: Set<string>;
  /** The Docker network in which the pods find each other; absent for a single service. */
  network?: string;
}

type Service = { readonly [key: string]: Json };

/** Image of the init containers that wait for other services. */
const WAIT_IMAGE = "busybox:1.35";

/** @returns the pod of a service, preceded by the ConfigMaps and Secrets it needs */
export function toServiceManifests(
  name: string,
  service: Service,
  context: ServiceContext,
  notes: ImportNotes,
): object[] {
  const path = `services.${name}`;
  const podName = toDnsLabel(name);
  noteServiceKeys(service, path, notes);
  if (podName !== name) notes.add(path, `the pod is named ${podName}: other services reach it by that name only`);
  const volumes = new ComposeVolumes(podName, context, notes);
  volumes.addVolumes(service.volumes ?? null, path);
  volumes.addTmpfs(service.tmpfs ?? null, path);
  volumes.addDevices(service.devices ?? null, path);
  volumes.addFiles("configs", service.configs ?? null, path);
  volumes.addFiles("secrets", service.secrets ?? null, path);
  const shmSize = textOf(service.shm_size);
  if (shmSize !== undefined) volumes.addMemory("/dev/shm", shmSize);
  const { env, secret } = toVariables(variablesOf(service, context, path, notes), `${podName}-env`);
  const container = {
    name: podName,
    image: imageOf(name, service, context, notes),
    imagePullPolicy: PULL_POLICIES[textOf(service.pull_policy) ?? ""] ?? "IfNotPresent",
    ...some("command", commandOf(service.entrypoint)),
    ...some("args", commandOf(service.command)),
    ...some("workingDir", textOf(service.working_dir)),
    ...some("env", env),
    ...some(
      "ports",
      service.network_mode === "host"
        ? []
        : toContainerPorts(service.ports ?? null, service.expose ?? null, path, notes),
    ),
    ...some("resources", resourcesOf(service, path, notes)),
    ...some("readinessProbe", probeOf(service.healthcheck, `${path}.healthcheck`, notes)),
    ...some("securityContext", containerSecurityOf(service, path, notes)),
    ...some("volumeMounts", volumes.mounts),
    ...(service.tty === true && { tty: true }),
    ...(service.stdin_open === true && { stdin: true }),
    ...(service.stop_signal ? { lifecycle: { stopSignal: textOf(service.stop_signal) } } : {}),
  };
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: podName, ...metadataOf(service, context, path, notes) },
    spec: {
      ...(service.stop_signal ? { os: { name: "linux" } } : {}),
      ...networkOf(service, path, notes),
      ...some("hostname", service.hostname === undefined ? undefined : toDnsLabel(textOf(service.hostname) ?? "")),
      ...some("securityContext", podSecurityOf(service, path, notes)),
      ...some("initContainers", waitingContainersOf(service, context, path, notes)),
      containers: [container],
      ...some("volumes", volumes.volumes),
      restartPolicy: restartPolicyOf(service, path, notes),
      ...some("terminationGracePeriodSeconds", toSeconds(textOf(service.stop_grace_period) ?? "10s")),
    },
  };
  if (textOf(service.container_name) !== undefined)
    notes.add(`${path}.container_name`, "names of containers follow from the pod");
  for (const claim of volumes.claims) context.claims.add(claim);
  return [...volumes.documents, ...(secret ? [secret] : []), pod];
}

const PULL_POLICIES: Readonly<Record<string, string>> = { always: "Always", never: "Never" };

function imageOf(name: string, service: Service, { project }: ServiceContext, notes: ImportNotes): string {
  const image = textOf(service.image);
  if (service.build !== undefined) {
    notes.add(`services.${name}.build`, "images are not built: run `docker compose build` first");
  }
  return image ?? `${project}-${name}`;
}

const commandOf = (command: Json | undefined): string[] | undefined => {
  if (command === undefined || command === null) return undefined;
  return (typeof command === "string" ? splitWords(command) : textsOf(command)).map(withoutExpansion);
};

function variablesOf(service: Service, context: ServiceContext, path: string, notes: ImportNotes): Map<string, string> {
  const variables = new Map<string, string>();
  const files = Array.isArray(service.env_file) ? service.env_file : [service.env_file ?? []].flat();
  for (const file of files) {
    const name = isRecord(file) ? (textOf(file.path) ?? "") : (textOf(file) ?? "");
    const text = context.readFile(name.startsWith("/") ? name : `${context.directory}/${name}`);
    if (text !== undefined) for (const [key, value] of parseEnvFile(text)) variables.set(key, value);
    else if (!isRecord(file) || file.required !== false) notes.add(`${path}.env_file`, `${name} cannot be read`);
  }
  for (const [key, value] of pairsOf(service.environment)) {
    const found = value ?? context.environment.get(key);
    if (found !== undefined) variables.set(key, found);
    else notes.add(`${path}.environment.${key}`, "has no value, neither here nor in the environment");
  }
  return variables;
}

/** Labels and annotations, and the network. */
function metadataOf(service: Service, { network }: ServiceContext, path: string, notes: ImportNotes): object {
  const labels: Record<string, string> = {};
  const annotations: Record<string, string> = {};
  const written = pairsOf(service.labels);
  for (const [key, value = ""] of written) {
    const kind = labelKind(key, value);
    if (kind === undefined) notes.add(`${path}.labels.${key}`, "is not a label for Kubernetes");
    else if (kind === "label") labels[key] = value;
    else annotations[key] = value;
  }
  if (written.length > 0) {
    const message = "labels of the pod are not labels of its container: programs that read Docker's labels miss them";
    notes.add(`${path}.labels`, message);
  }
  for (const [key, value = ""] of pairsOf(service.annotations)) annotations[key] = value;
  if (network !== undefined && service.network_mode === undefined) annotations["kubelet-ts.io/network"] = network;
  return { ...some("labels", labels), ...some("annotations", annotations) };
}

/** A map, or a list of `NAME=value`; without a value undefined. */
const pairsOf = (value: Json | undefined): [string, string | undefined][] =>
  isRecord(value)
    ? Object.entries(value).map(([key, item]) => [key, textOf(item)])
    : textsOf(value).map((text) => {
        const at = text.indexOf("=");
        return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
      });

function networkOf(service: Service, path: string, notes: ImportNotes): object {
  const mode = textOf(service.network_mode);
  if (mode === "none") notes.add(`${path}.network_mode`, "none is not carried over: every pod has a network");
  else if (mode !== undefined && mode !== "host" && mode !== "bridge") {
    notes.add(
      `${path}.network_mode`,
      `${mode} is not carried over: containers that share a network are containers of one pod`,
    );
  }
  const hostname = textOf(service.hostname);
  if (hostname !== undefined && toDnsLabel(hostname) !== hostname) {
    notes.add(`${path}.hostname`, `${hostname} is not a DNS label: the host name is ${toDnsLabel(hostname)}`);
  }
  const networks = isRecord(service.networks) ? Object.keys(service.networks) : textsOf(service.networks ?? []);
  if (networks.some((name) => name !== "default")) {
    notes.add(`${path}.networks`, "all services are in one network; aliases and fixed addresses are not carried over");
  }
  const hosts = isRecord(service.extra_hosts)
    ? Object.entries(service.extra_hosts).map(([name, ip]) => `${name}=${textOf(ip) ?? ""}`)
    : textsOf(service.extra_hosts ?? []);
  return {
    ...(mode === "host" && { hostNetwork: true }),
    ...(service.pid === "host" && { hostPID: true }),
    ...(service.ipc === "host" && { hostIPC: true }),
    ...some("hostAliases", toHostAliases(hosts, `${path}.extra_hosts`, notes)),
    ...toDnsConfig(textsOf(service.dns ?? []), textsOf(service.dns_search ?? []), textsOf(service.dns_opt ?? [])),
  };
}

function restartPolicyOf(service: Service, path: string, notes: ImportNotes): string {
  const restart = textOf(service.restart) ?? "no";
  const condition =
    isRecord(service.deploy) && isRecord(service.deploy.restart_policy)
      ? textOf(service.deploy.restart_policy.condition)
      : undefined;
  if (condition === "any" || restart === "always" || restart === "unless-stopped") return "Always";
  if (condition === "on-failure" || restart.startsWith("on-failure")) {
    if (restart.includes(":"))
      notes.add(`${path}.restart`, "the number of attempts is not limited: delays grow up to five minutes");
    return "OnFailure";
  }
  return "Never";
}

function resourcesOf(service: Service, path: string, notes: ImportNotes): object {
  const deploy = isRecord(service.deploy) ? service.deploy : {};
  const replicas = textOf(deploy.replicas);
  if (replicas !== undefined && replicas !== "1")
    notes.add(`${path}.deploy.replicas`, `one pod is written, not ${replicas}`);
  for (const key of Object.keys(deploy)) {
    if (!["resources", "replicas", "restart_policy"].includes(key))
      notes.add(`${path}.deploy.${key}`, "is not carried over");
  }
  const resources = isRecord(deploy.resources) ? deploy.resources : {};
  for (const [list, values] of Object.entries(resources)) {
    for (const key of isRecord(values) ? Object.keys(values) : []) {
      if (key === "cpus" || key === "memory") continue;
      const advice = adviceOf(key === "pids" ? "PidsLimit" : key === "devices" ? "DeviceRequests" : "");
      notes.add(`${path}.deploy.resources.${list}.${key}`, advice);
    }
  }
  const listOf = (source: Json | undefined, memory: Json | undefined, cpus: Json | undefined) => {
    const list = isRecord(source) ? source : {};
    const size = textOf(list.memory ?? memory);
    const quantity = size === undefined ? undefined : toQuantity(size);
    return { ...some("cpu", textOf(list.cpus ?? cpus)), ...some("memory", quantity) };
  };
  return {
    ...some("limits", listOf(resources.limits, service.mem_limit, service.cpus)),
    ...some("requests", listOf(resources.reservations, service.mem_reservation, undefined)),
  };
}

function containerSecurityOf(service: Service, path: string, notes: ImportNotes): object {
  const user = textOf(service.user);
  const ids = user === undefined ? undefined : /^(\d+)(?::(\d+))?$/.exec(user);
  if (user !== undefined && !ids) notes.add(`${path}.user`, `${user} is not a number: set runAsUser and runAsGroup`);
  if (service.privileged === true) notes.add(`${path}.privileged`, "start kubelet-ts with --allow-privileged");
  const options = textsOf(service.security_opt ?? []);
  const hasNoNewPrivileges = options.some((option) => /^no-new-privileges(?:[:=]true)?$/.test(option));
  if (options.some((option) => !option.startsWith("no-new-privileges"))) {
    notes.add(`${path}.security_opt`, "set seccompProfile, appArmorProfile or seLinuxOptions");
  }
  return {
    ...(ids && { runAsUser: Number(ids[1]), ...(ids[2] !== undefined && { runAsGroup: Number(ids[2]) }) }),
    ...some("capabilities", {
      ...some("add", textsOf(service.cap_add ?? [])),
      ...some("drop", textsOf(service.cap_drop ?? [])),
    }),
    ...(service.privileged === true && { privileged: true }),
    ...(service.read_only === true && { readOnlyRootFilesystem: true }),
    ...(hasNoNewPrivileges && { allowPrivilegeEscalation: false }),
  };
}

function podSecurityOf(service: Service, path: string, notes: ImportNotes): object {
  const sysctls = isRecord(service.sysctls)
    ? Object.entries(service.sysctls).map(([name, value]) => ({ name, value: textOf(value) ?? "" }))
    : textsOf(service.sysctls ?? []).map((text) => ({ name: text.split("=")[0]!, value: text.split("=")[1] ?? "" }));
  for (const { name } of sysctls) {
    if (!SAFE_SYSCTLS.includes(name)) {
      notes.add(`${path}.sysctls.${name}`, `start kubelet-ts with --allowed-unsafe-sysctls=${name}`);
    }
  }
  const groups = textsOf(service.group_add ?? []);
  if (groups.some((group) => !/^\d+$/.test(group))) notes.add(`${path}.group_add`, "only numbers are carried over");
  return {
    ...some("sysctls", sysctls),
    ...some("supplementalGroups", groups.filter((group) => /^\d+$/.test(group)).map(Number)),
  };
}

/** `depends_on`: init containers that wait until a port of the other service accepts connections. */
function waitingContainersOf(service: Service, context: ServiceContext, path: string, notes: ImportNotes): object[] {
  const names = isRecord(service.depends_on) ? Object.keys(service.depends_on) : textsOf(service.depends_on ?? []);
  return names.flatMap((name) => {
    const other = context.services[name];
    const port =
      isRecord(other) && context.network !== undefined && service.network_mode === undefined
        ? firstPortOf(other)
        : undefined;
    if (port === undefined) {
      notes.add(
        `${path}.depends_on.${name}`,
        "pods have no order, and the service has no TCP port to wait for: let the client try again",
      );
      return [];
    }
    const host = toDnsLabel(name);
    // Not every build of busybox has `nc -z`.
    const command = ["/bin/sh", "-c", `until nc -w 1 ${host} ${port} -e /bin/true; do sleep 1; done`];
    return [{ name: toDnsLabel(`wait-for-${name}`), image: WAIT_IMAGE, imagePullPolicy: "IfNotPresent", command }];
  });
}

/** The first TCP port of a service, published or not. */
function firstPortOf(service: Service): number | undefined {
  const silent = { lines: [], add() {} } as unknown as ImportNotes;
  const ports = toContainerPorts(service.ports ?? null, service.expose ?? null, "", silent) as {
    containerPort: number;
    protocol?: string;
  }[];
  return ports.find(({ protocol }) => protocol === undefined)?.containerPort;
}

const MAX_PORTS = 1000;

/** `ports` and `expose` of a service as container ports. */
function toContainerPorts(ports: Json, expose: Json, path: string, notes: ImportNotes): object[] {
  const result = (Array.isArray(ports) ? ports : []).flatMap((port, index) =>
    toPorts(port, `${path}.ports[${index}]`, notes),
  );
  const taken = new Set(result.map((port) => JSON.stringify([port.containerPort, port.protocol])));
  for (const port of Array.isArray(expose) ? expose : []) {
    const [number = "", protocol = "tcp"] = (textOf(port) ?? "").split("/");
    for (const containerPort of toRange(number)) {
      const key = JSON.stringify([containerPort, protocol.toUpperCase()]);
      if (!taken.has(key)) result.push({ containerPort, protocol: protocol.toUpperCase() });
      taken.add(key);
    }
  }
  return result.map(({ protocol, ...port }) => ({ ...port, ...(protocol !== "TCP" && { protocol }) }));
}

interface Port {
  containerPort: number;
  hostPort?: number;
  hostIP?: string;
  protocol: string;
}

function toPorts(port: Json, path: string, notes: ImportNotes): Port[] {
  const parts = isRecord(port)
    ? {
        target: textOf(port.target),
        published: textOf(port.published),
        ip: textOf(port.host_ip),
        protocol: textOf(port.protocol),
      }
    : parseShort(textOf(port) ?? "");
  const targets = toRange(parts.target ?? "");
  const published = toRange(parts.published ?? "");
  const protocol = (parts.protocol ?? "tcp").toUpperCase();
  if (targets.length === 0 || !["TCP", "UDP", "SCTP"].includes(protocol)) {
    notes.add(path, "is not a port and is not carried over");
    return [];
  }
  if (published.length === 0)
    notes.add(path, "has no published port, which Docker would choose: set hostPort to publish it");
  else if (published.length !== targets.length) {
    notes.add(path, `has ${published.length} published ports for ${targets.length}: the first ones are used`);
  }
  return targets.map((containerPort, index) => ({
    containerPort,
    protocol,
    ...(published[index] !== undefined && { hostPort: published[index] }),
    ...(published[index] !== undefined && parts.ip && parts.ip !== "0.0.0.0" && { hostIP: parts.ip }),
  }));
}

/** `[[ip:]published:]target[/protocol]`. */
function parseShort(text: string) {
  const [address = "", protocol] = text.split("/");
  const match = /^(?:(?:(\[[^\]]*\]|[^:]*):)?([^:]*):)?([^:]+)$/.exec(address);
  return { ip: match?.[1]?.replace(/^\[|\]$/g, ""), published: match?.[2], target: match?.[3], protocol };
}

/** `80` or `3000-3005`. */
function toRange(text: string): number[] {
  const match = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text.trim());
  if (!match) return [];
  const first = Number(match[1]);
  const last = Number(match[2] ?? match[1]);
  if (first < 1 || last > 65_535 || last < first || last - first >= MAX_PORTS) return [];
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

const RESOLVE = "is not carried over: give the output of `docker compose config` instead of this file";
const NAMES = "is not carried over: pods find each other by their names, in the network of the project";

/** Keys that are read elsewhere; every other key is named in a note. */
const READ_KEYS = new Set(
  `image build command entrypoint environment env_file ports expose volumes tmpfs configs secrets restart healthcheck deploy
  mem_limit mem_reservation cpus network_mode networks user cap_add cap_drop privileged read_only security_opt sysctls
  group_add pid ipc shm_size devices extra_hosts dns dns_search dns_opt hostname tty stdin_open working_dir
  stop_grace_period stop_signal labels annotations depends_on pull_policy container_name profiles`.split(/\s+/),
);

/** Advice on keys of a service that a manifest cannot express. */
const ADVICE: Readonly<Record<string, string>> = {
  blkio_config: adviceOf("BlkioWeight"),
  cgroup_parent: adviceOf("CgroupParent"),
  cpu_shares: "is not carried over: set resources.requests.cpu",
  cpuset: adviceOf("CpusetCpus"),
  device_cgroup_rules: adviceOf("DeviceCgroupRules"),
  domainname: "is not carried over: set hostname and subdomain",
  extends: RESOLVE,
  external_links: NAMES,
  gpus: adviceOf("DeviceRequests"),
  init: adviceOf("Init"),
  links: NAMES,
  logging: "is not carried over: logs of pods are files, and --container-log-max-size limits all of them",
  memswap_limit: "is not carried over: pods with a memory limit have no swap",
  oom_score_adj: adviceOf("OomScoreAdj"),
  pids_limit: adviceOf("PidsLimit"),
  platform: "is not carried over: the image of this machine's platform runs",
  post_start: "is not carried over: set lifecycle.postStart",
  pre_stop: "is not carried over: set lifecycle.preStop",
  runtime: adviceOf("Runtime"),
  scale: "one pod is written: a Deployment with replicas runs several",
  storage_opt: adviceOf("StorageOpt"),
  ulimits: adviceOf("Ulimits"),
  volumes_from: "is not carried over: mount the same volumes, or make both services containers of one pod",
};

/** Names each key of a service that is not carried over. */
function noteServiceKeys(service: { readonly [key: string]: Json }, path: string, notes: ImportNotes): void {
  for (const key of Object.keys(service)) {
    if (!READ_KEYS.has(key) && !key.startsWith("x-")) notes.add(`${path}.${key}`, ADVICE[key] ?? "is not carried over");
  }
  if (Array.isArray(service.profiles) && service.profiles.length > 0) {
    const names = service.profiles.join(", ");
    notes.add(
      `${path}.profiles`,
      `compose runs it only with the profile ${names}: leave out the pod if it is not wanted`,
    );
  }
}

/** Advice on keys of the whole file. */
export const FILE_ADVICE: Readonly<Record<string, string>> = { include: RESOLVE };

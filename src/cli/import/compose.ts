import { isIP } from "node:net";
import {
  IMAGE_HEALTHCHECK_ANNOTATION,
  NETWORK_ALIASES_ANNOTATION,
  requiredFormat,
} from "../../base/api/annotations.ts";
import { isRecord, type Json } from "../../base/text/json.ts";
import { withoutExpansion } from "../../plan/environment.ts";
import { ComposeFiles, mergeCompose, NO_SERVICES, partsOfPort } from "./compose-files.ts";
import { noteKeys } from "./compose-keys.ts";
import {
  ComposeError,
  isTrue,
  type JsonMap,
  originOf,
  parseEnvFile,
  parseRawEnvFile,
  toQuantity,
} from "./compose-text.ts";
import {
  type ComposeContext,
  type ComposeInput,
  ComposeVolumes,
  type MachineInput,
  ownNameOf,
} from "./compose-volumes.ts";
import {
  type Imported,
  type ImportedPort,
  ImportNotes,
  listOf,
  type Member,
  PodVolumes,
  pairsOf,
  present,
  textOf,
  textsOf,
  toDnsLabel,
  toPodManifests,
  toPort,
  uniqueName,
  wordsOf,
} from "./pod-parts.ts";

/** A node runs some hundred pods. */
const MAX_SERVICES = 500;

/**
 * Writes a pod for each service of a Compose file. Several services are put into a Docker network of the name of the
 * project, in which they reach each other by their names. Source: compose specification.
 * @throws ComposeError
 */
export function importCompose(input: ComposeInput): Imported {
  const notes = new ImportNotes();
  const files = new ComposeFiles(input);
  const content = files.load();
  if (!isRecord(content.services)) throw new ComposeError(NO_SERVICES, `${input.files[0]}:`);
  for (const name of files.missing)
    notes.add(`\${${name}}`, "has no value, neither in .env nor in the environment: it is empty");
  const services = servicesOf(mapAt(content, "services"), input.environment, notes);
  if (Object.keys(services).length > MAX_SERVICES)
    throw new ComposeError(`it has more than ${MAX_SERVICES} services: import parts of it, by --profile or as files`);
  const chosen = { ...content, services };
  noteKeys(chosen, notes);
  const imported = importServices(chosen, input, notes, (name) => notes.of(`services.${name}.`));
  const placed = notes.lines.map((note) => {
    const origin = originOf(content, note.split(": ", 1)[0]!);
    return origin === undefined ? note : `${origin.at}: ${note}`;
  });
  return { manifests: imported.manifests, notes: [...imported.steps, ...placed] };
}

/**
 * Writes a pod for each service, or for those that share a network.
 * @param notesOf the notes on a service
 * @returns also the steps before the pods run
 * @throws ComposeError
 */
export function importServices(
  content: JsonMap,
  input: MachineInput,
  notes: ImportNotes,
  notesOf: (service: string) => ImportNotes,
): { manifests: object[]; steps: string[] } {
  const services = mapAt(content, "services");
  const project = typeof content.name === "string" ? content.name : input.project;
  const names = Object.keys(services);
  const declared = mapAt(content, "networks");
  const used = [...new Set(names.flatMap((name) => networkKeysOf(services[name])))];
  const groups = groupServices(services, notesOf);
  const isAlone = groups.length === 1 && used.every((key) => key === "default");
  const networks = new Map(
    isAlone ? [] : used.map((key) => [key, nameOfNetwork(key, declared[key], project)] as const),
  );
  const [volumes, configs, secrets] = [mapAt(content, "volumes"), mapAt(content, "configs"), mapAt(content, "secrets")];
  const claims = new Set<string>();
  const taken = new Set<string>();
  const podNames = new Map(
    groups.flatMap((members) => {
      const podName = uniqueName(toDnsLabel(members[0]!), taken);
      return members.map((name) => [name, podName] as const);
    }),
  );
  const shared = { services, volumes, configs, secrets, claims, networks, podNames, notes, notesOf };
  const context = { ...input, project, ...shared };
  const written = groups.flatMap((members) => toPodOfServices(members as [string], context));
  // Services that share a PersistentVolume write the same one.
  const manifests = [...new Map(written.map((object) => [JSON.stringify(object), object])).values()];
  const first = [...networks].map(([key, name]) => networkNote(name, declared[key]));
  const kept = `the pods use the Docker volumes ${[...claims].join(", ")}: data that docker compose left there stays; one that is missing is made`;
  return { manifests, steps: [...first, ...(claims.size > 0 ? [kept] : [])] };
}

/** Those that compose runs: without a profile, or with one of COMPOSE_PROFILES. */
function servicesOf(all: JsonMap, environment: ComposeInput["environment"], notes: ImportNotes): JsonMap {
  const active = (environment.get("COMPOSE_PROFILES") ?? "").split(",").map((name) => name.trim());
  const chosen = Object.entries(all).filter(([name, service]) => {
    if (isRecord(service) && isRecord(service.provider)) {
      notes.add(`services.${name}.provider`, "is no container, and is left out: what it provides must run already");
      return false;
    }
    const profiles = isRecord(service) ? textsOf(service.profiles) : [];
    if (profiles.length === 0 || [...profiles, "*"].some((profile) => active.includes(profile))) return true;
    const message = `compose runs it only with the profile ${profiles.join(" or ")}: it is left out; --profile=${profiles[0]} takes it`;
    notes.add(`services.${name}.profiles`, message);
    return false;
  });
  return Object.fromEntries(chosen);
}

/** Lists of services, each with the one first whose network the others have (`network_mode: service:NAME`). */
function groupServices(services: JsonMap, notesOf: ComposeContext["notesOf"]): string[][] {
  const names = Object.keys(services);
  const ownerOf = (name: string): string | undefined => {
    const mode = textOf(serviceAt(services, name).network_mode) ?? "";
    const [, kind, other = ""] = /^(service|container):(.*)$/.exec(mode) ?? [];
    if (kind === undefined) return undefined;
    const isMeant = (one: string) =>
      (kind === "service" ? one : textOf(serviceAt(services, one).container_name)) === other;
    const owner = names.find(isMeant);
    const message = `${mode} is not carried over: it is no service of this file`;
    if (owner === undefined) notesOf(name).add("network_mode", message);
    return owner;
  };
  const owners = new Map(names.map((name) => [name, ownerOf(name)]));
  const rootOf = (name: string, links = 0): string => {
    if (links > names.length)
      throw new ComposeError(`services.${name}.network_mode: the services share networks in a circle`);
    const owner = owners.get(name);
    return owner === undefined ? name : rootOf(owner, links + 1);
  };
  return Array.from(
    Map.groupBy(names, (name) => rootOf(name)),
    ([root, members]) => [root, ...members.filter((one) => one !== root)],
  );
}

/** @throws ComposeError */
function serviceAt(services: JsonMap, name: string): Service {
  const service = services[name];
  if (!isRecord(service)) throw new ComposeError(`this is not a Compose file: services.${name} is not a map`);
  return service;
}

/** Keys of the networks of a service. */
function networkKeysOf(service: Json | undefined): string[] {
  if (!isRecord(service) || service.network_mode !== undefined) return [];
  const keys = Object.keys(mapAt(service, "networks"));
  return keys.length > 0 ? keys : ["default"];
}

function nameOfNetwork(key: string, declared: Json | undefined, project: string): string {
  const { name, isExternal } = ownNameOf(declared);
  if (name !== undefined) return name;
  if (key === "default") return toDnsLabel(project);
  return isExternal ? key : `${project}_${key}`;
}

/** The command that makes the network as the file declares it. */
function networkNote(name: string, declared: Json | undefined): string {
  const { driver, driver_opts, internal, enable_ipv6, attachable, ipam } = isRecord(declared) ? declared : {};
  if (ownNameOf(declared).isExternal)
    return `the network of the pods is external: docker network create ${name}, unless it exists`;
  const { driver: ipamDriver, options, config } = isRecord(ipam) ? ipam : {};
  const flags: string[] = [];
  const addFlags = (values: JsonMap) => {
    for (const [flag, value] of Object.entries(values))
      if (textOf(value) !== undefined) flags.push(`--${flag} ${textOf(value)}`);
  };
  addFlags({ driver: driver ?? null, "ipam-driver": ipamDriver === "default" ? null : (ipamDriver ?? null) });
  for (const [key, value = ""] of pairsOf(options)) flags.push(`--ipam-opt ${key}=${value}`);
  for (const pool of listOf(config)) {
    const { subnet = null, gateway = null, ip_range = null, aux_addresses } = isRecord(pool) ? pool : {};
    addFlags({ subnet, gateway, "ip-range": ip_range });
    for (const [name, address = ""] of pairsOf(aux_addresses)) flags.push(`--aux-address ${name}=${address}`);
  }
  for (const [flag, value] of Object.entries({ internal, ipv6: enable_ipv6, attachable })) {
    if (isTrue(value)) flags.push(`--${flag}`);
  }
  for (const [key, value = ""] of pairsOf(driver_opts)) flags.push(`--opt ${key}=${value}`);
  return `create the network of the pods first: docker network create ${[...flags, name].join(" ")}`;
}

const mapAt = (content: JsonMap, key: string): JsonMap => {
  const value = content[key];
  return isRecord(value) ? value : {};
};

type Service = JsonMap;

/** @returns the pod of services that share a network, preceded by the ConfigMaps and Secrets it needs */
function toPodOfServices(names: readonly [string, ...string[]], context: ComposeContext): object[] {
  const volumes = new PodVolumes();
  const [name] = names;
  const service = serviceAt(context.services, name);
  const notes = context.notesOf(name);
  const podName = context.podNames.get(name) ?? name;
  const replicas = replicasOf(service);
  const members = names.map((one) => toContainerOfService(one, volumes, replicas, context)) as [ComposeContainer];
  const steps = names.flatMap((one) => toStepsOfService(one, volumes, replicas, context));
  const written = names.flatMap((one) => pairsOf(serviceAt(context.services, one).annotations));
  const annotations = Object.fromEntries(written.map(([key, value = ""]) => [key, value]));
  if (context.networks.size > 0 && service.network_mode === undefined) {
    Object.assign(annotations, networksOf(service, context, notes));
    const aliases = aliasesOf(name, podName, replicas !== undefined, context);
    if (aliases.length > 0) annotations["kubelet-ts.io/network-aliases"] = aliases.join(",");
  }
  const dependencies = new Set(names.flatMap((one) => dependenciesOf(one, podName, context)));
  if (dependencies.size > 0) annotations["kubelet-ts.io/depends-on"] = [...dependencies].join(",");
  const checked = names.filter((one) => isCheckedByImage(one, context)).map((one) => `${toDnsLabel(one)}=readiness`);
  if (checked.length > 0) annotations[IMAGE_HEALTHCHECK_ANNOTATION] = checked.join(",");
  if (service.network_mode === "none") notes.add("network_mode", "none is not carried over: every pod has a network");
  const pod = {
    name: podName,
    replicas,
    sharesProcesses: sharesProcesses(names, context),
    annotations,
    hosts: [
      // In a network Docker answers with the pod's own address.
      ...(names.length > 1 && networkKeysOf(service).length > 0 && context.networks.size === 0
        ? [`${name}=127.0.0.1`]
        : []),
      ...names.flatMap((one) => textsOf(serviceAt(context.services, one).extra_hosts)),
    ],
    hostGateway: context.hostGateway,
    volumes,
  };
  const documents = [...members, ...steps].flatMap((member) => member.documents);
  return [...documents, ...toPodManifests(pod, members, steps)];
}

interface ComposeContainer extends Member {
  /** ConfigMaps and Secrets that it mounts. */
  documents: object[];
}

/** The containers of `pre_start`: as that of the service, but for what they say themselves. */
function toStepsOfService(
  name: string,
  volumes: PodVolumes,
  replicas: number | undefined,
  context: ComposeContext,
): ComposeContainer[] {
  const { ports, expose, healthcheck, post_start, pre_stop, stop_signal, pre_start, ...inherited } = serviceAt(
    context.services,
    name,
  );
  return listOf(pre_start).map((step, index) => {
    const merged = mergeCompose(inherited, step, ["services", name]) as Service;
    if (replicas !== undefined) context.notesOf(name).add("pre_start", "runs before each container of the service");
    return toContainerOfService(name, volumes, replicas, context, merged, `${toDnsLabel(name)}-pre-start-${index + 1}`);
  });
}

function toContainerOfService(
  name: string,
  podVolumes: PodVolumes,
  replicas: number | undefined,
  context: ComposeContext,
  service = serviceAt(context.services, name),
  containerName = toDnsLabel(name),
): ComposeContainer {
  const notes = context.notesOf(name);
  const volumes = new ComposeVolumes(name, service, replicas !== undefined, podVolumes, context);
  const all = service.network_mode === "host" ? [] : portsOf(service, replicas !== undefined, notes);
  if ((service.build ?? null) === null && textOf(service.image) === undefined) {
    const { at } = originOf(service, "image") ?? originOf(service, Object.keys(service)[0] ?? "") ?? {};
    throw new ComposeError(`service "${name}" has no image and no build: write image: NAME`, `${at ?? ""}:`);
  }
  const { ports, published } = replicas === undefined ? { ports: all, published: [] } : publishByService(all, notes);
  const fields = {
    image: textOf(service.image) ?? `${context.project}-${name}`,
    imagePullPolicy: pullPolicyOf(service, notes),
    ...commandOf(service, notes),
    ports,
  };
  return {
    name: containerName,
    service,
    notes,
    fields,
    variables: variablesOf(service, context, notes),
    published,
    ...resourcesOf(service, notes),
    mounts: volumes.mounts,
    fileGroups: volumes.fileGroups,
    labels: [
      ...pairsOfFiles("label_file", service, context),
      ...pairsOf(service.labels).map(([key, value = ""]) => [key, value] as const),
    ],
    documents: volumes.documents,
  };
}

/** Containers of a service, of `deploy.replicas` or `scale`; undefined for one. */
function replicasOf({ deploy, scale }: Service): number | undefined {
  const text = textOf(isRecord(deploy) ? (deploy.replicas ?? scale) : scale) ?? "1";
  const count = /^\d{1,4}$/.test(text) ? Number(text) : 1;
  return count === 1 ? undefined : count;
}

/** Pods of a Deployment cannot have one host port: a Service publishes it. Several ports of the machine may lead to one. */
function publishByService(
  ports: readonly ImportedPort[],
  notes: ImportNotes,
): Record<"ports" | "published", ImportedPort[]> {
  const inner = ports.map(({ hostPort, hostIP, ...port }) => port);
  const published = ports.filter(({ hostPort, hostIP }) => hostPort !== undefined && hostIP === undefined);
  for (const { hostIP, hostPort } of ports) {
    const message = `${hostIP}:${hostPort} is not published: a Service listens on all addresses of the machine`;
    if (hostIP !== undefined) notes.add("ports", message);
  }
  const unique = new Map(inner.map((port) => [`${port.containerPort}/${port.protocol}`, port]));
  return { ports: [...unique.values()], published };
}

/** Whether a container sees the processes of another one (`pid: service:NAME`). */
function sharesProcesses(names: readonly string[], { services, notesOf }: ComposeContext): boolean {
  return names.some(
    (name) =>
      (["pid", "ipc"] as const).map((key) => {
        const mode = textOf(serviceAt(services, name)[key]) ?? "host";
        const isOfPod = names.some((one) => mode === `service:${one}`);
        const isUsual = isOfPod || ["host", "private", "shareable"].includes(mode);
        const message = `${mode} is not carried over: containers that share it are containers of one pod`;
        if (!isUsual) notesOf(name).add(key, message);
        return key === "pid" && isOfPod;
      })[0],
  );
}

/** Names of a service in the network besides that of its pod: its own, of its container, of links to it, and its aliases. */
function aliasesOf(name: string, podName: string, isScaled: boolean, { services, notesOf }: ComposeContext): string[] {
  const { container_name, networks } = serviceAt(services, name);
  const given = isRecord(networks)
    ? Object.values(networks).flatMap((it) => (isRecord(it) ? textsOf(it.aliases) : []))
    : [];
  const links = Object.values(services).flatMap((other) => (isRecord(other) ? textsOf(other.links) : []));
  const linked = links.map((link) => link.split(":")).flatMap(([to, alias]) => (to === name && alias ? [alias] : []));
  const names = new Set([name, ...textsOf(container_name), ...given, ...linked]);
  if (!isScaled) names.delete(podName);
  return [...names].filter((alias) => {
    const isName = requiredFormat(NETWORK_ALIASES_ANNOTATION, alias) === undefined;
    if (!isName) notesOf(name).add("networks", `the alias ${JSON.stringify(alias)} is not carried over`);
    return isName;
  });
}

/** @returns `Always`, `Never` or `IfNotPresent` */
function pullPolicyOf({ pull_policy }: Service, notes: ImportNotes): string {
  const policy = textOf(pull_policy) ?? "missing";
  if (/^(daily|weekly|every_.*)$/.test(policy)) {
    const advice =
      "the annotations kubelet-ts.io/image-update and kubelet-ts.io/image-update-schedule look for new images";
    notes.add("pull_policy", `${policy} is not carried over: ${advice}`);
  }
  return policy === "always" ? "Always" : policy === "never" ? "Never" : "IfNotPresent";
}

/** Without words an entrypoint or a command replaces that of the image by nothing, which only a `command` does in a pod. */
function commandOf(
  service: Service,
  notes: ImportNotes,
): { command?: string[] | undefined; args?: string[] | undefined } {
  const [command, args] = [service.entrypoint, service.command].map((words) => wordsOf(words)?.map(withoutExpansion));
  if (command?.length === 0 && args !== undefined && args.length > 0) return { command: args };
  const lost =
    command?.length === 0 ? "entrypoint" : args?.length === 0 && command === undefined ? "command" : undefined;
  if (lost !== undefined)
    notes.add(lost, "is empty, and that of the image is used: set command in the pod to what runs");
  return { command, args };
}

function variablesOf(service: Service, context: ComposeContext, notes: ImportNotes): Map<string, string> {
  const variables = new Map(pairsOfFiles("env_file", service, context));
  for (const [key, value] of pairsOf(service.environment)) {
    const found = value ?? context.environment.get(key);
    if (!/^[-._a-zA-Z][-._a-zA-Z0-9]*$/.test(key))
      notes.add(`environment.${key}`, "is not a name of a variable for Kubernetes");
    else if (found !== undefined) variables.set(key, found);
    else notes.add(`environment.${key}`, "has no value, neither here nor in the environment");
  }
  return variables;
}

/** Names and values in the files that a service names; one may be allowed to be missing. @throws ComposeError */
function pairsOfFiles(key: "env_file" | "label_file", service: Service, context: ComposeContext): [string, string][] {
  return [service[key] ?? []].flat().flatMap((file: Json) => {
    const { path, required, format = null } = isRecord(file) ? file : { path: file };
    const name = textOf(path) ?? "";
    const text = context.readFile(name, required === false);
    if (text === undefined && required !== false)
      throw new ComposeError(
        `${key}: "${name}" is not there, cannot be read or has more than 1 MiB`,
        `${originOf(service, key)?.at ?? ""}:`,
      );
    return [...(format === "raw" ? parseRawEnvFile : parseEnvFile)(text ?? "", context.environment)];
  });
}

/** The networks of a service and its fixed address, as annotations. That address is in the first network. */
function networksOf(service: Service, { networks }: ComposeContext, notes: ImportNotes): object {
  const given = isRecord(service.networks) ? service.networks : {};
  const addressesOf = (key: string) => {
    const { ipv4_address, ipv6_address } = isRecord(given[key]) ? given[key] : {};
    return textsOf([ipv4_address ?? null, ipv6_address ?? null]);
  };
  const keys = networkKeysOf(service).toSorted(
    (a, b) => Number(addressesOf(b).length > 0) - Number(addressesOf(a).length > 0),
  );
  const [address, ...others] = keys.flatMap(addressesOf);
  for (const other of others) notes.add("networks", `${other} is not carried over: a pod has one fixed address`);
  const names = keys.map((key) => networks.get(key) ?? key).join(",");
  return { "kubelet-ts.io/network": names, ...(address !== undefined && { "kubelet-ts.io/ip": address }) };
}

function resourcesOf(service: Service, notes: ImportNotes): Pick<Member, "limits" | "requests"> {
  const deploy = isRecord(service.deploy) ? service.deploy : {};
  const resources = isRecord(deploy.resources) ? deploy.resources : {};
  const { limits, reservations } = resources as JsonMap;
  const quota = numberOf(service.cpu_quota);
  const milliCpus = quota && quota > 0 ? Math.ceil((quota / (numberOf(service.cpu_period) ?? 100_000)) * 1000) : 0;
  const shares = numberOf(service.cpu_shares) ?? 0;
  const listOf = (source: Json | undefined, memory: Json | undefined, cpus: string | undefined) => {
    const list = isRecord(source) ? source : {};
    const size = textOf(list.memory ?? memory);
    const quantity = size === undefined ? undefined : toQuantity(size);
    return { cpu: textOf(list.cpus) ?? cpus, memory: quantity };
  };
  const asMilliCpus = (count: number) => (count > 0 ? `${count}m` : undefined);
  const devices = isRecord(reservations) ? reservations.devices : undefined;
  const gpus = gpusOf(service.gpus, "gpus", notes);
  const reserved = gpusOf(devices, "deploy.resources.reservations.devices", notes);
  const cpus = textOf(service.cpus) ?? asMilliCpus(milliCpus);
  return {
    limits: present({ ...listOf(limits, service.mem_limit, cpus), ...reserved, ...gpus }),
    requests: present(listOf(reservations, service.mem_reservation, asMilliCpus(Math.round((shares / 1024) * 1000)))),
  };
}

const numberOf = (value: Json | undefined): number | undefined => {
  const number = Number(textOf(value) ?? Number.NaN);
  return Number.isFinite(number) ? number : undefined;
};

/** GPUs of `gpus` or of reserved devices, as limits: a number of them, single ones, or all. */
function gpusOf(devices: Json | undefined, at: string, notes: ImportNotes): Record<string, string> {
  const list = devices === "all" ? ([{ capabilities: ["gpu"] }] as Json[]) : listOf(devices);
  let total = 0;
  const named: string[] = [];
  for (const device of list) {
    if (!isRecord(device)) continue;
    const isGpu = at === "gpus" || textsOf(device.capabilities).includes("gpu");
    const ids = textsOf(device.device_ids);
    const count = numberOf(device.count) ?? -1;
    if (!isGpu) notes.add(at, "only GPUs are carried over");
    else if (ids.length > 0 || count < 0) named.push(...(ids.length > 0 ? ids : ["all"]));
    else total += count;
  }
  const single = Object.fromEntries(named.map((id) => [`nvidia.com/gpu=${id}`, "1"]));
  return { ...(total > 0 && { "nvidia.com/gpu": String(total) }), ...single };
}

const CONDITIONS: Readonly<Record<string, string>> = {
  service_started: "Running",
  service_healthy: "Ready",
  service_completed_successfully: "Succeeded",
};

/** The check is that of its image: the file enables it or changes its timing only, or another service waits for its health. */
function isCheckedByImage(name: string, { services, notesOf }: ComposeContext): boolean {
  const { healthcheck } = serviceAt(services, name);
  const check = isRecord(healthcheck) ? healthcheck : {};
  if (check.test !== undefined || check.disable === true) return false;
  const isTimed = ["interval", "timeout", "retries"].some((key) => check[key] !== undefined);
  if (isTimed) notesOf(name).add("healthcheck", "has no test: the timing is that of the image, too");
  if (isTimed || check.disable === false) return true;
  return Object.keys(services).some((other) => {
    const { depends_on } = serviceAt(services, other);
    const dependency = isRecord(depends_on) ? depends_on[name] : undefined;
    return isRecord(dependency) && dependency.condition === "service_healthy";
  });
}

/** `depends_on` and `links` as entries of the annotation `kubelet-ts.io/depends-on`. */
function dependenciesOf(name: string, podName: string, { services, podNames, notesOf }: ComposeContext): string[] {
  const service = serviceAt(services, name);
  const dependencies = mapAt(service, "depends_on");
  const notes = notesOf(name);
  const linked = textsOf(service.links).map((link) => link.split(":", 1)[0]!);
  const names = new Set([...Object.keys(dependencies), ...linked]);
  return [...names].flatMap((other) => {
    const { condition, restart, required } = isRecord(dependencies[other]) ? dependencies[other] : {};
    if (isTrue(restart)) notes.add(`depends_on.${other}`, "restart is not carried over: a pod that runs is left alone");
    const target = podNames.get(other);
    if (target !== undefined && required === false)
      notes.add(`depends_on.${other}`, "required is not carried over: the pod waits also when that one fails");
    if (target === podName)
      notes.add(`depends_on.${other}`, "is not carried over: the containers of a pod start together");
    else if (target !== undefined) return [`default/${target}=${CONDITIONS[textOf(condition) ?? ""] ?? "Running"}`];
    else if (required !== false) notes.add(`depends_on.${other}`, "there is no such service: it is not waited for");
    return [];
  });
}

const MAX_PORTS = 1000;

/** `ports` and `expose`. */
function portsOf({ ports, expose }: Service, isScaled: boolean, notes: ImportNotes): ImportedPort[] {
  const result = (Array.isArray(ports) ? ports : []).flatMap((port, index) =>
    toPorts(port, isScaled, `ports[${index}]`, notes),
  );
  const keyOf = ({ containerPort, protocol }: ImportedPort) => `${containerPort}/${protocol}`;
  const taken = new Set(result.map(keyOf));
  for (const entry of Array.isArray(expose) ? expose : []) {
    const [number = "", protocol] = (textOf(entry) ?? "").split("/");
    for (const port of toRange(number).map((one) => toPort(one, undefined, "", protocol))) {
      if (!taken.has(keyOf(port))) result.push(port);
      taken.add(keyOf(port));
    }
  }
  return result;
}

/** @param isScaled each container of the service gets a port of the range that is published */
function toPorts(port: Json, isScaled: boolean, path: string, notes: ImportNotes): ImportedPort[] {
  const { target, published, host_ip, protocol } = partsOfPort(port);
  const hostPorts = toRange(textOf(published) ?? "");
  const range = toRange(textOf(target) ?? "");
  const targets =
    isScaled && range.length === 1 ? (hostPorts.length > 0 ? hostPorts : range).map(() => range[0]!) : range;
  const hasAddress = isIP(textOf(host_ip) ?? "0.0.0.0") > 0;
  if (targets.length === 0 || !hasAddress || !/^(tcp|udp|sctp)$/i.test(textOf(protocol) ?? "tcp")) {
    notes.add(path, "is not a port and is not carried over");
    return [];
  }
  if (hostPorts.length === 0)
    notes.add(path, "has no published port, which Docker would choose: set hostPort to publish it");
  else if (hostPorts.length !== targets.length) {
    notes.add(path, `has ${hostPorts.length} published ports for ${targets.length}: the first ones are used`);
  }
  return targets.map((containerPort, index) =>
    toPort(containerPort, hostPorts[index], textOf(host_ip), textOf(protocol)),
  );
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

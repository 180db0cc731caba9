import { NETWORK_ALIASES_ANNOTATION, requiredFormat } from "../../base/api/annotations.ts";
import { formatBytes } from "../../base/api/quantity.ts";
import { type InspectedContainer, type InspectedImage, noteSettings } from "./docker-settings.ts";
import {
  type Amounts,
  type ContainerSettings,
  type FindDevices,
  FLAGS,
  groupByNetwork,
  type Imported,
  type ImportedPort,
  ImportNotes,
  LOGS_ARE_FILES,
  logOptionsOf,
  PodVolumes,
  propagationOf,
  type SettingName,
  toDnsLabel,
  toPodManifests,
  toPort,
  uniqueName,
} from "./pod-parts.ts";

/** A container as the engine describes it, with the image it was made from. */
export interface DockerContainer {
  container: InspectedContainer;
  /** Absent when the image was removed. */
  image?: InspectedImage;
  /** Id of the image that the name of the image means now. */
  currentImageId?: string;
}

const SHARES_PER_CPU = 1024;
const DEFAULT_CPU_PERIOD = 100_000;
const DEFAULT_STOP_SECONDS = 10;
const DEFAULT_SHM_BYTES = 64 * 1024 * 1024;
/** Docker names a volume that has no name by 64 hex digits. */
const ANONYMOUS = /^[0-9a-f]{64}$/;

/**
 * Writes a pod for each container; containers that share the network of another one given become containers of its pod.
 * Only differences from the image are written.
 * @param hostGateway the address of `host-gateway`, if it is known
 */
export function importDocker(
  given: readonly DockerContainer[],
  findDevices: FindDevices,
  hostGateway?: string,
): Imported {
  const notes = new ImportNotes();
  const pods = groupContainers(given, notes);
  const names = new Set<string>();
  const manifests = pods.flatMap((members) => {
    const name = uniqueName(podNameOf(members[0]!.container), names);
    return toPod(name, members as [DockerContainer], findDevices, notes, hostGateway);
  });
  const containers = given.map(({ container }) => container.Name.replace(/^\//, "")).join(" ");
  const first = [
    `stop the containers before the pods start: docker update --restart=no ${containers} && docker stop ${containers}`,
  ];
  return { manifests, notes: [...(given.length > 0 ? first : []), ...notes.lines] };
}

/** Lists of containers, each with the one that has the network first. */
function groupContainers(given: readonly DockerContainer[], notes: ImportNotes): DockerContainer[][] {
  const ownerOf = ({ container: { HostConfig, Name } }: DockerContainer) => {
    const reference = /^container:(.+)$/.exec(HostConfig.NetworkMode)?.[1];
    if (reference === undefined) return undefined;
    const owner = given.find(({ container: it }) => it.Name === `/${reference}` || it.Id.startsWith(reference));
    const message = "is not carried over: name that container too, and both become one pod";
    if (!owner) notes.add(`${toDnsLabel(Name.slice(1))}: --network container:${reference.slice(0, 12)}`, message);
    return owner;
  };
  return groupByNetwork(given, ownerOf);
}

const at: SettingName = (key, detail) => `${FLAGS[key]}${detail === undefined ? "" : ` ${detail}`}`;

function toPod(
  name: string,
  members: readonly [DockerContainer, ...DockerContainer[]],
  findDevices: FindDevices,
  all: ImportNotes,
  hostGateway: string | undefined,
): object[] {
  const notes = all.of(`${name}: `);
  const volumes = new PodVolumes();
  const toMember = (member: DockerContainer) => toSettings(member, volumes, findDevices, all);
  const [first, ...others] = members;
  const { container: main } = first;
  const { NetworkMode, PidMode, IpcMode, Dns, DnsSearch, DnsOptions, ExtraHosts } = main.HostConfig;
  if (NetworkMode === "none") notes.add("--network none", "is not carried over: every pod has a network");
  for (const [flag, mode] of Object.entries({ "--pid": PidMode, "--ipc": IpcMode })) {
    if (mode.startsWith("container:"))
      notes.add(flag, "is not carried over: containers that share it are containers of one pod");
  }
  if (Dns.length > 0 && !["", "default", "bridge", "host"].includes(NetworkMode)) {
    notes.add("--dns", `the pod asks only these servers, which do not know the names of ${NetworkMode}`);
  }
  const pod = {
    name,
    annotations: toNetworkAnnotations(main, notes),
    network: NetworkMode,
    pid: PidMode,
    ipc: IpcMode,
    hostname: hostnameOf(main),
    hosts: ExtraHosts,
    hostGateway,
    dns: Dns,
    dnsSearch: DnsSearch,
    dnsOptions: DnsOptions,
    volumes,
  };
  return toPodManifests(pod, [toMember(first), ...others.map(toMember)]);
}

/** Only what differs from the image. */
function toSettings(
  { container, image, currentImageId }: DockerContainer,
  volumes: PodVolumes,
  findDevices: FindDevices,
  all: ImportNotes,
): ContainerSettings {
  const { Config, HostConfig } = container;
  const { RestartPolicy, SecurityOpt, Privileged, PidMode, IpcMode } = HostConfig;
  const ofImage = image?.Config;
  const name = podNameOf(container);
  const notes = all.of(`${name}: `);
  noteSettings(container, notes);
  // The engine adds label=disable to such containers.
  const isDisabled = Privileged || PidMode === "host" || IpcMode === "host";
  return {
    name,
    at,
    notes,
    image: imageOf(container, image, currentImageId, notes),
    imagePullPolicy: "IfNotPresent",
    ...commandOf(container, image),
    workingDir: Config.WorkingDir === ofImage?.WorkingDir ? "" : Config.WorkingDir,
    variables: variablesOf(container, image, notes),
    ports: portsOf(container, new Set(Object.keys(ofImage?.ExposedPorts ?? {})), notes),
    ...resourcesOf(HostConfig),
    healthcheck: healthOf(container),
    user: Config.User === ofImage?.User ? "" : Config.User,
    capAdd: HostConfig.CapAdd,
    capDrop: HostConfig.CapDrop,
    privileged: Privileged,
    readOnly: HostConfig.ReadonlyRootfs,
    securityOptions: SecurityOpt.filter((option) => !isDisabled || option !== "label=disable"),
    mounts: mountsOf(container, volumes, findDevices, notes),
    terminal: {
      ...(Config.Tty && { tty: true }),
      ...(Config.OpenStdin && { stdin: true, ...(Config.StdinOnce && { stdinOnce: true }) }),
    },
    // `docker run --stop-signal` takes `INT` too.
    stopSignal: Config.StopSignal === ofImage?.StopSignal ? "" : Config.StopSignal.replace(/^(?!SIG|\d|$)/, "SIG"),
    ulimits: HostConfig.Ulimits.map(({ Name, Soft, Hard }) => `${Name}=${Soft}:${Hard}`),
    init: HostConfig.Init,
    fileGroups: [],
    logOptions: logOptionsOf(
      { driver: HostConfig.LogConfig.Type || null, options: HostConfig.LogConfig.Config },
      (name) => notes.add(name === "driver" ? "--log-driver" : `--log-opt ${name}`, LOGS_ARE_FILES),
    ),
    labels: Object.entries(Config.Labels).filter(
      ([key, value]) => ofImage?.Labels[key] !== value && !key.startsWith("com.docker.compose."),
    ),
    sysctls: Object.entries(HostConfig.Sysctls),
    groups: HostConfig.GroupAdd,
    restart: RestartPolicy.Name + (RestartPolicy.MaximumRetryCount > 0 ? `:${RestartPolicy.MaximumRetryCount}` : ""),
    stopSeconds: Config.StopTimeout ?? DEFAULT_STOP_SECONDS,
  };
}

function imageOf(
  { Config, Image }: InspectedContainer,
  image: InspectedImage | undefined,
  currentImageId: string | undefined,
  notes: ImportNotes,
): string {
  const isId = /^(?:sha256:)?[0-9a-f]{12,64}$/.test(Config.Image);
  if (!isId) {
    if (currentImageId !== undefined && currentImageId !== Image) {
      notes.add("image", `${Config.Image} names another image than the one that runs (${Image.slice(7, 19)})`);
    }
    return Config.Image;
  }
  const [tag] = image?.RepoTags ?? [];
  if (tag !== undefined) return tag;
  notes.add("image", `has no name: docker tag ${Image.slice(7, 19)} NAME, and write the name here`);
  return Config.Image;
}

/** `command` and `args` where the container differs from its image. */
function commandOf({ Config: { Entrypoint, Cmd } }: InspectedContainer, image: InspectedImage | undefined) {
  const ofImage = image?.Config ?? { Entrypoint: [], Cmd: [] };
  // Without arguments of its own a `command` is needed to be rid of the arguments of the image.
  const keepsEntrypoint =
    Bun.deepEquals(Entrypoint, ofImage.Entrypoint) && (Cmd.length > 0 || ofImage.Cmd.length === 0);
  if (keepsEntrypoint) return Bun.deepEquals(Cmd, ofImage.Cmd) ? {} : { args: Cmd };
  return Entrypoint.length === 0 ? { command: Cmd } : { command: Entrypoint, args: Cmd };
}

function variablesOf({ Config }: InspectedContainer, image: InspectedImage | undefined, notes: ImportNotes) {
  const ofImage = new Set(image?.Config.Env ?? []);
  const variables = new Map<string, string>();
  for (const entry of Config.Env) {
    if (ofImage.has(entry)) continue;
    const at = entry.indexOf("=");
    const name = at < 0 ? entry : entry.slice(0, at);
    if (at < 0) notes.add(`-e ${name}`, "has no value and is not carried over");
    else if (/^[-._a-zA-Z][-._a-zA-Z0-9]*$/.test(name)) variables.set(name, entry.slice(at + 1));
    else notes.add(`-e ${name}`, "is not a name of a variable for Kubernetes and is not carried over");
  }
  return variables;
}

function resourcesOf(settings: InspectedContainer["HostConfig"]): { limits: Amounts; requests: Amounts } {
  const { CpuShares, CpuPeriod, CpuQuota, NanoCpus, Memory, MemoryReservation } = settings;
  const quotaMilliCpus = CpuQuota > 0 ? (CpuQuota / (CpuPeriod || DEFAULT_CPU_PERIOD)) * 1000 : 0;
  const milliCpus = Math.ceil(NanoCpus > 0 ? NanoCpus / 1e6 : quotaMilliCpus);
  const listOf = (cpu: number, memory: number) => ({
    ...(cpu > 0 && { cpu: `${cpu}m` }),
    ...(memory > 0 && { memory: formatBytes(memory) }),
  });
  return {
    limits: listOf(milliCpus, Memory),
    requests: listOf(Math.round((CpuShares / SHARES_PER_CPU) * 1000), MemoryReservation),
  };
}

/** In the words of Compose. */
function healthOf({ Config: { Healthcheck: health } }: InspectedContainer): ContainerSettings["healthcheck"] {
  if (!health) return undefined;
  const seconds = (nanoseconds: number) => (nanoseconds > 0 ? `${nanoseconds / 1e9}s` : null);
  return {
    test: health.Test,
    interval: seconds(health.Interval),
    timeout: seconds(health.Timeout),
    ...(health.StartPeriod > 0 && { start_period: seconds(health.StartPeriod) }),
    ...(health.StartInterval > 0 && { start_interval: seconds(health.StartInterval) }),
    retries: health.Retries || null,
  };
}

/** `--publish` and `--expose`, with the ports that the engine chose. */
function portsOf(
  { Config, HostConfig, NetworkSettings }: InspectedContainer,
  exposedByImage: ReadonlySet<string>,
  notes: ImportNotes,
): ImportedPort[] {
  if (HostConfig.NetworkMode === "host") return [];
  const result: ImportedPort[] = [];
  const published = new Set<string>();
  for (const source of [NetworkSettings.Ports, HostConfig.PortBindings]) {
    for (const [target, bindings] of Object.entries(source)) {
      if (published.has(target) || !bindings) continue;
      const found = bindings.flatMap(({ HostIp, HostPort }) => (/^\d+$/.test(HostPort) ? [{ HostIp, HostPort }] : []));
      if (found.length > 0) published.add(target);
      result.push(...toPorts(target, found));
      const isChosen = HostConfig.PortBindings[target]?.every(({ HostPort }) => !/^\d+$/.test(HostPort)) ?? true;
      if (isChosen && found.length > 0) {
        notes.add(`-p ${target}`, `the engine chose port ${found[0]!.HostPort}: it is fixed in the pod`);
      }
    }
  }
  const unpublished = [...Object.keys(Config.ExposedPorts), ...Object.keys(HostConfig.PortBindings)];
  for (const target of new Set(unpublished)) {
    if (!published.has(target) && !exposedByImage.has(target))
      result.push(...toPorts(target, [{ HostIp: "", HostPort: "" }]));
  }
  return result;
}

function toPorts(target: string, bindings: readonly { HostIp: string; HostPort: string }[]): ImportedPort[] {
  const [number = "", protocol = "tcp"] = target.split("/");
  const ports = bindings.map(({ HostIp, HostPort }) =>
    toPort(Number(number), HostPort === "" ? undefined : Number(HostPort), HostIp, protocol),
  );
  // One binding for IPv4 and one for IPv6 are one host port.
  return [...new Map(ports.map((port) => [JSON.stringify(port), port])).values()];
}

/** The host name that was given. */
function hostnameOf(container: InspectedContainer): string | undefined {
  const { Id, Config, HostConfig } = container;
  const usual = ["", Id.slice(0, 12), podNameOf(container)];
  return HostConfig.NetworkMode === "host" || usual.includes(Config.Hostname) ? undefined : Config.Hostname;
}

/** The name of the pod: the DNS label nearest to that of the container. */
const podNameOf = ({ Name }: InspectedContainer): string => toDnsLabel(Name.replace(/^\//, ""));

/** The Docker networks of the pod, its fixed address and its names besides that of the pod, as annotations. */
function toNetworkAnnotations(container: InspectedContainer, notes: ImportNotes): Record<string, string> {
  const mode = container.HostConfig.NetworkMode;
  if (mode === "host" || mode === "none" || mode.startsWith("container:")) return {};
  const networks = Object.entries(container.NetworkSettings.Networks).filter(([name]) => name !== "bridge");
  // The network of docker run comes first, also when others were connected later.
  networks.sort(([a], [b]) => Number(b === mode) - Number(a === mode));
  if (networks.length === 0) return {};
  const [address, ...others] = networks.map(
    ([, settings]) => settings?.IPAMConfig?.IPv4Address || settings?.IPAMConfig?.IPv6Address,
  );
  for (const other of others) {
    if (other)
      notes.add(`--ip ${other}`, "is not carried over: a pod has a fixed address in the first of its networks");
  }
  for (const link of networks.flatMap(([, settings]) => settings?.Links ?? [])) {
    const [target, alias] = link.split(":");
    const advice = `the pod of ${target} needs the name ${alias} in its annotation ${NETWORK_ALIASES_ANNOTATION}`;
    if (alias !== undefined && alias !== target) notes.add(`--link ${link}`, `is not carried over: ${advice}`);
  }
  const names = new Set([container.Name.slice(1), ...networks.flatMap(([, settings]) => settings?.Aliases ?? [])]);
  for (const name of [container.Id.slice(0, 12), podNameOf(container), container.Config.Hostname]) names.delete(name);
  const aliases = [...names].filter((name) => {
    const isName = requiredFormat(NETWORK_ALIASES_ANNOTATION, name) === undefined;
    if (!isName) notes.add(`--network-alias ${name}`, "is not carried over: it is no name in a network");
    return isName;
  });
  return {
    "kubelet-ts.io/network": networks.map(([name]) => name).join(","),
    ...(address && { "kubelet-ts.io/ip": address }),
    ...(aliases.length > 0 && { [NETWORK_ALIASES_ANNOTATION]: aliases.join(",") }),
  };
}

/** Volumes, binds, tmpfs, devices and /dev/shm of a container. */
function mountsOf(container: InspectedContainer, volumes: PodVolumes, findDevices: FindDevices, notes: ImportNotes) {
  const { Tmpfs, ShmSize, IpcMode, Devices } = container.HostConfig;
  const hasShm = ShmSize !== 0 && ShmSize !== DEFAULT_SHM_BYTES && IpcMode !== "host";
  return [
    ...container.Mounts.flatMap((mount) => mountOf(mount, container, volumes, notes)),
    ...Object.entries(Tmpfs).map(([target, options]) => volumes.tmpfs(target, options, `--tmpfs ${target}`, notes)),
    ...(hasShm ? [volumes.memory("/dev/shm", formatBytes(ShmSize))] : []),
    ...Devices.flatMap(({ PathOnHost, PathInContainer, CgroupPermissions }) => {
      const found = findDevices(PathOnHost);
      if (found.length === 0) notes.add(`--device ${PathOnHost}`, "is not a device file here, and not carried over");
      return volumes.devices(PathInContainer, PathOnHost, found, CgroupPermissions);
    }),
  ];
}

function mountOf(
  { Type, Name, Source, Destination, Mode, RW, Propagation }: InspectedContainer["Mounts"][number],
  { HostConfig }: InspectedContainer,
  volumes: PodVolumes,
  notes: ImportNotes,
): object[] {
  const at = `-v ${Destination}`;
  const readOnly = RW ? {} : { readOnly: true };
  const wanted = HostConfig.Mounts.find(({ Target }) => Target === Destination);
  if (/(?:^|,)[zZ](?:,|$)/.test(Mode) && Type === "bind") {
    notes.add(at, "SELinux labels are not set: z and Z are not carried over");
  }
  if (Type === "volume") {
    if (ANONYMOUS.test(Name)) {
      notes.add(at, "is an anonymous volume: the pod uses it by its name; docker rm -v would remove it");
    }
    const subPath = wanted?.VolumeOptions?.Subpath;
    const extra = { ...readOnly, ...(subPath && { subPath }) };
    return [volumes.mount(Destination, { persistentVolumeClaim: { claimName: Name } }, extra)];
  }
  if (Type === "bind") {
    const extra = { ...readOnly, ...propagationOf(Propagation, HostConfig.Privileged, notes, at) };
    return [volumes.mount(Destination, { hostPath: { path: Source } }, extra)];
  }
  if (Type === "tmpfs") {
    const { SizeBytes: bytes = 0, Mode: mode = 0 } = wanted?.TmpfsOptions ?? {};
    return [volumes.memory(Destination, bytes > 0 ? formatBytes(bytes) : undefined, readOnly, mode)];
  }
  notes.add(at, `mounts of type ${Type} are not carried over`);
  return [];
}

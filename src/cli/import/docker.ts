import { NETWORK_ALIASES_ANNOTATION } from "../../base/api/annotations.ts";
import type { Json } from "../../base/text/json.ts";
import { importServices } from "./compose.ts";
import type { JsonMap } from "./compose-text.ts";
import { partsOfVolume } from "./compose-volumes.ts";
import { type InspectedContainer, type InspectedImage, noteSettings } from "./docker-settings.ts";
import { type FindDevices, type Imported, ImportNotes, listOf, textOf, toDnsLabel } from "./pod-parts.ts";

/** A container as the engine describes it, with the image it was made from. */
export interface DockerContainer {
  container: InspectedContainer;
  /** Absent when the image was removed. */
  image?: InspectedImage;
  /** Id of the image that the name of the image means now. */
  currentImageId?: string;
}

const DEFAULT_SHM_BYTES = 64 * 1024 * 1024;
/** Docker names a volume that has no name by 64 hex digits. */
const ANONYMOUS = /^[0-9a-f]{64}$/;

/** Flags of `docker run` for keys of Compose that are called otherwise there. */
const FLAGS: Readonly<Record<string, string>> = {
  environment: "-e",
  extra_hosts: "--add-host",
  healthcheck: "--health-cmd",
  labels: "--label",
  "logging.driver": "--log-driver",
  "logging.options": "--log-opt",
  networks: "--network",
  network_mode: "--network",
  sysctls: "--sysctl",
  volumes: "-v",
};

/** A key of a service as a flag: `--sysctl a` for `sysctls.a`. */
function flagOf(key: string, service: JsonMap): string {
  const [, name = "", index, detail] = /^(logging\.\w+|\w+)(?:\[(\d+)\])?(?:\.(.*))?$/s.exec(key) ?? [];
  const target = index && textOf(partsOfVolume(listOf(service[name])[Number(index)]!).target);
  const flag = FLAGS[name] ?? `--${name.replaceAll("_", "-")}`;
  return [flag, ...(target ? [target] : []), ...(detail ? [detail] : [])].join(" ");
}

const nameOf = ({ Name }: InspectedContainer): string => Name.replace(/^\//, "");

/**
 * Writes a pod for each container; containers that share the network of another one given become containers of its pod.
 * Only differences from the image are written.
 * @param hostGateway the address of `host-gateway`, if it is known
 * @throws ComposeError
 */
export function importDocker(
  given: readonly DockerContainer[],
  findDevices: FindDevices,
  hostGateway?: string,
): Imported {
  const notes = new ImportNotes();
  const containers = given.map(({ container }) => container);
  const prefixOf = (name: string) => `${toDnsLabel(name)}: `;
  const services = Object.fromEntries(
    given.map((one) => {
      const name = nameOf(one.container);
      return [name, toService(one, containers, findDevices, notes.of(prefixOf(name)))];
    }),
  );
  // They exist, so that their names stay.
  const existing = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, { name }]));
  const networks = existing(containers.flatMap((one) => Object.keys(one.NetworkSettings.Networks)));
  const volumes = existing(containers.flatMap(({ Mounts }) => Mounts.map(({ Name }) => Name)));
  const machine = { project: "", directory: "/", environment: new Map(), readFile: () => undefined };
  const { manifests } = importServices(
    { services, networks, volumes },
    { ...machine, findDevices, hostGateway },
    notes,
    (name) => notes.of(prefixOf(name), (key) => flagOf(key, services[name]!)),
  );
  const names = containers.map(nameOf).join(" ");
  const first = `stop the containers before the pods start: docker update --restart=no ${names} && docker stop ${names}`;
  return { manifests, notes: [...(given.length > 0 ? [first] : []), ...notes.lines] };
}

/** A container as a service of Compose: only what differs from the image. */
function toService(
  { container, image, currentImageId }: DockerContainer,
  all: readonly InspectedContainer[],
  findDevices: FindDevices,
  notes: ImportNotes,
): JsonMap {
  const { Config, HostConfig, Mounts } = container;
  const { RestartPolicy, SecurityOpt, Privileged, NetworkMode, PidMode, IpcMode, LogConfig, Dns } = HostConfig;
  const { NanoCpus, ShmSize } = HostConfig;
  const ofImage = image?.Config;
  noteSettings(container, notes);
  if (Dns.length > 0 && !["", "default", "bridge", "host"].includes(NetworkMode)) {
    notes.add("--dns", `the pod asks only these servers, which do not know the names of ${NetworkMode}`);
  }
  const isFound = ({ PathOnHost }: (typeof HostConfig.Devices)[number]) => {
    const isDevice = findDevices(PathOnHost).length > 0;
    if (!isDevice) notes.add(`--device ${PathOnHost}`, "is not a device file here, and not carried over");
    return isDevice;
  };
  // The engine adds label=disable to such containers.
  const isDisabled = Privileged || PidMode === "host" || IpcMode === "host";
  // So the client asks for `systempaths=unconfined`; the engine does it for privileged containers.
  const isUnmasked = !Privileged && Bun.deepEquals(HostConfig.MaskedPaths, []);
  return {
    image: imageOf(container, image, currentImageId, notes),
    ...commandOf(container, image),
    working_dir: Config.WorkingDir === ofImage?.WorkingDir ? null : Config.WorkingDir,
    environment: Config.Env.filter((entry) => !ofImage?.Env.includes(entry)),
    ...portsOf(container, new Set(Object.keys(ofImage?.ExposedPorts ?? {})), notes),
    ...networksOf(container, all, notes),
    cpu_quota: NanoCpus > 0 ? NanoCpus / 1e4 : HostConfig.CpuQuota,
    cpu_period: NanoCpus > 0 ? null : HostConfig.CpuPeriod || null,
    cpu_shares: HostConfig.CpuShares,
    mem_limit: HostConfig.Memory || null,
    mem_reservation: HostConfig.MemoryReservation || null,
    healthcheck: healthOf(container),
    user: Config.User === ofImage?.User ? null : Config.User,
    cap_add: HostConfig.CapAdd,
    cap_drop: HostConfig.CapDrop,
    privileged: Privileged,
    read_only: HostConfig.ReadonlyRootfs,
    security_opt: [
      ...SecurityOpt.filter((option) => !isDisabled || option !== "label=disable"),
      ...(isUnmasked ? ["systempaths=unconfined"] : []),
    ],
    volumes: Mounts.map((mount) => volumeOf(mount, container, notes)),
    tmpfs: Object.entries(HostConfig.Tmpfs).map(([target, options]) => `${target}:${options}`),
    shm_size: [0, DEFAULT_SHM_BYTES].includes(ShmSize) || IpcMode === "host" ? null : ShmSize,
    devices: HostConfig.Devices.filter(isFound).map((device) => ({
      source: device.PathOnHost,
      target: device.PathInContainer,
      permissions: device.CgroupPermissions,
    })),
    tty: Config.Tty,
    stdin_open: Config.OpenStdin,
    "x-stdin-once": Config.OpenStdin && Config.StdinOnce,
    stop_signal: Config.StopSignal === ofImage?.StopSignal ? null : Config.StopSignal,
    ulimits: Object.fromEntries(HostConfig.Ulimits.map(({ Name, Soft, Hard }) => [Name, { soft: Soft, hard: Hard }])),
    init: HostConfig.Init,
    logging: { driver: LogConfig.Type || null, options: LogConfig.Config },
    labels: Object.fromEntries(
      Object.entries(Config.Labels).filter(
        ([key, value]) => ofImage?.Labels[key] !== value && !key.startsWith("com.docker.compose."),
      ),
    ),
    sysctls: HostConfig.Sysctls,
    group_add: HostConfig.GroupAdd,
    restart: RestartPolicy.Name + (RestartPolicy.MaximumRetryCount > 0 ? `:${RestartPolicy.MaximumRetryCount}` : ""),
    stop_grace_period: typeof Config.StopTimeout === "number" ? `${Config.StopTimeout}s` : null,
    pid: PidMode || null,
    ipc: IpcMode || null,
    hostname: hostnameOf(container) ?? null,
    extra_hosts: HostConfig.ExtraHosts,
    dns: Dns,
    dns_search: HostConfig.DnsSearch,
    dns_opt: HostConfig.DnsOptions,
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

/** `entrypoint` and `command` where the container differs from its image. */
function commandOf({ Config: { Entrypoint, Cmd } }: InspectedContainer, image: InspectedImage | undefined): JsonMap {
  const ofImage = image?.Config ?? { Entrypoint: [], Cmd: [] };
  // Without arguments of its own an entrypoint is needed to be rid of the arguments of the image.
  const keepsEntrypoint =
    Bun.deepEquals(Entrypoint, ofImage.Entrypoint) && (Cmd.length > 0 || ofImage.Cmd.length === 0);
  if (keepsEntrypoint) return Bun.deepEquals(Cmd, ofImage.Cmd) ? {} : { command: Cmd };
  return { entrypoint: Entrypoint, command: Cmd };
}

function healthOf({ Config: { Healthcheck: health } }: InspectedContainer): Json {
  if (!health) return null;
  const seconds = (nanoseconds: number) => (nanoseconds > 0 ? `${nanoseconds / 1e9}s` : null);
  return {
    test: health.Test,
    interval: seconds(health.Interval),
    timeout: seconds(health.Timeout),
    start_period: seconds(health.StartPeriod),
    start_interval: seconds(health.StartInterval),
    retries: health.Retries || null,
  };
}

/** `--publish` and `--expose`, with the ports that the engine chose. */
function portsOf(
  { Config, HostConfig, NetworkSettings }: InspectedContainer,
  exposedByImage: ReadonlySet<string>,
  notes: ImportNotes,
): JsonMap {
  const ports: Json[] = [];
  const published = new Set<string>();
  for (const source of [NetworkSettings.Ports, HostConfig.PortBindings]) {
    for (const [target, bindings] of Object.entries(source)) {
      const found = (bindings ?? []).filter(({ HostPort }) => /^\d+$/.test(HostPort));
      const [first] = found;
      if (published.has(target) || !first) continue;
      published.add(target);
      const [number = "", protocol = "tcp"] = target.split("/");
      // One binding for IPv4 and one for IPv6 are one host port.
      const unique = new Map(
        found.map(({ HostIp, HostPort }) => [`${HostIp.replace(/^::$/, "0.0.0.0")} ${HostPort}`, HostPort]),
      );
      for (const [key, port] of unique)
        ports.push({ target: number, published: port, host_ip: key.split(" ", 1)[0]!, protocol });
      const isChosen = HostConfig.PortBindings[target]?.every(({ HostPort }) => !/^\d+$/.test(HostPort)) ?? true;
      if (isChosen) notes.add(`-p ${target}`, `the engine chose port ${first.HostPort}: it is fixed in the pod`);
    }
  }
  const unpublished = new Set([...Object.keys(Config.ExposedPorts), ...Object.keys(HostConfig.PortBindings)]);
  const expose = [...unpublished].filter((target) => !published.has(target) && !exposedByImage.has(target));
  return { ports, expose };
}

/** The host name that was given. */
function hostnameOf(container: InspectedContainer): string | undefined {
  const { Id, Config, HostConfig } = container;
  const usual = ["", Id.slice(0, 12), toDnsLabel(nameOf(container))];
  return HostConfig.NetworkMode === "host" || usual.includes(Config.Hostname) ? undefined : Config.Hostname;
}

/** `network_mode` or `networks`; that of docker run comes first, also when others were connected later. */
function networksOf(
  { Id, Config, HostConfig: { NetworkMode: mode }, NetworkSettings }: InspectedContainer,
  all: readonly InspectedContainer[],
  notes: ImportNotes,
): JsonMap {
  const reference = /^container:(.+)$/.exec(mode)?.[1];
  if (reference !== undefined) {
    const owner = all.find((one) => one.Name === `/${reference}` || one.Id.startsWith(reference));
    if (owner) return { network_mode: `service:${nameOf(owner)}` };
    const message = "is not carried over: name that container too, and both become one pod";
    notes.add(`--network container:${reference.slice(0, 12)}`, message);
  }
  const networks = Object.entries(NetworkSettings.Networks)
    .filter(([name]) => name !== "bridge" && reference === undefined)
    .toSorted(([a], [b]) => Number(b === mode) - Number(a === mode));
  if (mode === "host" || mode === "none") return { network_mode: mode };
  if (networks.length === 0) return { network_mode: "bridge" };
  for (const link of networks.flatMap(([, settings]) => settings?.Links ?? [])) {
    const [target, alias] = link.split(":");
    const advice = `the pod of ${target} needs the name ${alias} in its annotation ${NETWORK_ALIASES_ANNOTATION}`;
    if (alias !== undefined && alias !== target) notes.add(`--link ${link}`, `is not carried over: ${advice}`);
  }
  const usual = [Id.slice(0, 12), Config.Hostname];
  const withAddresses = networks.map(([name, settings]) => {
    const aliases = settings?.Aliases.filter((alias) => !usual.includes(alias)) ?? [];
    const { IPv4Address, IPv6Address } = settings?.IPAMConfig ?? {};
    return [name, { aliases, ipv4_address: IPv4Address || null, ipv6_address: IPv6Address || null }] as const;
  });
  return { networks: Object.fromEntries(withAddresses) };
}

/** A mount as an entry of `volumes`. */
function volumeOf(
  { Type, Name, Source, Destination, Mode, RW, Propagation }: InspectedContainer["Mounts"][number],
  { HostConfig }: InspectedContainer,
  notes: ImportNotes,
): Json {
  const wanted = HostConfig.Mounts.find(({ Target }) => Target === Destination);
  if (ANONYMOUS.test(Name))
    notes.add(`-v ${Destination}`, "is an anonymous volume: the pod uses it by its name; docker rm -v would remove it");
  return {
    type: Type,
    source: Type === "bind" ? Source : Name,
    target: Destination,
    read_only: !RW,
    bind: { propagation: Propagation, selinux: /(?:^|,)[zZ](?:,|$)/.test(Mode) && Type === "bind" },
    // It has its files already.
    volume: { nocopy: true, subpath: wanted?.VolumeOptions?.Subpath || null },
    tmpfs: { size: wanted?.TmpfsOptions?.SizeBytes || null, mode: wanted?.TmpfsOptions?.Mode ?? 0 },
  };
}

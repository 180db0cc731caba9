import type { InspectedContainer } from "./docker-inspect.ts";
import { type ImportNotes, toDnsLabel } from "./import-notes.ts";
import { some, toDnsConfig, toHostAliases } from "./pod-parts.ts";

interface ContainerPort {
  containerPort: number;
  hostPort?: number;
  hostIP?: string;
  protocol?: string;
}

/** `--publish` and `--expose`, with the ports that the engine chose. */
export function toDockerPorts(
  { Config, HostConfig, NetworkSettings }: InspectedContainer,
  exposedByImage: ReadonlySet<string>,
  path: string,
  notes: ImportNotes,
): ContainerPort[] {
  if (HostConfig.NetworkMode === "host") return [];
  const result: ContainerPort[] = [];
  const published = new Set<string>();
  for (const source of [NetworkSettings.Ports, HostConfig.PortBindings]) {
    for (const [target, bindings] of Object.entries(source)) {
      if (published.has(target) || !bindings) continue;
      const found = bindings.flatMap(({ HostIp, HostPort }) => (/^\d+$/.test(HostPort) ? [{ HostIp, HostPort }] : []));
      if (found.length > 0) published.add(target);
      result.push(...toPorts(target, found));
      const isChosen = HostConfig.PortBindings[target]?.every(({ HostPort }) => !/^\d+$/.test(HostPort)) ?? true;
      if (isChosen && found.length > 0) {
        notes.add(`${path}: -p ${target}`, `the engine chose port ${found[0]!.HostPort}: it is fixed in the pod`);
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

function toPorts(target: string, bindings: readonly { HostIp: string; HostPort: string }[]): ContainerPort[] {
  const [number = "", protocol = "tcp"] = target.split("/");
  const ports = bindings.map(({ HostIp, HostPort }) => ({
    containerPort: Number(number),
    ...(HostPort !== "" && { hostPort: Number(HostPort) }),
    ...(!["", "0.0.0.0", "::"].includes(HostIp) && { hostIP: HostIp }),
    ...(protocol !== "tcp" && { protocol: protocol.toUpperCase() }),
  }));
  // One binding for IPv4 and one for IPv6 are one host port.
  return [...new Map(ports.map((port) => [JSON.stringify(port), port])).values()];
}

/** Name, network and DNS settings of the pod. */
export function toPodNetwork(container: InspectedContainer, path: string, notes: ImportNotes): object {
  const { HostConfig } = container;
  const { NetworkMode, PidMode, IpcMode } = HostConfig;
  if (NetworkMode === "none") {
    notes.add(`${path}: --network none`, "is not carried over: every pod has a network");
  }
  for (const [flag, mode] of [
    ["--pid", PidMode],
    ["--ipc", IpcMode],
  ] as const) {
    if (mode.startsWith("container:")) {
      notes.add(`${path}: ${flag}`, "is not carried over: containers that share it are containers of one pod");
    }
  }
  if (HostConfig.Dns.length > 0 && !["", "default", "bridge", "host"].includes(NetworkMode)) {
    notes.add(`${path}: --dns`, `the pod asks only these servers, which do not know the names of ${NetworkMode}`);
  }
  return {
    ...(NetworkMode === "host" && { hostNetwork: true }),
    ...(PidMode === "host" && { hostPID: true }),
    ...(IpcMode === "host" && { hostIPC: true }),
    ...some("hostname", hostnameOf(container, path, notes)),
    ...some("hostAliases", toHostAliases(HostConfig.ExtraHosts, `${path}: --add-host`, notes)),
    ...toDnsConfig(HostConfig.Dns, HostConfig.DnsSearch, HostConfig.DnsOptions),
  };
}

/** The host name given; without one the first alias in the network, because pods are found by their host name too. */
function hostnameOf(container: InspectedContainer, path: string, notes: ImportNotes): string | undefined {
  const { Id, Config, HostConfig, NetworkSettings } = container;
  if (HostConfig.NetworkMode === "host") return undefined;
  const own = podNameOf(container);
  const aliases = new Set(Object.values(NetworkSettings.Networks).flatMap((network) => network?.Aliases ?? []));
  const given = Config.Hostname === Id.slice(0, 12) ? "" : Config.Hostname;
  for (const name of [Id.slice(0, 12), own, given, container.Name.slice(1)]) aliases.delete(name);
  const usable = [...aliases].filter((name) => toDnsLabel(name) === name);
  const hostname = given === "" ? usable[0] : toDnsLabel(given);
  for (const name of aliases) {
    if (name !== hostname)
      notes.add(`${path}: --network-alias ${name}`, "is not carried over: pods are found by name and hostname");
  }
  return hostname === own ? undefined : hostname;
}

/** The name of the pod: the DNS label nearest to that of the container. */
export const podNameOf = ({ Name }: InspectedContainer): string => toDnsLabel(Name.replace(/^\//, ""));

/** The Docker network of the pod, and its fixed address, as annotations. */
export function toNetworkAnnotations(
  container: InspectedContainer,
  path: string,
  notes: ImportNotes,
): Record<string, string> {
  const mode = container.HostConfig.NetworkMode;
  if (mode === "host" || mode === "none" || mode.startsWith("container:")) return {};
  const networks = Object.entries(container.NetworkSettings.Networks).filter(([name]) => name !== "bridge");
  // The network of docker run comes first, also when others were connected later.
  networks.sort(([a], [b]) => Number(b === mode) - Number(a === mode));
  const [first, ...others] = networks;
  for (const [name] of others) {
    notes.add(`${path}: docker network connect ${name}`, "is not carried over: a pod is in one network");
  }
  if (!first) return {};
  const [name, settings] = first;
  const address = settings?.IPAMConfig?.IPv4Address || settings?.IPAMConfig?.IPv6Address;
  return { "kubelet-ts.io/network": name, ...(address && { "kubelet-ts.io/ip": address }) };
}

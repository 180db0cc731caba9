import {
  filledVolumesOf,
  INIT_ANNOTATION,
  IP_ANNOTATION,
  LOG_OPTIONS_ANNOTATION,
  NETWORK_ANNOTATION,
  networkAliasesOf,
  parseLogOptions,
  parseUlimits,
  ULIMITS_ANNOTATION,
} from "../base/api/annotations.ts";
import { isCapability } from "../base/api/container.ts";
import type { Container, Pod } from "../base/api/pod.ts";
import { quantityToWhole } from "../base/api/quantity.ts";
import type { ContainerRequest, Mount, Owner, SandboxRequest } from "../base/model/container-engine.ts";
import { toContainerLogPath } from "../base/model/log-path.ts";
import type { EngineInfo } from "../base/model/node.ts";
import { nameWithoutNode } from "../base/model/pod.ts";
import type { ContainerLimits } from "../base/model/pod-snapshot.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import { toCgroupParent, toPodCgroupName } from "../plan/pod-cgroup.ts";
import { computePodHostname } from "../plan/pod-dns.ts";
import { computeHostPorts, computeUserNetworks } from "../plan/pod-network.ts";
import {
  computeContainerLimits,
  computePodTotal,
  computeQosClass,
  isCriticalPod,
  MIN_CPU_SHARES,
  memoryBytesOf,
} from "../plan/pod-resources.ts";
import { computeSysctls } from "../plan/security-profiles.ts";
import type {
  ContainerCreateBody,
  DeviceMapping,
  DeviceRequest,
  EndpointConfig,
  HostConfig,
  LogConfig,
  MountPoint,
  PortBinding,
} from "./engine/container-create-body.ts";
import { toContainerLabels, toSandboxLabels } from "./labels.ts";
import { MappingError, unsupported } from "./mapping-error.ts";
import {
  computeGroupAdd,
  computeProcPaths,
  computeSandboxSecurityOpt,
  computeSandboxUser,
  computeSecurityContext,
  computeSecurityOpt,
  computeUser,
  hasSecurityOption,
  isApiAtLeast,
} from "./security.ts";

const HOSTS_PATH = "/etc/hosts";

/** volumeMounts, then /etc/hosts unless a volume is mounted there, then the termination log. Source: kubelet. */
function computeAllMounts({ pod, container, mounts, paths }: ContainerRequest): Mount[] {
  const filled = filledVolumesOf(pod.metadata);
  const targets = (container.volumeMounts ?? []).flatMap(({ name, mountPath }) =>
    filled.includes(name) ? toAbsolute(mountPath) : [],
  );
  const all = mounts.map(
    (mount): Mount => (targets.includes(toAbsolute(mount.target)) ? { ...mount, isFilled: true } : mount),
  );
  if (paths.hostsFile && !mounts.some(({ target }) => target === HOSTS_PATH)) {
    all.push({ type: "bind", source: paths.hostsFile, target: HOSTS_PATH, readOnly: false, relabel: true });
  }
  if (paths.terminationLogFile && container.terminationMessagePath) {
    const target = container.terminationMessagePath;
    all.push({ type: "bind", source: paths.terminationLogFile, target, readOnly: false, relabel: true });
  }
  return all;
}

function toHostConfig(request: ContainerRequest): HostConfig {
  const { pod, container, sandboxId, node, engine, settings } = request;
  const context = computeSecurityContext(pod, container);
  const groups = computeGroupAdd(pod);
  const devices = computeHostDevices(pod, container);
  const devicePaths = new Set(devices.map(({ PathInContainer }) => PathInContainer));
  const mounts = computeAllMounts(request).filter(({ target }) => !devicePaths.has(target));
  const { Binds, Mounts } = computeMounts(mounts, engine);
  const securityOpt = computeSecurityOpt({ ...request, ...request.paths, ...settings });
  const deviceRequests = computeDeviceRequests(container, engine);
  const pidsLimit = computePidsLimit(settings);
  const cgroupParent = computeCgroupParent(pod, engine, settings);
  const usernsMode = computeUsernsMode(pod, engine);
  const runtime = computeRuntime(pod, engine, request.runtimeHandler);
  const ulimits = parseUlimits(pod.metadata.annotations?.[ULIMITS_ANNOTATION] ?? "");
  const sandbox = `container:${sandboxId}`;
  const target = request.targetId ? `container:${request.targetId}` : "";
  const pidMode = pod.spec.hostPID ? "host" : pod.spec.shareProcessNamespace ? sandbox : target;
  return {
    NetworkMode: sandbox,
    IpcMode: sandbox,
    ...(pidMode && { PidMode: pidMode }),
    ...(pod.spec.hostNetwork && { UTSMode: "host" }),
    ...(usernsMode && { UsernsMode: usernsMode }),
    ...(Binds.length > 0 && { Binds }),
    ...(Mounts.length > 0 && { Mounts }),
    ...(context.privileged && { Privileged: true }),
    ...(context.readOnlyRootFilesystem && { ReadonlyRootfs: true }),
    ...(context.capabilities?.add?.length && { CapAdd: context.capabilities.add }),
    ...(context.capabilities?.drop?.length && { CapDrop: context.capabilities.drop }),
    ...(groups.length > 0 && { GroupAdd: groups }),
    ...(securityOpt.length > 0 && { SecurityOpt: securityOpt }),
    ...computeProcPaths(context, engine),
    ...toResources(computeContainerLimits({ pod, container, node, settings })),
    ...(pidsLimit !== undefined && { PidsLimit: pidsLimit }),
    ...(ulimits && { Ulimits: ulimits }),
    // In a process namespace that it shares it is not the first process.
    ...(pod.metadata.annotations?.[INIT_ANNOTATION] === "true" && !pidMode && { Init: true }),
    Devices: devices,
    ...(deviceRequests.length > 0 && { DeviceRequests: deviceRequests }),
    OomScoreAdj: clampOomScoreAdj(computeOomScoreAdj(pod, container, node.memoryBytes), engine),
    ...(cgroupParent && { CgroupParent: cgroupParent }),
    ...(runtime && { Runtime: runtime }),
    LogConfig: toLogConfig(settings, pod.metadata.annotations?.[LOG_OPTIONS_ANNOTATION]),
    // The kubelet handles restarts and health checks.
    RestartPolicy: { Name: "no" },
  };
}

/**
 * One container of a pod, in the namespaces of its sandbox. Source: kubelet and dockershim 1.20.
 * @throws MappingError
 */
export function toContainerCreateBody(request: ContainerRequest, owner: Owner): ContainerCreateBody {
  const { pod, container, command = [], args = [] } = request;
  const stopSignal = container.lifecycle?.stopSignal;
  return {
    Image: request.image.id,
    User: computeUser(pod, container, request.image.user),
    ...(command.length > 0 && { Entrypoint: [...command] }),
    ...(args.length > 0 && { Cmd: [...args] }),
    Env: request.env.map(({ name, value }) => `${name}=${value}`),
    ...(container.workingDir && { WorkingDir: container.workingDir }),
    ...(container.tty && { Tty: true }),
    ...(container.stdin && { OpenStdin: true }),
    ...(container.stdinOnce && { StdinOnce: true }),
    ...(stopSignal && { StopSignal: stopSignal }),
    Healthcheck: { Test: ["NONE"] },
    Labels: toContainerLabels({
      ...request,
      owner,
      logPath: toContainerLogPath(request.paths.podLogsDir, pod.metadata, container.name, request.restartCount),
    }),
    HostConfig: toHostConfig(request),
  };
}

/** Finds what an engine refuses when it creates the container, in its words. @throws MappingError */
export function checkCreateBody({
  WorkingDir = "/",
  HostConfig: { CapAdd = [], CapDrop = [] },
}: ContainerCreateBody): void {
  const refuse = (why: string) => new MappingError("CreateContainerError", why);
  const unknown = [...CapAdd, ...CapDrop].find((name) => !isCapability(name));
  if (unknown !== undefined) throw refuse(`unknown capability: ${JSON.stringify(unknown)}`);
  if (!WorkingDir.startsWith("/"))
    throw refuse(`the working directory '${WorkingDir}' is invalid, it needs to be an absolute path`);
}

/** Mounts of hostPath devices: a bind mount shows the file, but the device cgroup does not let it be opened. */
function computeHostDevices({ spec }: Pod, container: Container): DeviceMapping[] {
  if (container.securityContext?.privileged) return [];
  return (container.volumeMounts ?? []).flatMap(({ name, mountPath, readOnly, subPath, subPathExpr }) => {
    const source = spec.volumes?.find((volume) => volume.name === name)?.hostPath;
    const isDevice = source?.type === "CharDevice" || source?.type === "BlockDevice";
    if (!source || !isDevice || subPath || subPathExpr) return [];
    return [{ PathOnHost: source.path, PathInContainer: mountPath, CgroupPermissions: readOnly ? "r" : "rwm" }];
  });
}

const PROPAGATION = { HostToContainer: "rslave", Bidirectional: "rshared" } as const;

/** Relative mount paths pass validation; they count from the root. Source: kubelet. */
const toAbsolute = (target: string) => (target.startsWith("/") ? target : `/${target}`);

/**
 * `source:target[:ro][,Z][,rslave]`, dockershim's order of options. `Z` is the label of the sandbox, which all containers
 * of the pod share with its IPC namespace. A volume starts with the image's files only where the pod asks for it.
 */
function toBind({ type, source, target, readOnly, propagation, relabel, isFilled }: Mount, engine: EngineInfo): string {
  const options = [
    ...(readOnly ? ["ro"] : []),
    ...(relabel && hasSecurityOption(engine, "selinux") ? ["Z"] : []),
    ...(propagation ? [PROPAGATION[propagation]] : []),
    ...(type === "volume" && !isFilled ? ["nocopy"] : []),
  ];
  return [source, toAbsolute(target), ...(options.length > 0 ? [options.join(",")] : [])].join(":");
}

function toMountPoint(mount: Mount, engine: EngineInfo): MountPoint {
  const { type, source, target, readOnly, propagation, recursiveReadOnly, subPath } = mount;
  const need = (version: `${number}.${number}`, what: string) => {
    if (isApiAtLeast(engine, version)) return;
    const message = `${what} needs an engine with API ${version} or newer, this one has ${engine.apiVersion}`;
    throw unsupported(`volumeMounts["${target}"]`, message);
  };
  const common = { Type: type, Source: source, Target: toAbsolute(target), ReadOnly: readOnly };
  switch (type) {
    case "bind": {
      const force = readOnly && recursiveReadOnly === "Enabled";
      if (force) need("1.44", "recursiveReadOnly: Enabled");
      const options = {
        // The engine makes a mount read-only as a tree only when nothing can propagate into it.
        ...(force ? { Propagation: "rprivate" as const } : propagation && { Propagation: PROPAGATION[propagation] }),
        ...(force && { ReadOnlyForceRecursive: true }),
        ...(isTopReadOnly(mount, engine) && { ReadOnlyNonRecursive: true }),
      };
      return Object.keys(options).length > 0 ? { ...common, BindOptions: options } : common;
    }
    case "volume":
      if (subPath) need("1.45", "subPath of a Docker volume");
      return { ...common, VolumeOptions: { NoCopy: !mount.isFilled, ...(subPath && { Subpath: subPath }) } };
    case "image":
      need("1.48", "an image volume");
      return { ...common, ReadOnly: true, ...(subPath && { ImageOptions: { Subpath: subPath } }) };
    default:
      return type satisfies never;
  }
}

/** Since API 1.44 whole trees are read-only by default, so `recursiveReadOnly: Disabled` must be sent. */
const isTopReadOnly = ({ type, readOnly, recursiveReadOnly, relabel }: Mount, engine: EngineInfo) =>
  type === "bind" && readOnly && recursiveReadOnly === undefined && !relabel && isApiAtLeast(engine, "1.44");

/** `Binds` is used where it is enough, as by dockershim; a path with a colon needs `Mounts`, which has no label `Z`. */
const needsMountPoint = (mount: Mount, engine: EngineInfo) =>
  mount.type === "image" ||
  (mount.type === "volume" && mount.subPath !== undefined) ||
  (mount.readOnly && mount.recursiveReadOnly === "Enabled") ||
  isTopReadOnly(mount, engine) ||
  mount.source.includes(":") ||
  mount.target.includes(":");

/** Docker's `Binds` and `Mounts`, each in order. @throws MappingError when the engine is too old for one */
export function computeMounts(mounts: readonly Mount[], engine: EngineInfo): { Binds: string[]; Mounts: MountPoint[] } {
  const bodies: { Binds: string[]; Mounts: MountPoint[] } = { Binds: [], Mounts: [] };
  for (const mount of mounts) {
    if (needsMountPoint(mount, engine)) bodies.Mounts.push(toMountPoint(mount, engine));
    else bodies.Binds.push(toBind(mount, engine));
  }
  return bodies;
}

type CgroupSettings = Pick<KubeletOptions, "cgroupRoot" | "cgroupsPerQos">;
type LogSettings = Pick<KubeletOptions, "containerLogMaxSizeBytes" | "containerLogMaxFiles">;

/** Docker's `CgroupParent` of everything in a pod; undefined lets the engine choose. */
function computeCgroupParent(pod: Pod, engine: EngineInfo, settings: CgroupSettings): string | undefined {
  if (!settings.cgroupsPerQos) return settings.cgroupRoot || undefined;
  const name = toPodCgroupName(pod.metadata.uid ?? "", computeQosClass(pod));
  return toCgroupParent(name, engine.cgroupDriver, settings.cgroupRoot);
}

/** json-file with rotation: without it Docker's logs grow without limit. */
const toLogConfig = ({ containerLogMaxSizeBytes, containerLogMaxFiles }: LogSettings, options = ""): LogConfig => ({
  Type: "json-file",
  Config: {
    "max-size": String(containerLogMaxSizeBytes),
    "max-file": String(containerLogMaxFiles),
    ...parseLogOptions(options),
  },
});

/** On an engine that remaps users, `host` takes the pod out of the mapping, which namespaces of the host require. */
function computeUsernsMode({ spec }: Pod, engine: EngineInfo): string | undefined {
  if (!hasSecurityOption(engine, "userns")) return undefined;
  const sharesHost = spec.hostNetwork || spec.hostPID || spec.hostIPC;
  return spec.hostUsers === true || (spec.hostUsers === undefined && sharesHost) ? "host" : undefined;
}

/** Runtimes that a pod may have. Engines list containerd's own names of runc too, which are no choice. */
export const usableRuntimes = ({ runtimes }: EngineInfo): string[] =>
  runtimes.filter((runtime) => !/^io\.containerd\.(runc|runtime)\./.test(runtime)).sort();

/** Message with the runtimes that a pod could have instead. */
export const describeMissingRuntime = (name: string, engine: EngineInfo): string =>
  `the engine has no runtime ${JSON.stringify(name)}, only ${usableRuntimes(engine).join(", ")}`;

/** Docker's `Runtime`. @param handler of the RuntimeClass in a cluster; absent: the class names the runtime */
function computeRuntime({ spec }: Pod, engine: EngineInfo, handler?: string): string | undefined {
  const runtime = handler ?? spec.runtimeClassName;
  if (!runtime) return undefined;
  if (engine.runtimes.includes(runtime)) return runtime;
  const message = describeMissingRuntime(runtime, engine);
  throw unsupported("spec.runtimeClassName", message, "CreatePodSandboxError");
}

interface SandboxNetworkMode {
  mode: string;
  /** Settings by the names of user-defined networks. */
  endpoints?: Record<string, EndpointConfig>;
}

function computeNetwork(pod: Pod, hostname: string): SandboxNetworkMode {
  if (pod.spec.hostNetwork) return { mode: "host" };
  const annotations = pod.metadata.annotations ?? {};
  const [network, ...others] = computeUserNetworks(pod);
  if (network === undefined) return { mode: annotations[NETWORK_ANNOTATION] || "default" };

  const ip = annotations[IP_ANNOTATION];
  const names = new Set([pod.metadata.name ?? "", nameWithoutNode(pod), hostname, ...networkAliasesOf(pod.metadata)]);
  const Aliases = [...names];
  const ipam = ip && { IPAMConfig: ip.includes(":") ? { IPv6Address: ip } : { IPv4Address: ip } };
  const endpoints = { [network]: { Aliases, ...ipam } };
  for (const name of others) endpoints[name] = { Aliases };
  return { mode: network, endpoints };
}

/**
 * The pod's sandbox: pause, with ports, DNS, host name and sysctls of the pod. Source: dockershim 1.20.
 * @throws MappingError
 */
export function toSandboxCreateBody(request: SandboxRequest, owner: Owner): ContainerCreateBody {
  const { pod, engine, settings, dns } = request;
  const { spec } = pod;
  const host = computePodHostname(pod, settings.clusterDomain);
  if ("problem" in host) throw new MappingError("CreatePodSandboxError", host.problem);

  const user = computeSandboxUser(pod);
  const groups = computeGroupAdd(pod);
  const sysctls = computeSysctls(pod);
  const cgroupParent = computeCgroupParent(pod, engine, settings);
  const usernsMode = computeUsernsMode(pod, engine);
  const runtime = computeRuntime(pod, engine, request.runtimeHandler);
  const { PortBindings, ExposedPorts } = request.usesNetworkPlugin
    ? { PortBindings: {}, ExposedPorts: {} }
    : computePortBindings(pod);
  const network: SandboxNetworkMode = request.usesNetworkPlugin
    ? { mode: "none" }
    : computeNetwork(pod, host.kernelHostname);
  return {
    Image: request.image,
    // A pod in the node's network has the node's host name.
    ...(!spec.hostNetwork && { Hostname: host.kernelHostname }),
    ...(user !== undefined && { User: user }),
    ExposedPorts,
    Labels: toSandboxLabels(pod, owner, request),
    HostConfig: {
      NetworkMode: network.mode,
      IpcMode: spec.hostIPC ? "host" : "shareable",
      ...(spec.hostPID && { PidMode: "host" }),
      ...(usernsMode && { UsernsMode: usernsMode }),
      PortBindings,
      ...(dns && {
        Dns: dns.nameservers,
        // Without any, the engine would take those of the node; it reads a single dot as none.
        DnsSearch: dns.searches.length > 0 ? dns.searches : ["."],
        DnsOptions: dns.options,
      }),
      ...(groups.length > 0 && { GroupAdd: groups }),
      ...(Object.keys(sysctls).length > 0 && { Sysctls: sysctls }),
      SecurityOpt: computeSandboxSecurityOpt(pod),
      ...(cgroupParent && { CgroupParent: cgroupParent }),
      ...(runtime && { Runtime: runtime }),
      CpuShares: SANDBOX_CPU_SHARES,
      OomScoreAdj: clampOomScoreAdj(SANDBOX_OOM_SCORE_ADJ, engine),
      LogConfig: toLogConfig(settings),
    },
    ...(network.endpoints && { NetworkingConfig: { EndpointsConfig: network.endpoints } }),
  };
}

/** Docker's `PortBindings` and `ExposedPorts` of the sandbox; a port without hostPort has no effect. */
function computePortBindings(pod: Pod): {
  PortBindings: Record<string, PortBinding[]>;
  ExposedPorts: Record<string, Record<string, never>>;
} {
  const bindings: Record<string, PortBinding[]> = {};
  for (const { hostIP, hostPort, protocol, containerPort } of computeHostPorts(pod)) {
    const key = `${containerPort}/${protocol.toLowerCase()}`;
    bindings[key] ??= [];
    bindings[key].push({ HostIp: hostIP, HostPort: String(hostPort) });
  }
  return { PortBindings: bindings, ExposedPorts: Object.fromEntries(Object.keys(bindings).map((key) => [key, {}])) };
}

/** Docker's resources of a container that is created. */
const toResources = ({ cpuShares, cpuPeriodUs, cpuQuotaUs, memoryBytes, memorySwapBytes }: ContainerLimits) => ({
  CpuShares: cpuShares,
  CpuPeriod: cpuPeriodUs,
  CpuQuota: cpuQuotaUs,
  Memory: memoryBytes,
  MemorySwap: memorySwapBytes,
});

/** The body of `POST /containers/{id}/update`. What stays is left out. */
export const toUpdateBody = ({ cpuQuotaUs, ...others }: Partial<ContainerLimits>) =>
  // The engine takes 0 for "unchanged"; -1 removes the limit.
  toResources({ ...others, cpuQuotaUs: cpuQuotaUs === 0 ? -1 : cpuQuotaUs } as ContainerLimits);

/** Docker's `PidsLimit` of one container: no more than the whole pod may have. Undefined: no limit. */
const computePidsLimit = ({ podPidsLimit }: Pick<KubeletOptions, "podPidsLimit">) =>
  podPidsLimit > 0 ? podPidsLimit : undefined;

/** OOM score of pause: it goes last, for all containers live in its namespaces. Source: dockershim. */
const SANDBOX_OOM_SCORE_ADJ = -998;
/** CPU shares of pause. Source: dockershim. */
const SANDBOX_CPU_SHARES = MIN_CPU_SHARES;

const GUARANTEED_OOM_SCORE_ADJ = -997;
const BEST_EFFORT_OOM_SCORE_ADJ = 1000;

/**
 * A Burstable container loses 10 points for each per cent of the node's memory it requests, so that one that uses more
 * than it requested goes first. Source: kubelet's GetContainerOOMScoreAdjust.
 */
export function computeOomScoreAdj(pod: Pod, container: Container, nodeMemoryBytes: number): number {
  const qosClass = computeQosClass(pod);
  if (isCriticalPod(pod) || qosClass === "Guaranteed") return GUARANTEED_OOM_SCORE_ADJ;
  if (qosClass === "BestEffort") return BEST_EFFORT_OOM_SCORE_ADJ;

  const extra = computeUnassignedRequest(pod);
  const scoreOf = (one: Container) => {
    const request = memoryBytesOf(one.resources.requests) + extra;
    const score = 1000 - Math.floor((1000 * request) / nodeMemoryBytes);
    return Math.min(BEST_EFFORT_OOM_SCORE_ADJ - 1, Math.max(1000 + GUARANTEED_OOM_SCORE_ADJ, score));
  };
  const score = scoreOf(container);
  // A sidecar must not die before the containers it serves.
  const isSidecar =
    container.restartPolicy === "Always" && pod.spec.initContainers?.some(({ name }) => name === container.name);
  return isSidecar ? Math.min(score, ...pod.spec.containers.map(scoreOf)) : score;
}

/** The pod-level memory request in excess of its containers' requests, divided among them. */
function computeUnassignedRequest(pod: Pod): number {
  const own = memoryBytesOf(pod.spec.resources?.requests);
  if (own === 0) return 0;
  const { resources: _, ...spec } = pod.spec;
  const assigned = computePodTotal({ ...pod, spec }, "requests", memoryBytesOf);
  return Math.max(0, Math.floor((own - assigned) / pod.spec.containers.length));
}

/** A negative score needs CAP_SYS_RESOURCE; where the kernel refuses it, 0 is the closest there is. */
const clampOomScoreAdj = (score: number, engine: EngineInfo) => (engine.negativeOomScores ? score : Math.max(0, score));

/**
 * `nvidia.com/gpu: 2` becomes what `docker run --gpus 2` sends; any other `vendor/class: n` takes the first n CDI
 * devices of that kind. `nvidia.com/gpu=all` is one CDI device, as podman takes it; engines without CDI give that GPU or all of
 * them. Unknown names have no effect, as upstream.
 */
export function computeDeviceRequests(container: Container, engine: EngineInfo): DeviceRequest[] {
  const requests: DeviceRequest[] = [];
  for (const [name, quantity] of Object.entries(container.resources.limits ?? {})) {
    const count = quantityToWhole(quantity);
    if (!name.includes("/") || count === 0) continue;
    const devices = (engine.cdiDevices ?? []).filter(
      (device) => device === name || (device.startsWith(`${name}=`) && !device.endsWith("=all")),
    );
    if (devices.length > 0) {
      if (devices.length < count) {
        const message = `${count} wanted, the engine has ${devices.length}`;
        throw unsupported(`resources.limits["${name}"]`, message);
      }
      requests.push({ Driver: "cdi", DeviceIDs: devices.slice(0, count) });
    } else if (/^nvidia\.com\/gpu(?:=|$)/.test(name)) {
      const [, id = ""] = name.split("=");
      const which = id === "" ? { Count: count } : id === "all" ? { Count: -1 } : { DeviceIDs: [id] };
      requests.push({ Driver: "", ...which, Capabilities: [["gpu"]] });
    }
  }
  return requests;
}

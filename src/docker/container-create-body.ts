import type { Container, Pod } from "../base/api/pod.ts";
import type { ContainerRequest, Mount, Owner } from "../base/model/container-engine.ts";
import { toContainerLogPath } from "../base/model/log-path.ts";
import type { EngineInfo } from "../base/model/node.ts";
import { computeContainerLimits } from "../plan/container-limits.ts";
import type { ContainerCreateBody, DeviceMapping, HostConfig, MountPoint } from "./engine/container-create-body.ts";
import { toContainerLabels } from "./labels.ts";
import { unsupported } from "./mapping-error.ts";
import {
  clampOomScoreAdj,
  computeDeviceRequests,
  computeOomScoreAdj,
  computePidsLimit,
  toResources,
} from "./resources.ts";
import { computeCgroupParent, computeRuntime, computeUsernsMode, toLogConfig } from "./sandbox-create-body.ts";
import {
  computeGroupAdd,
  computeProcPaths,
  computeSecurityContext,
  computeSecurityOpt,
  computeUser,
  hasSecurityOption,
  isApiAtLeast,
} from "./security.ts";

const HOSTS_PATH = "/etc/hosts";

/** volumeMounts, then /etc/hosts unless a volume is mounted there, then the termination log. Source: kubelet. */
function computeAllMounts({ container, mounts, paths }: ContainerRequest): Mount[] {
  const all = [...mounts];
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
    Devices: devices,
    ...(deviceRequests.length > 0 && { DeviceRequests: deviceRequests }),
    OomScoreAdj: clampOomScoreAdj(computeOomScoreAdj(pod, container, node.memoryBytes), engine),
    ...(cgroupParent && { CgroupParent: cgroupParent }),
    ...(runtime && { Runtime: runtime }),
    LogConfig: toLogConfig(settings),
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
 * of the pod share with its IPC namespace. A volume does not start with the image's files.
 */
function toBind({ type, source, target, readOnly, propagation, relabel }: Mount, engine: EngineInfo): string {
  const options = [
    ...(readOnly ? ["ro"] : []),
    ...(relabel && hasSecurityOption(engine, "selinux") ? ["Z"] : []),
    ...(propagation ? [PROPAGATION[propagation]] : []),
    ...(type === "volume" ? ["nocopy"] : []),
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
      return { ...common, VolumeOptions: { NoCopy: true, ...(subPath && { Subpath: subPath }) } };
    case "image":
      need("1.48", "an image volume");
      return { ...common, ReadOnly: true, ...(subPath && { ImageOptions: { Subpath: subPath } }) };
    default:
      return type satisfies never;
  }
}

/** `recursiveReadOnly: Disabled` has to be said: since API 1.44 whole trees are read-only by default. */
const isTopReadOnly = ({ type, readOnly, recursiveReadOnly, relabel }: Mount, engine: EngineInfo) =>
  type === "bind" && readOnly && recursiveReadOnly === undefined && !relabel && isApiAtLeast(engine, "1.44");

/** Binds, as dockershim, where that form can say it; it cannot when a path has a colon (and the other has no `Z`). */
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

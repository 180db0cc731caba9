import type { Container, Pod } from "../base/api/pod.ts";
import type { ContainerRequest } from "../base/model/container-engine.ts";
import { toContainerLogPath } from "../base/model/log-path.ts";
import type { Mount } from "../base/model/mount.ts";
import { computeContainerLimits } from "../plan/container-limits.ts";
import { computeMounts } from "./container-mounts.ts";
import type { ContainerCreateBody, DeviceMapping, HostConfig } from "./engine/container-create-body.ts";
import { toContainerLabels } from "./labels.ts";
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
 * @throws MappingError with the reason and message for the container's status; UnsupportedError when this engine cannot
 * do what the manifest asks.
 */
export function toContainerCreateBody(request: ContainerRequest): ContainerCreateBody {
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
      logPath: toContainerLogPath(request.paths.podLogsDir, pod.metadata, container.name, request.restartCount),
    }),
    HostConfig: toHostConfig(request),
  };
}

/**
 * Devices of a container: its mounts of hostPath volumes of type CharDevice and BlockDevice. A bind mount alone shows the
 * file, but the device cgroup refuses to open it. Privileged containers may open every device and keep the mount.
 */
function computeHostDevices({ spec }: Pod, container: Container): DeviceMapping[] {
  if (container.securityContext?.privileged) return [];
  return (container.volumeMounts ?? []).flatMap(({ name, mountPath, readOnly, subPath, subPathExpr }) => {
    const source = spec.volumes?.find((volume) => volume.name === name)?.hostPath;
    const isDevice = source?.type === "CharDevice" || source?.type === "BlockDevice";
    if (!source || !isDevice || subPath || subPathExpr) return [];
    return [{ PathOnHost: source.path, PathInContainer: mountPath, CgroupPermissions: readOnly ? "r" : "rwm" }];
  });
}

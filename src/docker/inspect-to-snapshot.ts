import * as v from "valibot";
import type { Observed } from "../base/model/container-engine.ts";
import type { PodRef } from "../base/model/pod.ts";
import type { ContainerSnapshot, ContainerState, SandboxSnapshot } from "../base/model/pod-snapshot.ts";
import { jsonIfValid } from "../base/text/json.ts";
import type { ContainerInspect } from "./engine/schemas.ts";
import { LABEL } from "./labels.ts";

/** Docker's "never" for a time. */
const NEVER = "0001-01-01";

function toDate(text: string): Date | undefined {
  if (text === "" || text.startsWith(NEVER)) return undefined;
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? undefined : date;
}

/** A paused container counts as running: the kubelet neither pauses nor resumes containers. */
function toState(inspect: ContainerInspect): ContainerState {
  const { Status, Running, Dead } = inspect.State;
  if (Running && !Dead) return "running";
  if (Status === "created") return "created";
  if (Status === "exited" || Status === "dead" || Status === "removing" || Dead) return "exited";
  return Status === "restarting" ? "running" : "unknown";
}

/** Errors of a start that say nothing about the container: its sandbox, or the engine itself, was gone. */
const NOT_ITS_OWN_ERROR =
  /non running container|can(no|')t join \w+ of|No such container|connection error|transport is closing|ttrpc: closed|context canceled|shutting down/i;

/** The container never ran, for a reason that is not its own: it has not failed, and is made again. */
const isUnstarted = ({ Status, Error: error }: ContainerInspect["State"]): boolean =>
  Status === "created" && NOT_ITS_OWN_ERROR.test(error);

/** The pod that labels name; undefined for a container without one. */
function podOf(labels: Readonly<Record<string, string>>): PodRef | undefined {
  const { [LABEL.podUid]: uid, [LABEL.podName]: name, [LABEL.podNamespace]: namespace } = labels;
  return uid && name && namespace ? { uid, name, namespace } : undefined;
}

const HealthcheckSchema = v.object({
  test: v.array(v.string()),
  intervalMs: v.number(),
  timeoutMs: v.number(),
  startPeriodMs: v.number(),
  retries: v.number(),
});

/** `docker network disconnect` of a sandbox: the pod needs another one. Source: the kubelet's podSandboxChanged. */
export const isDisconnected = ({ NetworkSettings }: Pick<ContainerInspect, "NetworkSettings">) =>
  Object.keys(NetworkSettings.Networks).length === 0;

/** A label that cannot be read is as if it were not there. */
const wholeOf = (text = "") => (/^-?\d+$/.test(text) ? Number(text) : undefined);

/**
 * A pod's container or sandbox; undefined for a container that is not part of a pod.
 * @param pluginIps addresses that network plugins gave the sandbox; undefined: it is not attached
 */
export function toObserved(
  inspect: ContainerInspect,
  writableLayerPath = "",
  pluginIps: readonly string[] | undefined = undefined,
): Observed | undefined {
  const labels = inspect.Config.Labels;
  const pod = podOf(labels);
  const name = labels[LABEL.containerName];
  if (!pod || !name) return undefined;
  const createdAt = toDate(inspect.Created) ?? new Date(0);
  const onDisk = {
    dockerName: inspect.Name.replace(/^\//, ""),
    logPath: inspect.LogPath,
    writableLayerPath,
  };
  const startedAt = toDate(inspect.State.StartedAt);
  const removal = inspect.State.Status === "removing" ? { isBeingRemoved: true } : {};
  if (labels[LABEL.type] === "podsandbox") {
    // A process that ended between the start of a sandbox and its attachment left it without a network.
    const isDetached = labels[LABEL.networkPlugin] !== undefined && pluginIps === undefined;
    const isUp = inspect.State.Running && !inspect.State.Dead && !isDetached && !isDisconnected(inspect);
    const sandbox: SandboxSnapshot = {
      id: inspect.Id,
      state: isUp ? "ready" : "notready",
      attempt: wholeOf(labels[LABEL.sandboxAttempt]) ?? 0,
      hash: labels[LABEL.sandboxHash] ?? "",
      ...(labels[LABEL.initHash] !== undefined && { initHash: labels[LABEL.initHash] }),
      createdAt,
      ips: isUp ? [...(pluginIps ?? toIps(inspect))] : [],
      hostNetwork: inspect.HostConfig.NetworkMode === "host",
      pid: inspect.State.Pid,
      ...(startedAt && { startedAt }),
      imageId: inspect.Image,
      cgroupParent: inspect.HostConfig.CgroupParent,
      labels,
      ...onDisk,
    };
    return { kind: "sandbox", pod, sandbox, ...removal };
  }
  if (labels[LABEL.type] !== "container") return undefined;
  const state = toState(inspect);
  const backOffMs = wholeOf(labels[LABEL.backOff]);
  const healthcheck = v.safeParse(HealthcheckSchema, jsonIfValid(labels[LABEL.healthcheck] ?? ""));
  const finishedAt = state === "running" ? undefined : toDate(inspect.State.FinishedAt);
  const container: ContainerSnapshot = {
    id: inspect.Id,
    name,
    sandboxId: labels[LABEL.sandboxId] ?? "",
    state,
    restartCount: wholeOf(labels[LABEL.restartCount]) ?? 0,
    hash: labels[LABEL.containerHash] ?? "",
    ...(backOffMs !== undefined && { backOffMs }),
    ...(healthcheck.success && { healthcheck: healthcheck.output }),
    image: inspect.Config.Image,
    imageId: inspect.Image,
    createdAt,
    ...(startedAt && { startedAt }),
    ...(finishedAt && { finishedAt }),
    exitCode: state === "running" || isUnstarted(inspect.State) ? 0 : inspect.State.ExitCode,
    oomKilled: inspect.State.OOMKilled,
    error: inspect.State.Error,
    pid: inspect.State.Pid,
    paused: inspect.State.Paused,
    limits: toLimits(inspect.HostConfig),
    labels,
    ...onDisk,
  };
  return { kind: "container", pod, container, ...removal };
}

const toLimits = ({ CpuShares, CpuPeriod, CpuQuota, Memory, MemorySwap }: ContainerInspect["HostConfig"]) => ({
  cpuShares: CpuShares,
  cpuPeriodUs: CpuPeriod,
  cpuQuotaUs: CpuQuota,
  memoryBytes: Memory,
  memorySwapBytes: MemorySwap,
});

/** Addresses of a sandbox in the first of its networks, IPv4 first. */
export function toIps(inspect: ContainerInspect): string[] {
  const { Networks } = inspect.NetworkSettings;
  const { IPAddress, GlobalIPv6Address } =
    Networks[inspect.HostConfig.NetworkMode] ?? Object.values(Networks).find((network) => network !== null) ?? {};
  return [IPAddress, GlobalIPv6Address].flatMap((ip) => ip || []);
}

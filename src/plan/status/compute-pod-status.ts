import type {
  Container,
  ContainerState,
  ContainerStateTerminated,
  ContainerStatus,
  Pod,
  PodCondition,
  PodPhase,
  PodSpec,
  PodStatus,
  QOSClass,
} from "../../base/api/pod.ts";
import { isEphemeral, statusesOf } from "../../base/model/pod.ts";
import {
  attemptsOf,
  type ContainerLimits,
  type ContainerSnapshot,
  isRunning,
  isTerminated,
  type PodSnapshot,
} from "../../base/model/pod-snapshot.ts";
import { toApiTime } from "../../base/text/api-time.ts";
import type { ContainerProbeState, PodEnd, WaitingReason } from "../pod-plan.ts";
import { computeActualResources, hasResources } from "../pod-resources.ts";
import { decideRestart, isSidecar } from "../restart-policy.ts";

type Verdict = Pick<PodCondition, "status" | "reason" | "message">;

/** Conditions of this node alone that come and go. */
export const OWN_CONDITIONS = new Set(["PodResizePending", "PodResizeInProgress", "ManifestLive", "DependenciesMet"]);
const COMPUTED_CONDITIONS = OWN_CONDITIONS.union(
  new Set(["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled", "DisruptionTarget"]),
);

/** The conditions that clients have set, as the readiness gates of a pod ask for them. */
export const foreignConditions = (conditions: readonly PodCondition[] = []): PodCondition[] =>
  conditions.filter(({ type }) => !COMPUTED_CONDITIONS.has(type));

/** The status with these conditions of clients, in place of those it has. */
export const withForeignConditions = (status: PodStatus, foreign: readonly PodCondition[]): PodStatus => ({
  ...status,
  conditions: [...(status.conditions ?? []).filter(({ type }) => COMPUTED_CONDITIONS.has(type)), ...foreign],
});

interface ConditionsInput {
  spec: PodSpec;
  phase: PodPhase;
  initStatuses: readonly ContainerStatus[];
  statuses: readonly ContainerStatus[];
  /** The sandbox runs and has its network. */
  hasSandbox: boolean;
  /** Conditions of the status before this one: an unchanged status keeps its transition time, clients' are kept. */
  previous: readonly PodCondition[];
  /** RFC 3339. */
  now: string;
  /** More conditions of our own, e.g. that an edit of the manifest is not live. */
  extra?: readonly ({ type: string } & Verdict)[];
}

/** The conditions of a pod, in upstream's order, and those of clients behind them. Source: the kubelet's status/generate.go. */
function computeConditions(input: ConditionsInput): PodCondition[] {
  const containersReady = judgeContainersReady(input);
  const isReady = containersReady.status === "True";
  // A pod that has ended starts no container, though its sandbox is stopped a moment later: its end is one status.
  const startsContainers = input.hasSandbox && input.phase !== "Succeeded" && input.phase !== "Failed";
  const known = new Map(input.previous.map(({ type, status }) => [type, status]));
  const conditions: ({ type: string } & Verdict)[] = [
    { type: "PodReadyToStartContainers", status: startsContainers ? "True" : "False" },
    { type: "Initialized", ...judgeInitialized(input) },
    { type: "Ready", ...(isReady ? judgeReadinessGates(input.spec.readinessGates ?? [], known) : containersReady) },
    { type: "ContainersReady", ...containersReady },
    { type: "PodScheduled", status: "True" },
    ...(input.extra ?? []),
  ];
  const own = conditions.map((condition) => {
    const before = input.previous.find(({ type }) => type === condition.type);
    const lastTransitionTime =
      before?.status === condition.status && before.lastTransitionTime ? before.lastTransitionTime : input.now;
    return { ...condition, lastProbeTime: null, lastTransitionTime } as PodCondition;
  });
  return [...own, ...foreignConditions(input.previous)];
}

/** The containers without a status, and those that are not as they should be; "" when there are none. */
function describeOthers(
  containers: readonly Container[],
  statuses: readonly ContainerStatus[],
  isAsWanted: (container: Container, status: ContainerStatus) => boolean,
  state: "incomplete" | "unready",
): string {
  const found = containers.map(
    (container) => [container, statuses.find(({ name }) => name === container.name)] as const,
  );
  const unknown = found.filter(([, status]) => !status);
  const others = found.filter(([container, status]) => status && !isAsWanted(container, status));
  const describe = (what: string, some: typeof found) =>
    some.length === 0 ? [] : [`containers with ${what} status: [${some.map(([{ name }]) => name).join(" ")}]`];
  return [...describe("unknown", unknown), ...describe(state, others)].join(", ");
}

function judgeInitialized({ spec, phase, initStatuses, statuses }: ConditionsInput): Verdict {
  if (phase === "Succeeded") return { status: "True", reason: "PodCompleted" };
  if (statuses.some(({ state, lastState }) => state.running || state.terminated || lastState.terminated)) {
    return { status: "True" };
  }
  const isComplete = (container: Container, { started, ready }: ContainerStatus) =>
    (isSidecar(container) ? started : ready) ?? false;
  const message = describeOthers(spec.initContainers ?? [], initStatuses, isComplete, "incomplete");
  return message === "" ? { status: "True" } : { status: "False", reason: "ContainersNotInitialized", message };
}

function judgeContainersReady({ spec, phase, initStatuses, statuses }: ConditionsInput): Verdict {
  if (phase === "Succeeded") return { status: "False", reason: "PodCompleted" };
  const containers = [...(spec.initContainers ?? []).filter(isSidecar), ...spec.containers];
  // A pod that is known by its containers alone, and has none yet.
  if (containers.length === 0) return { status: "False", reason: "UnknownContainerStatuses" };
  const message = describeOthers(containers, [...initStatuses, ...statuses], (_, { ready }) => ready, "unready");
  if (message !== "") return { status: "False", reason: "ContainersNotReady", message };
  // Its containers may be running still, for the rest of their grace period.
  return phase === "Failed" ? { status: "False", reason: "PodFailed" } : { status: "True" };
}

/** The Ready condition of a pod whose containers are ready. @param states conditions by type */
export function judgeReadinessGates(
  gates: readonly { conditionType: string }[],
  states: ReadonlyMap<string, string>,
): Verdict {
  const messages: string[] = [];
  for (const { conditionType } of gates) {
    const state = states.get(conditionType);
    if (state === undefined)
      messages.push(`corresponding condition of pod readiness gate "${conditionType}" does not exist.`);
    else if (state !== "True")
      messages.push(`the status of pod readiness gate "${conditionType}" is not "True", but ${state}`);
  }
  if (messages.length === 0) return { status: "True" };
  return { status: "False", reason: "ReadinessGatesNotReady", message: messages.join(", ") };
}

interface PodStatusInput {
  pod: Pod;
  snapshot: PodSnapshot;
  qosClass: QOSClass;
  probes: ReadonlyMap<string, ContainerProbeState>;
  /** Reasons why containers are not running, by container name. */
  waiting: ReadonlyMap<string, WaitingReason>;
  postStartPending: ReadonlySet<string>;
  /** Messages by container id. */
  terminationMessages: ReadonlyMap<string, string>;
  /** Names of images, by image id. */
  imageNames: ReadonlyMap<string, ImageNames>;
  /** Limits that the resources of the containers lead to, by container name; absent: not known. */
  limits?: ReadonlyMap<string, ContainerLimits>;
  /** IPs the pod had last; kept when its sandbox has stopped, as upstream does. */
  lastPodIps: readonly string[];
  /** Address of the node, for hostIP and for pods on the host's network. */
  hostIp: string;
  startTime: Date;
  end?: PodEnd;
  /** Its containers are being stopped: none starts again. */
  isStopping?: boolean;
  previous?: PodStatus;
  /** Absent: those of the status before. */
  previousConditions?: readonly PodCondition[];
  extraConditions?: readonly { type: string; status: "True" | "False"; reason?: string; message?: string }[];
  now: Date;
}

/** Status of a pod that the node refused: the reason only. Source: the kubelet's rejectPod. */
export function rejectedStatus(reason: string, message: string, startTime: Date): PodStatus {
  return { phase: "Failed", message, reason, startTime: formatTime(startTime) };
}

/** The status of a pod as `/pods` shows it, from the snapshot, probe results and the state of its worker. Pure. */
export function computePodStatus(input: PodStatusInput): PodStatus {
  const { pod, snapshot, end } = input;
  const inits = pod.spec.initContainers ?? [];
  const toStatuses = (containers: readonly Container[], isInit: boolean): ContainerStatus[] =>
    containers.map((container) => {
      const waiting = input.waiting.get(container.name);
      const verdict = input.probes.get(container.name);
      const sandboxId = snapshot.sandboxes[0]?.id;
      const attempts = attemptsOf(snapshot, container.name);
      const restarts =
        !isEphemeral(pod.spec, container.name) &&
        decideRestart(pod.spec, container, attempts[0]?.exitCode ?? 0, { isInit }) !== "leave";
      const status = computeContainerStatus({
        container,
        isInit,
        attempts,
        restarts,
        ...(sandboxId ? { sandboxId } : {}),
        ...(waiting ? { waiting } : {}),
        ...(verdict ? { verdict } : {}),
        isPostStartPending: input.postStartPending.has(container.name),
        terminationMessages: input.terminationMessages,
        imageNames: input.imageNames,
        defaultWaitingReason: inits.length > 0 ? "PodInitializing" : "ContainerCreating",
      });
      const isResizable = !isEphemeral(pod.spec, container.name) && (!isInit || isSidecar(container));
      if (isResizable) Object.assign(status, resourcesOf(container, attempts[0], input.limits));
      const shown = end || input.isStopping ? withHistory(status, input.previous) : status;
      const isAssumed = shown === status && isInit && !isSidecar(container) && attempts.length === 0;
      // Source: the kubelet's convertToAPIContainerStatuses (1.35).
      return isAssumed && isInitialized(input)
        ? { ...status, state: { terminated: ASSUMED_DONE }, ready: true }
        : shown;
    });

  const initStatuses = toStatuses(inits, true);
  const statuses = toStatuses(pod.spec.containers, false);
  const ephemeralStatuses = toStatuses(pod.spec.ephemeralContainers ?? [], false).map(toEphemeralStatus);
  const computed = computePhase(pod.spec, initStatuses, statuses);
  const before = input.previous?.phase;
  const phase =
    end?.phase ?? (before === "Running" && computed === "Pending" && hasHistory(statuses) ? "Running" : computed);
  const sandbox = snapshot.sandboxes[0];
  const startTime = formatTime(input.startTime);
  const scheduled = { type: "PodScheduled", status: "True", lastTransitionTime: startTime } as const;
  const conditions: PodCondition[] = computeConditions({
    spec: pod.spec,
    phase,
    initStatuses,
    statuses,
    hasSandbox: sandbox?.state === "ready",
    // The time of PodScheduled is stored with the conditions: a sandbox is younger than the pod, or was made again.
    previous: [scheduled, ...(input.previousConditions ?? input.previous?.conditions ?? [])],
    now: formatTime(input.now),
    extra: input.extraConditions ?? [],
  });
  const ips = podIps(input);
  const paused = snapshot.containers.find((container) => container.paused);
  const why: Omit<PodEnd, "phase"> | undefined =
    end ??
    (paused && {
      reason: "Paused",
      message: `container ${paused.name} is paused: docker unpause ${paused.id.slice(0, 12)}`,
    });
  return {
    phase,
    conditions,
    ...(why?.message ? { message: why.message } : {}),
    ...(why?.reason ? { reason: why.reason } : {}),
    ...(input.hostIp ? { hostIP: input.hostIp, hostIPs: [{ ip: input.hostIp }] } : {}),
    ...(ips.length > 0 ? { podIP: ips[0]!, podIPs: ips.map((ip) => ({ ip })) } : {}),
    startTime,
    ...(initStatuses.length > 0 ? { initContainerStatuses: initStatuses } : {}),
    // Sorted by name, not in the order of the spec. Source: recorded kubelet.
    containerStatuses: statuses.sort((a, b) => (a.name < b.name ? -1 : 1)),
    qosClass: input.qosClass,
    ...(ephemeralStatuses.length > 0 ? { ephemeralContainerStatuses: ephemeralStatuses } : {}),
  };
}

/** The end of an init container that was removed after a main container had been made in the sandbox. */
const ASSUMED_DONE: ContainerStateTerminated = {
  exitCode: 0,
  reason: "Completed",
  message:
    "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally",
};

const isInitialized = ({ pod, snapshot }: PodStatusInput) =>
  pod.spec.containers.some(
    ({ name }) => attemptsOf(snapshot, name)[0]?.sandboxId === (snapshot.sandboxes[0]?.id ?? ""),
  );

/** `resources` and `allocatedResources` of a container that has any. Source: KEP-1287. */
function resourcesOf(
  { name, resources }: Container,
  newest: ContainerSnapshot | undefined,
  limits: PodStatusInput["limits"],
): Pick<ContainerStatus, "resources" | "allocatedResources"> {
  if (!hasResources({ [name]: resources })) return {};
  const inForce = newest && isRunning(newest) ? newest.limits : undefined;
  return {
    ...(resources.requests && { allocatedResources: resources.requests }),
    resources: computeActualResources(resources, inForce, limits?.get(name)),
  };
}

/** Ephemeral containers are neither ready nor started. Source: the kubelet's UpdatePodStatus. */
const toEphemeralStatus = ({ started: _, ...status }: ContainerStatus): ContainerStatus => ({
  ...status,
  ready: false,
});

/** The end of a container that was removed before it was seen to end. Source: the status manager's TerminatePod. */
const NOT_FOUND: ContainerStateTerminated = {
  exitCode: 137,
  reason: "ContainerStatusUnknown",
  message: "The container could not be located when the pod was terminated",
};

/** Attempts are removed when a pod has ended, and while it stops, the newest perhaps first; what was known of them stays, as upstream. */
function withHistory(status: ContainerStatus, previous: PodStatus | undefined): ContainerStatus {
  const before = statusesOf(previous).find(({ name }) => name === status.name);
  if (before?.containerID && (status.containerID === undefined || status.restartCount < before.restartCount)) {
    const end = { ready: false, ...(before.started && { started: false }), state: { terminated: NOT_FOUND } };
    return before.state.terminated ? before : { ...before, ...end };
  }
  const isSame = status.containerID !== undefined && before?.containerID === status.containerID;
  return isSame && before?.lastState.terminated && !status.lastState.terminated
    ? { ...status, lastState: before.lastState }
    : status;
}

/** Whether every waiting container has run before, so that "Pending" would be a wrong step back. */
function hasHistory(statuses: readonly ContainerStatus[]): boolean {
  return statuses.every(({ state, lastState }) => !state.waiting || lastState.terminated !== undefined);
}

function podIps({ pod, snapshot, hostIp, lastPodIps }: PodStatusInput): readonly string[] {
  if (pod.spec.hostNetwork) return hostIp ? [hostIp] : [];
  const ips = snapshot.sandboxes[0]?.ips ?? [];
  return ips.length > 0 ? ips : lastPodIps;
}

interface Tally {
  waiting: number;
  running: number;
  stopped: number;
  succeeded: number;
  /** Stopped containers that will be restarted. */
  restarting: number;
  unknown: number;
}

/** Pending while any container waits for its first start. Source: the kubelet's getPhase. */
export function computePhase(
  spec: PodSpec,
  initStatuses: readonly ContainerStatus[],
  statuses: readonly ContainerStatus[],
): PodPhase {
  const inits = spec.initContainers ?? [];
  const progress = inits.map((container) => initProgress(spec, container, find(initStatuses, container.name)));
  if (progress.includes("failed")) return "Failed";

  const tally = tallyStates(spec, statuses);
  // Once a main container ran, initialization is history, even if the engine forgot the init containers.
  if (progress.some((step) => step !== "done") && tally.running + tally.stopped === 0) return "Pending";
  if (tally.waiting > 0) return "Pending";
  if (tally.running > 0 && tally.unknown === 0) return "Running";
  if (tally.running === 0 && tally.stopped > 0 && tally.unknown === 0) {
    if (tally.restarting > 0) return "Running";
    return tally.stopped === tally.succeeded ? "Succeeded" : "Failed";
  }
  return "Pending";
}

const find = (statuses: readonly ContainerStatus[], name: string) => statuses.find((status) => status.name === name);

/** `failed` = and it will not be retried, by the pod's policy, its own, or its rules. */
function initProgress(
  spec: PodSpec,
  container: Container,
  status: ContainerStatus | undefined,
): "done" | "pending" | "failed" {
  if (isSidecar(container)) return status?.started ? "done" : "pending";
  if (!status) return "pending";
  if (status.state.terminated?.exitCode === 0) return "done";
  const end = status.state.terminated ?? (status.state.waiting && status.lastState.terminated);
  if (!end || end.exitCode === 0) return "pending";
  return decideRestart(spec, container, end.exitCode, { isInit: true }) === "leave" ? "failed" : "pending";
}

function tallyStates(spec: PodSpec, statuses: readonly ContainerStatus[]): Tally {
  const tally: Tally = { waiting: 0, running: 0, stopped: 0, succeeded: 0, restarting: 0, unknown: 0 };
  for (const container of spec.containers) {
    const status = find(statuses, container.name);
    const end = status && (status.state.terminated ?? status.lastState.terminated);
    if (!status) tally.unknown++;
    else if (status.state.running) tally.running++;
    else if (end) {
      tally.stopped++;
      if (status.state.terminated?.exitCode === 0) tally.succeeded++;
      const decision = decideRestart(spec, container, end.exitCode, { isInit: false });
      // A waiting container is about to run again, for any exit code.
      if (status.state.waiting || decision !== "leave") tally.restarting++;
    } else tally.waiting++;
  }
  return tally;
}

export interface ContainerStatusInput extends Pick<PodStatusInput, "terminationMessages" | "imageNames"> {
  container: Container;
  isInit: boolean;
  /** Every attempt the engine still has, newest first. */
  attempts: ContainerSnapshot[];
  /** Id of the sandbox that counts; attempts of older sandboxes are history. */
  sandboxId?: string;
  /** Why it waits, from the plan or from the last failed start. */
  waiting?: WaitingReason;
  /** Whether the newest attempt, when it has ended, is followed by another one. */
  restarts: boolean;
  verdict?: ContainerProbeState;
  /** A postStart hook that has not ended keeps the container from being ready. */
  isPostStartPending: boolean;
  /** Waiting reason of a container that has none of its own. */
  defaultWaitingReason: "ContainerCreating" | "PodInitializing";
}

/** Names of an image, for `image` and `imageID`. */
export interface ImageNames {
  /** First tag the engine lists. */
  tag?: string;
  /** `repository@sha256:…` of a pulled image. */
  digest?: string;
}

/** Zero time as Go prints it. */
const ZERO_TIME = "0001-01-01T00:00:00Z";

/** RFC 3339 in whole seconds, as the API has it. */
export function formatTime(time: Date | undefined): string {
  return time && time.getTime() > 0 ? toApiTime(time) : ZERO_TIME;
}

/** The terminated state of a dead container. Source: dockershim's reasons (Completed, Error, OOMKilled, ContainerCannotRun). */
function toTerminatedState(
  container: ContainerSnapshot,
  terminationMessages: ReadonlyMap<string, string>,
): ContainerStateTerminated {
  const neverStarted = !container.startedAt;
  const message = neverStarted ? container.error : (terminationMessages.get(container.id) ?? container.error);
  return {
    exitCode: container.exitCode,
    reason: terminatedReason(container, neverStarted),
    ...(message ? { message } : {}),
    startedAt: formatTime(container.startedAt ?? container.createdAt),
    finishedAt: formatTime(container.finishedAt ?? container.createdAt),
    containerID: `docker://${container.id}`,
  };
}

function terminatedReason(container: ContainerSnapshot, neverStarted: boolean): string {
  if (container.oomKilled) return "OOMKilled";
  if (neverStarted) return "ContainerCannotRun";
  return container.exitCode === 0 ? "Completed" : "Error";
}

/** One entry of `containerStatuses` or `initContainerStatuses`. Source: the kubelet's convertToAPIContainerStatuses. */
export function computeContainerStatus(input: ContainerStatusInput): ContainerStatus {
  const { container, attempts, waiting } = input;
  // A regular init container never counts as started; a sidecar does.
  const isRegularInit = input.isInit && !isSidecar(container);
  // One that was only created is removed when it cannot start: its restart count, which would fall, is not shown before.
  const newest = attempts.find((attempt) => isRunning(attempt) || isTerminated(attempt)) ?? attempts[0];
  const previous = attempts.find((attempt) => attempt !== newest && isTerminated(attempt));
  const terminated = (attempt: ContainerSnapshot | undefined): ContainerState =>
    attempt ? { terminated: toTerminatedState(attempt, input.terminationMessages) } : {};

  let state: ContainerState;
  let lastState = terminated(previous);
  let ready = false;
  let started = false;
  if (newest && isRunning(newest)) {
    state = { running: { startedAt: formatTime(newest.startedAt) } };
    const verdict = input.verdict?.containerId === newest.id ? input.verdict : undefined;
    started = (verdict ? verdict.started : !container.startupProbe) && !input.isPostStartPending;
    ready = started && (verdict ? verdict.ready : !container.readinessProbe) && !isRegularInit;
  } else if (newest && isTerminated(newest) && !newest.startedAt && !input.restarts && isStartFailure(waiting)) {
    // It waits for nothing any more. Source: convertStatusToAPIStatus asks ShouldContainerBeRestarted first.
    state = terminated(newest);
  } else if (newest && isTerminated(newest) && !waiting && (newest.startedAt || newest.sandboxId === input.sandboxId)) {
    if (newest.startedAt) {
      state = terminated(newest);
      // A regular init container that succeeded has done its part.
      ready = isRegularInit && newest.exitCode === 0;
    } else {
      const message = `failed to start container "${newest.id}": Error response from daemon: ${newest.error}`;
      state = { waiting: { reason: "RunContainerError", message } };
      lastState = terminated(newest);
    }
  } else {
    state = { waiting: waiting ? { ...waiting } : { reason: input.defaultWaitingReason } };
    if (newest && isTerminated(newest)) lastState = terminated(newest);
  }
  return {
    name: container.name,
    state,
    lastState,
    ready,
    restartCount: newest?.restartCount ?? 0,
    image: (newest && input.imageNames.get(newest.imageId)?.tag) ?? container.image ?? "",
    imageID: newest ? toImageId(newest.imageId, input.imageNames.get(newest.imageId)?.digest) : "",
    ...(newest ? { containerID: `docker://${newest.id}` } : {}),
    ...(newest && container.lifecycle?.stopSignal && { stopSignal: container.lifecycle.stopSignal }),
    // Upstream sets `started` for main containers and sidecars only. Source: recorded kubelet.
    ...(isRegularInit ? {} : { started }),
  };
}

/** Waits for nothing other than a failed start. */
const isStartFailure = (waiting: WaitingReason | undefined) => !waiting || waiting.reason === "RunContainerError";

/** `docker-pullable://repo@sha256:…` for a pulled image, else `docker://sha256:…`. Source: dockershim. */
function toImageId(imageId: string, digest: string | undefined): string {
  return digest ? `docker-pullable://${digest}` : `docker://${imageId}`;
}

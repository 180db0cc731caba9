import type { Container } from "../../base/api/container.ts";
import type { ContainerStatus, PodCondition, PodPhase, PodSpec, PodStatus } from "../../base/api/pod.ts";
import { isSidecar } from "../restart-policy.ts";

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
export function computeConditions(input: ConditionsInput): PodCondition[] {
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

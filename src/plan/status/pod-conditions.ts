import type { ContainerStatus, PodCondition, PodPhase, PodSpec } from "../../base/api/pod.ts";
import { isSidecar } from "../restart-policy.ts";

type Verdict = Pick<PodCondition, "status" | "reason" | "message">;

interface ConditionsInput {
  spec: PodSpec;
  phase: PodPhase;
  initStatuses: readonly ContainerStatus[];
  statuses: readonly ContainerStatus[];
  /** The sandbox runs and has its network. */
  hasSandbox: boolean;
  /** Conditions set for the readiness gates. */
  gates: ReadonlyMap<string, "True" | "False">;
  /** Conditions of the status before this one: an unchanged status keeps its transition time. */
  previous: readonly PodCondition[];
  /** RFC 3339. */
  now: string;
  /** More conditions of our own, e.g. that an edit of the manifest is not live. */
  extra?: readonly ({ type: string } & Verdict)[];
}

/** The conditions of a pod, in upstream's order. Source: the kubelet's status/generate.go. */
export function computeConditions(input: ConditionsInput): PodCondition[] {
  const containersReady = judgeContainersReady(input);
  const conditions: ({ type: string } & Verdict)[] = [
    { type: "PodReadyToStartContainers", status: input.hasSandbox ? "True" : "False" },
    { type: "Initialized", ...judgeInitialized(input) },
    { type: "Ready", ...judgeReady(input, containersReady) },
    { type: "ContainersReady", ...containersReady },
    { type: "PodScheduled", status: "True" },
    ...(input.extra ?? []),
  ];
  return conditions.map((condition) => {
    const before = input.previous.find(({ type }) => type === condition.type);
    const lastTransitionTime =
      before?.status === condition.status && before.lastTransitionTime ? before.lastTransitionTime : input.now;
    return { ...condition, lastProbeTime: null, lastTransitionTime } as PodCondition;
  });
}

const list = (names: string[]) => `[${names.join(" ")}]`;

function judgeInitialized({ spec, phase, initStatuses, statuses }: ConditionsInput): Verdict {
  if (phase === "Succeeded") return { status: "True", reason: "PodCompleted" };
  if (statuses.some(({ state, lastState }) => state.running || state.terminated || lastState.terminated)) {
    return { status: "True" };
  }
  const unknown: string[] = [];
  const incomplete: string[] = [];
  for (const container of spec.initContainers ?? []) {
    const status = initStatuses.find(({ name }) => name === container.name);
    if (!status) unknown.push(container.name);
    else if (!(isSidecar(container) ? status.started : status.ready)) incomplete.push(container.name);
  }
  const messages = [];
  if (unknown.length > 0) messages.push(`containers with unknown status: ${list(unknown)}`);
  if (incomplete.length > 0) messages.push(`containers with incomplete status: ${list(incomplete)}`);
  if (messages.length === 0) return { status: "True" };
  return { status: "False", reason: "ContainersNotInitialized", message: messages.join(", ") };
}

function judgeContainersReady({ spec, phase, initStatuses, statuses }: ConditionsInput): Verdict {
  if (phase === "Succeeded") return { status: "False", reason: "PodCompleted" };
  const unknown: string[] = [];
  const unready: string[] = [];
  const judge = (name: string, status: ContainerStatus | undefined) => {
    if (!status) unknown.push(name);
    else if (!status.ready) unready.push(name);
  };
  for (const container of spec.initContainers ?? []) {
    if (isSidecar(container))
      judge(
        container.name,
        initStatuses.find(({ name }) => name === container.name),
      );
  }
  for (const { name } of spec.containers)
    judge(
      name,
      statuses.find((status) => status.name === name),
    );
  const messages = [];
  if (unknown.length > 0) messages.push(`containers with unknown status: ${list(unknown)}`);
  if (unready.length > 0) messages.push(`containers with unready status: ${list(unready)}`);
  if (messages.length > 0) return { status: "False", reason: "ContainersNotReady", message: messages.join(", ") };
  // Its containers may be running still, for the rest of their grace period.
  return phase === "Failed" ? { status: "False", reason: "PodFailed" } : { status: "True" };
}

function judgeReady({ spec, gates }: ConditionsInput, containersReady: Verdict): Verdict {
  return containersReady.status === "True" ? judgeReadinessGates(spec.readinessGates ?? [], gates) : containersReady;
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

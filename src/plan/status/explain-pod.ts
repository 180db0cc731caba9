import type { CoreEvent } from "../../base/api/event.ts";
import { hasCondition, notLive } from "../../base/api/meta.ts";
import type { ContainerStatus, Pod } from "../../base/api/pod.ts";
import { containersOf, hostPortsOf, statusesOf } from "../../base/model/pod.ts";
import { explainPodEnd } from "../pod-end-reasons.ts";
import { explainMessage, explainMount, RETRIED } from "../waiting-reasons.ts";
import {
  type Cause,
  countTimes,
  explainContainer,
  explainIdleProbe,
  findBlockingInit,
  isBeingSetUp,
  isToBeStarted,
  withRefused,
} from "./explain-container.ts";

/** Everything that is known about a pod. */
export interface ExplainInput {
  pod: Pod;
  /** Events of this pod, oldest first. */
  events: readonly CoreEvent[];
  /** Last lines of each container's log, by container name. */
  logs: ReadonlyMap<string, readonly string[]>;
  /** All pods of the node: one of them may hold a host port. */
  pods: readonly Pod[];
  /** Names of images of the engine: one of them may be meant. Default: none is known. */
  images?: readonly string[];
  /** Processes that listen on host ports of this pod, as `nginx (pid 812)`. Default: none is known. */
  portHolders?: ReadonlyMap<number, string>;
  /** Errors of refused manifests, with their places. Default: none is known. */
  refused?: readonly string[];
  now: Date;
}

/** Why a pod is not ready; the same for the terminal, JSON and the page. */
export interface PodExplanation {
  namespace: string;
  name: string;
  phase: string;
  isReady: boolean;
  /** The condition that holds it back: `Ready is False: containers with unready status: [app]`. */
  condition: string | undefined;
  causes: Cause[];
  /** Faults of a pod that is ready: restarts of a short time ago, a container that is paused, a probe that cannot run. */
  recent: Cause[];
  /** Why the newest manifest is not the one that runs; undefined when it is. */
  notInForce: string | undefined;
}

/** Restarts within this time are explained. */
const RECENT_MS = 10 * 60_000;

/** Explains a pod's status, events and logs. Pure: the same input gives the same text. */
export function explainPod(input: ExplainInput): PodExplanation {
  const { pod, now } = input;
  const { metadata, status = {} } = pod;
  const removal = explainRemoval(input);
  const isReady = (hasCondition(status, "Ready") || status.phase === "Succeeded") && !removal;
  const statuses = statusesOf(pod.status);
  const causes = [...podCauses(input)];
  const recent = [...explainPaused(pod)];
  for (const container of statuses) {
    const spec = containersOf(pod.spec).find(({ name }) => name === container.name);
    if (!spec) continue;
    const isUnwell = !isFine(pod, container);
    const events = input.events.filter(
      ({ involvedObject, reason }) =>
        involvedObject.fieldPath?.includes(`{${spec.name}}`) ||
        /^(SandboxChanged|ImageUpdat|EnvironmentChanged)/.test(reason),
    );
    const idle = isUnwell ? undefined : explainIdleProbe(spec, container, events);
    if (idle) recent.push(idle);
    if (!isUnwell && !(isReady && wasRestarted(container, now))) continue;
    if (causes.length > 0 && (isEndedByNode(pod) || waitsForOthers(pod, container))) continue;
    const cause = explainContainer({
      pod,
      spec,
      status: container,
      events,
      log: isUnwell ? (input.logs.get(spec.name) ?? []) : [],
      isInit: status.initContainerStatuses?.includes(container) ?? false,
      images: input.images ?? [],
      now,
    });
    (isUnwell ? causes : recent).push(cause);
  }
  return {
    namespace: metadata.namespace ?? "default",
    name: metadata.name ?? "",
    phase: removal ? "Terminating" : (status.phase ?? "Unknown"),
    isReady,
    condition: isReady || removal ? undefined : heldBackBy(pod),
    causes: removal ? [removal] : isReady ? [] : withRefused(mostUseful(causes), input.refused).map(withPlainText),
    recent: recent.map(withPlainText),
    notInForce: notLive(status)?.message,
  };
}

/** Messages and logs come from programs: they must not control the reader's terminal. */
const withPlainText = (cause: Cause): Cause => ({
  ...cause,
  problem: toPlainText(cause.problem),
  facts: cause.facts.map(toPlainText),
});

function wasRestarted({ restartCount, lastState, state }: ContainerStatus, now: Date): boolean {
  const endedAt = Date.parse(lastState.terminated?.finishedAt ?? "");
  return restartCount > 0 && state.running !== undefined && now.getTime() - endedAt < RECENT_MS;
}

/** The end of its pod, not its own, is what a container of it has to explain. */
const isEndedByNode = ({ status }: Pod): boolean => status?.phase === "Failed" && Boolean(status.reason);

/** Whether a container waits for its pod or for init containers, which have causes of their own. */
const waitsForOthers = (pod: Pod, container: ContainerStatus): boolean =>
  waitsForVolume(container) ||
  (isToBeStarted(container) && (isBeingSetUp(pod) || findBlockingInit(pod, container.name) !== undefined));

/** An edit gave a volume to a pod that runs already. */
const waitsForVolume = ({ state }: ContainerStatus): boolean => state.waiting?.reason === "FailedMount";

/** A container that does what it should: it is ready, or it ended well where that is wanted. */
function isFine({ spec, status: { initContainerStatuses = [] } = {} }: Pod, status: ContainerStatus): boolean {
  const { terminated } = status.state;
  const isInit = initContainerStatuses.includes(status);
  if (terminated?.exitCode === 0) return isInit || spec.restartPolicy !== "Always";
  return status.ready && status.state.running !== undefined;
}

/** The first condition in the order in which a pod becomes ready. */
function heldBackBy({ status }: Pod): string | undefined {
  const conditions = status?.conditions ?? [];
  const order = ["PodScheduled", "DependenciesMet", "Initialized", "ContainersReady", "Ready"];
  const found = order.flatMap((type) => conditions.find((it) => it.type === type && it.status !== "True") ?? [])[0];
  if (!found) return status?.reason ? `${status.reason}: ${status.message ?? ""}` : undefined;
  return `${found.type} is ${found.status}${found.message ? `: ${found.message}` : ""}`;
}

/** A container that only waits for another one explains nothing. */
function mostUseful(causes: readonly Cause[]): Cause[] {
  const own = causes.filter(({ fix }) => fix !== "");
  return own.length > 0 ? own : [...causes];
}

/** A paused container counts as running, as in dockershim. */
function* explainPaused({ status: { reason, message = "" } = {} }: Pod): Generator<Cause> {
  if (reason !== "Paused") return;
  const [problem = "", fix = ""] = message.split(": ");
  yield { subject: "pod", problem: `${problem}: its program stands still`, facts: [], fix };
}

/** Causes that no single container has. */
function* podCauses({ pod, events, pods, portHolders }: ExplainInput): Generator<Cause> {
  const { status = {}, spec } = pod;
  yield* explainPaused(pod);
  if (status.phase === "Failed" && status.reason) {
    const { reason, message = "" } = status;
    const { problem, fix } = explainPodEnd(reason, message);
    yield { subject: "pod", problem: `${problem} (${reason})`, facts: message === "" ? [] : [message.trim()], fix };
  }
  const notBegun = explainNotBegun(pod);
  if (notBegun) yield notBegun;
  // One that runs already is set up again after an edit.
  const isPending =
    (status.phase === "Pending" && !hasCondition(status, "PodReadyToStartContainers")) ||
    (status.phase === "Running" && isBeingSetUp(pod));
  const last = (reason: string) => events.findLast((event) => event.reason === reason);
  const mount = last("FailedMount");
  const stuck = statusesOf(pod.status).find(waitsForVolume);
  const mountMessage = isPending || stuck ? (mount?.message ?? stuck?.state.waiting?.message) : undefined;
  if (mountMessage !== undefined) {
    const facts = [mountMessage, ...(mount ? [seen(mount)] : [])];
    yield { subject: "pod", ...explainMount(mountMessage), facts };
  }
  const sandbox = last("FailedCreatePodSandBox");
  if (sandbox && isPending) {
    const port = /:(\d+)(?::| ).*(?:port is already allocated|address already in use)/.exec(sandbox.message)?.[1];
    const process = portHolders?.get(Number(port));
    const holders = port ? holdersOf(Number(port), pod, pods) : [];
    if (process && holders.length === 0) holders.push(`port ${port} is held by ${process}`);
    const find = process ? "" : ` (ss -ltnp 'sport = :${port}')`;
    const { problem, fix } = port
      ? {
          problem: `host port ${port} is in use`,
          fix: `stop what listens on port ${port}${find}, or choose another hostPort`,
        }
      : (explainMessage(sandbox.message) ?? { problem: "the sandbox of the pod cannot be started", fix: RETRIED });
    yield { subject: "pod", problem, facts: [sandbox.message, seen(sandbox), ...holders], fix };
  }
  if (!mount && !sandbox && isPending) yield* explainSetUp(pod);
  const gates = (spec.readinessGates ?? []).filter(({ conditionType }) => !hasCondition(status, conditionType));
  if (gates.length > 0 && hasCondition(status, "ContainersReady")) {
    yield {
      subject: "pod",
      problem: `the readiness gate ${gates.map(({ conditionType }) => conditionType).join(", ")} is not True`,
      facts: [],
      fix: `set it: kubectl patch pod ${pod.metadata.name} --subresource=status -p '{"status":{"conditions":[{"type":"${gates[0]!.conditionType}","status":"True"}]}}'; or remove spec.readinessGates`,
    };
  }
}

/** The pod waits for another one, is not assigned to the node, or it is not its turn yet. */
function explainNotBegun({ status = {} }: Pod): Cause | undefined {
  const isAwaited = status.reason === "EngineUnavailable";
  if (!(status.phase === "Pending" || isAwaited) || (status.containerStatuses ?? []).length > 0) return undefined;
  const cause = { subject: "pod", facts: [], fix: "" };
  const unscheduled = status.conditions?.find(({ type, status: is }) => type === "PodScheduled" && is === "False");
  if (unscheduled) {
    return { ...cause, problem: "it is not assigned to the node", facts: [unscheduled.message ?? ""].filter(Boolean) };
  }
  const fix = isAwaited ? "kubelet-ts doctor shows why the engine does not answer" : "";
  return { ...cause, problem: status.message ? `it ${status.message}` : "the kubelet has not started it yet", fix };
}

/** Its containers wait for nothing but the volumes and the network of the pod. */
function* explainSetUp(pod: Pod): Generator<Cause> {
  const statuses = statusesOf(pod.status);
  if (!isBeingSetUp(pod) || statuses.length === 0 || !statuses.every(isToBeStarted)) return;
  const message = statuses.map(({ state }) => state.waiting?.message).find((text) => text !== undefined);
  yield {
    subject: "pod",
    problem: `its volumes and its network ${message === undefined ? "are being" : "cannot be"} set up`,
    facts: message === undefined ? [] : [message],
    fix: message === undefined ? "" : "the message names the cause; the kubelet retries automatically",
  };
}

/** Nothing else counts for a pod that is being removed. */
function explainRemoval({ pod, events }: ExplainInput): Cause | undefined {
  const { deletionTimestamp, deletionGracePeriodSeconds } = pod.metadata;
  if (!deletionTimestamp) return undefined;
  const left = statusesOf(pod.status)
    .filter(({ state }) => state.running)
    .map(({ name }) => name);
  const end = `its grace period of ${deletionGracePeriodSeconds} s ends at ${deletionTimestamp}`;
  const refusal = events.findLast(({ reason }) => reason === "FailedKillPod")?.message;
  return {
    subject: "pod",
    problem:
      left.length > 0 ? `it is being removed, and waits for the end of ${left.join(", ")}` : "it is being removed",
    facts: [left.length > 0 && deletionGracePeriodSeconds !== undefined ? end : [], refusal ?? []].flat(),
    fix:
      refusal === undefined
        ? ""
        : "the kubelet retries automatically; if the engine keeps refusing, restart it (without live-restore that stops every container)",
  };
}

function holdersOf(port: number, { metadata }: Pod, pods: readonly Pod[]): string[] {
  return pods
    .filter((other) => other.metadata.uid !== metadata.uid && hostPortsOf(other.spec).includes(port))
    .map((other) => `port ${port} is held by pod "${other.metadata.namespace}/${other.metadata.name}"`);
}

const seen = ({ lastTimestamp, count }: CoreEvent): string => `last seen ${lastTimestamp}, ${countTimes(count)}`;

/** For users, without a line break at the end. */
export function renderExplanation(explanation: PodExplanation): string {
  const { namespace, name, phase, isReady, condition, causes, recent, notInForce } = explanation;
  const pod = `pod "${namespace}/${name}"`;
  const head = isReady
    ? `${pod} is ${phase === "Succeeded" ? "Succeeded" : "Ready"}${recent.length > 0 ? ", but:" : ""}`
    : `${pod} is ${phase}, not Ready${condition ? `: ${condition}` : ""}`;
  const blocks = [...causes, ...recent].map((cause) => renderCause(cause, `${cause.subject}: `));
  return [head, ...blocks, ...renderNotInForce(notInForce)].join("\n\n");
}

export const renderNotInForce = (why: string | undefined): string[] =>
  why === undefined ? [] : [`manifest: its newest text is not in force\n  ${why.replace(". Fix: ", "\n  Fix: ")}`];

/** The problem with its facts and its fix, one line each. */
export const renderCause = ({ problem, facts, fix }: Cause, before = ""): string =>
  [`${before}${problem}`, ...facts.map((fact) => `  ${fact}`), ...(fix ? [`  Fix: ${fix}`] : [])].join("\n");

// ESC [ … letter; ESC ] … BEL or ESC \ (titles, links); other two-byte escapes.
const ESCAPES = /\x1b(?:\[[0-9;?]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])/g;
// C0 and C1 controls except tab and line feed, and the marks that reorder text.
const CONTROLS = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** A text of a program without terminal escapes, control characters and marks that reorder it; tabs and line feeds stay. */
export const toPlainText = (text: string): string =>
  text
    .replace(ESCAPES, "")
    .replace(/\r+(?=[^\r\n])/g, " ")
    .replace(CONTROLS, "");

import type { Container, PodSpec } from "../base/api/pod.ts";
import { containersOf } from "../base/model/pod.ts";
import { attemptsOf, type ContainerId, isTerminated, type PodSnapshot } from "../base/model/pod-snapshot.ts";

/** Consequence of a container's exit: `restart-pod` = every container of the pod starts again in place (KEP-5532). */
type RestartDecision = "restart" | "restart-pod" | "leave";

type Policy = "Always" | "OnFailure" | "Never";

/** An init container with `restartPolicy: Always` is a sidecar. */
export const isSidecar = (container: Container) => container.restartPolicy === "Always";

/** The policy in force for one container: its own if it has one, else the pod's. */
function effectivePolicy(spec: PodSpec, container: Container, isInit: boolean): Policy {
  const own = container.restartPolicy as Policy | undefined;
  if (own) return own;
  const policy = (spec.restartPolicy ?? "Always") as Policy;
  // An init container that succeeded is done under every policy of the pod.
  return isInit && policy === "Always" ? "OnFailure" : policy;
}

/** Whether `exitCode` makes the container run again. Rules come first, the first that matches decides. */
export function decideRestart(
  spec: PodSpec,
  container: Container,
  exitCode: number,
  options: { isInit: boolean },
): RestartDecision {
  for (const rule of container.restartPolicyRules ?? []) {
    const values = rule.exitCodes?.values ?? [];
    const listed = values.includes(exitCode);
    const matches = rule.exitCodes?.operator === "NotIn" ? !listed : listed;
    if (matches) return rule.action === "RestartAllContainers" ? "restart-pod" : "restart";
  }
  const policy = effectivePolicy(spec, container, options.isInit);
  if (policy === "Always") return "restart";
  if (policy === "OnFailure") return exitCode === 0 ? "leave" : "restart";
  return "leave";
}

/** Whether a container killed for failing its liveness or startup probe is restarted. */
export function restartsOnFailure(spec: PodSpec, container: Container, isInit: boolean): boolean {
  return effectivePolicy(spec, container, isInit) !== "Never";
}

/** No container of the pod is ever started a second time. */
export const runsOnce = (spec: PodSpec) =>
  spec.restartPolicy === "Never" &&
  containersOf(spec).every(({ restartPolicy, restartPolicyRules }) => !restartPolicy && !restartPolicyRules);

/** Whether exit code 0 settles the container although another exit code would not. */
export function endsOnlyOnSuccess(spec: PodSpec, name: string): boolean {
  const container = containersOf(spec).find((one) => one.name === name);
  const isInit = spec.initContainers?.some((one) => one.name === name) ?? false;
  if (!container || !restartsOnFailure(spec, container, isInit)) return false;
  return decideRestart(spec, container, 0, { isInit }) === "leave";
}

/** Back-off belongs to a name and a revision of the container: an edited container starts without one. */
export const backOffKey = (name: string, hash: string) => `${name}@${hash}`;

export interface RecoverBackOffInput {
  hashes: { readonly containers: ReadonlyMap<string, string> };
  options: { readonly maxBackOffMs: number };
  snapshot: PodSnapshot;
  exitedAtMs: ReadonlyMap<ContainerId, number>;
  now: Date;
  nowMs: number;
}

/** Back-off of an earlier process, from labels: a restart of the kubelet neither shortens nor prolongs it. */
export function recoverBackOff(input: RecoverBackOffInput): Map<string, BackOffEntry> {
  const { hashes, options, snapshot, exitedAtMs, now, nowMs } = input;
  const backOff = new Map<string, BackOffEntry>();
  for (const [name, hash] of hashes.containers) {
    const newest = attemptsOf(snapshot, name)[0];
    if (newest?.hash !== hash || newest.backOffMs === undefined) continue;
    // One that could not be started did not run. A clock that was set back meanwhile must not put the reset off for as long.
    const { startedAt = isTerminated(newest) ? now : newest.createdAt, finishedAt = now } = newest;
    const ranForMs = Math.max(0, finishedAt.getTime() - startedAt.getTime());
    const endedAtMs = exitedAtMs.get(newest.id) ?? nowMs;
    const delayMs = Math.min(newest.backOffMs, options.maxBackOffMs);
    backOff.set(backOffKey(name, hash), { delayMs, updatedAtMs: endedAtMs - ranForMs });
  }
  return backOff;
}

/** First wait after a crash, the longest wait, and the good run after which a container starts afresh. */
const INITIAL_BACK_OFF_MS = 10_000;
export const MAX_BACK_OFF_MS = 300_000;
const BACK_OFF_RESET_MS = 600_000;

/** One container's crash-loop back-off. Times are monotonic milliseconds. */
export interface BackOffEntry {
  /** Delay after the next exit. */
  delayMs: number;
  /** When the delay was last raised (the start that used it). */
  updatedAtMs: number;
}

const expired = (entry: BackOffEntry, exitedAtMs: number) => exitedAtMs - entry.updatedAtMs > BACK_OFF_RESET_MS;

/** Time that a container that exited at `exitedAtMs` still has to wait; 0 = none. Source: `IsInBackOffSince`. */
export function backOffRemainingMs(entry: BackOffEntry | undefined, exitedAtMs: number, nowMs: number): number {
  if (!entry || expired(entry, exitedAtMs)) return 0;
  return Math.max(0, exitedAtMs + entry.delayMs - nowMs);
}

/** The entry after one more start: 10 s at first, then doubled up to `maxMs`; afresh after ten minutes of good run. */
export function nextBackOff(
  entry: BackOffEntry | undefined,
  exitedAtMs: number,
  nowMs: number,
  maxMs: number,
): BackOffEntry {
  const initial = Math.min(INITIAL_BACK_OFF_MS, maxMs);
  if (!entry || expired(entry, exitedAtMs)) return { delayMs: initial, updatedAtMs: nowMs };
  return { delayMs: Math.min(entry.delayMs * 2, maxMs), updatedAtMs: nowMs };
}

import type { Container } from "../base/api/pod.ts";
import { podFullName } from "../base/model/identity.ts";
import type { ContainerSnapshot, SandboxSnapshot } from "../base/model/pod-snapshot.ts";
import { backOffRemainingMs, nextBackOff } from "./back-off.ts";
import { attemptsOf, isTerminated } from "./container-history.ts";
import type { KillReason, PodAction, PodPlan, PodPlanInput, WaitingReason } from "./pod-plan.ts";
import { decideRestart } from "./restart-policy.ts";
import { backOffKey } from "./sync-state.ts";

/** A plan in progress: queries of the input that the rules share, and the actions so far. */
export class PlanDraft {
  readonly actions: PodAction[] = [];
  readonly waiting = new Map<string, WaitingReason>();
  recheckAtMs: number | undefined;
  readonly input: PodPlanInput;
  /** The newest sandbox; older ones are ignored. */
  readonly sandbox: SandboxSnapshot | undefined;
  /** Containers started before this instant restart (RestartAllContainers); -Infinity without such a request. */
  readonly #restartAllAt: number;

  constructor(input: PodPlanInput) {
    this.input = input;
    this.sandbox = input.snapshot.sandboxes[0];
    this.#restartAllAt = this.#findRestartAll();
  }

  hashOf(name: string): string {
    return this.input.hashes.containers.get(name) ?? "";
  }

  attempts(name: string): ContainerSnapshot[] {
    return attemptsOf(this.input.snapshot, name);
  }

  /** The newest container of that name in the current sandbox that RestartAllContainers has not outdated. */
  current(name: string): ContainerSnapshot | undefined {
    const newest = this.attempts(name)[0];
    if (!newest || newest.sandboxId !== this.sandbox?.id) return undefined;
    return this.isStale(newest) ? undefined : newest;
  }

  isStale(container: ContainerSnapshot): boolean {
    return (container.startedAt ?? container.createdAt).getTime() < this.#restartAllAt;
  }

  /** Whether a kill or a start of this container is in progress. */
  isBusy(name: string): boolean {
    const { starting, killing, removing } = this.input.state;
    if (starting.has(name)) return true;
    return this.attempts(name).some(({ id, state }) => killing.has(id) || (removing.has(id) && state !== "exited"));
  }

  recheckAt(atMs: number): void {
    this.recheckAtMs = this.recheckAtMs === undefined ? atMs : Math.min(this.recheckAtMs, atMs);
  }

  kill(container: ContainerSnapshot, reason: KillReason, message: string, graceSeconds?: number): void {
    const { id, name } = container;
    if (this.input.state.killing.has(id)) return;
    this.actions.push({
      kind: "kill-container",
      id,
      name,
      reason,
      message,
      graceSeconds: graceSeconds ?? this.graceSeconds,
    });
  }

  get graceSeconds(): number {
    return this.input.pod.spec.terminationGracePeriodSeconds ?? 30;
  }

  /**
   * Starts a container, unless an earlier try asked for a pause or its predecessor crashed too recently.
   * @returns whether the start is in the plan.
   */
  start(container: Container, isInit: boolean): boolean {
    const { state, nowMs, options } = this.input;
    const name = container.name;
    const hash = this.hashOf(name);
    const retryAtMs = state.retryAtMs.get(name);
    if (retryAtMs !== undefined && retryAtMs > nowMs) {
      this.recheckAt(retryAtMs);
      return false;
    }
    const [previous] = this.attempts(name);
    const action: Extract<PodAction, { kind: "start-container" }> = {
      kind: "start-container",
      name,
      isInit,
      restartCount: previous ? previous.restartCount + 1 : 0,
      hash,
    };
    if (previous && this.#isCrash(container, isInit, previous)) {
      const key = backOffKey(name, hash);
      const entry = state.backOff.get(key);
      const exitedAtMs = state.exitedAtMs.get(previous.id) ?? nowMs;
      // For a container that was killed for a restart, the end of its predecessor counts, as of the time of the kill.
      // Source: the kubelet kills and starts in one sync and sees only older exits.
      const olderExitAtMs = state.killedToRestart.get(previous.id);
      const excused =
        state.killedToRestart.has(previous.id) &&
        (olderExitAtMs === undefined || backOffRemainingMs(entry, olderExitAtMs, exitedAtMs) === 0);
      const remainingMs = excused ? 0 : backOffRemainingMs(entry, exitedAtMs, nowMs);
      if (remainingMs > 0) {
        this.waiting.set(name, crashLoopBackOff(this.input, name, entry!.delayMs));
        this.recheckAt(nowMs + remainingMs);
        return false;
      }
      const judgedAtMs = excused ? olderExitAtMs : exitedAtMs;
      if (judgedAtMs !== undefined) {
        action.backOff = { key, entry: nextBackOff(entry, judgedAtMs, nowMs, options.maxBackOffMs) };
      }
    }
    this.actions.push(action);
    return true;
  }

  finish(end?: PodPlan["end"]): PodPlan {
    const plan: PodPlan = { actions: this.actions, waiting: this.waiting };
    if (this.recheckAtMs !== undefined) plan.recheckAtMs = this.recheckAtMs;
    if (end) plan.end = end;
    return plan;
  }

  /**
   * Same revision, same sandbox, ended on its own (or by a probe): back-off applies. Of those that start again with
   * the whole pod only the container that requested it waits, so that a pod does not restart in a tight loop. Source: KEP-5532.
   */
  #isCrash(container: Container, isInit: boolean, previous: ContainerSnapshot): boolean {
    if (!isTerminated(previous) || previous.sandboxId !== this.sandbox?.id) return false;
    if (previous.hash !== this.hashOf(container.name)) return false;
    const decision = decideRestart(this.input.pod.spec, container, previous.exitCode, { isInit });
    return decision === "restart-pod" || !this.isStale(previous);
  }

  /** The latest end of a container whose exit rule says that the whole pod starts again. */
  #findRestartAll(): number {
    const { pod, snapshot } = this.input;
    let latest = Number.NEGATIVE_INFINITY;
    const judge = (container: Container, isInit: boolean) => {
      if (!container.restartPolicyRules?.some(({ action }) => action === "RestartAllContainers")) return;
      for (const attempt of attemptsOf(snapshot, container.name)) {
        if (attempt.sandboxId !== this.sandbox?.id || !isTerminated(attempt) || !attempt.finishedAt) continue;
        if (decideRestart(pod.spec, container, attempt.exitCode, { isInit }) !== "restart-pod") continue;
        latest = Math.max(latest, attempt.finishedAt.getTime());
      }
    };
    for (const container of pod.spec.initContainers ?? []) judge(container, true);
    for (const container of pod.spec.containers) judge(container, false);
    return latest;
  }
}

/** As Go prints a duration of whole seconds: `10s`, `1m20s`, `5m0s`. */
export function formatGoSeconds(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}

function crashLoopBackOff({ pod }: PodPlanInput, name: string, delayMs: number): WaitingReason {
  const [namespace, podName] = podFullName(pod.metadata).split("/");
  const who = `container=${name} pod=${podName}_${namespace}(${pod.metadata.uid ?? ""})`;
  return { reason: "CrashLoopBackOff", message: `back-off ${formatGoSeconds(delayMs)} restarting failed ${who}` };
}

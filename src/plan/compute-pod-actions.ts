import type { Container } from "../base/api/pod.ts";
import { allContainersOf, containersOf, findContainer, podFullName } from "../base/model/pod.ts";
import {
  attemptsOf,
  type ContainerSnapshot,
  isRunning,
  isTerminated,
  type SandboxSnapshot,
} from "../base/model/pod-snapshot.ts";
import { formatDuration } from "../base/text/duration.ts";
import type { PodRefusal } from "./pod-end-reasons.ts";
import type { KillReason, PodAction, PodEnd, PodPlan, PodPlanInput, WaitingReason } from "./pod-plan.ts";
import { computeLimitsUpdate } from "./pod-resources.ts";
import {
  backOffKey,
  backOffRemainingMs,
  decideRestart,
  isSidecar,
  nextBackOff,
  restartsOnFailure,
} from "./restart-policy.ts";
import { computeStopActions, SANDBOX_GRACE_SECONDS } from "./stop-pod.ts";

/**
 * The next actions that bring a pod to the state of its manifest: the only place that knows the order of sandbox, init
 * containers, sidecars and containers. Returns only what may begin now: call it again when something changed or
 * `recheckAtMs` has come. Source: the kubelet's computePodActions (1.20), KEP-753 for sidecars, KEP-5307 and KEP-5532.
 */
export function computePodActions(input: PodPlanInput): PodPlan {
  const draft = new PlanDraft(input);
  if (input.end) return planPodTermination(draft, input.end);
  if (input.deadlineAtMs !== undefined) {
    if (input.nowMs >= input.deadlineAtMs) return planPodTermination(draft, DEADLINE_EXCEEDED);
    draft.recheckAt(input.deadlineAtMs);
  }
  collectGarbage(draft);
  if (input.hold && !isRunningAny(draft) && input.state.starting.size === 0) return planHold(draft, input.hold);
  if (!planSandbox(draft)) {
    const isSettled = draft.actions.length === 0 && isDesiredSandbox(draft);
    return draft.finish(isSettled ? endOf(draft) : undefined);
  }
  if (!planRestartAll(draft)) return draft.finish();
  planEphemeralContainers(draft);

  const initEnd = planInitContainers(draft);
  if (initEnd === "failed") return planPodTermination(draft, { phase: "Failed" });
  if (initEnd === "waiting") return draft.finish();

  for (const container of input.pod.spec.containers) planContainer(draft, container, false);
  const end = endOf(draft);
  return end ? planPodTermination(draft, end) : draft.finish();
}

/** Upstream's status of a pod that was active for too long. */
export const DEADLINE_EXCEEDED: PodEnd & PodRefusal = {
  phase: "Failed",
  reason: "DeadlineExceeded",
  message: "Pod was active on the node longer than the specified deadline",
};

/** Names of the sidecars in the order of the spec. */
export const sidecarNames = (initContainers: readonly Container[] | undefined) =>
  (initContainers ?? []).filter(isSidecar).map(({ name }) => name);

/** The pod has ended: stop what still runs, keep the dead for their logs. */
function planPodTermination(draft: PlanDraft, end: PodEnd): PodPlan {
  const { snapshot, state, nowMs, pod } = draft.input;
  draft.actions.length = 0;
  draft.actions.push(
    ...computeStopActions({
      snapshot,
      state,
      nowMs,
      reason: "PodEnded",
      graceSeconds: Math.min(draft.graceSeconds, draft.input.maxGraceSeconds ?? Number.POSITIVE_INFINITY),
      sidecars: sidecarNames(pod.spec.initContainers),
      remove: false,
    }),
  );
  draft.recheckAtMs = undefined;
  draft.waiting.clear();
  return draft.finish(end);
}

/** Nothing of the pod runs, and nothing may start yet. A pod that has ended stays ended. */
function planHold(draft: PlanDraft, hold: WaitingReason): PodPlan {
  const end = isDesiredSandbox(draft) ? endOf(draft) : undefined;
  if (end) return planPodTermination(draft, end);
  for (const { name } of containersOf(draft.input.pod.spec)) {
    const newest = draft.attempts(name)[0];
    const isDone = newest && isTerminated(newest) && newest.exitCode === 0 && newest.hash === draft.hashOf(name);
    if (!isDone) draft.waiting.set(name, hold);
  }
  return draft.finish();
}

/** Init containers count: an edit of one starts the pod again. Old sandboxes without that label are left alone. */
function isDesiredSandbox({ sandbox, input: { hashes } }: PlanDraft): boolean {
  if (sandbox?.hash !== hashes.sandbox) return false;
  return sandbox.initHash === undefined || hashes.init === undefined || sandbox.initHash === hashes.init;
}

/** Ensures that exactly one sandbox of the desired revision runs. @returns whether containers may be planned */
function planSandbox(draft: PlanDraft): boolean {
  const { snapshot, state, nowMs } = draft.input;
  const newest = draft.sandbox;
  if (state.sandboxBusy) return false;
  const isReplaced = newest?.isRestarted || newest?.id === state.replacedSandbox;
  if (newest?.state === "ready" && isDesiredSandbox(draft) && !isReplaced) {
    for (const old of snapshot.sandboxes.slice(1)) {
      if (old.state === "ready")
        draft.actions.push({ kind: "stop-sandbox", id: old.id, graceSeconds: SANDBOX_GRACE_SECONDS });
      else if (!state.removing.has(old.id)) draft.actions.push({ kind: "remove-sandbox", id: old.id });
    }
    return true;
  }
  const live = snapshot.containers.filter(isRunning);
  for (const container of live) draft.kill(container, "SandboxChanged", `Stopping container ${container.name}`);
  if (live.length > 0 || state.starting.size > 0 || state.killing.size > 0) return false;
  if (newest?.state === "ready") {
    draft.actions.push({ kind: "stop-sandbox", id: newest.id, graceSeconds: SANDBOX_GRACE_SECONDS });
    return false;
  }
  if (newest && isDesiredSandbox(draft) && !deservesNewSandbox(draft)) return false;
  if (state.sandboxRetryAtMs !== undefined && state.sandboxRetryAtMs > nowMs) {
    draft.recheckAt(state.sandboxRetryAtMs);
    return false;
  }
  draft.actions.push({ kind: "create-sandbox", attempt: newest ? newest.attempt + 1 : 0 });
  return false;
}

/** After the sandbox died: is there anything left to run in a new one? */
function deservesNewSandbox(draft: PlanDraft): boolean {
  const { spec } = draft.input.pod;
  return spec.containers.some((container) => {
    const newest = draft.attempts(container.name)[0];
    if (!newest || newest.hash !== draft.hashOf(container.name)) return !hasFailedInit(draft);
    if (!isTerminated(newest)) return true;
    return decideRestart(spec, container, newest.exitCode, { isInit: false }) !== "leave";
  });
}

function hasFailedInit(draft: PlanDraft): boolean {
  const { spec } = draft.input.pod;
  return (spec.initContainers ?? []).some((container) => {
    const newest = draft.attempts(container.name)[0];
    if (isSidecar(container) || !newest || !isTerminated(newest) || newest.exitCode === 0) return false;
    return (
      newest.hash === draft.hashOf(container.name) &&
      decideRestart(spec, container, newest.exitCode, { isInit: true }) === "leave"
    );
  });
}

/**
 * Kills containers started before a RestartAllContainers, without hook and grace (KEP-5532).
 * @returns whether all have ended
 */
function planRestartAll(draft: PlanDraft): boolean {
  const stale = draft.input.snapshot.containers.filter((container) => isRunning(container) && draft.isStale(container));
  for (const container of stale) {
    draft.kill(container, "RestartAllContainers", `Container ${container.name} will be restarted with all others`, 0);
  }
  return stale.length === 0;
}

/** They start as soon as there is a sandbox, also when an init container fails, and never a second time. */
function planEphemeralContainers(draft: PlanDraft): void {
  for (const container of draft.input.pod.spec.ephemeralContainers ?? []) {
    const hasRun = draft.attempts(container.name).some((it) => isRunning(it) || isTerminated(it));
    if (!draft.isBusy(container.name) && !hasRun) draft.start(container, false);
  }
}

/** Init containers in order, including sidecars. `done` = the main containers may be planned. */
function planInitContainers(draft: PlanDraft): "done" | "waiting" | "failed" {
  const { spec } = draft.input.pod;
  // Once a main container exists in this sandbox, initialization is over; only sidecars are still kept alive.
  const initialized = spec.containers.some(
    ({ name }) => draft.current(name) !== undefined || draft.input.state.starting.has(name),
  );
  for (const container of spec.initContainers ?? []) {
    if (isSidecar(container)) {
      const isUp = planContainer(draft, container, true);
      if (!initialized && !isUp) return "waiting";
    } else if (!initialized) {
      const step = planInitContainer(draft, container);
      if (step !== "done") return step;
    }
  }
  return "done";
}

function planInitContainer(draft: PlanDraft, container: Container): "done" | "waiting" | "failed" {
  if (draft.isBusy(container.name)) return "waiting";
  const current = draft.current(container.name);
  const hash = draft.hashOf(container.name);
  if (!current) {
    draft.start(container, true);
    return "waiting";
  }
  if (isRunning(current)) {
    if (current.hash !== hash) killForEdit(draft, current);
    return "waiting";
  }
  if (isTerminated(current) && current.hash === hash) {
    const decision = decideRestart(draft.input.pod.spec, container, current.exitCode, { isInit: true });
    if (decision === "leave") return current.exitCode === 0 ? "done" : "failed";
  }
  draft.start(container, true);
  return "waiting";
}

/** A main container or a sidecar. @returns whether it runs, has passed its startup probe and its postStart hook */
function planContainer(draft: PlanDraft, container: Container, isInit: boolean): boolean {
  const { pod, state } = draft.input;
  if (draft.isBusy(container.name)) return false;
  const current = draft.current(container.name);
  if (!current) {
    draft.start(container, isInit);
    return false;
  }
  if (!isRunning(current)) {
    const settled =
      isTerminated(current) &&
      current.hash === draft.hashOf(container.name) &&
      decideRestart(pod.spec, container, current.exitCode, { isInit }) === "leave";
    if (!settled) draft.start(container, isInit);
    return settled;
  }
  if (current.hash !== draft.hashOf(container.name)) {
    killForEdit(draft, current);
    return false;
  }
  if (state.postStartFailed.has(current.id)) {
    draft.kill(current, "PostStartFailed", "FailedPostStartHook");
    return false;
  }
  const verdict = draft.input.probes.get(container.name);
  if (verdict?.containerId === current.id && (verdict.liveness === "failure" || verdict.startup === "failure")) {
    killForProbe(draft, container, current, verdict.startup === "failure" ? "startup" : "liveness", isInit);
    return false;
  }
  planResize(draft, current);
  return (
    (verdict?.containerId === current.id ? verdict.started : !container.startupProbe) &&
    !state.postStartPending.has(current.id)
  );
}

/** An edit of cpu or memory alone takes effect in the running container. */
function planResize(draft: PlanDraft, { id, name, limits }: ContainerSnapshot): void {
  const wanted = draft.input.hashes.limits.get(name);
  if (!wanted || draft.input.state.resizing.has(id)) return;
  const update = computeLimitsUpdate(limits, wanted);
  if (update) draft.actions.push({ kind: "resize-container", id, name, update });
}

function killForEdit(draft: PlanDraft, current: ContainerSnapshot): void {
  draft.kill(current, "SpecChanged", `Container ${current.name} definition changed, will be restarted`);
}

function killForProbe(
  draft: PlanDraft,
  container: Container,
  current: ContainerSnapshot,
  kind: "startup" | "liveness",
  isInit: boolean,
): void {
  const probe = kind === "startup" ? container.startupProbe : container.livenessProbe;
  const message = restartsOnFailure(draft.input.pod.spec, container, isInit)
    ? `Container ${container.name} failed ${kind} probe, will be restarted`
    : `Stopping container ${container.name}`;
  draft.kill(
    current,
    kind === "startup" ? "StartupFailed" : "LivenessFailed",
    message,
    probe?.terminationGracePeriodSeconds,
  );
}

/** Dead containers beyond what is kept per name, and those of containers the spec no longer has. */
function collectGarbage(draft: PlanDraft): void {
  const { pod, snapshot, state, options, nowMs } = draft.input;
  const wanted = new Set(allContainersOf(pod.spec).map(({ name }) => name));
  const names = new Set(snapshot.containers.map(({ name }) => name));
  for (const name of names) {
    const attempts = draft.attempts(name);
    // An older attempt that was started again by hand is surplus.
    const strays = (wanted.has(name) ? attempts.slice(1) : attempts).filter(isRunning);
    for (const stray of strays) draft.kill(stray, "SpecChanged", `Stopping container ${name}`);
    // A container that could not be started stays in state "created": it is dead as well.
    const dead = attempts.filter((attempt) => isTerminated(attempt) && !state.removing.has(attempt.id));
    const keep = wanted.has(name) ? deadToKeep(draft, name, attempts, options.maxDeadPerContainer) : 0;
    for (const old of dead.slice(keep)) {
      const mayGoAtMs = (state.exitedAtMs.get(old.id) ?? Number.NEGATIVE_INFINITY) + options.minDeadTtlMs;
      if (nowMs < mayGoAtMs) draft.recheckAt(mayGoAtMs);
      else draft.actions.push({ kind: "remove-container", id: old.id, name });
    }
  }
}

/**
 * The newest is kept whatever the limit: restart count and back-off are read from it. One that is done keeps its
 * predecessors in addition, for `logs --previous`.
 */
function deadToKeep(draft: PlanDraft, name: string, attempts: readonly ContainerSnapshot[], limit: number): number {
  if (limit < 0) return attempts.length;
  const [newest] = attempts;
  if (!newest || isRunning(newest)) return limit;
  const { spec } = draft.input.pod;
  const isInit = spec.initContainers?.some((container) => container.name === name) ?? false;
  const container = findContainer(spec, name);
  // One that was not started is removed as well: its predecessor is the newest then.
  const isEnded = isTerminated(newest) && container !== undefined;
  const isDone = isEnded && decideRestart(spec, container, newest.exitCode, { isInit }) === "leave";
  return isDone ? limit + 1 : Math.max(1, limit);
}

/** Whether every main container has come to its end, and how the pod ended then. Source: the kubelet's getPhase. */
function endOf(draft: PlanDraft): PodEnd | undefined {
  const { pod, state } = draft.input;
  if (state.sandboxBusy || state.starting.size > 0) return undefined;
  let failed = false;
  for (const container of pod.spec.containers) {
    const newest = draft.attempts(container.name)[0];
    if (!newest || !isTerminated(newest) || newest.hash !== draft.hashOf(container.name) || draft.isStale(newest)) {
      return hasFailedInit(draft) && !isRunningAny(draft) ? { phase: "Failed" } : undefined;
    }
    if (decideRestart(pod.spec, container, newest.exitCode, { isInit: false }) !== "leave") return undefined;
    if (newest.exitCode !== 0) failed = true;
  }
  return { phase: failed ? "Failed" : "Succeeded" };
}

const isRunningAny = (draft: PlanDraft) => draft.input.snapshot.containers.some(isRunning);

/** A plan in progress: queries of the input that the rules share, and the actions so far. */
class PlanDraft {
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

  /** Unless an earlier try asked for a pause or its predecessor crashed too recently. */
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
    // One that was never started, perhaps in a sandbox that died since, is removed first.
    if (previous?.state === "created" && !isTerminated(previous)) {
      if (!state.removing.has(previous.id)) this.actions.push({ kind: "remove-container", id: previous.id, name });
      return false;
    }
    const action: Extract<PodAction, { kind: "start-container" }> = {
      kind: "start-container",
      name,
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
   * Back-off applies to the same revision in the same sandbox. Of those that start again with the whole pod only the
   * container that requested it waits. Source: KEP-5532.
   */
  #isCrash(container: Container, isInit: boolean, previous: ContainerSnapshot): boolean {
    if (!isTerminated(previous) || previous.sandboxId !== this.sandbox?.id) return false;
    if (previous.hash !== this.hashOf(container.name) || this.#hasMoreMemory(container.name, previous)) return false;
    const decision = decideRestart(this.input.pod.spec, container, previous.exitCode, { isInit });
    return decision === "restart-pod" || !this.isStale(previous);
  }

  /** An edit of the memory limit changes no hash. A limit that was raised after a kill is tried without back-off. */
  #hasMoreMemory(name: string, { limits }: ContainerSnapshot): boolean {
    const wanted = this.input.hashes.limits.get(name)?.memoryBytes ?? 0;
    return limits.memoryBytes > 0 && wanted > limits.memoryBytes;
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

function crashLoopBackOff({ pod }: PodPlanInput, name: string, delayMs: number): WaitingReason {
  const [namespace, podName] = podFullName(pod.metadata).split("/");
  const who = `container=${name} pod=${podName}_${namespace}(${pod.metadata.uid ?? ""})`;
  return { reason: "CrashLoopBackOff", message: `back-off ${formatDuration(delayMs)} restarting failed ${who}` };
}

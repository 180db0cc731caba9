import type { Container } from "../base/api/pod.ts";
import { allContainersOf, containersOf, findContainer } from "../base/model/pod-containers.ts";
import type { ContainerSnapshot } from "../base/model/pod-snapshot.ts";
import { isRunning, isTerminated } from "./container-history.ts";
import { computeLimitsUpdate } from "./container-limits.ts";
import { PlanDraft } from "./plan-draft.ts";
import type { PodRefusal } from "./pod-end-reasons.ts";
import type { PodEnd, PodPlan, PodPlanInput, WaitingReason } from "./pod-plan.ts";
import { decideRestart, isSidecar, restartsOnFailure } from "./restart-policy.ts";
import { computeStopActions, SANDBOX_GRACE_SECONDS } from "./stop-pod.ts";

/**
 * The next actions that bring a pod to the state of its manifest. Pure; the only place that knows the order of sandbox, init
 * containers, sidecars and containers, the restart rules, and when a pod has ended. Returns only what may begin now: call
 * it again whenever something changed or `recheckAtMs` has come.
 * Source: the kubelet's computePodActions (1.20), KEP-753 for sidecars, KEP-5307 and KEP-5532 for restart rules.
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

/**
 * Whether the newest sandbox is of the desired revision. Init containers count: they prepare the pod as a whole, so an
 * edit of one starts the pod again. Sandboxes made before init containers were recorded are left alone.
 */
function isDesiredSandbox({ sandbox, input: { hashes } }: PlanDraft): boolean {
  if (sandbox?.hash !== hashes.sandbox) return false;
  return sandbox.initHash === undefined || hashes.init === undefined || sandbox.initHash === hashes.init;
}

/**
 * Ensures that exactly one sandbox of the desired revision runs. Source: the kubelet's podSandboxChanged.
 * @returns whether containers may be planned
 */
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
 * RestartAllContainers: containers started before the request are killed first, without preStop hook and grace period:
 * they start again right away (KEP-5532).
 * @returns whether all have ended.
 */
function planRestartAll(draft: PlanDraft): boolean {
  const stale = draft.input.snapshot.containers.filter((container) => isRunning(container) && draft.isStale(container));
  for (const container of stale) {
    draft.kill(container, "RestartAllContainers", `Container ${container.name} will be restarted with all others`, 0);
  }
  return stale.length === 0;
}

/**
 * Ephemeral containers start as soon as there is a sandbox, also when an init container fails, and never a second time.
 * Source: the kubelet's computePodActions.
 */
function planEphemeralContainers(draft: PlanDraft): void {
  for (const container of draft.input.pod.spec.ephemeralContainers ?? []) {
    if (draft.isBusy(container.name) || draft.attempts(container.name).length > 0) continue;
    draft.start(container, false);
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
  startAgain(draft, container, current, true);
  return "waiting";
}

/**
 * One container that should be running: a main container or a sidecar.
 * @returns whether those that come after it may start: it runs, has passed its startup probe and its postStart hook.
 */
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
    if (!settled) startAgain(draft, container, current, isInit);
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

/** A container that exists but does not run: one that was never started is removed first. */
function startAgain(draft: PlanDraft, container: Container, current: ContainerSnapshot, isInit: boolean): void {
  if (current.state === "created" && !isTerminated(current)) {
    if (!draft.input.state.removing.has(current.id)) {
      draft.actions.push({ kind: "remove-container", id: current.id, name: current.name });
    }
    return;
  }
  draft.start(container, isInit);
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
 * While the newest attempt runs or waits to start again, one dead attempt shows why it was restarted. The newest is kept
 * whatever the limit: restart count and back-off are read from it. One that is done keeps its predecessors in addition,
 * for `logs --previous`.
 */
function deadToKeep(draft: PlanDraft, name: string, attempts: readonly ContainerSnapshot[], limit: number): number {
  if (limit < 0) return attempts.length;
  const [newest] = attempts;
  if (!newest || !isTerminated(newest)) return limit;
  const { spec } = draft.input.pod;
  const isInit = spec.initContainers?.some((container) => container.name === name) ?? false;
  const container = findContainer(spec, name);
  const isDone = container && decideRestart(spec, container, newest.exitCode, { isInit }) === "leave";
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

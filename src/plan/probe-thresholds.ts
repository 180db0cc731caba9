import type { Probe } from "../base/api/probe.ts";
import type { ProbeKind, ProbeResult } from "../base/model/prober.ts";

/** State of one probe of one container. */
export interface ProbeState {
  /** undefined: a startup probe that has not decided yet. */
  result: ProbeResult | undefined;
  /** Result of the last counted attempts, and how many in a row. */
  lastAttempt: ProbeResult | undefined;
  run: number;
  /** Liveness or startup failed: no more attempts until there is a new container. Source: kubernetes#21751. */
  isOnHold: boolean;
}

/** Before the first attempt a container is not ready, alive, and may or may not have started. Source: `newWorker`. */
const INITIAL_RESULT: Readonly<Record<ProbeKind, ProbeResult | undefined>> = {
  readiness: "failure",
  liveness: "success",
  startup: undefined,
};

/**
 * State of the probe of a new container.
 * @param stored its result for the same container before a restart of the kubelet
 */
export function initialProbeState(kind: ProbeKind, stored?: ProbeResult): ProbeState {
  return {
    result: stored ?? INITIAL_RESULT[kind],
    lastAttempt: undefined,
    run: 0,
    isOnHold: kind !== "readiness" && stored === "failure",
  };
}

/**
 * Counts one attempt: the result changes when its threshold of equal attempts in a row is met. Source: `doProbe`.
 * Attempts that could not be made are not counted and keep the state.
 */
export function countAttempt(
  kind: ProbeKind,
  probe: Pick<Probe, "successThreshold" | "failureThreshold">,
  state: ProbeState,
  attempt: ProbeResult,
): ProbeState {
  const run = state.lastAttempt === attempt ? state.run + 1 : 1;
  const threshold = attempt === "success" ? probe.successThreshold : probe.failureThreshold;
  if (run < threshold) return { ...state, lastAttempt: attempt, run };
  const isOnHold = kind !== "readiness" && attempt === "failure";
  return { result: attempt, lastAttempt: attempt, run: isOnHold ? 0 : run, isOnHold };
}

/** Whether a probe is suspended now. Source: `doProbe`: startup gates the others, and is over once it succeeded. */
export function isProbeHeldBack(
  kind: ProbeKind,
  state: ProbeState,
  startup: { exists: boolean; result: ProbeResult | undefined },
): boolean {
  if (state.isOnHold) return true;
  const hasStarted = !startup.exists || startup.result === "success";
  return kind === "startup" ? hasStarted : !hasStarted;
}

import type { Probe } from "../base/api/container.ts";
import type { ProbeKind, ProbeResult } from "../base/model/prober.ts";

/** All times are monotonic milliseconds. */
export interface ProbeRhythm {
  periodMs: number;
  /** A point of the grid on which regular attempts lie; spread at random within a period so that probes do not meet. */
  originMs: number;
}

/** An attempt that could not be made is tried again at once, this often in all. Source: upstream's `maxProbeRetries`. */
export const MAX_PROBE_TRIES = 3;

/** The grid of a new probe, which the container's successor keeps. Source: `worker.run`. @param random in [0, 1) */
export function probeRhythm(probe: Pick<Probe, "periodSeconds">, nowMs: number, random: number): ProbeRhythm {
  const periodMs = Math.max(1, probe.periodSeconds) * 1000;
  return { periodMs, originMs: nowMs + random * periodMs };
}

/** When a container of this age may be probed first. @param ageMs below 0 (the wall clock jumped) counts as 0 */
export function initialDelayEndMs(probe: Pick<Probe, "initialDelaySeconds">, nowMs: number, ageMs: number): number {
  return nowMs + Math.max(0, (probe.initialDelaySeconds ?? 0) * 1000 - Math.max(0, ageMs));
}

/** The first point of the grid that is not before `earliestMs`. */
export function firstRegularMs({ periodMs, originMs }: ProbeRhythm, earliestMs: number): number {
  return originMs + Math.ceil((earliestMs - originMs) / periodMs) * periodMs;
}

/** The attempt after `dueMs`: at once when that took longer than a period, but no more is made up for. */
export function nextRegularMs({ periodMs }: ProbeRhythm, dueMs: number, nowMs: number): number {
  const missed = Math.max(0, Math.floor((nowMs - dueMs) / periodMs) - 1);
  return dueMs + (missed + 1) * periodMs;
}

/**
 * Extra attempts for a container that may just have become ready, in milliseconds: only cheap ones (no exec), which
 * count only when they succeed and record no events; so nothing fails sooner than on an upstream kubelet.
 */
export function earlyAttemptsMs(
  kind: ProbeKind,
  probe: Pick<Probe, "exec" | "periodSeconds" | "successThreshold">,
): number[] {
  // With a threshold above 1 the manifest wants to see it stay up for periods.
  if (kind === "liveness" || probe.exec || probe.successThreshold > 1) return [];
  const delays: number[] = [];
  const periodMs = Math.max(1, probe.periodSeconds) * 1000;
  for (let delayMs = 200; delayMs < periodMs; delayMs = delayMs * 2 + 200) delays.push(delayMs);
  return delays;
}

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

/** @param stored its result for the same container before a restart of the kubelet */
export function initialProbeState(kind: ProbeKind, stored?: ProbeResult): ProbeState {
  return {
    result: stored ?? INITIAL_RESULT[kind],
    lastAttempt: undefined,
    run: 0,
    isOnHold: kind !== "readiness" && stored === "failure",
  };
}

/** The result changes when its threshold of equal attempts in a row is met. Source: `doProbe`. */
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

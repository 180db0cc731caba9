import type { Probe } from "../base/api/probe.ts";
import type { ProbeKind } from "../base/model/prober.ts";

/** All times are monotonic milliseconds. */
export interface ProbeRhythm {
  periodMs: number;
  /** A point of the grid on which regular attempts lie; spread at random within a period so that probes do not meet. */
  originMs: number;
}

/** An attempt that could not be made is tried again at once, this often in all. Source: upstream's `maxProbeRetries`. */
export const MAX_PROBE_TRIES = 3;

/**
 * The grid of a new probe. It outlives the container: its successor is probed in the same rhythm. Source: `worker.run`.
 * @param random in [0, 1).
 */
export function probeRhythm(probe: Pick<Probe, "periodSeconds">, nowMs: number, random: number): ProbeRhythm {
  const periodMs = Math.max(1, probe.periodSeconds) * 1000;
  return { periodMs, originMs: nowMs + random * periodMs };
}

/**
 * When a container of this age may be probed first.
 * @param ageMs how long it has run; below 0 (the wall clock jumped) counts as 0.
 */
export function initialDelayEndMs(probe: Pick<Probe, "initialDelaySeconds">, nowMs: number, ageMs: number): number {
  return nowMs + Math.max(0, (probe.initialDelaySeconds ?? 0) * 1000 - Math.max(0, ageMs));
}

/** The first point of the grid that is not before `earliestMs`. */
export function firstRegularMs({ periodMs, originMs }: ProbeRhythm, earliestMs: number): number {
  return originMs + Math.ceil((earliestMs - originMs) / periodMs) * periodMs;
}

/**
 * The attempt after the one that was due at `dueMs`. When that took longer than a period the next one is due at once
 * (and so in the past), but what was missed beyond that is not made up for: a ticker with room for one tick.
 */
export function nextRegularMs({ periodMs }: ProbeRhythm, dueMs: number, nowMs: number): number {
  const missed = Math.max(0, Math.floor((nowMs - dueMs) / periodMs) - 1);
  return dueMs + (missed + 1) * periodMs;
}

/**
 * Extra attempts for a container that may just have become ready: after how many milliseconds each. A service that is up
 * after half a second need not wait for a period of ten. Only cheap attempts are made (no exec), they count only when
 * they succeed, and they record no events; so nothing fails sooner than on an upstream kubelet.
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

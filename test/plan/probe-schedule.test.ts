import { describe, expect, test } from "bun:test";
import type { ProbeKind, ProbeResult } from "../../src/base/model/prober.ts";
import {
  countAttempt,
  earlyAttemptsMs,
  firstRegularMs,
  initialDelayEndMs,
  initialProbeState,
  isProbeHeldBack,
  nextRegularMs,
  probeRhythm,
} from "../../src/plan/probe-schedule.ts";

test.each([
  { random: 0, want: 1000 },
  { random: 0.5, want: 6000 },
  { random: 0.999, want: 10_990 },
])("with $random the first point of the grid is $want", ({ random, want }) => {
  const rhythm = probeRhythm({ periodSeconds: 10 }, 1000, random);
  expect(rhythm).toEqual({ periodMs: 10_000, originMs: want });
});

describe("the first attempt", () => {
  const rhythm = { periodMs: 10_000, originMs: 6000 };
  test.each([
    { earliest: 1000, want: 6000 },
    { earliest: 6000, want: 6000 },
    { earliest: 6001, want: 16_000 },
    { earliest: 36_000, want: 36_000 },
  ])("not before $earliest is at $want", ({ earliest, want }) => {
    expect(firstRegularMs(rhythm, earliest)).toBe(want);
  });

  test("lies on the grid also before its origin", () => {
    expect(firstRegularMs({ periodMs: 10_000, originMs: 26_000 }, 1000)).toBe(6000);
  });
});

test.each([
  { when: "a container that just started", delay: 10, ageMs: 0, want: 60_000 },
  { when: "one that has run a while", delay: 10, ageMs: 4000, want: 56_000 },
  { when: "one that is past it", delay: 10, ageMs: 40_000, want: 50_000 },
  { when: "a start in the future (the clock jumped)", delay: 10, ageMs: -5000, want: 60_000 },
  { when: "no delay", delay: undefined, ageMs: 0, want: 50_000 },
])("initial delay of $when", ({ delay, ageMs, want }) => {
  const probe = delay === undefined ? {} : { initialDelaySeconds: delay };
  expect(initialDelayEndMs(probe, 50_000, ageMs)).toBe(want);
});

test.each([
  { when: "a quick attempt", nowMs: 10_050, want: 11_000 },
  { when: "one of just a period", nowMs: 11_000, want: 11_000 },
  { when: "one over its period: the next is due already", nowMs: 11_400, want: 11_000 },
  { when: "one over two periods: one is made up for", nowMs: 12_500, want: 12_000 },
  { when: "a sleep of the machine", nowMs: 3_610_300, want: 3_610_000 },
])("after $when", ({ nowMs, want }) => {
  expect(nextRegularMs({ periodMs: 1000, originMs: 0 }, 10_000, nowMs)).toBe(want);
});

const http = { periodSeconds: 10, successThreshold: 1 };
test.each([
  { when: "readiness", kind: "readiness", probe: http, want: [200, 600, 1400, 3000, 6200] },
  { when: "startup", kind: "startup", probe: { ...http, periodSeconds: 1 }, want: [200, 600] },
  { when: "liveness has none", kind: "liveness", probe: http, want: [] },
  { when: "exec has none", kind: "readiness", probe: { ...http, exec: { command: ["true"] } }, want: [] },
  { when: "a success threshold has none", kind: "readiness", probe: { ...http, successThreshold: 2 }, want: [] },
] as const)("early attempts: $when", ({ kind, probe, want }) => {
  const { exec, ...rest } = { exec: undefined, ...probe };
  expect(earlyAttemptsMs(kind, exec ? { ...rest, exec: { command: [...exec.command] } } : rest)).toEqual([...want]);
});

/** Results after each attempt: `+` success, `-` failure; in the outcome `?` is undecided and `!` a failure on hold. */
function results(kind: ProbeKind, attempts: string, thresholds: { success?: number; failure?: number }): string {
  const probe = { successThreshold: thresholds.success ?? 1, failureThreshold: thresholds.failure ?? 3 };
  let state = initialProbeState(kind);
  let seen = "";
  for (const attempt of attempts) {
    state = countAttempt(kind, probe, state, attempt === "+" ? "success" : "failure");
    seen += state.isOnHold ? "!" : state.result === undefined ? "?" : state.result === "success" ? "+" : "-";
  }
  return seen;
}

test.each([
  { kind: "readiness", want: "failure" },
  { kind: "liveness", want: "success" },
  { kind: "startup", want: undefined },
] as const)("$kind begins as $want", ({ kind, want }) => {
  expect(initialProbeState(kind)).toMatchObject({ result: want, isOnHold: false });
});

test.each([
  { kind: "readiness", stored: "success", onHold: false },
  { kind: "readiness", stored: "failure", onHold: false },
  { kind: "liveness", stored: "failure", onHold: true },
  { kind: "startup", stored: "success", onHold: false },
  { kind: "startup", stored: "failure", onHold: true },
] as const)("$kind continues with a stored $stored", ({ kind, stored, onHold }) => {
  expect(initialProbeState(kind, stored)).toMatchObject({ result: stored, isOnHold: onHold });
});

test.each([
  { kind: "readiness", given: {}, attempts: "+--+---+", want: "++++++-+" },
  { kind: "readiness", given: { success: 2 }, attempts: "+-++---++", want: "---+++--+" },
  { kind: "readiness", given: { success: 2, failure: 2 }, attempts: "-+-++--", want: "----++-" },
  { kind: "readiness", given: { failure: 1 }, attempts: "+-+", want: "+-+" },
  { kind: "liveness", given: {}, attempts: "--+--+---", want: "++++++++!" },
  { kind: "liveness", given: { failure: 1 }, attempts: "+-", want: "+!" },
  { kind: "startup", given: { failure: 4 }, attempts: "---+", want: "???+" },
  { kind: "startup", given: { failure: 2 }, attempts: "--", want: "?!" },
] as const)("thresholds: $kind: $attempts gives $want", ({ kind, given, attempts, want }) => {
  expect(results(kind, attempts, given)).toBe(want);
});

const holds = (kind: ProbeKind, startup: { exists: boolean; result: ProbeResult | undefined }, stored?: ProbeResult) =>
  isProbeHeldBack(kind, initialProbeState(kind, stored), startup);

test.each([
  { kind: "readiness", exists: false, result: undefined, want: false },
  { kind: "liveness", exists: true, result: undefined, want: true },
  { kind: "readiness", exists: true, result: "failure", want: true },
  { kind: "readiness", exists: true, result: "success", want: false },
  { kind: "startup", exists: true, result: undefined, want: false },
  { kind: "startup", exists: true, result: "success", want: true },
] as const)("$kind with a startup probe of result $result: held back $want", ({ kind, exists, result, want }) => {
  expect(holds(kind, { exists, result })).toBe(want);
});

test("a probe that failed permanently makes no more attempts", () => {
  expect(holds("liveness", { exists: false, result: undefined }, "failure")).toBe(true);
});

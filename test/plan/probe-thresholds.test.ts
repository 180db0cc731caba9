import { describe, expect, test } from "bun:test";
import type { ProbeKind, ProbeResult } from "../../src/base/model/prober.ts";
import { countAttempt, initialProbeState, isProbeHeldBack } from "../../src/plan/probe-thresholds.ts";

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

describe("thresholds", () => {
  test.each([
    { kind: "readiness", given: {}, attempts: "+--+---+", want: "++++++-+" },
    { kind: "readiness", given: { success: 2 }, attempts: "+-++---++", want: "---+++--+" },
    { kind: "readiness", given: { success: 2, failure: 2 }, attempts: "-+-++--", want: "----++-" },
    { kind: "readiness", given: { failure: 1 }, attempts: "+-+", want: "+-+" },
    { kind: "liveness", given: {}, attempts: "--+--+---", want: "++++++++!" },
    { kind: "liveness", given: { failure: 1 }, attempts: "+-", want: "+!" },
    { kind: "startup", given: { failure: 4 }, attempts: "---+", want: "???+" },
    { kind: "startup", given: { failure: 2 }, attempts: "--", want: "?!" },
  ] as const)("$kind: $attempts gives $want", ({ kind, given, attempts, want }) => {
    expect(results(kind, attempts, given)).toBe(want);
  });
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

import { expect, test } from "bun:test";
import { backOffKey, backOffRemainingMs, recoverBackOff } from "../../src/plan/restart-policy.ts";
import { aRunning } from "../support/builders.ts";

test("a clock that was set back by a year does not keep the back-off of an earlier process from ending", () => {
  const startedAt = new Date("2027-01-02T03:00:00Z");
  const newest = aRunning("app", { id: "app-1", hash: "h", backOffMs: 40_000, state: "exited", startedAt });
  const ended = { ...newest, finishedAt: new Date("2026-01-02T03:00:00Z") };
  const backOff = recoverBackOff({
    hashes: { containers: new Map([["app", "h"]]) },
    options: { maxBackOffMs: 300_000 },
    snapshot: { uid: "u", name: "web", namespace: "default", sandboxes: [], containers: [ended] },
    exitedAtMs: new Map([["app-1", 5_000]]),
    now: new Date("2026-01-02T03:00:10Z"),
    nowMs: 15_000,
  });
  const entry = backOff.get(backOffKey("app", "h"));
  expect(backOffRemainingMs(entry, 5_000, 15_000)).toBe(30_000);
  const anHourLaterMs = 3_605_000;
  expect(backOffRemainingMs(entry, anHourLaterMs, anHourLaterMs)).toBe(0);
});

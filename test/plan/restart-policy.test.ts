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

test("a container that could not be started did not run until the kubelet's start", () => {
  const { startedAt: _, ...created } = aRunning("app", {
    id: "app-1",
    hash: "h",
    backOffMs: 300_000,
    state: "created",
  });
  const backOff = recoverBackOff({
    hashes: { containers: new Map([["app", "h"]]) },
    options: { maxBackOffMs: 300_000 },
    snapshot: {
      uid: "u",
      name: "web",
      namespace: "default",
      sandboxes: [],
      containers: [{ ...created, exitCode: 128 }],
    },
    exitedAtMs: new Map([["app-1", 5_000]]),
    now: new Date(created.createdAt.getTime() + 290_000),
    nowMs: 295_000,
  });
  expect(backOff.get(backOffKey("app", "h"))).toEqual({ delayMs: 300_000, updatedAtMs: 5_000 });
});

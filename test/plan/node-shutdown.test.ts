import { expect, test } from "bun:test";
import { computeShutdownGroups, computeShutdownPeriods, totalShutdownSeconds } from "../../src/plan/node-shutdown.ts";
import { computePodPriority } from "../../src/plan/pod-resources.ts";
import { aPod } from "../support/builders.ts";

const period = (priority: number, shutdownGracePeriodSeconds: number) => ({ priority, shutdownGracePeriodSeconds });
const options = {
  shutdownGracePeriodMs: 0,
  shutdownGracePeriodCriticalPodsMs: 0,
  shutdownGracePeriodByPodPriority: [],
};

test.each([
  ["off", {}, "", 0],
  [
    "critical pods have their part of the whole",
    { shutdownGracePeriodMs: 30_000, shutdownGracePeriodCriticalPodsMs: 10_000 },
    "0: 20 s, 2000000000: 10 s",
    30,
  ],
  ["without a part they get none", { shutdownGracePeriodMs: 30_000 }, "0: 30 s, 2000000000: 0 s", 30],
  [
    "by priority, in whatever order they stand",
    { shutdownGracePeriodByPodPriority: [period(100, 5), period(-7, 60)] },
    "-7: 60 s, 100: 5 s",
    65,
  ],
])("periods: %s", (_when, given, want, total) => {
  const periods = computeShutdownPeriods({ ...options, ...given });
  const texts = periods.map(({ priority, shutdownGracePeriodSeconds: seconds }) => `${priority}: ${seconds} s`);
  expect(texts.join(", ")).toBe(want);
  expect(totalShutdownSeconds(periods)).toBe(total);
});

const PERIODS = [period(0, 20), period(1000, 8), period(2_000_000_000, 10)];

test.each([
  { when: "a pod without a priority is of the lowest", spec: {}, group: 0, grace: 20 },
  { when: "one below the lowest too", spec: { priority: -5 }, group: 0, grace: 20 },
  { when: "one between two counts as of the lower", spec: { priority: 999 }, group: 0, grace: 20 },
  { when: "one at the bound is of the higher", spec: { priority: 1000 }, group: 1, grace: 8 },
  { when: "a critical class is the highest", spec: { priorityClassName: "system-node-critical" }, group: 2, grace: 10 },
  { when: "its own shorter grace period counts", spec: { terminationGracePeriodSeconds: 3 }, group: 0, grace: 3 },
])("$when", ({ spec, group, grace }) => {
  // One more of each group, so that none is empty.
  const others = [0, 1000, 2_000_000_000].map((priority) => aPod({ priority }, { uid: `of ${priority}` }));
  const groups = computeShutdownGroups(PERIODS, [...others, aPod(spec, { uid: "it" })]);
  expect(groups.map(({ waitSeconds }) => waitSeconds)).toEqual([20, 8, 10]);
  expect(groups.findIndex(({ pods }) => pods.some(({ uid }) => uid === "it"))).toBe(group);
  expect(groups[group]?.pods.find(({ uid }) => uid === "it")?.graceSeconds).toBe(grace);
});

test("a group without pods is not waited for", () => {
  const groups = computeShutdownGroups(PERIODS, [aPod({ priorityClassName: "system-cluster-critical" })]);
  expect(groups.map(({ waitSeconds }) => waitSeconds)).toEqual([10]);
});

test.each([
  { when: "neither", spec: {}, want: 0 },
  { when: "a priority", spec: { priority: -7, priorityClassName: "system-node-critical" }, want: -7 },
  { when: "a class of every cluster", spec: { priorityClassName: "system-node-critical" }, want: 2_000_001_000 },
  { when: "an unknown class", spec: { priorityClassName: "gold" }, want: 0 },
  { when: "a class named as a word of JavaScript", spec: { priorityClassName: "constructor" }, want: 0 },
])("$when", ({ spec, want }) => {
  expect(computePodPriority(aPod(spec))).toBe(want);
});

import { expect, test } from "bun:test";
import { computeShutdownGroups, computeShutdownPeriods, totalShutdownSeconds } from "../../src/plan/node-shutdown.ts";
import { computePodPriority } from "../../src/plan/pod-resources.ts";
import { aPod } from "../support/builders.ts";

const options = {
  shutdownGracePeriodMs: 0,
  shutdownGracePeriodCriticalPodsMs: 0,
  shutdownGracePeriodByPodPriority: [],
};

test.each([
  { when: "off", given: {}, want: [] as number[][] },
  {
    when: "critical pods have their part of the whole",
    given: { shutdownGracePeriodMs: 30_000, shutdownGracePeriodCriticalPodsMs: 10_000 },
    want: [
      [0, 20],
      [2_000_000_000, 10],
    ],
  },
  {
    when: "without a part of their own they get none",
    given: { shutdownGracePeriodMs: 30_000 },
    want: [
      [0, 30],
      [2_000_000_000, 0],
    ],
  },
  {
    when: "by priority, in whatever order they stand",
    given: {
      shutdownGracePeriodByPodPriority: [
        { priority: 100, shutdownGracePeriodSeconds: 5 },
        { priority: -7, shutdownGracePeriodSeconds: 60 },
      ],
    },
    want: [
      [-7, 60],
      [100, 5],
    ],
  },
])("periods: $when", ({ given, want }) => {
  const periods = computeShutdownPeriods({ ...options, ...given });
  expect(periods.map((it) => [it.priority, it.shutdownGracePeriodSeconds])).toEqual(want.map((it) => [...it]));
  expect(totalShutdownSeconds(periods)).toBe(want.reduce((total, [, seconds = 0]) => total + seconds, 0));
});

const PERIODS = [
  { priority: 0, shutdownGracePeriodSeconds: 20 },
  { priority: 1000, shutdownGracePeriodSeconds: 8 },
  { priority: 2_000_000_000, shutdownGracePeriodSeconds: 10 },
];

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

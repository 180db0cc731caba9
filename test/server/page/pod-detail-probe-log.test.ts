import { expect, test } from "bun:test";
import type { PodUID } from "../../../src/base/model/pod.ts";
import { ProbeLog } from "../../../src/server/page/pod-detail.ts";

const uid = (index: number) => `pod-${index}` as PodUID;
const outcome = (result: "success" | "failure", output = "") => ({ result, output });

test("the last twenty attempts of each probe are kept, oldest first, with the start of their output", () => {
  const log = new ProbeLog();
  for (let time = 1; time <= 30; time++) log.add(uid(0), "app", "liveness", outcome("success"), 5, time);
  log.add(uid(0), "app", "readiness", outcome("failure", "x".repeat(10_000)), 7, 31);
  const liveness = log.attempts(uid(0), "app", "liveness");
  expect([liveness.length, liveness[0]?.time, liveness.at(-1)?.time]).toEqual([20, 11, 30]);
  expect(log.attempts(uid(0), "app", "readiness")).toEqual([
    { time: 31, result: "failure", output: "x".repeat(200), durationMs: 7 },
  ]);
  expect(log.attempts(uid(0), "other", "liveness")).toEqual([]);
});

test("nothing is kept of a pod that was removed", () => {
  const log = new ProbeLog();
  for (const index of [1, 2]) log.add(uid(index), "app", "readiness", outcome("success"), 1, index);
  log.forget(uid(1));
  expect([1, 2].map((index) => log.attempts(uid(index), "app", "readiness").length)).toEqual([0, 1]);
});

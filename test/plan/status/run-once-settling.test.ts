import { expect, test } from "bun:test";
import type { ProcessSample } from "../../../src/base/model/process-sample.ts";
import { hasSettled, type TimedSample } from "../../../src/plan/status/run-once-settling.ts";

const at = (atMs: number, state: ProcessSample["state"], switches = 0, cpuMs = 0): TimedSample => ({
  atMs,
  state,
  switches,
  cpuMs,
});

test.each<[string, TimedSample[], boolean]>([
  ["no sample yet", [], false],
  ["one sample proves nothing", [at(0, "asleep")], false],
  ["a server that waits for its first client", [at(0, "asleep", 7), at(30, "asleep", 7)], true],
  ["one that was woken in between", [at(0, "asleep", 7), at(30, "asleep", 8)], false],
  ["one that has only just begun to wait", [at(0, "busy", 7), at(30, "asleep", 7)], false],
  ["a program that reads its configuration", [at(0, "busy", 1), at(30, "busy", 1)], false],
  ["one the runtime has not turned into the program", [at(0, "starting"), at(300, "starting")], false],
  ["one that is dead, whatever the engine says", [at(0, "asleep"), at(500, "gone"), at(1_000, "gone")], false],
  [
    "a restless one that has lived for a while",
    [at(0, "asleep", 1), at(220, "asleep", 20), at(260, "asleep", 29)],
    true,
  ],
  ["a busy one on an idle machine", [at(0, "busy", 0, 0), at(230, "busy", 1, 90), at(260, "busy", 2, 110)], true],
  ["a busy one that is not scheduled", [at(0, "busy", 0, 0), at(230, "busy", 1, 0), at(260, "busy", 2, 10)], false],
  ["an engine that says running for ten seconds", [at(0, "gone"), at(9_000, "gone"), at(10_000, "gone")], true],
])("%s", (_, samples, want) => {
  expect(hasSettled(samples)).toBe(want);
});

import { describe, expect, test } from "bun:test";
import {
  decideStart,
  findSymptoms,
  judgeTrial,
  type KnownConfigurations,
  MAX_FAILED_RUNS,
  type TrialHealth,
} from "../../src/plan/config-trial.ts";

const configuration = (id: string) => ({ id, files: [{ path: "/etc/config.yaml", text: id }] });
const tried = (id: string, failedRuns: number, rejected?: string) => ({
  ...configuration(id),
  failedRuns,
  ...(rejected !== undefined && { rejected }),
});

describe("configuration of a start", () => {
  const good = configuration("good");
  const cases: [string, KnownConfigurations, string, string[], unknown][] = [
    ["the first one is on trial", {}, "new", [], ["assigned", true, 1]],
    ["a new one is on trial", { current: tried("good", 0), lastKnownGood: good }, "new", [], ["assigned", true, 1]],
    ["each start counts", { current: tried("new", 1), lastKnownGood: good }, "new", [], ["assigned", true, 2]],
    [
      "after three runs that did not end in order the last known good one is used",
      { current: tried("new", MAX_FAILED_RUNS), lastKnownGood: good },
      "new",
      [],
      ["last-known-good", "kubelet-ts ended 3 times without being stopped while it was on trial"],
    ],
    [
      "it stays so until the files change",
      { current: tried("new", 0, "pressure"), lastKnownGood: good },
      "new",
      [],
      ["last-known-good", "pressure"],
    ],
    [
      "a changed file is tried again",
      { current: tried("new", 0, "pressure"), lastKnownGood: good },
      "newer",
      [],
      ["assigned", true, 1],
    ],
    [
      "the last known good one is not on trial",
      { current: tried("new", 2), lastKnownGood: good },
      "good",
      [],
      ["assigned", false, 0],
    ],
    ["without a last known good one it continues", { current: tried("new", 9) }, "new", [], ["assigned", true, 10]],
    [
      "an invalid one is not used",
      { lastKnownGood: good },
      "bad",
      ["no such field"],
      ["last-known-good", "no such field"],
    ],
    [
      "an invalid one ends the start when there is no other",
      { current: tried("x", 0) },
      "bad",
      ["no such field"],
      ["none"],
    ],
    [
      "flags that contradict the last known good one end the start",
      { lastKnownGood: good },
      "good",
      ["bad flag"],
      ["none"],
    ],
  ];
  test.each(cases)("%s", (_title, known, id, errors, expected) => {
    const decision = decideStart(known, configuration(id), errors);
    const shown =
      decision.use === "assigned"
        ? [decision.use, decision.isOnTrial, decision.tried.failedRuns]
        : decision.use === "none"
          ? [decision.use]
          : [decision.use, decision.error];
    expect(shown).toEqual(expected as typeof shown);
  });

  test("the files of an invalid configuration are not written down as tried", () => {
    expect(decideStart({ lastKnownGood: good }, configuration("bad"), ["wrong"])).not.toHaveProperty("tried");
  });
});

describe("symptoms", () => {
  const well: TrialHealth = { engineError: undefined, closedPorts: [], pressures: [] };
  const ill: TrialHealth = { engineError: "no engine", closedPorts: ["healthz"], pressures: ["MemoryPressure"] };
  test("an unrelated setting is not blamed for anything", () => {
    expect(findSymptoms(["verbosity", "maxPods", "clusterDns"], ill)).toEqual([]);
  });
  test("without problems there are none", () => {
    expect(findSymptoms(["dockerEndpoint", "healthzPort", "evictionHard"], well)).toEqual([]);
  });
  test.each([
    [["dockerEndpoint"], "no engine (after a change of dockerEndpoint)", 60_000],
    [["healthzPort"], "the healthz port cannot be opened (after a change of healthzPort)", 60_000],
    [["evictionHard", "kubeReserved"], "MemoryPressure (after a change of evictionHard, kubeReserved)", 0],
  ] as const)("%p", (changed, text, lastingMs) => {
    expect(findSymptoms([...changed], ill)).toEqual([{ text, lastingMs }]);
  });
});

describe("a trial", () => {
  const symptom = { text: "no engine", lastingMs: 60_000 };
  const begin = { startedAtMs: 0, unwellSinceMs: undefined };
  const observation = { nowMs: 599_999, trialMs: 600_000, symptoms: [], needsRestart: false };
  test("ends well after the trial period", () => {
    expect(judgeTrial(begin, observation)).toEqual({ is: "on-trial", progress: begin });
    expect(judgeTrial(begin, { ...observation, nowMs: 600_000 })).toEqual({ is: "good" });
    expect(judgeTrial(begin, { ...observation, nowMs: 600_000, needsRestart: true })).toEqual({
      is: "good-until-restart",
    });
  });
  test("ends badly when a symptom lasts", () => {
    const unwell = judgeTrial(begin, { ...observation, nowMs: 10_000, symptoms: [symptom] });
    expect(unwell).toEqual({ is: "on-trial", progress: { startedAtMs: 0, unwellSinceMs: 10_000 } });
    const progress = { startedAtMs: 0, unwellSinceMs: 10_000 };
    expect(judgeTrial(progress, { ...observation, nowMs: 69_999, symptoms: [symptom] }).is).toBe("on-trial");
    expect(judgeTrial(progress, { ...observation, nowMs: 70_000, symptoms: [symptom] })).toEqual({
      is: "rejected",
      why: "no engine",
    });
  });
  test("begins again when a symptom has passed", () => {
    const progress = { startedAtMs: 0, unwellSinceMs: 10_000 };
    expect(judgeTrial(progress, { ...observation, nowMs: 600_000 })).toEqual({
      is: "on-trial",
      progress: { startedAtMs: 600_000, unwellSinceMs: undefined },
    });
  });
  test("ends at once by pressure", () => {
    const symptoms = [{ text: "MemoryPressure", lastingMs: 0 }];
    expect(judgeTrial(begin, { ...observation, nowMs: 10_000, symptoms }).is).toBe("rejected");
  });
});

import { describe, expect, test } from "bun:test";
import {
  decideStart,
  findSymptoms,
  judgeTrial,
  type KnownConfigurations,
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
  const after = (...current: Parameters<typeof tried>) => ({ current: tried(...current), lastKnownGood: good });
  const ENDED = "kubelet-ts ended 3 times without being stopped while it was on trial";
  test.each<[title: string, KnownConfigurations, id: string, want: string, ...errors: string[]]>([
    ["the first one is on trial", {}, "new", "on trial, run 1"],
    ["a new one is on trial", after("good", 0), "new", "on trial, run 1"],
    ["each start counts", after("new", 1), "new", "on trial, run 2"],
    ["after three runs that did not end in order the last known good one is used", after("new", 3), "new", ENDED],
    ["it stays so until the files change", after("new", 0, "pressure"), "new", "pressure"],
    ["a changed file is tried again", after("new", 0, "pressure"), "newer", "on trial, run 1"],
    ["the last known good one is not on trial", after("new", 2), "good", "assigned"],
    ["without a last known good one it continues", { current: tried("new", 9) }, "new", "on trial, run 10"],
    ["an invalid one is not used", { lastKnownGood: good }, "bad", "no such field", "no such field"],
    ["an invalid one ends the start when there is no other", { current: tried("x", 0) }, "bad", "none", "no field"],
    ["flags that contradict the last known good one end the start", { lastKnownGood: good }, "good", "none", "flag"],
  ])("%s", (_title, known, id, want, ...errors) => {
    const decision = decideStart(known, configuration(id), errors);
    if (decision.use === "last-known-good") expect(decision.error).toBe(want);
    else if (decision.use === "none") expect(want).toBe("none");
    else expect(decision.isOnTrial ? `on trial, run ${decision.tried.failedRuns}` : decision.use).toBe(want);
    // The files of a configuration that cannot be used are not written down as tried.
    expect("tried" in decision).toBe(errors.length === 0);
  });

  test("a configuration that is not on trial has no failed runs", () => {
    expect(decideStart(after("new", 2), good, [])).toMatchObject({ tried: { failedRuns: 0 } });
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

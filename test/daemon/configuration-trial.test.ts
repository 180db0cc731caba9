import { expect, test } from "bun:test";
import type { Configuration } from "../../src/base/model/configuration.ts";
import type { KubeletOptions } from "../../src/config/option-table.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";
import type { ConfigurationStart } from "../../src/daemon/choose-configuration.ts";
import { ConfigurationTrial } from "../../src/daemon/configuration-trial.ts";
import { decideStart, type KnownConfigurations, type TriedConfiguration } from "../../src/plan/config-trial.ts";
import { FakeClock } from "../support/fake-clock.ts";

const TRIAL_MS = 600_000;
const configuration = (id: string): Configuration => ({ id, files: [{ path: "/etc/config.yaml", text: id }] });
const withOptions = (options: Partial<KubeletOptions>): KubeletOptions => ({ ...DEFAULT_KUBELET_OPTIONS, ...options });

function world(
  id: string,
  known: KnownConfigurations = {},
  options: Partial<KubeletOptions> = {},
  errors: string[] = [],
) {
  const clock = new FakeClock();
  const kept: { current?: TriedConfiguration | undefined; lastKnownGood?: Configuration | undefined } = { ...known };
  const events: string[] = [];
  const wentBackTo: string[] = [];
  const health = {
    engineError: undefined as string | undefined,
    closedPorts: [] as string[],
    pressures: [] as string[],
  };
  const decision = decideStart(known, configuration(id), errors);
  if (decision.use === "none") throw new Error("this start fails");
  const start: ConfigurationStart = {
    decision,
    assigned: configuration(id),
    lastKnownGood: known.lastKnownGood,
    goodOptions: known.lastKnownGood && DEFAULT_KUBELET_OPTIONS,
    store: {
      tried: {
        read: () => kept.current,
        write: (data) => {
          kept.current = data;
        },
      },
      lastKnownGood: {
        read: () => kept.lastKnownGood,
        write: (data) => {
          kept.lastKnownGood = data;
        },
      },
    },
  };
  const trial = new ConfigurationTrial({
    clock,
    recorder: { record: (target, { type, reason }) => events.push(`${target.kind} ${type} ${reason}`) },
    nodeName: "node",
    start,
    options: withOptions(options),
    trialMs: TRIAL_MS,
    health: () => health,
    rollBack: async (good) => {
      wentBackTo.push(good.id);
    },
  });
  trial.begin();
  const status = () => {
    const { assigned, active, lastKnownGood, error } = trial.status;
    return [assigned?.id, active?.id, lastKnownGood?.id, error];
  };
  return { clock, kept, events, wentBackTo, health, trial, status };
}

test("a configuration that stays healthy becomes the last known good one; then no timer is left", async () => {
  const { clock, kept, events, status } = world("new", { lastKnownGood: configuration("good") });
  expect([kept.current?.failedRuns, status()]).toEqual([1, ["new", "new", "good", undefined]]);
  await clock.advance(TRIAL_MS);
  expect([kept.lastKnownGood?.id, kept.current?.failedRuns]).toEqual(["new", 0]);
  expect(status()).toEqual(["new", "new", "new", undefined]);
  expect(events).toEqual(["Node Normal KubeletConfigChanged", "Node Normal KubeletConfigGood"]);
  expect(clock.pendingTimers).toBe(0);
});

test("a normal end of the process does not count against the configuration", () => {
  const { kept, trial } = world("new", { current: { ...configuration("new"), failedRuns: 1 } });
  expect(kept.current?.failedRuns).toBe(2);
  trial.stopped();
  expect(kept.current?.failedRuns).toBe(1);
});

test("an end by an error counts, and the configuration does not become good while the process ends", async () => {
  const { clock, kept, trial } = world("new", { lastKnownGood: configuration("good") });
  trial.failed();
  await clock.advance(TRIAL_MS);
  expect([kept.current?.failedRuns, kept.lastKnownGood?.id]).toEqual([1, "good"]);
});

test("pressure after a change of thresholds brings the last known good one back", async () => {
  const { clock, kept, events, wentBackTo, health, status, trial } = world(
    "new",
    { lastKnownGood: configuration("good") },
    { evictionHard: [] },
  );
  health.pressures = ["MemoryPressure"];
  await clock.advance(10_000);
  const why = "MemoryPressure (after a change of evictionHard)";
  expect([wentBackTo, kept.current?.rejected, status()]).toEqual([["good"], why, ["new", "good", "good", why]]);
  expect(events.at(-1)).toBe("Node Warning KubeletConfigRejected");
  expect(trial.refusalOf(configuration("new"))).toBe(why);
  expect(trial.refusalOf(configuration("newer"))).toBeUndefined();
  trial.assigned(configuration("newer"), DEFAULT_KUBELET_OPTIONS, []);
  expect(status()).toEqual(["newer", "newer", "good", undefined]);
});

test("an engine that is down is not the fault of another setting", async () => {
  const { clock, kept, wentBackTo, health } = world("new", { lastKnownGood: configuration("good") }, { maxPods: 7 });
  health.engineError = "no engine";
  await clock.advance(TRIAL_MS);
  expect([wentBackTo, kept.lastKnownGood?.id]).toEqual([[], "new"]);
});

test("a start that cannot use the files reports it, and the files are taken over when they are correct again", async () => {
  const good = { lastKnownGood: configuration("good") };
  const { events, status, trial, clock, kept } = world("bad", good, {}, ["no such field"]);
  expect(status()).toEqual(["bad", "good", "good", "no such field"]);
  expect(events).toEqual(["Node Warning KubeletConfigRejected"]);
  trial.assigned(configuration("good"), DEFAULT_KUBELET_OPTIONS, []);
  expect(status()).toEqual(["good", "good", "good", undefined]);
  await clock.advance(TRIAL_MS);
  expect(kept.lastKnownGood?.id).toBe("good");
});

test("an invalid edit leaves what is in force", () => {
  const { status, trial, events } = world("good", { lastKnownGood: configuration("good") });
  trial.invalid(configuration("bad"), "no such field");
  expect(status()).toEqual(["bad", "good", "good", "no such field"]);
  expect(events).toEqual(["Node Warning InvalidKubeletConfig"]);
  trial.assigned(configuration("good"), DEFAULT_KUBELET_OPTIONS, []);
  expect(status()).toEqual(["good", "good", "good", undefined]);
});

test("settings that need a restart are not good before it, and nothing polls meanwhile", async () => {
  const { clock, kept, status, trial } = world("good", { lastKnownGood: configuration("good") });
  trial.assigned(configuration("new"), withOptions({ maxPods: 7 }), ["maxPods"]);
  const error = "these settings need a restart of kubelet-ts: maxPods";
  expect([kept.current?.failedRuns, status()]).toEqual([1, ["new", "good", "good", error]]);
  await clock.advance(2 * TRIAL_MS);
  expect([kept.current?.failedRuns, kept.lastKnownGood?.id, clock.pendingTimers]).toEqual([0, "good", 0]);
});

test("reading the same files again changes nothing", async () => {
  const { clock, kept, events, trial } = world("new", { lastKnownGood: configuration("good") });
  await clock.advance(TRIAL_MS / 2);
  trial.assigned(configuration("new"), DEFAULT_KUBELET_OPTIONS, []);
  await clock.advance(TRIAL_MS / 2);
  expect([events.length, kept.lastKnownGood?.id]).toEqual([2, "new"]);
});

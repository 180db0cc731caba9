import { expect, test } from "bun:test";
import type { Configuration } from "../../src/base/model/configuration.ts";
import type { KubeletOptions } from "../../src/config/option-table.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";
import type { ResolvedOptions } from "../../src/config/resolve-options.ts";
import { type ConfigurationStore, chooseConfiguration } from "../../src/daemon/choose-configuration.ts";

const configuration = (id: string): Configuration => ({ id, files: [{ path: "/etc/config.yaml", text: id }] });
const resolved = (id: string, errors: string[] = [], options: Partial<KubeletOptions> = {}): ResolvedOptions => ({
  options: { ...DEFAULT_KUBELET_OPTIONS, ...options },
  origins: {} as never,
  positionals: [],
  configPaths: [],
  warnings: [],
  errors,
  configuration: configuration(id),
});
const storeWith = (lastKnownGood?: Configuration): ConfigurationStore => ({
  tried: { read: () => undefined, write: () => expect.unreachable() },
  lastKnownGood: { read: () => lastKnownGood, write: () => expect.unreachable() },
});
const choose = (found: ResolvedOptions, good?: ResolvedOptions) =>
  chooseConfiguration(
    found,
    async () => good ?? expect.unreachable(),
    () => storeWith(good?.configuration),
  );

test("an invalid configuration gives way to the last known good one", async () => {
  const { resolved: used, start } = await choose(resolved("bad", ["wrong"]), resolved("good", [], { maxPods: 7 }));
  expect([used.options.maxPods, used.errors, start?.decision.use]).toEqual([7, [], "last-known-good"]);
});

test("without a last known good one the errors end the start", async () => {
  const { resolved: used, start } = await choose(resolved("bad", ["wrong"]));
  expect([used.errors, start]).toEqual([["wrong"], undefined]);
});

test("a last known good one that is no longer valid does not help", async () => {
  const { resolved: used } = await choose(resolved("bad", ["wrong"]), resolved("good", ["wrong too"]));
  expect(used.errors).toEqual(["wrong"]);
});

test("a valid one is used, with the options of the last known good one to compare with", async () => {
  const { resolved: used, start } = await choose(
    resolved("new", [], { maxPods: 8 }),
    resolved("good", [], { maxPods: 7 }),
  );
  expect([used.options.maxPods, start?.goodOptions?.maxPods]).toEqual([8, 7]);
});

test.each([
  ["--config-trial-period=0s", { configTrialPeriodMs: 0 }],
  ["--runonce", { runOnce: true }],
])("%s: nothing is read or kept", async (_flag, options) => {
  const found = resolved("new", ["wrong"], options);
  expect(
    await chooseConfiguration(
      found,
      () => expect.unreachable(),
      () => expect.unreachable(),
    ),
  ).toEqual({ resolved: found });
});

import { expect, test } from "bun:test";
import { toSystemCgroups, warnOfMissingCgroups } from "../../src/stats/sampler.ts";
import { RecordingLogger } from "../support/recording-logger.ts";

const options = { kubeletCgroups: "/kubelet.slice", runtimeCgroups: "", systemCgroups: "/system.slice" };

test("options name cgroups of the summary", () => {
  expect([...toSystemCgroups(options)]).toEqual([
    ["kubelet", "/kubelet.slice"],
    ["misc", "/system.slice"],
  ]);
});

test("a cgroup that does not exist is named, with its flag", () => {
  const logger = new RecordingLogger();
  warnOfMissingCgroups(options, (path) => path === "/system.slice", logger);
  expect(logger.lines).toHaveLength(1);
  expect(logger.lines[0]).toStartWith(
    'warn --kubelet-cgroups: there is no cgroup "/kubelet.slice"; /stats/summary has no',
  );
});

import { expect, test } from "bun:test";
import type { ContainerStatus } from "../../../src/base/api/pod.ts";
import { findLogContainerId } from "../../../src/plan/status/log-container.ts";

const lastState = { terminated: { exitCode: 1, containerID: "docker://old" } };
const terminated = { exitCode: 3, containerID: "docker://new" };

test.each([
  ["runs", { state: { running: {} }, containerID: "docker://new", lastState }, "new"],
  ["has ended", { state: { terminated }, containerID: "docker://new", lastState }, "new"],
  ["waits for a restart", { state: { waiting: {} }, containerID: "docker://old", lastState }, "old"],
  ["never started", { state: { waiting: {} }, lastState: {} }, undefined],
])("the log of a container that %s", (_, status, id) => {
  expect(findLogContainerId(status as ContainerStatus, false)).toBe(id);
});

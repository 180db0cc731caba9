import { expect, test } from "bun:test";
import type { ContainerStatus, Pod } from "../../src/base/api/pod.ts";
import { findLoggingContainer } from "../../src/daemon/run-once.ts";
import { aPod } from "../support/builders.ts";

const predecessor = { terminated: { exitCode: 1, containerID: "docker://old" } };
const terminated = { exitCode: 3, containerID: "docker://new" };

test.each([
  ["runs", { state: { running: {} }, containerID: "docker://new", lastState: predecessor }, "new"],
  ["has ended", { state: { terminated }, containerID: "docker://new", lastState: predecessor }, "new"],
  ["waits for a restart", { state: { waiting: {} }, containerID: "docker://old", lastState: predecessor }, "old"],
  ["never started", { state: { waiting: {} }, lastState: {} }, undefined],
])("the log of a container that %s", (_, status, id) => {
  const containerStatuses = [{ name: "app", ...status } as ContainerStatus];
  const pod = { ...aPod(), status: { phase: "Running", containerStatuses } } as Pod;
  expect(findLoggingContainer(pod, "app")).toBe(id);
  expect(findLoggingContainer(pod, "other")).toBeUndefined();
});

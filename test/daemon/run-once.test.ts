import { expect, test } from "bun:test";
import type { ContainerStatus, Pod } from "../../src/base/api/pod.ts";
import type { DesiredObject } from "../../src/base/model/desired-object.ts";
import type { DesiredPod } from "../../src/base/model/desired-pod.ts";
import { findCronJobs, findLoggingContainer } from "../../src/daemon/run-once.ts";
import { aPod } from "../support/builders.ts";

const anObject = (kind: string) => ({ kind, object: { metadata: { name: "n" } }, origin: "n.yaml" }) as DesiredObject;
const pods = [{} as DesiredPod];

test.each([
  ["CronJob", [], 1, true],
  ["CronJob Service", [], 1, true],
  ["CronJob Job", [], 1, false],
  ["CronJob", pods, 1, false],
  ["Deployment", [], 0, false],
])("--runonce of %s (row %#)", (kinds, more, count, isAll) => {
  const found = findCronJobs({ pods: more, objects: kinds.split(" ").map(anObject) });
  expect([found.messages.length, found.isAll]).toEqual([count, isAll]);
  if (count > 0)
    expect(found.messages[0]).toContain('CronJob "default/n" does not run with --runonce: run "kubelet-ts n.yaml"');
});

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

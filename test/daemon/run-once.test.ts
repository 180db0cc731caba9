import { expect, test } from "bun:test";
import type { DesiredObject } from "../../src/base/model/desired-object.ts";
import type { DesiredPod } from "../../src/base/model/desired-pod.ts";
import { findCronJobs } from "../../src/daemon/run-once.ts";

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

import { expect, test } from "bun:test";
import type { DesiredObject, DesiredPod } from "../../src/base/model/desired-state.ts";
import { findIdleObjects } from "../../src/daemon/run-once.ts";

const anObject = (kind: string) => ({ kind, object: { metadata: { name: "n" } }, origin: "n.yaml" }) as DesiredObject;
const pods = [{} as DesiredPod];

test.each([
  ["CronJob", [], 1, true],
  ["CronJob Service", [], 1, true],
  ["CronJob Job", [], 1, false],
  ["CronJob", pods, 1, false],
  ["CronJob Ingress", [], 2, true],
  ["Deployment Ingress", [], 1, false],
  ["Deployment", [], 0, false],
])("--runonce of %s (row %#)", (kinds, more, count, isAll) => {
  const found = findIdleObjects({ pods: more, objects: kinds.split(" ").map(anObject) });
  expect([found.messages.length, found.isAll]).toEqual([count, isAll]);
  const told = { CronJob: "does not run", Ingress: "is not served" };
  for (const [kind, what] of Object.entries(told).filter(([name]) => kinds.includes(name))) {
    const start = `${kind} "default/n" ${what} with --runonce: run "kubelet-ts n.yaml", which stays and `;
    expect(found.messages.filter((message) => message.startsWith(start))).toHaveLength(1);
  }
});

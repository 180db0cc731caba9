import { expect, test } from "bun:test";
import type { Pod, PodStatus } from "../../src/base/api/pod.ts";
import {
  type DependencyState,
  findDependencyProblems,
  findHold,
  findStopsBefore,
} from "../../src/plan/pod-dependencies.ts";
import { aPod } from "../support/builders.ts";

const pod = (name: string, dependsOn?: string, annotations: Record<string, string> = {}): Pod =>
  aPod(
    { nodeName: "node1" },
    {
      name: `${name}-node1`,
      uid: name,
      annotations: { ...(dependsOn !== undefined && { "kubelet-ts.io/depends-on": dependsOn }), ...annotations },
    },
  );

const ready: PodStatus = { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } as PodStatus;
const unready: PodStatus = { phase: "Running", conditions: [{ type: "Ready", status: "False" }] } as PodStatus;
const succeeded = { phase: "Succeeded" } as PodStatus;

const db = (status: PodStatus | undefined, rollout: DependencyState["rollout"] = "live"): DependencyState => ({
  pod: pod("db"),
  status,
  rollout,
});

test.each([
  { when: "without dependencies", dependsOn: undefined, state: db(undefined), may: true },
  { when: "when the other is Ready", dependsOn: "default/db=Ready", state: db(ready), may: true },
  { when: "named with the node suffix too", dependsOn: "default/db-node1", state: db(ready), may: true },
  { when: "not while the other is not Ready", dependsOn: "default/db", state: db(unready), may: false },
  { when: "not before the other has a status", dependsOn: "default/db", state: db(undefined), may: false },
  { when: "not while the other is being edited", dependsOn: "default/db", state: db(ready, "pending"), may: false },
  { when: "when the other has succeeded", dependsOn: "default/db=Succeeded", state: db(succeeded), may: true },
  { when: "when the other ran and has succeeded", dependsOn: "default/db=Running", state: db(succeeded), may: true },
  { when: "not while the other has yet to succeed", dependsOn: "default/db=Succeeded", state: db(ready), may: false },
  { when: "with a malformed annotation, which is a finding", dependsOn: "db", state: db(undefined), may: true },
])("a pod may start: $when", ({ dependsOn, state, may }) => {
  expect(findHold(pod("app", dependsOn), () => [state], 0) === undefined).toBe(may);
});

/** Pods of a Deployment, as its ReplicaSet makes them. */
const replica = (uid: string, status: PodStatus): DependencyState => {
  const one = pod(`db-5d5f-${uid}`);
  const ownerReferences = [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "db-5d5f", uid: "r", controller: true }];
  const metadata = {
    ...one.metadata,
    name: `db-5d5f-${uid}`,
    labels: { "pod-template-hash": "5d5f" },
    ownerReferences,
  };
  return { pod: { ...one, metadata }, status, rollout: "live" };
};

test.each([
  [[ready, ready], true],
  [[ready, unready], false],
  [[], false],
])("the name of a Deployment means all of its pods", (statuses, may) => {
  const replicas = statuses.map((status, index) => replica(`x${index}`, status));
  expect(findHold(pod("app", "default/db"), () => replicas, 0) === undefined).toBe(may);
  const problems = findDependencyProblems([pod("app", "default/db"), ...replicas.map((one) => one.pod)]);
  expect(problems.size).toBe(replicas.length === 0 ? 1 : 0);
});

test("the reason names the pod and the condition, and the timeout when it is over", () => {
  const app = pod("app", "default/db=Ready", { "kubelet-ts.io/depends-on-timeout": "90s" });
  expect(findHold(app, () => [db(unready)], 0)).toEqual({
    reason: "WaitingForDependency",
    message: 'waits for pod "default/db" to be Ready',
  });
  expect(findHold(app, () => [db(unready)], 90_000)).toEqual({
    reason: "DependencyTimeout",
    message: 'pod "default/db" was not Ready within 1m30s; still waiting',
  });
});

test("absent names and cycles are problems", () => {
  const cycle = [pod("a", "default/b"), pod("b", "default/c"), pod("c", "default/a")];
  const pods = [...cycle, pod("d", "default/a,default/x"), pod("e")];
  const problems = findDependencyProblems(pods);
  expect([...problems.keys()]).toEqual(["a", "b", "c", "d"]);
  expect(problems.get("a")).toEqual({
    reason: "DependencyCycle",
    message:
      "kubelet-ts.io/depends-on: the dependencies form a cycle: default/a-node1 -> default/b-node1 -> default/c-node1 -> default/a-node1",
  });
  expect(problems.get("d")).toEqual({
    reason: "DependencyNotFound",
    message: 'kubelet-ts.io/depends-on: there is no pod "default/x"',
  });
});

test("a pod stops after those that depend on it, unless they form a cycle", () => {
  const [database, app, web] = [pod("db"), pod("app", "default/db"), pod("web", "default/app")];
  const all = [database, app, web] as Pod[];
  expect(all.map((one) => findStopsBefore(one, all))).toEqual([[app], [web], []] as never);
  const [a, b] = [pod("a", "default/b"), pod("b", "default/a")];
  expect(findStopsBefore(a, [a, b])).toEqual([]);
});

import { expect, test } from "bun:test";
import type { Pod } from "../../../src/base/api/pod.ts";
import type { ApiPod } from "../../../src/cluster/pods/api-pod.ts";
import { planMirrors } from "../../../src/cluster/pods/mirror-manager.ts";

const NODE = { name: "n", uid: "node-uid" };
const aStatic = (name: string, hash = "h1"): Pod =>
  ({
    metadata: { name, namespace: "default", uid: `uid-${name}`, annotations: { "kubernetes.io/config.hash": hash } },
    spec: { containers: [] },
  }) as unknown as Pod;
const aMirror = (name: string, hash: string | undefined = "h1", more: object = {}): ApiPod => ({
  metadata: {
    name,
    namespace: "default",
    uid: `api-${name}`,
    ...(hash !== "" && { annotations: { "kubernetes.io/config.mirror": hash } }),
    ...more,
  },
  spec: {},
});

const plan = (staticPods: Pod[], apiPods: ApiPod[], { isComplete = true, isWanted = true } = {}) => {
  const made = planMirrors({ staticPods, apiPods, isComplete, isWanted: () => isWanted, node: NODE });
  return {
    create: made.create.map((pod) => (pod as ApiPod).metadata.name),
    remove: made.remove.map(({ metadata }) => metadata.name),
    taken: made.taken.map(({ metadata }) => metadata.name),
  };
};
const terminating = { deletionTimestamp: "2026-11-22T10:00:00Z" };

test.each([
  { when: "a static pod without one", statics: [aStatic("a")], api: [], want: { create: ["a"] } },
  { when: "one that shows it", statics: [aStatic("a")], api: [aMirror("a")], want: {} },
  { when: "one of an earlier revision", statics: [aStatic("a", "h2")], api: [aMirror("a")], want: { remove: ["a"] } },
  {
    when: "one that was deleted gracefully",
    statics: [aStatic("a")],
    api: [aMirror("a", "h1", terminating)],
    want: { remove: ["a"] },
  },
  { when: "one without a static pod", statics: [], api: [aMirror("a")], want: { remove: ["a"] } },
  {
    when: "a pod of that name that is not a mirror",
    statics: [aStatic("a")],
    api: [aMirror("a", "")],
    want: { taken: ["a"] },
  },
  { when: "a pod of the API that is not a mirror", statics: [], api: [aMirror("b", "")], want: {} },
])("$when: $want", ({ statics, api, want }) => {
  const nothing: ReturnType<typeof plan> = { create: [], remove: [], taken: [] };
  expect(plan([...statics], [...api])).toEqual({ ...nothing, ...(want as Partial<typeof nothing>) });
});

test("before every source was read no mirror pod without a static pod is removed", () => {
  expect(plan([], [aMirror("a")], { isComplete: false }).remove).toEqual([]);
});

test("a static pod that terminates keeps its mirror pod and gets no new one", () => {
  expect(plan([aStatic("a")], [aMirror("a")], { isWanted: false }).remove).toEqual([]);
  expect(plan([aStatic("a")], [], { isWanted: false }).create).toEqual([]);
});

test("its owner is the Node, and its annotation the revision", () => {
  const { create } = planMirrors({
    staticPods: [aStatic("a")],
    apiPods: [],
    isComplete: true,
    isWanted: () => true,
    node: NODE,
  });
  expect(create[0]).toMatchObject({
    metadata: {
      annotations: { "kubernetes.io/config.mirror": "h1", "kubernetes.io/config.hash": "h1" },
      ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "n", uid: "node-uid", controller: true }],
    },
    spec: { nodeName: "n" },
  });
});

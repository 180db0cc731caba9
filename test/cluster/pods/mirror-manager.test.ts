import { expect, test } from "bun:test";
import type { Pod } from "../../../src/base/api/pod.ts";
import type { ApiPod } from "../../../src/cluster/pods/api-pod-source.ts";
import { MirrorManager, planMirrors } from "../../../src/cluster/pods/mirror-manager.ts";
import { aPod } from "../../support/builders.ts";
import { FakeApi } from "../../support/cluster/fake-api.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";

const aStaticPod = (name: string, namespace: string, hash = name) =>
  aPod({}, { name, namespace, uid: name, annotations: { "kubernetes.io/config.hash": hash } });

function aWorld() {
  const clock = new FakeClock();
  const api = new FakeApi(clock);
  const staticPods = [aStaticPod("lost", "gone")];
  const mirrors = new MirrorManager({
    client: api,
    clock,
    logger: new RecordingLogger(),
    kubelet: { staticPods: () => staticPods, isWanted: () => true, isComplete: true },
    nodeName: "node1",
    nodeUid: () => "node-uid",
  });
  mirrors.setPods([]);
  const pathsSince = (start: number) => api.requests.slice(start).map(({ path }) => path);
  return { clock, api, staticPods, mirrors, pathsSince };
}

test("a mirror pod that cannot be created delays no other", async () => {
  const { clock, api, staticPods, mirrors, pathsSince } = aWorld();
  await clock.advance(300_000);
  const before = api.requests.length;
  expect(before).toBeGreaterThan(4);
  api.set("/api/v1/namespaces/default/pods", {});
  staticPods.push(aStaticPod("web", "default"));
  mirrors.changed();
  await clock.advance(1_000);
  expect(pathsSince(before)).toContain("/api/v1/namespaces/default/pods");
});

test("its attempts grow apart, whatever else changes meanwhile", async () => {
  const { clock, api, mirrors } = aWorld();
  await clock.advance(300_000);
  const before = api.requests.length;
  for (let i = 0; i < 20; i++) {
    mirrors.changed();
    await clock.advance(1_000);
  }
  expect(api.requests.length - before).toBeLessThanOrEqual(1);
});

test("nothing is tried for a static pod that is gone", async () => {
  const { clock, api, staticPods, mirrors } = aWorld();
  await clock.advance(1_000);
  staticPods.length = 0;
  mirrors.changed();
  await clock.advance(1_000);
  const before = api.requests.length;
  await clock.advance(600_000);
  expect(api.requests).toHaveLength(before);
  expect(clock.pendingTimers).toBe(0);
});

test("a second kubelet with the name of this node leads to no storm of mirror pods", async () => {
  const { clock, api, mirrors } = aWorld();
  const metadata = { name: "lost", namespace: "gone", annotations: { "kubernetes.io/config.mirror": "of-another" } };
  api.set("/api/v1/namespaces/gone/pods/lost", {});
  api.set("/api/v1/namespaces/gone/pods", {});
  for (let passed = 0; passed < 60; passed++) {
    mirrors.setPods([{ metadata: { ...metadata, uid: `${passed}` }, spec: {} }]);
    await clock.advance(1_000);
  }
  expect(api.requests.filter(({ method }) => method === "DELETE").length).toBeWithin(7, 11);
  mirrors.stop();
  expect(clock.pendingTimers).toBe(0);
});

const NODE = { name: "n", uid: "node-uid" };
const aStatic = (name: string, hash = "h1"): Pod => aStaticPod(name, "default", hash);
const aMirror = (name: string, hash: string | undefined = "h1", more: object = {}): ApiPod => ({
  metadata: {
    name,
    namespace: "default",
    uid: `api-${name}`,
    ...(hash !== "" && { annotations: { "kubernetes.io/config.mirror": name, "kubernetes.io/config.hash": hash } }),
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
  { when: "deleted", statics: [aStatic("a")], api: [aMirror("a", "h1", terminating)], want: { remove: ["a"] } },
  {
    when: "one that names another UID",
    statics: [aStatic("a")],
    api: [
      aMirror("a", "h1", { annotations: { "kubernetes.io/config.mirror": "h1", "kubernetes.io/config.hash": "h1" } }),
    ],
    want: { remove: ["a"] },
  },
  { when: "one without a static pod", statics: [], api: [aMirror("a")], want: { remove: ["a"] } },
  { when: "a pod of that name, no mirror", statics: [aStatic("a")], api: [aMirror("a", "")], want: { taken: ["a"] } },
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

test("its owner is the Node, and its annotations are the UID, under which kubectl describe looks for events, and the revision", () => {
  const facts = { isComplete: true, isWanted: () => true, node: NODE };
  const { create } = planMirrors({ staticPods: [aStatic("a")], apiPods: [], ...facts });
  expect(create[0]).toMatchObject({
    metadata: {
      annotations: { "kubernetes.io/config.mirror": "a", "kubernetes.io/config.hash": "h1" },
      ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "n", uid: "node-uid", controller: true }],
    },
    spec: { nodeName: "n" },
  });
});

import { expect, test } from "bun:test";
import { NodeMirror } from "../../../src/apiserver/node/mirror.ts";
import type { NodeView } from "../../../src/apiserver/node/node-view.ts";
import type { ResourceDefinition } from "../../../src/apiserver/resource-definition.ts";
import type { Pod } from "../../../src/base/api/pod.ts";
import { aPod } from "../../support/builders.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { anApiServer } from "../support.ts";

/** A mirror of these pods in a store. */
function aMirror(pods: readonly Pod[], { isOfWorkload = false } = {}) {
  const { store } = anApiServer();
  const node = {
    kubelet: { pods: () => pods, worker: () => undefined },
    desired: { configMaps: new Map(), secrets: new Map() },
    workloads: { hasPod: () => isOfWorkload, reader: { derivedObjects: () => [] } },
  } as unknown as NodeView;
  const definition = { group: "", plural: "pods", kind: "Pod", fate: "pods", namespaced: true } as ResourceDefinition;
  const registry = { all: () => [definition] } as never;
  const own = { has: () => false } as never;
  const mirror = new NodeMirror({ store, registry, node, own, clock: new FakeClock(), onGone: () => {} });
  mirror.sync();
  return store;
}

const annotations = { "kubernetes.io/config.hash": "h1" };
const aStatic = aPod({}, { name: "web", namespace: "default", uid: "u1", annotations });

test("a static pod is a mirror pod of its UID, under which kubectl describe looks for events", () => {
  const shown = aMirror([aStatic]).get("pods", "default", "web")!;
  expect(shown.metadata.annotations?.["kubernetes.io/config.mirror"]).toBe(shown.metadata.uid);
  expect(shown.metadata.uid).toBe("u1");
});

test("the pod of a workload is no mirror pod", () => {
  expect(aMirror([aStatic], { isOfWorkload: true }).get("pods", "default", "web")?.metadata.annotations).toEqual(
    annotations,
  );
});

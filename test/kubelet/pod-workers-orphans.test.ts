import { expect, test } from "bun:test";
import type { DesiredState } from "../../src/base/model/desired-state.ts";
import { findOrphans, type OrphanInput } from "../../src/kubelet/pod-workers.ts";
import { aPod } from "../support/builders.ts";
import { stateOf } from "../support/kubelet-world.ts";

const ref = (uid: string) => ({ uid, name: uid, namespace: "default" });

const find = (over: Partial<OrphanInput> & { state?: Partial<DesiredState> }) => {
  const { state, ...rest } = over;
  const { remove, unclaimed } = findOrphans({
    refs: [ref("a")],
    desired: stateOf([], { completeSources: new Set(["file"]), ...state }),
    hasWorker: () => false,
    isRejected: () => false,
    hasContainers: () => true,
    sourceOf: () => undefined,
    ...rest,
  });
  return {
    remove: remove.map(({ ref: { uid }, why }) => `${uid}: ${why}`),
    unclaimed: unclaimed.map(({ uid }) => uid),
  };
};

const NO_MANIFEST = { remove: ["a: no manifest describes it"], unclaimed: [] };
const NONE = { remove: [], unclaimed: [] };
const desiredPod = { pod: aPod({}, { uid: "a" }), source: "file", revision: "1" } as never;

test.each([
  { when: "its source is not known", over: {}, want: { remove: [], unclaimed: ["a"] } },
  { when: "nothing of it runs", over: { hasContainers: () => false }, want: NONE },
  { when: "its source was not read", over: { sourceOf: () => "url" }, want: { remove: [], unclaimed: ["a"] } },
  { when: "its source was read", over: { sourceOf: () => "file" }, want: NO_MANIFEST },
  { when: "it came from the local API", over: { sourceOf: () => "api" }, want: NO_MANIFEST },
  { when: "it was the node's own", over: { sourceOf: () => "node" }, want: NO_MANIFEST },
  { when: "it was deleted by request", over: { state: { deletions: new Map([["a", {}]]) } }, want: NO_MANIFEST },
  { when: "every source is complete", over: { state: { completeSources: undefined } }, want: NO_MANIFEST },
  { when: "a worker takes care of it", over: { sourceOf: () => "file", hasWorker: () => true }, want: NONE },
  { when: "it is desired", over: { state: { pods: [desiredPod] } }, want: NONE },
  {
    when: "it is desired and refused",
    over: { state: { pods: [desiredPod] }, isRejected: () => true },
    want: { remove: ["a: the node refuses it"], unclaimed: [] },
  },
  { when: "it is listed twice", over: { refs: [ref("a"), ref("a")], sourceOf: () => "file" }, want: NO_MANIFEST },
])("a pod without a manifest: $when", ({ over, want }) => {
  expect(find(over as never)).toEqual(want as never);
});

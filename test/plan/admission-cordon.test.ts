import { expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import { isHeldByCordon } from "../../src/plan/admission.ts";
import { aPod } from "../support/builders.ts";

const owned = (kind: string) =>
  aPod({}, { ownerReferences: [{ apiVersion: "apps/v1", kind, name: "web", uid: "w", controller: true }] });
const tolerating = (toleration: object) => aPod({ tolerations: [toleration] } as Partial<Pod["spec"]>);
const TAINT = "node.kubernetes.io/unschedulable";

test.each<[when: string, pod: Pod, isSubmitted: boolean, want: boolean]>([
  ["a new pod that was submitted", aPod(), true, true],
  ["a pod that was there before", aPod({}, { uid: "earlier" }), true, false],
  ["a pod of a manifest file", aPod(), false, false],
  ["a pod of a Deployment in a manifest file", owned("ReplicaSet"), false, true],
  ["a pod of a DaemonSet", owned("DaemonSet"), true, false],
  ["one that tolerates the taint", tolerating({ key: TAINT, operator: "Exists" }), true, false],
  ["one that tolerates the taint by its empty value", tolerating({ key: TAINT, effect: "NoSchedule" }), true, false],
  ["one that tolerates everything", tolerating({ operator: "Exists" }), true, false],
  ["one that tolerates other effects", tolerating({ operator: "Exists", effect: "NoExecute" }), true, true],
  ["one that tolerates other taints", tolerating({ key: "disk", operator: "Exists" }), true, true],
])("held by a cordon: %s", (_when, pod, isSubmitted, want) => {
  const desired = { pod, source: "api", origin: "test", revision: "" } as const;
  expect(isHeldByCordon(desired, isSubmitted, ["earlier"])).toBe(want);
});

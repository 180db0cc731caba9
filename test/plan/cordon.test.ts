import { expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import { isHeldByCordon } from "../../src/plan/cordon.ts";
import { aPod } from "../support/builders.ts";

const CORDON = { since: new Date("2026-01-02T03:04:05Z"), assigned: new Set(["earlier"]) };

const ownedBy = (kind: string) => [{ apiVersion: "apps/v1", kind, name: "web", uid: "w", controller: true }];
const tolerating = (toleration: object) => ({ tolerations: [toleration] }) as Partial<Pod["spec"]>;

test.each([
  { when: "a new pod that was submitted", pod: aPod(), isSubmitted: true, want: true },
  { when: "a pod that was there before", pod: aPod({}, { uid: "earlier" }), isSubmitted: true, want: false },
  { when: "a pod of a manifest file", pod: aPod(), isSubmitted: false, want: false },
  {
    when: "a pod of a Deployment in a manifest file",
    pod: aPod({}, { ownerReferences: ownedBy("ReplicaSet") }),
    isSubmitted: false,
    want: true,
  },
  {
    when: "a pod of a DaemonSet",
    pod: aPod({}, { ownerReferences: ownedBy("DaemonSet") }),
    isSubmitted: true,
    want: false,
  },
  {
    when: "one that tolerates the taint",
    pod: aPod(tolerating({ key: "node.kubernetes.io/unschedulable", operator: "Exists" })),
    isSubmitted: true,
    want: false,
  },
  {
    when: "one that tolerates the taint by its empty value",
    pod: aPod(tolerating({ key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" })),
    isSubmitted: true,
    want: false,
  },
  {
    when: "one that tolerates everything",
    pod: aPod(tolerating({ operator: "Exists" })),
    isSubmitted: true,
    want: false,
  },
  {
    when: "one that tolerates other effects",
    pod: aPod(tolerating({ operator: "Exists", effect: "NoExecute" })),
    isSubmitted: true,
    want: true,
  },
  {
    when: "one that tolerates other taints",
    pod: aPod(tolerating({ key: "disk", operator: "Exists" })),
    isSubmitted: true,
    want: true,
  },
])("held by a cordon: $when: $want", ({ pod, isSubmitted, want }) => {
  const desired = { pod, source: "api", origin: "test", revision: "" } as const;
  expect(isHeldByCordon(desired, isSubmitted, CORDON)).toBe(want);
});

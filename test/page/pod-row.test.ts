import { expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import { toPodRow } from "../../src/page/pod-row.ts";

const COLUMNS = {
  status: "Running",
  ready: 1,
  total: 1,
  restarts: 0,
  lastRestart: 0,
  createdAt: 0,
  source: "",
  why: "",
};
const rowOf = (metadata: object, conditions: object[] = []) =>
  toPodRow({ metadata, spec: { containers: [] }, status: { conditions } } as unknown as Pod, COLUMNS);

test.each([
  [{}, ""],
  [{ ownerReferences: [{ kind: "Node", name: "edge" }] }, ""],
  [{ ownerReferences: [{ kind: "Job", name: "backup-29384", controller: true }] }, "Job backup-29384"],
  [
    {
      labels: { "pod-template-hash": "5d8f" },
      ownerReferences: [{ kind: "ReplicaSet", name: "web-5d8f", controller: true }],
    },
    "Deployment web",
  ],
  [{ ownerReferences: [{ kind: "ReplicaSet", name: "web-5d8f", controller: true }] }, "ReplicaSet web-5d8f"],
])("the owner of a pod with %p", (metadata, owner) => {
  expect(rowOf(metadata).owner).toBe(owner);
});

test("a pod that runs something else than its manifest says why", () => {
  const condition = { type: "ManifestLive", status: "False", reason: "RolledBack", message: "not Ready in 60s" };
  const resize = { type: "PodResizePending", status: "True", reason: "Infeasible", message: "no cpu" };
  expect(rowOf({}, [resize]).notice).toStartWith("its new resources are not possible: no cpu. Fix: ");
  expect(rowOf({}, [resize, condition]).notice).toBe("the last edit was rolled back: not Ready in 60s");
  expect(rowOf({}, [{ ...condition, status: "True" }]).notice).toBe("");
});

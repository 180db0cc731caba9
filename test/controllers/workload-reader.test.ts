import { expect, test } from "bun:test";
import { toDerivedObjects } from "../../src/controllers/workload-reader.ts";
import type { WorkloadRecord } from "../../src/controllers/workload-records.ts";
import { podTemplate, readObjects } from "./workload-world.ts";

test.each(["StatefulSet", "DaemonSet"])("the revisions of a %s are what kubectl rollout undo patches with", (kind) => {
  const [desired] = readObjects({
    apiVersion: "apps/v1",
    kind,
    metadata: { name: "db" },
    spec: { selector: { matchLabels: { app: "web" } }, template: podTemplate("busybox:2") },
  });
  const template = { metadata: { labels: { app: "web" } }, spec: { containers: [] } };
  const revision = (hash: string, number: number) => ({
    hash,
    revision: number,
    createdAt: "2026-01-01T00:00:00Z",
    template,
  });
  const record = { uid: "u", pods: [], revisions: { x1: revision("x1", 1), x2: revision("x2", 3) } };
  const pod = () => ({ phase: "Running" as const, isReady: true, readyForMs: 0, isGone: false });
  const objects = toDerivedObjects({ desired: desired!, record: record as unknown as WorkloadRecord, pod });
  expect(objects).toMatchObject([
    {
      apiVersion: "apps/v1",
      kind: "ControllerRevision",
      metadata: {
        name: "db-x1",
        namespace: "default",
        // The selector of the workload finds them.
        labels: { app: "web", "controller-revision-hash": "x1" },
        ownerReferences: [{ kind, name: "db", uid: "u", controller: true }],
      },
      data: { spec: { template: { ...template, $patch: "replace" } } },
      revision: 1,
    },
    { metadata: { name: "db-x2" }, revision: 3 },
  ]);
  expect(new Set(objects.map(({ metadata }) => metadata.uid)).size).toBe(2);
});

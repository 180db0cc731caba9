import { describe, expect, test } from "bun:test";
import { computeWorkloadStatus, type StatusInput, toDerivedObjects } from "../../src/controllers/workload-reader.ts";
import type { PodRecord, WorkloadRecord } from "../../src/controllers/workload-records.ts";
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
  // As Go writes it, byte for byte.
  const text = '{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"app":"web"}},';
  expect(JSON.stringify((objects[0] as { data?: object }).data)).toStartWith(text);
});

const pod = (uid: string, revision: string, more: Partial<PodRecord> = {}): PodRecord => ({
  name: uid,
  uid,
  revision,
  createdAt: "",
  ...more,
});

const record = (pods: PodRecord[], more: Partial<WorkloadRecord> = {}): WorkloadRecord =>
  ({
    uid: "u",
    createdAt: "",
    generation: 1,
    objectRevision: "",
    revisions: { old: { revision: 1, replicas: 1 }, new: { revision: 2, replicas: 1 } },
    updateRevision: "new",
    pods,
    ...more,
  }) as unknown as WorkloadRecord;

const status = (input: Partial<StatusInput> & Pick<StatusInput, "kind" | "record">) =>
  computeWorkloadStatus({
    pod: (uid) => ({ isReady: uid === "a", readyForMs: uid === "a" ? 5000 : 0 }),
    minReadySeconds: undefined,
    generation: 4,
    jobOf: (name) => ({ apiVersion: "batch/v1", kind: "Job", namespace: "default", name, uid: `uid-${name}` }),
    ...input,
  });

describe("the status of a workload", () => {
  test("a StatefulSet names its revisions as the label of its pods does", () => {
    const revisions = { x1: { name: "db", revision: 1, replicas: 1 }, x2: { name: "db", revision: 2, replicas: 1 } };
    const known = record([pod("a", "x1")], { revisions: revisions as never, currentRevision: "x1" });
    expect(status({ kind: "StatefulSet", record: known })).toMatchObject({
      currentRevision: "db-x1",
      updateRevision: "db-x2",
    });
  });

  test("a CronJob lists the Jobs that have not ended", () => {
    const job = (name: string, isSeen?: true) => ({ name, scheduledAt: "", template: {}, ...(isSeen && { isSeen }) });
    const cron = {
      notBefore: "",
      schedule: "",
      lastScheduleTime: "2026-01-01T00:02:00Z",
      lastSuccessfulTime: "2026-01-01T00:01:30Z",
      jobs: [job("tick-1", true), job("tick-2")],
    };
    expect(status({ kind: "CronJob", record: record([], { cron: cron as never }) })).toEqual({
      active: [{ apiVersion: "batch/v1", kind: "Job", namespace: "default", name: "tick-2", uid: "uid-tick-2" }],
      lastScheduleTime: "2026-01-01T00:02:00Z",
      lastSuccessfulTime: "2026-01-01T00:01:30Z",
    });
  });

  test("a record that follows an older object reports no generation", () => {
    expect(status({ kind: "Deployment", record: record([]), generation: undefined })).not.toHaveProperty(
      "observedGeneration",
    );
  });

  test("a Job that is complete", () => {
    const finished = { type: "Complete" as const, at: "2026-01-01T00:00:00Z" };
    const pods = [
      pod("a", "new", { ended: { phase: "Succeeded", at: "" } }),
      pod("b", "new", { ended: { phase: "Failed", at: "" } }),
    ];
    expect(status({ kind: "Job", record: record(pods, { job: { shape: "", finished } }) })).toEqual({
      succeeded: 1,
      failed: 1,
      completionTime: finished.at,
      conditions: [{ type: "Complete", status: "True", lastTransitionTime: finished.at }],
    });
  });
});

import { describe, expect, test } from "bun:test";
import type { PodRecord, WorkloadRecord } from "../../src/workloads/workload-record.ts";
import { computeWorkloadStatus, type StatusInput } from "../../src/workloads/workload-status.ts";

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
    ...input,
  });

describe("the status of a workload", () => {
  test("a Deployment in the middle of a rollout", () => {
    const pods = [pod("a", "old"), pod("b", "new"), pod("c", "old", { leaving: true })];
    expect(status({ kind: "Deployment", record: record(pods) })).toMatchObject({
      observedGeneration: 4,
      replicas: 2,
      updatedReplicas: 1,
      readyReplicas: 1,
      unavailableReplicas: 1,
    });
  });

  test("a pod is available when it was Ready for minReadySeconds", () => {
    const input = { kind: "ReplicaSet" as const, record: record([pod("a", "new")]) };
    expect(status({ ...input, minReadySeconds: 5 })).toMatchObject({ readyReplicas: 1, availableReplicas: 1 });
    expect(status({ ...input, minReadySeconds: 6 })).toMatchObject({ readyReplicas: 1, availableReplicas: 0 });
  });

  test("a record that follows an older object tells of no generation", () => {
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

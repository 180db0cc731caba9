import { describe, expect, test } from "bun:test";
import type { PodStatus } from "../../src/api/pod-status.ts";
import type { PodRecord, WorkloadRecord } from "../../src/workloads/workload-record.ts";
import { computeWorkloadStatus, type StatusInput } from "../../src/workloads/workload-status.ts";

const READY = { conditions: [{ type: "Ready", status: "True" }] } as unknown as PodStatus;
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
    revisions: { old: { revision: 1 }, new: { revision: 2 } },
    pods,
    ...more,
  }) as unknown as WorkloadRecord;

const status = (input: Partial<StatusInput> & Pick<StatusInput, "kind" | "record">) =>
  computeWorkloadStatus({ statuses: new Map([["a", READY]]), replicas: 2, generation: 4, ...input });

describe("the status of a workload", () => {
  test("a Deployment in the middle of a rollout", () => {
    const pods = [pod("a", "old"), pod("b", "new"), pod("c", "old", { leaving: true })];
    expect(status({ kind: "Deployment", record: record(pods) })).toMatchObject({
      observedGeneration: 4,
      replicas: 2,
      updatedReplicas: 1,
      readyReplicas: 1,
      unavailableReplicas: 1,
      conditions: [
        { type: "Available", status: "False" },
        { type: "Progressing", status: "True", reason: "ReplicaSetUpdated" },
      ],
    });
  });

  test("a record that follows an older object tells of no generation", () => {
    expect(status({ kind: "Deployment", record: record([]), generation: undefined })).not.toHaveProperty(
      "observedGeneration",
    );
  });

  test("a rollout that came to nothing", () => {
    expect(status({ kind: "Deployment", record: record([], { progressDeadlineExceeded: true }) })).toMatchObject({
      conditions: [{}, { type: "Progressing", status: "False", reason: "ProgressDeadlineExceeded" }],
    });
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

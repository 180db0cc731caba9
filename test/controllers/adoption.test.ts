import { describe, expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import type { DesiredPod, DesiredWorkload } from "../../src/base/model/desired-state.ts";
import { claimPods } from "../../src/controllers/adoption.ts";
import { type ControllerWorld, Draft, podUid } from "../../src/controllers/controller.ts";
import { toDesiredPod } from "../../src/controllers/reconcile-workload.ts";
import { computeTemplateHash, type PodRecord, type WorkloadRecord } from "../../src/controllers/workload-records.ts";
import { aPod } from "../support/builders.ts";
import { manifest, podTemplate, readObjects } from "./workload-world.ts";

const WORLD: ControllerWorld = {
  node: { name: "node1", labels: {}, maxPods: 110 },
  now: new Date("2026-01-01T00:00:00Z"),
  nowMs: 0,
  pod: () => ({ phase: "Running", isReady: true, readyForMs: 0, isGone: false }),
};

const selectorOf = (kind: string) =>
  kind === "ReplicationController" ? { app: "web" } : { matchLabels: { app: "web" } };

const workload = (kind: string): DesiredWorkload =>
  readObjects(
    manifest(kind, { name: "db", uid: "owner" }, { selector: selectorOf(kind), template: podTemplate() }),
  )[0] as DesiredWorkload;

const templateHash = (desired: DesiredWorkload) =>
  computeTemplateHash((desired.object.spec as { template: Parameters<typeof computeTemplateHash>[0] }).template);

const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "x", uid: "x", controller: true };

function orphan(
  name: string,
  metadata: Partial<Pod["metadata"]> = {},
  source: DesiredPod["source"] = "api",
): DesiredPod {
  const pod = aPod();
  pod.metadata = { name, namespace: "default", uid: `uid-${name}`, labels: { app: "web" }, ...metadata };
  return { pod, source, origin: "", revision: "" };
}

describe("pods that a new workload takes over", () => {
  test.each(["ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet"])("of a %s", (kind) => {
    const desired = workload(kind);
    const pod = orphan("db-0");
    pod.pod.spec = (desired.object.spec as { template: { spec: Pod["spec"] } }).template.spec;
    const record = claimPods(desired, undefined, [pod], WORLD);
    expect(record).toMatchObject({ uid: "owner", pods: [{ name: "db-0", uid: "uid-db-0" }] });
    expect(record?.pods[0]?.revision).toBe(templateHash(desired));
  });

  const template = podTemplate("b:1", { restartPolicy: "Never" });
  test.each([
    ["Deployment", { selector: selectorOf("Deployment"), template: podTemplate() }],
    ["Job", { template }],
    ["CronJob", { schedule: "@daily", jobTemplate: { spec: { template } } }],
  ])("a %s takes none", (kind, spec) => {
    const [desired] = readObjects(manifest(kind, { name: "db" }, spec));
    expect(claimPods(desired as DesiredWorkload, undefined, [orphan("db-0")], WORLD)).toBeUndefined();
  });

  test.each([
    ["of a manifest", orphan("db-0", {}, "file")],
    ["with a controller", orphan("db-0", { ownerReferences: [owner] })],
    ["of another namespace", orphan("db-0", { namespace: "lab" })],
    ["with other labels", orphan("db-0", { labels: { app: "x" } })],
    ["that terminate", orphan("db-0", { deletionTimestamp: "2026-01-01T00:00:00Z" })],
    ["whose name has no ordinal", orphan("db-x")],
    ["whose name has a malformed ordinal", orphan("db-01")],
  ])("not those %s", (_, pod) => {
    expect(claimPods(workload("StatefulSet"), undefined, [pod], WORLD)).toBeUndefined();
  });

  test("a pod of another template keeps what it was made of until the controller replaces it", () => {
    const old = orphan("db-0", { labels: { app: "web", "controller-revision-hash": "db-0ld" } });
    const desired = workload("StatefulSet");
    const record = claimPods(desired, undefined, [old], WORLD);
    const hash = record?.pods[0]?.revision ?? "";
    expect(hash).not.toBe(templateHash(desired));
    expect(record?.revisions[hash]?.template.spec.containers).toEqual(old.pod.spec.containers);
  });

  test("the next pod of the name has another uid", () => {
    const desired = workload("StatefulSet");
    const hash = templateHash(desired);
    const uid = podUid("node1", "default", "db-0", `${hash}/2`);
    const record = claimPods(desired, undefined, [orphan("db-0", { uid })], WORLD);
    expect(record?.revisions[hash]?.incarnations).toEqual({ 0: 3 });
  });
});

describe("a known workload and the labels of a pod in the API", () => {
  const template = podTemplate("b:1", { restartPolicy: "Never" });
  const job = () => readObjects(manifest("Job", { name: "db", uid: "owner" }, { template }))[0] as DesiredWorkload;
  const made: PodRecord = { name: "db-0", uid: "uid-db-0", revision: "", createdAt: "2026-01-01T00:00:00Z" };
  const recordOf = (desired: DesiredWorkload, pods: PodRecord[]): WorkloadRecord => {
    const hash = templateHash(desired);
    const { template: of } = desired.object.spec as { template: WorkloadRecord["revisions"][string]["template"] };
    const draft = new Draft(WORLD, desired.kind, { name: "db", uid: "owner" }, "", undefined);
    draft.addRevision(of, desired.kind === "Deployment" ? "by-hash" : "as-owner");
    return { ...draft.record, pods: pods.map((pod) => ({ ...pod, revision: hash })) };
  };
  const claim = (desired: DesiredWorkload, pods: PodRecord[], labels: Record<string, string>) => {
    const known = recordOf(desired, pods);
    const record = claimPods(desired, known, [orphan("db-0", { labels })], WORLD)!;
    return { isSame: record === known, pods: record.pods };
  };
  const deployment = workload("Deployment");
  const hash = templateHash(deployment);

  test.each<[string, DesiredWorkload, Record<string, string>]>([
    ["a ReplicaSet", workload("ReplicaSet"), { app: "x" }],
    ["a StatefulSet", workload("StatefulSet"), {}],
    ["a DaemonSet", workload("DaemonSet"), { app: "x" }],
    ["a Deployment, by its own selector", deployment, { "pod-template-hash": hash }],
    ["a Deployment, by that of its ReplicaSet", deployment, { app: "web", "pod-template-hash": "other" }],
    ["a Job", job(), { "job-name": "db" }],
  ])("one that it does not select is released: %s", (_, desired, labels) => {
    expect(claim(desired, [made], labels).pods).toEqual([]);
  });

  test.each<[string, DesiredWorkload, Record<string, string>]>([
    ["a ReplicaSet", workload("ReplicaSet"), { app: "web" }],
    ["a Deployment", deployment, { app: "web", "pod-template-hash": hash }],
    ["a Job, with its index", job(), { "controller-uid": "owner", "batch.kubernetes.io/job-completion-index": "3" }],
  ])("one that it selects and no controller owns is adopted: %s", (_, desired, labels) => {
    const { pods } = claim(desired, [], labels);
    const index = labels["batch.kubernetes.io/job-completion-index"];
    expect(pods).toMatchObject([{ uid: "uid-db-0", edited: { labels }, ...(index && { index: Number(index) }) }]);
  });

  test("a label that changes nothing of that stays with the pod, once", () => {
    const labels = { app: "web", debug: "yes" };
    const desired = workload("ReplicaSet");
    const { pods } = claim(desired, [made], labels);
    expect(pods).toMatchObject([{ uid: "uid-db-0", edited: { labels } }]);
    expect(claim(desired, pods, labels).isSame).toBe(true);
  });

  test("an owner that a client adds stays with the pod, behind its controller", () => {
    const other = { apiVersion: "v1", kind: "ConfigMap", name: "c", uid: "c" };
    const pod = orphan("db-0", { ownerReferences: [owner, other] });
    const desired = workload("ReplicaSet");
    const record = claimPods(desired, recordOf(desired, [made]), [pod], WORLD)!;
    const { ownerReferences } = toDesiredPod(desired, record, record.pods[0]!, "node1").pod.metadata;
    expect(ownerReferences?.map(({ uid }) => uid)).toEqual(["owner", "c"]);
  });

  test("one that is being removed is not released", () => {
    expect(claim(workload("ReplicaSet"), [{ ...made, leaving: true }], { app: "x" }).isSame).toBe(true);
  });

  test("a pod of another spec that a ReplicaSet adopts keeps it, and the next pods have the template", () => {
    const other = orphan("db-0");
    other.pod.spec.containers[0]!.image = "other:1";
    const desired = workload("ReplicaSet");
    const { pods, revisions } = claimPods(desired, undefined, [other], WORLD)!;
    expect(revisions[pods[0]!.revision]!.template.spec.containers[0]!.image).toBe("other:1");
  });
});

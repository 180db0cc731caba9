import { describe, expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import type { DesiredWorkload } from "../../src/base/model/desired-object.ts";
import type { DesiredPod } from "../../src/base/model/desired-pod.ts";
import { adoptPods } from "../../src/controllers/adoption.ts";
import { type ControllerWorld, podUid } from "../../src/controllers/controller.ts";
import { computeTemplateHash } from "../../src/controllers/workload-records.ts";
import { aPod } from "../support/builders.ts";
import { manifest, podTemplate, readObjects } from "./workload-world.ts";

const WORLD: ControllerWorld = {
  nodeName: "node1",
  now: new Date("2026-01-01T00:00:00Z"),
  nowMs: 0,
  nodeLabels: {},
  maxPods: 110,
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
    const record = adoptPods(desired, [orphan("db-0")], WORLD);
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
    expect(adoptPods(desired as DesiredWorkload, [orphan("db-0")], WORLD)).toBeUndefined();
  });

  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "x", uid: "x", controller: true };
  test.each([
    ["of a manifest", orphan("db-0", {}, "file")],
    ["with a controller", orphan("db-0", { ownerReferences: [owner] })],
    ["of another namespace", orphan("db-0", { namespace: "lab" })],
    ["with other labels", orphan("db-0", { labels: { app: "x" } })],
    ["that terminate", orphan("db-0", { deletionTimestamp: "2026-01-01T00:00:00Z" })],
    ["whose name has no ordinal", orphan("db-x")],
    ["whose name has a malformed ordinal", orphan("db-01")],
  ])("not those %s", (_, pod) => {
    expect(adoptPods(workload("StatefulSet"), [pod], WORLD)).toBeUndefined();
  });

  test("a pod of another template keeps what it was made of until the controller replaces it", () => {
    const old = orphan("db-0", { labels: { app: "web", "controller-revision-hash": "db-0ld" } });
    const desired = workload("StatefulSet");
    const record = adoptPods(desired, [old], WORLD);
    const hash = record?.pods[0]?.revision ?? "";
    expect(hash).not.toBe(templateHash(desired));
    expect(record?.revisions[hash]?.template.spec.containers).toEqual(old.pod.spec.containers);
  });

  test("the next pod of the name has another uid", () => {
    const desired = workload("StatefulSet");
    const hash = templateHash(desired);
    const uid = podUid("node1", "default", "db-0", `${hash}/2`);
    const record = adoptPods(desired, [orphan("db-0", { uid })], WORLD);
    expect(record?.revisions[hash]?.incarnations).toEqual({ 0: 3 });
  });
});

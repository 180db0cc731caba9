import { describe, expect, test } from "bun:test";
import { toDesiredPod } from "../../src/controllers/reconcile-workload.ts";
import { manifest, podTemplate, readWorkloads, WorkloadWorld } from "./workload-world.ts";

const statefulSet = (spec: object = {}) =>
  manifest(
    "StatefulSet",
    { name: "db" },
    { serviceName: "db", selector: { matchLabels: { app: "web" } }, template: podTemplate(), ...spec },
  );

const started = (spec: object = {}) => WorkloadWorld.settled(statefulSet(spec));

const names = (world: WorkloadWorld) => world.live.map(({ name }) => name);

describe("in order", () => {
  test("pods are stopped from the last one on, each when the one before is gone", () => {
    const world = started({ replicas: 3 });
    world.apply(statefulSet({ replicas: 1 }));
    expect(names(world)).toEqual(["db-0", "db-1"]);
    world.reconcile();
    expect(names(world)).toEqual(["db-0", "db-1"]);
    world.set(world.leaving[0]!, { isGone: true });
    expect(names(world)).toEqual(["db-0"]);
  });

  test("the correction of a bad template takes effect", () => {
    const world = started({ replicas: 2 });
    world.apply(statefulSet({ replicas: 2, template: podTemplate("busybox:bad") }));
    world.set(world.leaving[0]!, { isGone: true, isReady: false });
    expect(world.images).toEqual(["busybox:1", "busybox:bad"]);
    world.apply(statefulSet({ replicas: 2, template: podTemplate("busybox:3") }));
    world.settle();
    expect(world.images).toEqual(["busybox:3", "busybox:3"]);
  });

  test("a pod that is not known to be Ready, after a start of this process, is not taken for one that is not", () => {
    const world = started({ replicas: 2 });
    for (const pod of world.live) world.setFacts(pod, { isReady: false, isUnknown: true });
    world.apply(statefulSet({ replicas: 2, template: podTemplate("busybox:2") }));
    expect(names(world)).toEqual(["db-0", "db-1"]);
    for (const pod of world.live) world.setFacts(pod, { isReady: true, isUnknown: false });
    world.reconcile();
    expect(names(world)).toEqual(["db-0"]);
  });
});

test("a pod has its own host name, labels and claims", () => {
  const volumeClaimTemplates = [{ metadata: { name: "data" }, spec: { resources: { requests: { storage: "1Gi" } } } }];
  const template = podTemplate("busybox:1", {
    containers: [{ name: "app", image: "busybox:1", volumeMounts: [{ name: "data", mountPath: "/data" }] }],
  });
  const manifest = statefulSet({ volumeClaimTemplates, template });
  const world = new WorkloadWorld(manifest);
  world.reconcile();
  const { pod } = toDesiredPod(readWorkloads(manifest)[0]!, world.record!, world.live[0]!, "node1");
  expect(pod.spec).toMatchObject({
    hostname: "db-0",
    subdomain: "db",
    nodeName: "node1",
    volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data-db-0" } }],
  });
  expect(pod.metadata.labels).toMatchObject({ app: "web", "statefulset.kubernetes.io/pod-name": "db-0" });
});

test.each([
  ["in its place", 0, []],
  ["before the old one is stopped, with maxSurge", 1, ["busybox:1", "busybox:2"]],
])("the new pod of a DaemonSet starts %s", (_, maxSurge, between) => {
  const daemonSet = (image?: string) =>
    manifest(
      "DaemonSet",
      { name: "agent" },
      {
        selector: { matchLabels: { app: "web" } },
        updateStrategy: { rollingUpdate: { maxSurge } },
        template: podTemplate(image),
      },
    );
  const world = WorkloadWorld.settled(daemonSet());
  world.apply(daemonSet("busybox:2"));
  expect(world.images).toEqual(between);
  world.settle();
  expect(world.images).toEqual(["busybox:2"]);
});

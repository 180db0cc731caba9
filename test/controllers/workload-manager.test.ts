import { describe, expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import type { DesiredState } from "../../src/base/model/desired-pod.ts";
import type { EventTarget, PodEvent } from "../../src/base/model/pod-event.ts";
import { WorkloadManager } from "../../src/controllers/workload-manager.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { type KeptState, managerDeps, podTemplate, readObjects } from "./workload-world.ts";

const deployment = (name: string, image = "busybox:1") => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name },
  spec: { selector: { matchLabels: { app: "web" } }, template: podTemplate(image) },
});

/** A manager with a kubelet that runs what it is reported at once. */
function aManager(kept: KeptState = { state: undefined }) {
  const clock = new FakeClock();
  const listeners = new Set<() => void>();
  const world = {
    clock,
    published: [] as DesiredState[],
    isSynced: true,
    rewritten: [] as string[],
    listeners,
    events: [] as string[],
    record({ kind, name }: EventTarget, { reason, message }: PodEvent) {
      this.events.push(`${kind} ${name} ${reason}: ${message}`);
    },
    objectGone(_uid: string) {},
    phase: "Running" as "Running" | "Succeeded",
    manager: undefined as unknown as WorkloadManager,
    get names() {
      return this.published.at(-1)!.pods.map(({ pod }) => pod.metadata.name!);
    },
  };
  const running = (): Pod[] =>
    (world.published.at(-1)?.pods ?? []).map(({ pod }) => ({
      ...pod,
      status: {
        phase: world.phase,
        podIPs: [{ ip: "10.0.0.1" }],
        containerStatuses: [],
        conditions: [{ type: "Ready", status: "True" }],
      },
    }));
  world.manager = new WorkloadManager({
    ...managerDeps(clock, kept),
    recorder: world,
    kubelet: {
      pods: running,
      isGone: (uid) => !running().some(({ metadata }) => metadata.uid === uid),
      get isSynced() {
        return world.isSynced;
      },
      onChange: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    },
    rewriteHosts: ({ metadata }) => void world.rewritten.push(metadata.name ?? ""),
    publish: (state) => void world.published.push(state),
  });
  return world;
}

const state = (...manifests: object[]): DesiredState => ({
  pods: [],
  configMaps: new Map(),
  secrets: new Map(),
  objects: readObjects(...manifests),
});

test("without workloads it listens to nothing and writes nothing", () => {
  const kept: KeptState = { state: undefined };
  const world = aManager(kept);
  world.manager.setDesired(state(), true);
  expect(world.listeners.size).toBe(0);
  expect(world.clock.pendingTimers).toBe(0);
  expect(kept.state).toBeUndefined();
  expect(world.published).toHaveLength(1);
});

test("at rest no timer waits", async () => {
  const world = aManager();
  world.manager.setDesired(state(deployment("web")), true);
  for (const listener of world.listeners) listener();
  await world.clock.advance(1000);
  expect(world.names).toHaveLength(1);
  expect(world.clock.pendingTimers).toBe(0);
});

test("another process continues with the same pods, and knows nothing of a deleted workload", () => {
  const kept: KeptState = { state: undefined };
  const first = aManager(kept);
  first.manager.setDesired(state(deployment("web"), deployment("old")), true);
  const names = first.names;
  const second = aManager(kept);
  // Not every source has spoken: what is not there is only unknown.
  second.manager.setDesired(state(), false);
  expect(Object.keys(kept.state!.records)).toHaveLength(2);
  second.manager.setDesired(state(deployment("web")), true);
  expect(second.names).toEqual(names.filter((name) => name.startsWith("web-")));
  expect(Object.keys(kept.state!.records)).toEqual(["Deployment default/web"]);
});

test("what was decided is on disk before it is published", () => {
  const kept: KeptState = { state: undefined };
  const world = aManager(kept);
  const push = world.published.push.bind(world.published);
  let known: string[] = [];
  world.published.push = (published) => {
    known = Object.values(kept.state?.records ?? {}).flatMap(({ pods }) => pods.map(({ name }) => name));
    return push(published);
  };
  world.manager.setDesired(state(deployment("web")), true);
  expect(known).toEqual(world.names);
});

test("a pod that a client deletes leaves within the grace period of the client, and another one takes its place", () => {
  const kept: KeptState = { state: undefined };
  const world = aManager(kept);
  world.manager.setDesired(state(deployment("web")), true);
  const [before] = world.published.at(-1)!.pods;
  const uid = before!.pod.metadata.uid!;
  expect([world.manager.hasPod(uid), world.manager.hasPod("other")]).toEqual([true, false]);
  world.manager.deletePod(uid, { graceSeconds: 3 });
  const last = world.published.at(-1)!;
  expect(last.pods).toHaveLength(1);
  expect(last.pods[0]!.pod.metadata.uid).not.toBe(uid);
  expect(last.deletions?.get(uid)).toEqual({ graceSeconds: 3 });
  // Another process does not bring it back.
  expect(Object.values(kept.state!.records)[0]!.pods.find((pod) => pod.uid === uid)?.leaving).toBe(true);
});

test("the end of a Job's pod counts although the pod was deleted", async () => {
  const world = aManager();
  const job = {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name: "once" },
    spec: { completions: 2, template: podTemplate("busybox:1", { restartPolicy: "Never" }) },
  };
  world.phase = "Succeeded";
  world.manager.setDesired(state(job), true);
  const uid = world.published.at(-1)!.pods[0]!.pod.metadata.uid!;
  for (const listener of world.listeners) listener();
  await world.clock.advance(50);
  world.phase = "Running";
  world.manager.deletePod(uid, {});
  expect(world.published.at(-1)!.pods.map(({ pod }) => pod.metadata.uid)).not.toContain(uid);
  expect(world.published.at(-1)!.pods).toHaveLength(1);
});

test("the API sees the ReplicaSet of a Deployment", async () => {
  const world = aManager();
  world.manager.setDesired(state(deployment("web")), true);
  for (const listener of world.listeners) listener();
  await world.clock.advance(1000);
  expect(world.manager.reader.derivedObjects()).toMatchObject([
    {
      kind: "ReplicaSet",
      metadata: {
        annotations: { "deployment.kubernetes.io/revision": "1" },
        ownerReferences: [{ kind: "Deployment", name: "web" }],
      },
      status: { replicas: 1, readyReplicas: 1 },
    },
  ]);
});

test("a Deployment and its ReplicaSets have the annotations of upstream's controller", () => {
  const { manager } = aManager();
  const version = (image: string, annotations: object) => ({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", annotations },
    spec: { replicas: 2, selector: { matchLabels: { app: "web" } }, template: podTemplate(image) },
  });
  const web = { metadata: { name: "web", namespace: "default" } };
  const apply = (image: string, annotations: object) => manager.setDesired(state(version(image, annotations)), true);
  apply("busybox:1", {
    "kubernetes.io/change-cause": "first",
    "kubectl.kubernetes.io/last-applied-configuration": "x",
  });
  expect(manager.reader.annotationsOf("Deployment", web)).toEqual({ "deployment.kubernetes.io/revision": "1" });
  apply("busybox:2", { "kubernetes.io/change-cause": "second" });
  expect(manager.reader.annotationsOf("Deployment", web)).toEqual({ "deployment.kubernetes.io/revision": "2" });
  // An undo, as kubectl does it: with the annotations of the ReplicaSet.
  apply("busybox:1", { "kubernetes.io/change-cause": "first" });
  expect(manager.reader.annotationsOf("Deployment", web)).toEqual({ "deployment.kubernetes.io/revision": "3" });
  const annotations = manager.reader.derivedObjects().map((it) => it.metadata.annotations);
  expect(annotations).toEqual([
    {
      "kubernetes.io/change-cause": "first",
      "deployment.kubernetes.io/desired-replicas": "2",
      "deployment.kubernetes.io/max-replicas": "3",
      "deployment.kubernetes.io/revision": "3",
      "deployment.kubernetes.io/revision-history": "1",
    },
    {
      "kubernetes.io/change-cause": "second",
      "deployment.kubernetes.io/desired-replicas": "2",
      "deployment.kubernetes.io/max-replicas": "3",
      "deployment.kubernetes.io/revision": "2",
    },
  ]);
  expect(manager.reader.annotationsOf("ReplicaSet", web)).toBeUndefined();
});

describe("a Deployment deleted with --cascade=orphan", () => {
  const replicaSetOf = ({ manager }: ReturnType<typeof aManager>) => {
    const [derived] = manager.reader.derivedObjects();
    const { ownerReferences: _owners, ...metadata } = derived!.metadata;
    return { apiVersion: "apps/v1", kind: "ReplicaSet", metadata, spec: derived!.spec } as {
      metadata: { uid: string };
    };
  };
  const podsOf = ({ published }: ReturnType<typeof aManager>) => published.at(-1)!.pods;

  test("its ReplicaSet keeps the pods, also in another process", () => {
    const kept: KeptState = { state: undefined };
    const world = aManager(kept);
    world.manager.setDesired(state(deployment("web")), true);
    const before = podsOf(world);
    const replicaSet = replicaSetOf(world);
    // The API stores the ReplicaSet before it deletes the Deployment.
    world.manager.setDesired(state(deployment("web"), replicaSet), true);
    expect(podsOf(world)).toEqual(before);
    world.manager.setDesired(state(replicaSet), true);
    expect(podsOf(world)).toEqual(before);
    expect(Object.keys(kept.state!.records)).toEqual([
      `ReplicaSet default/${before[0]!.pod.metadata.generateName!.slice(0, -1)}`,
    ]);

    world.manager.setDesired(state(deployment("web"), replicaSet), true);
    expect(podsOf(world).map(({ pod }) => pod.metadata)).toEqual(before.map(({ pod }) => pod.metadata));
    world.manager.setDesired(state(replicaSet), true);

    const second = aManager(kept);
    second.manager.setDesired(state(replicaSet), true);
    expect(podsOf(second).map(({ pod, revision }) => [pod.metadata, pod.spec, revision])).toEqual(
      before.map(({ pod, revision }) => [pod.metadata, pod.spec, revision]),
    );
  });

  test("a new one of its name adopts again the pods its ReplicaSet has by then, and scales them", async () => {
    const world = aManager();
    const { manager } = world;
    const wanted = { ...deployment("web"), spec: { ...deployment("web").spec, replicas: 3 } };
    manager.setDesired(state(wanted), true);
    manager.deletePod(podsOf(world)[0]!.pod.metadata.uid!, {});
    await world.clock.advance(100);
    const replicaSet = replicaSetOf(world);
    manager.setDesired(state(wanted, replicaSet), true);
    manager.setDesired(state(replicaSet), true);
    const before = podsOf(world).map(({ pod }) => pod.metadata.uid);
    expect(before).toHaveLength(3);
    manager.setDesired(state({ ...wanted, spec: { ...wanted.spec, replicas: 2 } }, replicaSet), true);
    expect(manager.hasTakenOver(replicaSet.metadata.uid)).toBe(true);
    const after = podsOf(world).map(({ pod }) => pod.metadata.uid);
    expect(after).toHaveLength(2);
    expect(before).toEqual(expect.arrayContaining(after));
    // The API forgets the ReplicaSet then.
    manager.setDesired(state({ ...wanted, spec: { ...wanted.spec, replicas: 2 } }), true);
    expect(podsOf(world).map(({ pod }) => pod.metadata.uid)).toEqual(after);
    expect(manager.hasTakenOver(replicaSet.metadata.uid)).toBe(false);
    manager.setDesired(state(), true);
    expect(podsOf(world)).toEqual([]);
  });
});

describe("a text that was never right is unknown", () => {
  const service = {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web" },
    spec: { selector: { app: "web" }, ports: [{ port: 80 }] },
  };

  test("the names of Services are written for the others all the same", () => {
    const world = aManager();
    world.manager.setDesired(state(service, deployment("web")), false, true);
    for (const listener of world.listeners) listener();
    world.manager.refresh();
    expect(world.rewritten).toEqual(world.names);
  });

  test("names wait for sources that were not read yet, and for the engine", () => {
    const world = aManager();
    world.isSynced = false;
    world.manager.setDesired(state(service, deployment("web")), true);
    world.isSynced = true;
    world.manager.setDesired(state(service, deployment("web")), false);
    world.manager.refresh();
    expect(world.rewritten).toEqual([]);
  });

  test("Recreate starts the new pod when the old one is gone", async () => {
    const world = aManager();
    const recreated = (image: string) => {
      const base = deployment("web", image);
      return { ...base, spec: { ...base.spec, strategy: { type: "Recreate" } } };
    };
    world.manager.setDesired(state(recreated("a:1")), false, true);
    const [before] = world.names;
    world.manager.setDesired(state(recreated("a:2")), false, true);
    expect(world.names).toEqual([]);
    for (const listener of world.listeners) listener();
    await world.clock.advance(1000);
    expect(world.names).toHaveLength(1);
    expect(world.names[0]).not.toBe(before);
  });
});

test("the end of a Job's pod makes the node check again the pods it refused", async () => {
  const world = aManager();
  const template = podTemplate("busybox:1", { restartPolicy: "Never" });
  const job = { apiVersion: "batch/v1", kind: "Job", metadata: { name: "once" }, spec: { template } };
  world.manager.setDesired(state(job), true);
  await world.clock.advance(100);
  const before = world.published.length;
  world.phase = "Succeeded";
  for (const listener of world.listeners) listener();
  await world.clock.advance(100);
  expect(world.published.length).toBe(before + 1);
  for (const listener of world.listeners) listener();
  await world.clock.advance(100);
  expect(world.published.length).toBe(before + 1);
});

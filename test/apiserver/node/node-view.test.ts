import { expect, test } from "bun:test";
import { NodeObjects, NodeView } from "../../../src/apiserver/node/node-view.ts";
import { toApiService } from "../../../src/apiserver/node/own-objects.ts";
import type { ApiObject } from "../../../src/apiserver/object-store.ts";
import { PendingStores } from "../../../src/apiserver/object-writer.ts";
import type { ResourceDefinition } from "../../../src/apiserver/resource-definition.ts";
import type { Pod } from "../../../src/base/api/pod.ts";
import type { DesiredState } from "../../../src/base/model/desired-state.ts";
import type { Persisted } from "../../../src/base/model/persisted.ts";
import { toApiTime } from "../../../src/base/text/api-time.ts";
import { aPod } from "../../support/builders.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { anApiServer, memoryMark } from "../support.ts";

/** A store with a mirror of these pods, and what brings it up to date. */
function aMirror(
  pods: readonly Pod[],
  {
    isOfWorkload = false,
    isOwn = false,
    found = {},
    isGone = (): boolean => true,
    firstSeen = (): string | undefined => undefined,
    worker = undefined as object | undefined,
  } = {},
) {
  const { store } = anApiServer();
  const deletions: string[] = [];
  const node = {
    firstSeen,
    kubelet: {
      pods: () => pods,
      workers: { get: () => worker },
      isGone,
      desiredPods: pods.map((pod) => ({ pod, ...found })),
    },
    desired: { configMaps: new Map(), secrets: new Map() },
    workloads: {
      hasPod: () => isOfWorkload,
      deletePod: (uid: string) => void deletions.push(uid),
      reader: { derivedObjects: () => [] },
      services: {},
    },
  } as unknown as NodeView;
  const definition = { group: "", plural: "pods", kind: "Pod", fate: "pods", namespaced: true } as ResourceDefinition;
  const registry = { all: () => [definition] } as never;
  const submitted = { isOwn: () => isOwn, release: () => {}, flush: () => {} };
  const onGone = (_: ResourceDefinition, { metadata }: ApiObject) => store.remove("pods", "default", metadata.name);
  const objects = new NodeObjects({
    store,
    registry,
    storing: new PendingStores(),
    submitted,
    clock: new FakeClock(),
    own: [],
    onGone,
  });
  objects.node = node;
  objects.sync();
  const refusalOf = (name: string) => objects.refusalOf(definition, store.get("pods", "default", name)!);
  return { store, objects, definition, deletions, sync: () => objects.sync(), refusalOf };
}

test("Endpoints are made once a client asks for them; those of a client are taken over by those of the controller, once", async () => {
  const { store, registry } = anApiServer();
  const endpoints = { apiVersion: "v1", kind: "Endpoints", metadata: { name: "web", namespace: "default", uid: "e" } };
  const own = new Set<unknown>([store.put("endpoints", endpoints)]);
  const released: string[] = [];
  const submitted = {
    isOwn: (_: ResourceDefinition, object: object) => own.has(object),
    release: (_: ResourceDefinition, object: { metadata: { name: string } }) => {
      own.delete(object);
      released.push(object.metadata.name);
    },
    flush: () => {},
  };
  const objects = new NodeObjects({
    store,
    registry,
    storing: new PendingStores(),
    submitted,
    clock: new FakeClock(),
    own: [],
    onGone: () => {},
  });
  const none = () => undefined;
  const reader = { statusOf: none, annotationsOf: none, specOf: none, inputsOf: () => [{}], derivedObjects: () => [] };
  const derived = ["web", "api"].map((name) => ({
    ...endpoints,
    metadata: { ...endpoints.metadata, name },
    subsets: [],
  }));
  objects.node = {
    kubelet: { pods: () => [] },
    desired: { configMaps: new Map(), secrets: new Map() },
    workloads: { reader, services: { derivedObjects: () => derived } },
  } as unknown as NodeView;
  await objects.refresh(registry.get("services")!);
  expect([released, store.list("endpoints").length]).toEqual([[], 1]);
  await objects.refresh(registry.get("endpoints")!);
  for (const _ of [1, 2, 3]) objects.sync();
  expect([released, store.list("endpoints").length]).toEqual([["web"], 2]);
});

const annotations = { "kubernetes.io/config.hash": "h1" };
const aStatic = aPod({}, { name: "web", namespace: "default", uid: "u1", annotations });

test("a static pod is a mirror pod of its UID, under which kubectl describe looks for events", () => {
  const shown = aMirror([aStatic]).store.get("pods", "default", "web")!;
  expect(shown.metadata.annotations?.["kubernetes.io/config.mirror"]).toBe(shown.metadata.uid);
  expect(shown.metadata.uid).toBe("u1");
});

test("a pod of a file was created when it was first seen; while it terminates, as before", () => {
  const pods = [aStatic];
  let seen: string | undefined = "2026-01-02T00:00:00Z";
  const { store, sync } = aMirror(pods, { firstSeen: () => seen });
  const created = () => store.get("pods", "default", "web")?.metadata.creationTimestamp;
  expect(created()).toBe("2026-01-02T00:00:00Z");
  seen = undefined;
  pods[0] = { ...aStatic, status: { phase: "Running", startTime: "2026-01-03T00:00:00Z" } };
  sync();
  expect(created()).toBe("2026-01-02T00:00:00Z");
});

test("a deleted pod is there until the engine has shown that it is gone", () => {
  let isGone = false;
  const pods: Pod[] = [];
  const { store, sync } = aMirror(pods, { isOwn: true, isGone: () => isGone });
  const metadata = { name: "web", namespace: "default", uid: "u1", deletionTimestamp: "2026-01-02T00:00:00Z" };
  store.put("pods", { apiVersion: "v1", kind: "Pod", metadata });
  sync();
  expect(store.get("pods", "default", "web")).toBeDefined();
  isGone = true;
  sync();
  expect(store.get("pods", "default", "web")).toBeUndefined();
});

test("labels that a client gives a terminating pod are shown until it is gone", () => {
  const pods = [aStatic];
  const { store, sync } = aMirror(pods);
  const end = { deletionTimestamp: "2026-01-02T00:00:00Z", deletionGracePeriodSeconds: 30 };
  pods[0] = { ...aStatic, metadata: { ...aStatic.metadata, ...end } };
  sync();
  const live = store.get("pods", "default", "web")!;
  store.put("pods", { ...live, metadata: { ...live.metadata, labels: { app: "x" } } });
  pods[0] = { ...pods[0], status: { phase: "Failed" } };
  sync();
  expect(store.get("pods", "default", "web")).toMatchObject({
    metadata: { labels: { app: "x" }, ...end },
    status: { phase: "Failed" },
  });
});

test.each([
  ["a file", false, "", [], 0],
  ["a client", true, "", ["Failed"], 0],
  ["a Deployment", false, "ReplicaSet", ["Failed"], 1],
  ["a Job", false, "Job", ["Failed"], 0],
])("a client ends the pod of %s", (_, isOwn, owner, ended, deleted) => {
  const written: unknown[] = [];
  const ownerReferences =
    owner === "" ? [] : [{ apiVersion: "v1", kind: owner, name: "a", uid: "o", controller: true }];
  const pod = { ...aStatic, metadata: { ...aStatic.metadata, ownerReferences } };
  const { objects, definition, store, deletions } = aMirror([pod], {
    isOwn,
    isOfWorkload: owner !== "",
    worker: {
      status: {},
      setForeign: () => {},
      setEnd: ({ phase }: { phase: string }) => void written.push(phase),
    },
  });
  const live = { apiVersion: "v1", kind: "Pod", ...pod } as unknown as ApiObject;
  objects.writePod(definition, { ...live, status: { phase: "Failed" } }, "status");
  expect([written, deletions.length, store.list("pods").length]).toEqual([ended, deleted, 1]);
});

test.each([[{}], [{ mine: "1" }]])(
  "the pod of a workload is no mirror pod: it has its own annotations alone, %o",
  (own) => {
    const pod = aPod(
      {},
      { ...aStatic.metadata, annotations: { ...annotations, "kubernetes.io/config.seen": "t", ...own } },
    );
    const { store } = aMirror([pod], { isOfWorkload: true });
    expect(store.get("pods", "default", "web")?.metadata.annotations ?? {}).toEqual(own);
  },
);

const ownerReferences = [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-1", uid: "rs", controller: true }];
test.each([
  [
    "a file",
    { source: "file", origin: "/m/web.yaml", location: { file: "/m/web.yaml", line: 3 } },
    "comes from /m/web.yaml:3",
  ],
  ["a client", { source: "api", origin: "/root/manifests" }, 'is made by ReplicaSet "web-1": edit that'],
])("a write to the pod of a workload of %s is refused with what to edit", (_, found, expected) => {
  const owned = { ...aStatic, metadata: { ...aStatic.metadata, ownerReferences } };
  expect(aMirror([owned], { isOfWorkload: true, found }).refusalOf("web")).toContain(expected);
});

test.each([false, true])(
  "the status in the store is the kubelet's own object; the same pod is no new revision (own: %p)",
  (isOwn) => {
    const pods = [aStatic];
    const { store, sync } = aMirror(pods, { isOwn });
    if (isOwn) store.put("pods", { ...aStatic, apiVersion: "v1", kind: "Pod", metadata: aStatic.metadata as never });
    const status = { phase: "Running" as const };
    pods[0] = { ...aStatic, status };
    sync();
    expect(store.get("pods", "default", "web")?.status).toBe(status);
    const { revision } = store;
    sync();
    pods[0] = { ...aStatic, status };
    if (isOwn) sync();
    expect(store.revision).toBe(revision);
  },
);

/** The view of a node that has read these ConfigMaps, whose times are in `file`. */
function aView(clock: FakeClock, file: Persisted<readonly (readonly [string, string])[]>) {
  let read: (names: readonly string[]) => void = () => {};
  const onChange = (listener: (state: DesiredState, info: { isRead: boolean }) => void) => {
    read = (names) => {
      const configMaps = new Map(names.map((name) => [name, { metadata: { name } }]));
      const pods = names.map((name) => ({ pod: aPod({}, { name }) }));
      const secrets = new Map([
        ["client", { metadata: { name: "client", creationTimestamp: "2001-01-01T00:00:00Z" } }],
      ]);
      listener({ pods, configMaps, secrets } as unknown as DesiredState, { isRead: true });
    };
  };
  const view = new NodeView({ feed: { onChange }, clock, firstSeen: file } as never);
  return {
    seen: (name: string) => view.firstSeen("ConfigMap", { name }),
    seenOfClient: () => view.firstSeen("Secret", { name: "client" }),
    seenPod: (startTime: string) => view.firstSeen("Pod", { name: "a" }, startTime),
    read: (...names: string[]) => read(names),
  };
}

test("an object of a file is as old as its first reading, also after a restart; one that comes again is new", async () => {
  const clock = new FakeClock();
  const file = memoryMark<readonly (readonly [string, string])[]>();
  const first = toApiTime(clock.now());
  aView(clock, file).read("a");
  await clock.advance(60_000);
  const later = toApiTime(clock.now());
  const { read, seen, seenOfClient } = aView(clock, file);
  read("a", "b");
  await clock.advance(60_000);
  expect([seen("a"), seen("b"), seenOfClient()]).toEqual([first, later, undefined]);
  read("b");
  read("a", "b");
  expect([seen("a"), seen("b")]).toEqual([toApiTime(clock.now()), later]);
});

test("a pod that started before its first record is as old as its start, and stays so when its containers go", async () => {
  const clock = new FakeClock();
  const file = memoryMark<readonly (readonly [string, string])[]>();
  const [day1, day2] = ["2001-01-01T00:00:00Z", "2001-01-02T00:00:00Z"];
  const before = aView(clock, file);
  before.read("a");
  expect([day2, day1].map(before.seenPod)).toEqual([day2, day2]);
  await clock.advance(0);
  const after = aView(clock, file);
  after.read("a");
  expect([day1, "2090-01-01T00:00:00Z"].map(after.seenPod)).toEqual([day2, day2]);
});

test.each([
  { when: "containers were not inspected", kubelet: { isSynced: false }, known: false },
  { when: "the kubelet has not heard of the state", kubelet: {}, known: false },
  { when: "the kubelet has taken it up", kubelet: { isComplete: true }, known: true },
  { when: "a pod of an earlier process is being removed", kubelet: { isComplete: true, removing: true }, known: false },
  { when: "a source cannot be read: no pod is removed", feed: { isComplete: false }, kubelet: {}, known: true },
])("owners are known: $when", ({ kubelet, feed, known }) => {
  const { isSynced = true, isComplete = false, removing = false } = kubelet as Record<string, boolean>;
  const feedOf = { publish: (_: DesiredState, _info: object) => {} };
  const view = new NodeView({
    kubelet: { isSynced, isComplete, workers: new Map([["", { revision: removing ? undefined : {} }]]) },
    feed: { onChange: (listener: typeof feedOf.publish) => Object.assign(feedOf, { publish: listener }) },
    clock: new FakeClock(),
    firstSeen: memoryMark(),
  } as never);
  expect(view.isEveryOwnerKnown).toBe(false);
  feedOf.publish({ pods: [], configMaps: new Map(), secrets: new Map() }, { isRead: true, isComplete: true, ...feed });
  expect(view.isEveryOwnerKnown).toBe(known);
});

const apiServiceAt = (address: string) =>
  toApiService(
    { localApiAddress: address, localApiPort: 6443 },
    { name: "node1", ip: "192.0.2.1" },
    "2026-11-27T18:00:00Z",
  );

/** A node without pods and manifests, with the objects of its API. */
function anEmptyNode(alsoServed = "leases") {
  const { store, registry } = anApiServer({ alsoServed });
  const clock = new FakeClock();
  const submitted = { isOwn: () => false, release: () => {}, flush: () => {} };
  const own = apiServiceAt("127.0.0.1");
  const objects = new NodeObjects({
    store,
    registry,
    storing: new PendingStores(),
    submitted,
    clock,
    onGone: () => {},
    own,
  });
  const none = () => undefined;
  const reader = { statusOf: none, annotationsOf: none, specOf: none, inputsOf: () => [{}], derivedObjects: () => [] };
  objects.node = {
    kubelet: { pods: () => [] },
    desired: { configMaps: new Map(), secrets: new Map() },
    view: { nodeName: () => "node1" },
    workloads: { reader, services: { derivedObjects: () => [] } },
  } as unknown as NodeView;
  return { store, registry, clock, objects };
}

test("the Lease of the node is renewed for who asks for it, four times in its duration", async () => {
  const { store, registry, clock, objects } = anEmptyNode();
  const leases = registry.get("leases.coordination.k8s.io")!;
  const lease = async () => {
    await objects.refresh(leases);
    return store.get("leases.coordination.k8s.io", "kube-node-lease", "node1")!;
  };
  const first = await lease();
  expect((first.spec as { renewTime: string }).renewTime).toMatch(/\.\d{6}Z$/);
  expect(first.metadata.ownerReferences).toMatchObject([{ kind: "Node", name: "node1" }]);
  expect(objects.refusalOf(leases, first)).toBe('lease "node1" is made by this node');
  await clock.advance(9_000);
  expect(await lease()).toBe(first);
  await clock.advance(1_000);
  expect((await lease()).spec).not.toEqual(first.spec);
});

test("a default StorageClass is there for who asks, and is the node's", async () => {
  const { store, registry, objects } = anEmptyNode("storageclasses");
  const classes = registry.get("storageclasses.storage.k8s.io")!;
  await objects.refresh(classes);
  await objects.refresh(classes);
  const [shown, ...others] = store.list("storageclasses.storage.k8s.io");
  expect([others, shown!.metadata.annotations]).toEqual([
    [],
    { "storageclass.kubernetes.io/is-default-class": "true" },
  ]);
  expect(objects.refusalOf(classes, shown!)).toBe('storageclass "standard" is made by this node');
});

test("a new Ingress gets the default class, one that is written again keeps none", () => {
  const { store, registry, objects } = anEmptyNode("ingresses");
  const annotations = { "ingressclass.kubernetes.io/is-default-class": "true" };
  const metadata = { name: "web", namespace: "default", uid: "u" };
  const made = { apiVersion: "networking.k8s.io/v1", kind: "Ingress", metadata, spec: { rules: [] } };
  const ingresses = registry.get("ingresses.networking.k8s.io")!;
  store.put("ingressclasses.networking.k8s.io", {
    ...made,
    kind: "IngressClass",
    metadata: { name: "a", annotations },
  });
  expect(objects.assign(ingresses, made).spec).toEqual({ rules: [], ingressClassName: "a" });
  store.put("ingresses.networking.k8s.io", made);
  expect(objects.assign(ingresses, made).spec).toEqual({ rules: [] });
});

test("the Service of the API is shown, and made again when a client deletes it", async () => {
  const { store, registry, objects } = anEmptyNode();
  const services = registry.get("services")!;
  await objects.refresh(services);
  const before = store.get("services", "default", "kubernetes")!;
  expect(objects.refusalOf(services, before)).toBe('service "kubernetes" is made by this node');
  objects.removalOf(services, before, false)?.();
  objects.sync();
  const after = store.get("services", "default", "kubernetes")!;
  expect([after.spec, after.metadata.uid === before.metadata.uid]).toEqual([before.spec, false]);
});

test.each([
  ["127.0.0.1", { notReadyAddresses: [{ ip: "192.0.2.1" }] }, false],
  ["0.0.0.0", { addresses: [{ ip: "192.0.2.1" }] }, true],
  ["192.0.2.7", { addresses: [{ ip: "192.0.2.7" }] }, true],
])("the endpoint of an API at %s is %j", (address, subset, ready) => {
  const [, endpoints, slice] = apiServiceAt(address);
  const ports = [{ name: "https", port: 6443, protocol: "TCP" }];
  expect(endpoints?.subsets).toEqual([{ ...subset, ports }]);
  expect(slice).toMatchObject({ endpoints: [{ conditions: { ready } }], ports, addressType: "IPv4" });
});

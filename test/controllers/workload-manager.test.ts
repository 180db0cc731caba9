import { describe, expect, test } from "bun:test";
import type { CronJob, Job } from "../../src/base/api/job.ts";
import type { Pod } from "../../src/base/api/pod.ts";
import type { DesiredState } from "../../src/base/model/desired-state.ts";
import type { EventTarget, PodEvent } from "../../src/base/model/pod-event.ts";
import { ExternalNames, ServiceHosts } from "../../src/controllers/service-hosts.ts";
import { WorkloadManager } from "../../src/controllers/workload-manager.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { aContext, type KeptState, managerDeps, manifest, podTemplate, readObjects } from "./workload-world.ts";

const deployment = (name: string, image = "busybox:1") =>
  manifest("Deployment", { name }, { selector: { matchLabels: { app: "web" } }, template: podTemplate(image) });

const job = (spec: object = {}) =>
  manifest("Job", { name: "once" }, { template: podTemplate("busybox:1", { restartPolicy: "Never" }), ...spec });

/** A manager with a kubelet that runs what it is reported at once. */
function aManager(kept: KeptState = { state: undefined }) {
  const clock = new FakeClock();
  const listeners = new Set<() => void>();
  const world = {
    clock,
    published: [] as DesiredState[],
    isObserved: true,
    rewritten: [] as string[],
    listeners,
    events: [] as string[],
    record({ kind, name }: EventTarget, { reason, message }: PodEvent) {
      this.events.push(`${kind} ${name} ${reason}: ${message}`);
    },
    objectGone(_uid: string) {},
    label(labels: Record<string, string>) {
      context.node.labels = labels;
    },
    phase: "Running" as "Running" | "Succeeded",
    manager: undefined as unknown as WorkloadManager,
    /** Pods that the kubelet shows; undefined: those that run. */
    list: undefined as readonly Pod[] | undefined,
    get pods() {
      return this.published.at(-1)!.pods.map(({ pod }) => pod);
    },
    get names() {
      return this.pods.map(({ metadata }) => metadata.name!);
    },
    get uids() {
      return this.pods.map(({ metadata }) => metadata.uid!);
    },
    /** All sources were read, and have these objects. */
    set(...manifests: object[]) {
      this.manager.setDesired(state(...manifests), true);
    },
    /** The kubelet's pods have changed. */
    async tick(ms = 100) {
      for (const listener of listeners) listener();
      await clock.advance(ms);
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
  const context = aContext(clock, world);
  const hosts = new ServiceHosts(
    "",
    new ExternalNames({ clock, logger: new RecordingLogger(), lookUp: async () => [] }),
  );
  hosts.onStale((pods) => void world.rewritten.push(...pods.map(({ metadata }) => metadata.name ?? "")));
  world.manager = new WorkloadManager({
    ...managerDeps(context, kept, hosts),
    kubelet: {
      pods: () => world.list ?? running(),
      isGone: (uid) => !running().some(({ metadata }) => metadata.uid === uid),
      isObserved: () => world.isObserved,
      onChange: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    },
    next: { setDesired: (state) => void world.published.push(state) },
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
  world.set();
  expect(world.listeners.size).toBe(0);
  expect(world.clock.pendingTimers).toBe(0);
  expect(kept.state).toBeUndefined();
  expect(world.published).toHaveLength(1);
});

test("at rest no timer waits", async () => {
  const world = aManager();
  world.set(deployment("web"));
  await world.tick(1000);
  expect(world.names).toHaveLength(1);
  expect(world.clock.pendingTimers).toBe(0);
});

test("a change of the kubelet that leaves all pods as they are costs no reconciliation", async () => {
  const world = aManager();
  world.set(deployment("web"));
  await world.tick();
  let syncs = 0;
  world.manager.syncs.add(() => syncs++);
  world.list = [];
  await world.tick();
  await world.tick();
  expect(syncs).toBe(1);
});

describe("a CronJob between two runs", () => {
  const hourly = () => {
    const world = aManager();
    world.clock.jump("2026-01-01T00:30:00Z");
    const template = podTemplate("busybox:1", { restartPolicy: "Never" });
    const spec = { schedule: "0 * * * *", timeZone: "Etc/UTC", jobTemplate: { spec: { template } } };
    const again = () => world.set(manifest("CronJob", { name: "tick" }, spec));
    again();
    let syncs = 0;
    world.manager.syncs.add(() => syncs++);
    return { world, syncs: () => syncs, again };
  };

  test("costs no reconciliation", async () => {
    const { world, syncs } = hourly();
    await world.clock.advance(29 * 60_000);
    expect([syncs(), world.names.length]).toEqual([0, 0]);
    await world.clock.advance(60_000);
    expect([syncs(), world.names.length]).toEqual([1, 1]);
  });

  test("a Job that a client deletes goes with its pods, and its run is not repeated", async () => {
    const { world, again } = hourly();
    await world.clock.advance(31 * 60_000);
    const job = `default/tick-${Date.UTC(2026, 0, 1, 1) / 60_000}`;
    expect([world.names.length, world.manager.removalOfJob("default/other")]).toEqual([1, undefined]);
    await world.manager.removalOfJob(job)!();
    expect([world.names.length, world.manager.removalOfJob(job)]).toEqual([1, undefined]);
    again();
    expect(world.names).toEqual([]);
    expect(world.events.at(-1)).toBe(`CronJob tick MissingJob: Active job went missing: ${job.split("/")[1]}`);
    await world.clock.advance(58 * 60_000);
    expect(world.names).toEqual([]);
    await world.clock.advance(60_000);
    expect(world.names).toHaveLength(1);
  });

  test("notices within a minute that the clock was set ahead", async () => {
    const { world } = hourly();
    world.clock.jump("2026-01-01T03:00:00Z");
    await world.clock.advance(60_000);
    expect(world.events).toContain(
      `CronJob tick SuccessfulCreate: Created job tick-${Date.UTC(2026, 0, 1, 3) / 60_000}`,
    );
  });

  test("notices within a minute that the clock was set back", async () => {
    const { world } = hourly();
    await world.clock.advance(31 * 60_000);
    world.clock.jump("2025-12-01T00:00:00Z");
    await world.clock.advance(60_000);
    expect(world.events.at(-1)).toBe("CronJob tick UnexpectedJob: the last run is in the future: the clock was wrong");
  });
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
  world.set(deployment("web"));
  expect(known).toEqual(world.names);
});

test("a pod that a client deletes leaves within the grace period of the client, and another one takes its place", () => {
  const kept: KeptState = { state: undefined };
  const world = aManager(kept);
  world.set(deployment("web"));
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

describe("on a full disk", () => {
  const full = (object: object) => {
    const kept: KeptState = { state: undefined };
    const world = aManager(kept);
    world.set(object);
    kept.isFull = true;
    const restarted = () => {
      const next = aManager(kept);
      next.set(object);
      return next.uids;
    };
    return { world, kept, restarted, before: world.uids };
  };

  test.each(["Deployment", "StatefulSet", "DaemonSet"])("a pod of a %s is not deleted, nor replaced", async (kind) => {
    const { world, kept, restarted, before } = full({ ...deployment("web"), kind });
    expect(await world.manager.deletePod(before[0]!, {})).toBe(false);
    await world.tick(25_000);
    expect([world.uids, restarted(), world.published.at(-1)!.deletions]).toEqual([before, before, undefined]);
    kept.empty!();
    await world.tick();
    expect(world.uids).toEqual(before);
    expect(await world.manager.deletePod(before[0]!, {})).toBe(true);
    await world.tick();
    expect([world.uids.length, world.uids.includes(before[0]!)]).toEqual([1, false]);
  });

  test("a rollout waits, and the API shows nothing of it; the pods of a workload that is removed go", async () => {
    const { world, kept, before } = full(deployment("web"));
    world.set(deployment("web", "busybox:2"));
    await world.tick(10_000);
    expect([world.uids, world.manager.reader.derivedObjects().length]).toEqual([before, 1]);
    kept.empty!();
    await world.tick();
    expect(world.manager.reader.derivedObjects()).toHaveLength(2);
    expect([world.uids.length, world.uids.includes(before[0]!)]).toEqual([1, false]);
    kept.isFull = true;
    world.set();
    expect(world.uids).toEqual([]);
  });

  test("the Job of a CronJob is not deleted, and one that is to replace it waits", async () => {
    const jobTemplate = { spec: { template: podTemplate("busybox:1", { restartPolicy: "Never" }) } };
    const spec = { schedule: "* * * * *", timeZone: "Etc/UTC", concurrencyPolicy: "Replace", jobTemplate };
    const { world, kept } = full(manifest("CronJob", { name: "tick" }, spec));
    delete kept.isFull;
    await world.clock.advance(60_000);
    const before = world.uids;
    kept.isFull = true;
    const name = world.names[0]!.replace(/-[^-]+$/, "");
    const shown = () => world.manager.reader.derivedObjects().map(({ metadata }) => metadata.name);
    expect(await world.manager.removalOfJob(`default/${name}`)!()).toBe(false);
    await world.clock.advance(60_000);
    expect([before.length, world.uids, shown()]).toEqual([1, before, [name]]);
    kept.empty!();
    await world.tick();
    expect(shown()).toEqual([expect.not.stringContaining(name)]);
    expect([world.uids.length, world.uids.includes(before[0]!)]).toEqual([1, false]);
  });
});

test.each(["DaemonSet", "StatefulSet"])("the only pod there is leaves when a client deletes it: %s", (kind) => {
  const world = aManager();
  world.set({ ...deployment("web"), kind });
  const [uid = ""] = world.uids;
  world.manager.deletePod(uid, {});
  expect([uid.length, world.published.at(-1)?.pods]).toEqual([32, []]);
});

test("the end of a Job's pod counts although the pod was deleted", async () => {
  const world = aManager();
  world.phase = "Succeeded";
  world.set(job({ completions: 2 }));
  const [uid = ""] = world.uids;
  await world.tick(50);
  world.phase = "Running";
  world.manager.deletePod(uid, {});
  expect([world.uids.length, world.uids.includes(uid)]).toEqual([1, false]);
});

test("the API sees the ReplicaSet of a Deployment", async () => {
  const world = aManager();
  world.set(deployment("web"));
  await world.tick(1000);
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
  const world = aManager();
  const { manager } = world;
  const set = (manifest: object) => world.set(manifest);
  const web = { metadata: { name: "web", namespace: "default" } };
  const CAUSE = "kubernetes.io/change-cause";
  const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
  for (const [index, [image, annotations]] of [
    ["busybox:1", { [CAUSE]: "first", [LAST_APPLIED]: "x" }] as const,
    ["busybox:2", { [CAUSE]: "second" }] as const,
    // An undo, as kubectl does it: with the annotations of the ReplicaSet.
    ["busybox:1", { [CAUSE]: "first" }] as const,
  ].entries()) {
    const { metadata, spec, ...type } = deployment("web", image);
    set({ ...type, metadata: { ...metadata, annotations }, spec: { ...spec, replicas: 2 } });
    const revision = { "deployment.kubernetes.io/revision": String(index + 1) };
    expect(manager.reader.annotationsOf("Deployment", web)).toEqual(revision);
  }
  const counts = { "deployment.kubernetes.io/desired-replicas": "2", "deployment.kubernetes.io/max-replicas": "3" };
  expect(manager.reader.derivedObjects().map((it) => it.metadata.annotations)).toEqual([
    {
      [CAUSE]: "first",
      ...counts,
      "deployment.kubernetes.io/revision": "3",
      "deployment.kubernetes.io/revision-history": "1",
    },
    { [CAUSE]: "second", ...counts, "deployment.kubernetes.io/revision": "2" },
  ]);
  expect(manager.reader.annotationsOf("ReplicaSet", web)).toBeUndefined();
});

const NO_LIMIT = 2 ** 31 - 1;
const MODE = { completionMode: "NonIndexed" };
const JOB = podTemplate("busybox:1", { restartPolicy: "Never" });

test.each(["Deployment", "CronJob"] as const)("an unclaimed %s has a condition until a source claims it", (kind) => {
  const { manager } = aManager();
  const spec = kind === "CronJob" ? { schedule: "0 0 1 1 *", jobTemplate: { spec: { template: JOB } } } : undefined;
  const [workload] = readObjects(spec ? manifest(kind, { name: "web" }, spec) : deployment("web"));
  const conditionOf = () => {
    const status = manager.reader.statusOf(kind, workload!.object) as { conditions?: { type: string }[] };
    return status.conditions?.find(({ type }) => type === "ManifestLive");
  };
  const set = (...more: object[]) => {
    const object = Object.assign({}, workload, ...more);
    manager.setDesired({ pods: [], configMaps: new Map(), secrets: new Map(), objects: [object] }, true);
  };
  set({ unclaimed: "its source is gone" });
  expect(conditionOf()).toMatchObject({ status: "False", reason: "Unclaimed", message: "its source is gone" });
  set();
  expect(conditionOf()).toBeUndefined();
});

test.each([
  { written: {}, made: { completions: 1, parallelism: 1, backoffLimit: 6 } },
  { written: { parallelism: 3 }, made: { parallelism: 3, backoffLimit: 6 } },
  {
    written: { completionMode: "Indexed", completions: 2, backoffLimitPerIndex: 1 },
    made: {
      completionMode: "Indexed",
      completions: 2,
      parallelism: 1,
      backoffLimitPerIndex: 1,
      backoffLimit: NO_LIMIT,
    },
  },
])("a CronJob keeps what was written, and its Jobs have the defaults of Jobs: $written", async ({ written, made }) => {
  const { manager, clock } = aManager();
  const spec = { schedule: "* * * * *", jobTemplate: { spec: { template: JOB, ...written } } };
  const [cronJob] = readObjects(manifest("CronJob", { name: "tick" }, spec));
  const numbersOf = ({ template: _, ...numbers }: Job["spec"]) => ({ ...numbers });
  expect(numbersOf((cronJob!.object as CronJob).spec.jobTemplate.spec)).toEqual({ ...MODE, ...written });
  manager.setDesired({ pods: [], configMaps: new Map(), secrets: new Map(), objects: [cronJob!] }, true);
  await clock.advance(61_000);
  const [job] = manager.reader.derivedObjects();
  expect(numbersOf(job!.spec as Job["spec"])).toEqual({ ...MODE, ...made });
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
    world.set(deployment("web"));
    const before = podsOf(world);
    const replicaSet = replicaSetOf(world);
    // The API stores the ReplicaSet before it deletes the Deployment.
    world.set(deployment("web"), replicaSet);
    expect(podsOf(world)).toEqual(before);
    world.set(replicaSet);
    expect(podsOf(world)).toEqual(before);
    expect(Object.keys(kept.state!.records)).toEqual([
      `ReplicaSet default/${before[0]!.pod.metadata.generateName!.slice(0, -1)}`,
    ]);

    world.set(deployment("web"), replicaSet);
    expect(podsOf(world).map(({ pod }) => pod.metadata)).toEqual(before.map(({ pod }) => pod.metadata));
    world.set(replicaSet);

    const second = aManager(kept);
    second.manager.setDesired(state(replicaSet), true);
    expect(podsOf(second).map(({ pod, revision }) => [pod.metadata, pod.spec, revision])).toEqual(
      before.map(({ pod, revision }) => [pod.metadata, pod.spec, revision]),
    );
  });

  test("one that is created again before the deletion was seen adopts its pods", async () => {
    const world = aManager();
    const submitted = (uid: string) => ({ ...deployment("web"), metadata: { ...deployment("web").metadata, uid } });
    world.set(submitted("first"));
    world.manager.deletePod(world.uids[0]!, {});
    await world.clock.advance(100);
    const before = world.uids;
    world.set(submitted("second"), replicaSetOf(world));
    expect(world.uids).toEqual(before);
    world.set(submitted("second"));
    expect(world.uids).toEqual(before);
  });

  test("a pod that was orphaned a moment ago, which no source describes yet, is not taken over", async () => {
    const world = aManager();
    const { manager } = world;
    world.set(deployment("web"));
    const [uid = ""] = world.uids;
    expect([manager.hasPod(uid), manager.hasTakenOver(uid)]).toEqual([true, false]);
  });

  test("a new one of its name adopts again the pods its ReplicaSet has by then, and scales them", async () => {
    const world = aManager();
    const { manager } = world;
    const scaled = (replicas: number) => ({ ...deployment("web"), spec: { ...deployment("web").spec, replicas } });
    world.set(scaled(3));
    manager.deletePod(world.uids[0]!, {});
    await world.clock.advance(100);
    const replicaSet = replicaSetOf(world);
    world.set(scaled(3), replicaSet);
    world.set(replicaSet);
    const before = world.uids;
    expect(before).toHaveLength(3);
    world.set(scaled(2), replicaSet);
    expect(manager.hasTakenOver(replicaSet.metadata.uid)).toBe(true);
    const after = world.uids;
    expect([after.length, before]).toEqual([2, expect.arrayContaining(after)]);
    // The API forgets the ReplicaSet then.
    world.set(scaled(2));
    expect([world.uids, manager.hasTakenOver(replicaSet.metadata.uid)]).toEqual([after, false]);
    world.set();
    expect(world.uids).toEqual([]);
  });
});

describe("a new Deployment adopts a ReplicaSet of a client that its selector matches", () => {
  const replicaSet = (image = "busybox:1", metadata: object = {}) =>
    manifest(
      "ReplicaSet",
      { name: "old", uid: "rs", labels: { app: "web" }, ...metadata },
      { replicas: 2, selector: { matchLabels: { app: "web" } }, template: podTemplate(image) },
    );
  const adopting = (first: object) => {
    const world = aManager();
    world.set(first);
    const before = world.uids;
    world.set(deployment("web"), first);
    return { world, before };
  };
  const ofSize = (replicas: number) => {
    const first = replicaSet("busybox:2");
    return { ...first, spec: { ...first.spec, replicas } };
  };
  const numbers = ({ manager }: ReturnType<typeof aManager>) =>
    manager.reader.derivedObjects().map(({ metadata }) => metadata.annotations?.["deployment.kubernetes.io/revision"]);
  const sizes = ({ manager }: ReturnType<typeof aManager>) =>
    manager.reader
      .derivedObjects()
      .map(({ metadata, spec }) => [metadata.name, (spec as { replicas: number }).replicas]);

  test("of its template: the pods run on, scaled", () => {
    const { world, before } = adopting(replicaSet());
    expect(sizes(world)).toEqual([["old", 1]]);
    expect(before).toEqual(expect.arrayContaining(world.uids));
    expect(world.manager.hasTakenOver("rs")).toBe(true);
    expect(numbers(world)).toEqual(["1"]);
  });

  test.each([
    ["no number, so that the first of the Deployment is 1", {}, [undefined, "1"]],
    ["its number", { "deployment.kubernetes.io/revision": "4" }, ["4", "5"]],
    ["none that is no number", { "deployment.kubernetes.io/revision": "1e3" }, [undefined, "1"]],
    ["none when too large", { "deployment.kubernetes.io/revision": "3546343826724305832" }, [undefined, "1"]],
  ])("of another template has %s", (_, annotations, expected) => {
    const { world } = adopting(replicaSet("busybox:2", { annotations }));
    expect(numbers(world)).toEqual(expected);
  });

  test.each([1, 2])("of another template, with %i pods: an old revision, rolled over", (replicas) => {
    const { world } = adopting(ofSize(replicas));
    expect(sizes(world)).toEqual([
      ["old", 1],
      [expect.stringMatching(/^web-/), 1],
    ]);
  });

  test("that comes later", async () => {
    const world = aManager();
    world.set(deployment("web"));
    world.set(deployment("web"), ofSize(1));
    await world.tick();
    expect(world.manager.hasTakenOver("rs")).toBe(true);
    world.set(deployment("web"));
    await world.tick();
    expect(Object.fromEntries(sizes(world) as [string, number][])).toMatchObject({ old: 0 });
    expect(world.names).toEqual([expect.stringMatching(/^web-/)]);
  });

  test("of its present template that comes later: an old one, scaled to none", async () => {
    const world = aManager();
    world.set(deployment("web"));
    const [pod] = world.uids;
    await world.clock.advance(2_000);
    world.set(deployment("web"), replicaSet());
    await world.tick();
    world.set(deployment("web"));
    await world.tick();
    expect(Object.fromEntries(sizes(world) as [string, number][])).toMatchObject({ old: 0 });
    expect(numbers(world).sort()).toEqual(["1", undefined]);
    expect([world.manager.hasTakenOver("rs"), world.uids]).toEqual([false, [pod!]]);
  });

  const controller = { apiVersion: "x/v1", kind: "X", name: "x", uid: "x", controller: true };
  test.each([
    ["of another controller", { ownerReferences: [controller] }],
    ["with other labels", { labels: { app: "x" } }],
    ["of another namespace", { namespace: "lab" }],
  ])("not one %s", (_, metadata) => {
    const { world } = adopting(replicaSet("busybox:1", metadata));
    expect(world.manager.hasTakenOver("rs")).toBe(false);
  });
});

test("a DaemonSet follows the labels of the node", async () => {
  const world = aManager();
  const template = podTemplate("busybox:1", { nodeSelector: { disk: "ssd" } });
  world.set(manifest("DaemonSet", { name: "web" }, { selector: { matchLabels: { app: "web" } }, template }));
  const counts: number[] = [];
  for (const labels of [{}, { disk: "ssd" }, { disk: "hdd" }, { disk: "ssd" }]) {
    world.label(labels);
    world.manager.refresh();
    await world.tick(1000);
    counts.push(world.names.length);
  }
  expect(counts).toEqual([0, 1, 0, 1]);
});

describe("a text that was never right is unknown", () => {
  const service = manifest("Service", { name: "web" }, { selector: { app: "web" }, ports: [{ port: 80 }] });

  test("the names of Services are written for the others all the same", () => {
    const world = aManager();
    world.manager.setDesired(state(service, deployment("web")), false, true);
    for (const listener of world.listeners) listener();
    world.manager.refresh();
    expect(world.rewritten).toEqual(world.names);
  });

  test("names wait for sources that were not read yet, and until each pod was observed", async () => {
    const world = aManager();
    world.isObserved = false;
    world.set(service, deployment("web"));
    world.manager.refresh();
    world.isObserved = true;
    world.manager.setDesired(state(service, deployment("web")), false);
    world.manager.refresh();
    expect(world.rewritten).toEqual([]);
    world.set(service, deployment("web"));
    await world.clock.advance(1_000);
    expect(world.rewritten).toEqual(world.names);
  });

  test("pods of a source that was read last are waited for", async () => {
    const world = aManager();
    world.isObserved = false;
    world.manager.setDesired(state(), false, false);
    world.set(service, deployment("web"));
    expect([world.manager.isSettled, world.rewritten]).toEqual([false, []]);
    world.isObserved = true;
    world.manager.refresh();
    await world.clock.advance(1_000);
    expect([world.manager.isSettled, world.rewritten]).toEqual([true, world.names]);
  });

  test("Recreate starts the new pod when the old one is gone", async () => {
    const world = aManager();
    const recreate = (image: string) => {
      const { spec, ...rest } = deployment("web", image);
      world.manager.setDesired(state({ ...rest, spec: { ...spec, strategy: { type: "Recreate" } } }), false, true);
    };
    recreate("a:1");
    const [before] = world.names;
    recreate("a:2");
    expect(world.names).toEqual([]);
    await world.tick(1000);
    expect(world.names).toHaveLength(1);
    expect(world.names[0]).not.toBe(before);
  });
});

test("the end of a Job's pod makes the node check again the pods it refused", async () => {
  const world = aManager();
  world.set(job());
  await world.clock.advance(100);
  const before = world.published.length;
  world.phase = "Succeeded";
  await world.tick(100);
  expect(world.published.length).toBe(before + 1);
  await world.tick(100);
  expect(world.published.length).toBe(before + 1);
});

test("a template with limits alone is the current one: its requests are added to pods only", () => {
  const world = aManager();
  const { spec, ...web } = deployment("web");
  const limited = { name: "app", image: "busybox:1", resources: { limits: { memory: "64Mi" } } };
  const template = { ...podTemplate(), spec: { containers: [limited] } };
  const manifest = { ...web, spec: { ...spec, template } };
  world.set(manifest);
  const { metadata, spec: stored } = readObjects(manifest)[0]!.object as { metadata: object; spec?: unknown };
  const shown = { metadata: { ...metadata, generation: 2 }, spec: JSON.parse(JSON.stringify(stored)) };
  expect(world.manager.reader.statusOf("Deployment", shown)).toMatchObject({ observedGeneration: 2 });
});

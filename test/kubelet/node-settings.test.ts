import { describe, expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import { NodeSettings, type StoredSettings } from "../../src/kubelet/node-settings.ts";
import { aPod } from "../support/builders.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { KubeletWorld, named } from "../support/kubelet-world.ts";
import { RecordingLogger, RecordingRecorder } from "../support/recording-logger.ts";
import { StoredFile } from "../support/stored-file.ts";

function ofClients() {
  const recorder = new RecordingRecorder();
  const logger = new RecordingLogger();
  const file = new StoredFile<StoredSettings>();
  const begin = (fixedLabels = {}) => {
    const names = { nodeName: "node1", submittedSourceId: "local-api" };
    return new NodeSettings({ clock: new FakeClock(), file, recorder, logger, fixedLabels, ...names });
  };
  return { recorder, logger, begin };
}

const written = (unschedulable: boolean, metadata = {}) => ({ metadata, spec: { unschedulable } });

const submitted = (uid: string) =>
  ({ pod: aPod({}, { uid }), source: "api", origin: "test", revision: "", sourceId: "local-api" }) as const;

test("a cordon holds what comes later, outlives the process, and ends with uncordon", () => {
  const { begin, recorder } = ofClients();
  const first = begin();
  expect([first.since, first.holdOf(submitted("later"))]).toEqual([undefined, undefined]);
  expect([first.set(written(true), ["earlier"]), first.set(written(true), ["earlier", "later"])]).toEqual([
    true,
    false,
  ]);
  const second = begin();
  expect(second.since).toEqual(first.since!);
  expect(second.holdOf(submitted("earlier"))).toBeUndefined();
  expect(second.holdOf(submitted("later"))).toStartWith("0/1 nodes are available: 1 node(s) were unschedulable");
  second.set(written(false), []);
  expect([second.since, begin().since, second.holdOf(submitted("later"))]).toEqual([undefined, undefined, undefined]);
  expect(recorder.events).toEqual([
    "node1 NodeNotSchedulable Node node1 status is now: NodeNotSchedulable",
    "node1 NodeSchedulable Node node1 status is now: NodeSchedulable",
  ]);
});

describe("a claim that is being deleted", () => {
  const deletionTimestamp = "2026-01-01T00:00:00Z";
  const mounted = [{ name: "v", persistentVolumeClaim: { claimName: "data" } }];
  test.each([
    { when: "mounts it", isHeld: true },
    { when: "has the volume that replaced it", volumes: [], claims: { v: "data" }, isHeld: true },
    { when: "mounts another one", name: "other", isHeld: false },
    { when: "is of another namespace", namespace: "other", isHeld: false },
    { when: "has no volumes", volumes: [], isHeld: false },
    { when: "mounts one that stays", deletionTimestamp: undefined, isHeld: false },
  ])("and a pod that $when: held $isHeld", ({ isHeld, volumes = mounted, name = "data", ...of }) => {
    const pod = aPod({ volumes } as Partial<Pod["spec"]>, { namespace: of.namespace ?? "default" });
    const claim = { metadata: { deletionTimestamp, ...of, name, namespace: "default" } };
    const objects = [{ kind: "PersistentVolumeClaim", object: claim }] as never;
    const hold = ofClients()
      .begin()
      .holdOf({ ...submitted(""), pod, ...(of.claims && { claims: of.claims }) }, objects);
    expect(hold).toBe(isHeld ? 'persistentvolumeclaim "data" is being deleted' : undefined);
  });
});

test("labels and annotations of clients outlive the process; those of flags come first, and say so", () => {
  const { begin, logger, recorder } = ofClients();
  const fixed = { os: "linux" };
  const first = begin(fixed);
  const metadata = { labels: { os: "linux", disk: "ssd" }, annotations: { note: "x" } };
  expect(first.changedLabels({ metadata })).toEqual([]);
  expect(["os", "disk"].map((key) => first.changedLabels({ metadata: { labels: { [key]: "bsd" } } }))).toEqual([
    ["os"],
    ["os"],
  ]);
  expect([first.set(written(false, metadata), []), first.set(written(false, metadata), [])]).toEqual([true, false]);
  const second = begin({ ...fixed, disk: "hdd" });
  expect([first.labels, second.labels, second.annotations]).toEqual([
    { disk: "ssd", os: "linux" },
    { disk: "hdd", os: "linux" },
    { note: "x" },
  ]);
  expect(logger.lines).toEqual([
    'warn Label "disk" of the node is "hdd" by --node-labels: "ssd" of a client is ignored',
  ]);
  second.set(written(true), []);
  expect([begin(fixed).labels, begin(fixed).annotations, begin(fixed).since]).toEqual([fixed, undefined, second.since]);
  expect(recorder.events).toHaveLength(1);
});

test("a held pod is Pending and unscheduled until uncordon; one that runs continues", async () => {
  const world = new KubeletWorld();
  await world.started(named("old", { nodeName: "node1" }));
  world.hold = "node is cordoned";
  const made = named("new", { nodeName: "node1" });
  made.metadata.ownerReferences = [
    { apiVersion: "apps/v1", kind: "ReplicaSet", name: "new", uid: "r", controller: true },
  ];
  world.want(made, named("old", { nodeName: "node1" }));
  await world.clock.advance(60_000);
  const condition = { type: "PodScheduled", status: "False", reason: "Unschedulable", message: "node is cordoned" };
  expect(world.statusOf("new")).toMatchObject({ phase: "Pending", conditions: [condition] });
  expect(world.statusOf("old")?.phase).toBe("Running");
  const nodeOf = (name: string) =>
    world.kubelet.pods().find(({ metadata }) => metadata.name === `${name}-node1`)?.spec.nodeName;
  expect([nodeOf("old"), nodeOf("new")]).toEqual(["node1", undefined]);
  expect([world.kubelet.isHeld("uid-old"), world.kubelet.isHeld("uid-new")]).toEqual([false, true]);
  const scheduling = () => world.recorder.events.filter((event) => event.includes("Schedul"));
  expect(scheduling()).toEqual(["new-node1 FailedScheduling node is cordoned"]);
  const before = world.statusOf("new");
  world.kubelet.refresh();
  expect(world.statusOf("new")).toBe(before!);
  world.hold = undefined;
  world.kubelet.refresh();
  await world.clock.advance(1_000);
  expect(world.statusOf("new")?.phase).toBe("Running");
  expect(nodeOf("new")).toBe("node1");
  await world.restarted(made);
  expect(scheduling().slice(1)).toEqual(["new-node1 Scheduled Successfully assigned default/new-node1 to node1"]);
});

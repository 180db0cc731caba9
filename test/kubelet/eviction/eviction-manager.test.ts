import { beforeEach, expect, test } from "bun:test";
import type { Pod } from "../../../src/base/api/pod.ts";
import { EvictionManager } from "../../../src/kubelet/eviction/eviction-manager.ts";
import type { Rejection } from "../../../src/plan/admission.ts";
import type { PodDiskUsage, PodUsage } from "../../../src/plan/eviction.ts";
import type { KubeletMetrics } from "../../../src/stats/metrics/kubelet-metrics.ts";
import { aContainer, aPod } from "../../support/builders.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { aMetrics, samplesOf } from "../../support/metrics.ts";
import { RecordingLogger, RecordingRecorder } from "../../support/recording-logger.ts";

const MI = 2 ** 20;
let clock: FakeClock;
let recorder: RecordingRecorder;
let manager: EvictionManager;
let stop: AbortController;
/** Free memory, and the use of each running pod. Mi. */
let free: { memory: number; disk: number };
let memory: Map<string, number>;
let disk: Map<string, PodDiskUsage>;
let unusedImages: number;
let pods: Pod[];
let running: Set<string>;
let evicted: Map<string, Rejection>;
let graces: number[];
let metrics: KubeletMetrics;
let listeners: Set<(uid: string | undefined) => void>;
/** Times that all pods were looked through. */
let looks: number;

const aNamed = (name: string, spec: Partial<Pod["spec"]> = {}): Pod => ({
  ...aPod({ containers: [aContainer()], ...spec }, { name, uid: name }),
  status: { phase: "Running" } as Pod["status"],
});

beforeEach(() => {
  clock = new FakeClock();
  recorder = new RecordingRecorder();
  stop = new AbortController();
  free = { memory: 1000, disk: 1000 };
  memory = new Map();
  disk = new Map();
  unusedImages = 0;
  pods = [];
  running = new Set();
  evicted = new Map();
  graces = [];
  metrics = aMetrics();
  listeners = new Set();
  looks = 0;
  manager = newManager();
});

const newManager = () =>
  new EvictionManager({
    clock,
    logger: new RecordingLogger(),
    recorder,
    kubelet: {
      pods: () => {
        looks++;
        return pods;
      },
      workers: { get: (uid) => (running.has(uid) ? { isRemoving: false } : undefined) },
      evict: (uid, why, grace) => {
        evicted.set(uid, why);
        graces.push(grace);
        running.delete(uid);
      },
      readmit: (uids) => {
        for (const uid of uids) {
          evicted.delete(uid);
          running.add(uid);
        }
      },
      evicted: new Proxy({} as ReadonlyMap<string, Rejection>, {
        get: (_, name) => Reflect.get(evicted, name).bind(evicted),
      }),
      removeSurplusDead: () => 0,
      onChange: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    },
    usage: {
      refreshSignals: async () => {},
      readSignals: () => ({
        "memory.available": { capacity: 1000 * MI, available: free.memory * MI },
        "imagefs.available": { capacity: 1000 * MI, available: free.disk * MI },
      }),
      readPods: () =>
        new Map(
          [...memory].map(([uid, mi]): [string, PodUsage] => [
            uid,
            { memoryBytes: new Map([["app", mi * MI]]), processes: 1 },
          ]),
        ),
      askDisk: () => disk,
      diskSettled: async () => {},
      reclaimImages: async () => {
        const removed = unusedImages;
        unusedImages = 0;
        return removed;
      },
    },
    settings: {
      hard: [
        { signal: "memory.available", quantity: 100 * MI },
        { signal: "imagefs.available", quantity: 100 * MI },
      ],
      soft: [{ signal: "memory.available", quantity: 200 * MI }],
      softGraceMs: { "memory.available": 20_000 },
      minimumReclaim: [],
      transitionMs: 60_000,
      maxPodGraceSeconds: 5,
    },
    nodeName: "node1",
    metrics,
  });

function run(...wanted: Pod[]): void {
  pods = wanted;
  for (const { metadata } of wanted) running.add(metadata.uid!);
  void manager.run(stop.signal);
}
const change = () => listeners.forEach((listener) => void listener(undefined));

test("without pods nothing wakes up", async () => {
  run();
  await clock.advance(60_000);
  expect(clock.pendingTimers).toBe(0);
  pods = [aNamed("a")];
  running.add("a");
  change();
  await clock.advance(1);
  expect(clock.pendingTimers).toBe(1);
});

test("while nothing runs, the pods are looked through once for many changes", async () => {
  const running = manager.run(stop.signal);
  const before = looks;
  for (let i = 0; i < 300; i++) for (const listener of listeners) listener(`pod-${i}`);
  await clock.advance(1_000);
  expect(looks - before).toBe(1);
  stop.abort();
  await running;
});

test("short of memory: one pod at a time is evicted, with upstream's message and without a grace period", async () => {
  memory = new Map([["a", 10], ["b", 300], ["c", 20]]); // biome-ignore format: short
  run(aNamed("a"), aNamed("b"), aNamed("c"));
  free.memory = 50;
  await clock.advance(10_000);
  const message =
    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container app was using 300Mi, which exceeds its request of 0. ";
  expect([...evicted]).toEqual([["b", { reason: "Evicted", message }]]);
  expect(graces).toEqual([0]);
  expect(recorder.events.filter((event) => !event.includes("EvictionThresholdMet"))).toEqual([`b Evicted ${message}`]);
  expect(recorder.events[0]).toBe("node1 EvictionThresholdMet Attempting to reclaim memory");
  expect(samplesOf(metrics.evictions)).toEqual(['{eviction_signal="memory.available"} 1']);
  await clock.advance(10_000);
  expect([...evicted.keys()]).toEqual(["b", "c"]);
  expect(manager.refusalOf(aNamed("new"))?.reason).toBe("Evicted");
});

test("evicted by an earlier process: they wait for the transition period of this one", async () => {
  const why = { reason: "Evicted", message: "The node was low on resource: memory. " };
  evicted.set("a", why);
  evicted.set("b", why);
  manager = newManager();
  pods = [aNamed("a"), aNamed("b")];
  void manager.run(stop.signal);
  await clock.advance(50_000);
  expect([...running]).toEqual([]);
  await clock.advance(20_000);
  expect([...running]).toEqual(["b", "a"]);
});

test("the first pods of a start are refused when the node is short already", () => {
  free.memory = 50;
  expect(manager.refusalOf(aNamed("new"))?.message).toBe("The node had condition: [MemoryPressure]. ");
});

test("pressures are reported with since when, also where there are no pods", async () => {
  const since = () => manager.states().get("MemoryPressure");
  expect(since()).toEqual({ is: false, since: new Date(clock.now()) });
  const startedAt = clock.now();
  await clock.advance(25_000);
  free.memory = 150;
  expect(since()).toEqual({ is: true, since: clock.now() });
  const shortAt = clock.now();
  free.memory = 900;
  await clock.advance(30_000);
  expect(since()).toEqual({ is: true, since: shortAt });
  await clock.advance(40_000);
  expect(since()).toEqual({ is: false, since: clock.now() });
  expect(manager.states().get("PIDPressure")).toEqual({ is: false, since: startedAt });
});

test("evicted pods come back when the pressure has been gone for the transition period, the last evicted first", async () => {
  memory = new Map([["a", 10], ["b", 300]]); // biome-ignore format: short
  run(aNamed("a"), aNamed("b"));
  free.memory = 50;
  await clock.advance(20_000);
  expect([...running]).toEqual([]);
  free.memory = 900;
  await clock.advance(50_000);
  expect([...running]).toEqual([]);
  await clock.advance(10_000);
  expect([...running]).toEqual(["a"]);
  await clock.advance(10_000);
  expect([...running]).toEqual(["a", "b"]);
});

test("below a soft threshold a pod is evicted after the grace period of the threshold, with a grace period of its own", async () => {
  run(aNamed("a"));
  free.memory = 150;
  await clock.advance(20_000);
  expect([...evicted]).toEqual([]);
  await clock.advance(10_000);
  expect(graces).toEqual([5]);
});

test("critical pods stay, whatever the pressure", async () => {
  run(aNamed("a", { priorityClassName: "system-node-critical" }));
  free = { memory: 1, disk: 1 };
  await clock.advance(60_000);
  expect([...evicted]).toEqual([]);
});

test("short of disk: unused images are removed before a pod is evicted", async () => {
  run(aNamed("a"));
  free.disk = 50;
  unusedImages = 2;
  await clock.advance(10_000);
  expect([...evicted]).toEqual([]);
  await clock.advance(10_000);
  expect([...evicted.keys()]).toEqual(["a"]);
});

test("a pod over the limit of its emptyDir is evicted without any pressure, and comes back after the transition period", async () => {
  const cache = { usedBytes: 5 * MI, inodes: 1, ephemeral: true };
  disk = new Map([["a", { containers: new Map(), volumes: new Map([["cache", cache]]) }]]);
  const volumes = [{ name: "cache", emptyDir: { sizeLimit: "4Mi" } }] as Pod["spec"]["volumes"];
  run(aNamed("a", { volumes }), aNamed("b"));
  await clock.advance(10_000);
  expect([...evicted.values()]).toEqual([
    { reason: "Evicted", message: 'Usage of EmptyDir volume "cache" exceeds the limit "4Mi". ' },
  ]);
  disk = new Map();
  await clock.advance(70_000);
  expect([...running].sort()).toEqual(["a", "b"]);
});

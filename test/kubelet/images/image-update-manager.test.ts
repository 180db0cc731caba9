import { beforeEach, describe, expect, test } from "bun:test";
import type { Pod } from "../../../src/base/api/pod.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../../src/config/option-table.ts";
import {
  ImageUpdateManager,
  type ImageUpdateManagerDeps,
  LockFiles,
} from "../../../src/kubelet/images/image-update-manager.ts";
import type { ImageUpdateRecord } from "../../../src/plan/image-updates.ts";
import type { KubeletMetrics } from "../../../src/stats/metrics/kubelet-metrics.ts";
import { aContainer } from "../../support/builders.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { KubeletWorld, named } from "../../support/kubelet-world.ts";
import { aMetrics, samplesOf } from "../../support/metrics.ts";
import { RecordingLogger, RecordingRecorder } from "../../support/recording-logger.ts";
import { StoredFile } from "../../support/stored-file.ts";

const DIGEST = { "kubelet-ts.io/image-update": "digest" };

let world: KubeletWorld;
let stored: StoredFile<readonly ImageUpdateRecord[]>;
let newest: string;
let pulls: string[];
let isLocked = false;
let metrics: KubeletMetrics;

const pod = (name: string, annotations: Record<string, string>, metadata: Partial<Pod["metadata"]> = {}): Pod =>
  named(name, { nodeName: "node1", containers: [aContainer({ image: "web:1" })] }, { annotations, ...metadata });

const set = (name: string) =>
  pod(name, DIGEST, {
    ownerReferences: [{ controller: true, kind: "StatefulSet", name: "web", apiVersion: "apps/v1", uid: "set" }],
  });

const create = (overrides: Partial<ImageUpdateManagerDeps> = {}) =>
  new KubeletWorld({
    imageUpdates: (clock) =>
      new ImageUpdateManager({
        clock,
        logger: new RecordingLogger(),
        recorder: new RecordingRecorder(),
        random: () => 0,
        file: stored,
        options: { ...DEFAULT_KUBELET_OPTIONS, imageUpdateJitterMs: 0 },
        sources: {
          lookUp: async () => ({ ref: newest, tag: "1" }),
          pull: async (ref) => {
            pulls.push(ref);
            return `id of ${ref}`;
          },
          describe: async () => ({ ref: "web@sha256:a", tag: "1" }),
          isLocked: async () => isLocked,
        },
        metrics,
        ...overrides,
      }),
  });

async function start(...pods: Pod[]): Promise<void> {
  world.kubelet.start();
  world.submit(...pods);
  await world.clock.advance(1000);
}

const manager = () => world.imageUpdates!;
const imageOf = (name: string) => {
  const found = world.engine.find(`${name}-node1`, "app");
  return found?.kind === "container" && found.container.state === "running" ? found.container.image : undefined;
};
const isReady = (ready: boolean) =>
  world.probes.set(
    "uid-web",
    new Map([["app", { containerId: world.engine.idOf("web-node1", "app"), started: true, ready }]]),
  );
const report = () => {
  const { state, current } = manager().report()[0]!;
  return { state, current };
};

describe("updates of images", () => {
  beforeEach(() => {
    stored = new StoredFile();
    pulls = [];
    newest = "web@sha256:a";
    metrics = aMetrics();
    world = create();
  });

  test("without a pod with the annotation nothing is stored, and no timer is set", async () => {
    await start(pod("web", {}));
    await world.clock.advance(48 * 3_600_000);
    expect({ stored: stored.content, pulls, report: manager().report() }).toEqual({
      stored: undefined,
      pulls: [],
      report: [],
    });
    expect(world.clock.pendingTimers).toBe(1);
  });

  test("the running image is pinned, a newer one is kept, a bad one rolled back and not tried again", async () => {
    await start(pod("web", { ...DIGEST, "kubelet-ts.io/update-deadline": "1m" }));
    expect(report()).toEqual({ state: "pinned", current: "web@sha256:a" });

    newest = "web@sha256:b";
    manager().checkNow(undefined);
    await world.clock.advance(60_000);
    expect(imageOf("web")).toBe("web@sha256:b");
    expect(report()).toEqual({ state: "pinned", current: "web@sha256:b" });

    newest = "web@sha256:bad";
    manager().checkNow("default/web");
    await world.clock.advance(5000);
    expect(imageOf("web")).toBe("web@sha256:bad");
    isReady(false);
    world.kubelet.workers.get("uid-web")?.wake();
    await world.clock.advance(60_000);
    world.probes.clear();
    expect(imageOf("web")).toBe("web@sha256:b");
    expect(report()).toEqual({ state: "failed", current: "web@sha256:b" });
    manager().checkNow(undefined);
    await world.clock.advance(60_000);
    expect(pulls).toEqual(["web@sha256:b", "web@sha256:bad"]);
    const labels = (result: string) => `{namespace="default",owner="web",result="${result}"}`;
    expect(samplesOf(metrics.imageUpdates)).toEqual([`${labels("kept")} 1`, `${labels("rolled-back")} 1`]);

    // A second process has the same state.
    world.renew();
    await start(...world.desired);
    expect(report()).toEqual({ state: "failed", current: "web@sha256:b" });
    expect(manager().undo("default/web")).toEqual(["web:1"]);
    await world.clock.advance(1000);
    expect(report()).toEqual({ state: "pinned", current: "web@sha256:a" });

    world.submit(pod("web", {}));
    await world.clock.advance(0);
    expect(stored.content).toEqual([]);
  });

  test("at the time of its schedule", async () => {
    await start(pod("web", { ...DIGEST, "kubelet-ts.io/image-update-schedule": "0 * * * *" }));
    newest = "web@sha256:b";
    await world.clock.advance(2 * 3_600_000);
    expect(imageOf("web")).toBe("web@sha256:b");
  });

  test("a running pod that is given the annotation", async () => {
    await start(pod("web", {}));
    await world.clock.advance(60_000);
    world.submit(pod("web", DIGEST));
    await world.clock.advance(1000);
    expect(report()).toEqual({ state: "pinned", current: "web@sha256:a" });
  });

  test.each([false, true])("the pods of a set one after the other, with a debug container: %p", async (isDebugged) => {
    await start(set("a"), set("b"));
    const debug = { ...aContainer({ name: "debug" }), targetContainerName: "app" };
    if (isDebugged) world.kubelet.setEphemeralContainers("uid-b", [debug]);
    newest = "web@sha256:b";
    manager().checkNow(undefined);
    await world.clock.advance(9000);
    expect(["a", "b"].map(imageOf)).toEqual(["web@sha256:b", "web@sha256:a"]);
    await world.clock.advance(9000);
    expect(["a", "b"].map(imageOf)).toEqual(["web@sha256:b", "web@sha256:b"]);
    await world.clock.advance(9000);
    expect(report()).toEqual({ state: "pinned", current: "web@sha256:b" });
  });

  test("a file of the pod, or its annotation, blocks an update that is there", async () => {
    const lock = { ...DIGEST, "kubelet-ts.io/image-update-lock": "data/updates.lock" };
    isLocked = true;
    await start(pod("web", lock));
    newest = "web@sha256:b";
    manager().checkNow(undefined);
    await world.clock.advance(20_000);
    const held = () => ({ message: manager().report()[0]?.message, image: imageOf("web") });
    expect(held()).toEqual({ message: "held by the file data/updates.lock", image: "web@sha256:a" });
    isLocked = false;
    world.submit(pod("web", { ...lock, "kubelet-ts.io/image-update-hold": "true" }));
    await world.clock.advance(20_000);
    expect(held()).toEqual({ message: "held by its annotation", image: "web@sha256:a" });
    world.submit(pod("web", lock));
    await world.clock.advance(20_000);
    expect(imageOf("web")).toBe("web@sha256:b");
  });

  test("the random delay of the next look-up is drawn once, also over a restart", async () => {
    let draws = 0;
    const random = () => [0.25, 0.75][draws++]!;
    world = create({ random, options: { ...DEFAULT_KUBELET_OPTIONS, imageUpdateJitterMs: 1_800_000 } });
    await start(pod("web", DIGEST));
    const [first] = manager().report();
    expect(first?.nextCheckAt).toBeDefined();
    world.renew();
    await start(...world.desired);
    expect({ next: manager().report()[0]?.nextCheckAt, draws }).toEqual({ next: first?.nextCheckAt, draws: 1 });
  });
});

describe("lock files", () => {
  const web = { metadata: { name: "web", uid: "u" } } as Pod;

  /** Asks for the lock, and waits for the searches that this begins. */
  function aLock(isPresent: boolean) {
    const clock = new FakeClock();
    const disk = { isPresent, failure: undefined as Error | undefined, searches: 0, unlocked: 0 };
    const isLocked = async () => {
      disk.searches++;
      const found = disk.isPresent;
      await Bun.sleep(0);
      if (disk.failure) throw disk.failure;
      return found;
    };
    const locks = new LockFiles({ isLocked }, clock, () => disk.unlocked++);
    const ask = () => locks.isLocked(web, "data/lock");
    const settle = async () => {
      for (let turn = 0; turn < 5; turn++) await Bun.sleep(0);
    };
    return { clock, disk, locks, ask, settle };
  }

  test("a lock counts as present until the search has an answer", async () => {
    const { disk, ask, settle } = aLock(false);
    expect(ask()).toBe(true);
    await settle();
    expect(ask()).toBe(false);
    expect(disk).toMatchObject({ unlocked: 1, searches: 1 });
  });

  test.each([
    { when: "after a search that found it", isDuring: false },
    { when: "during a search", isDuring: true },
  ])("a lock that is removed $when is searched for again when it is asked for", async ({ isDuring }) => {
    const { disk, ask, settle } = aLock(true);
    ask();
    if (!isDuring) await settle();
    disk.isPresent = false;
    expect(ask()).toBe(true);
    await settle();
    expect(ask()).toBe(false);
    expect(disk).toMatchObject({ unlocked: 1, searches: 2 });
  });

  test("a file system that fails is left alone for ten seconds, and counts as locked", async () => {
    const { clock, disk, ask, settle } = aLock(false);
    disk.failure = new Error("no answer");
    ask();
    await settle();
    expect(ask()).toBe(true);
    expect(disk.searches).toBe(1);
    disk.failure = undefined;
    await clock.advance(10_001);
    expect(ask()).toBe(true);
    await settle();
    expect(ask()).toBe(false);
  });

  test("pods that are gone are forgotten", async () => {
    const { disk, ask, locks, settle } = aLock(false);
    ask();
    await settle();
    locks.prune(new Set());
    expect(ask()).toBe(true);
    expect(disk.searches).toBe(2);
  });
});

import { describe, expect, test } from "bun:test";
import { computeFenceposts } from "../../src/controllers/deployment.ts";
import { podTemplate, readObjects, WorkloadWorld } from "./workload-world.ts";

const deployment = (spec: object = {}) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web" },
  spec: { selector: { matchLabels: { app: "web" } }, template: podTemplate(), ...spec },
});

const started = (spec: object = {}) => {
  const world = new WorkloadWorld(deployment(spec));
  world.reconcile();
  world.settle();
  world.events = [];
  return world;
};

const withPort = (image: string) =>
  podTemplate(image, { containers: [{ name: "app", image, ports: [{ containerPort: 80, hostPort: 8080 }] }] });

describe("pods", () => {
  test("have upstream's names and stay the same", () => {
    const world = new WorkloadWorld(deployment({ replicas: 3 }));
    world.reconcile();
    const names = world.live.map(({ name }) => name);
    expect(new Set(names).size).toBe(3);
    for (const name of names)
      expect(name).toMatch(/^web-[bcdfghjklmnpqrstvwxz2456789]{5,10}-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
    world.settle();
    expect(world.live.map(({ name }) => name)).toEqual(names);
  });

  test("are the same when what was remembered is lost", () => {
    const [first, second] = [0, 1].map(() => {
      const world = new WorkloadWorld(deployment({ replicas: 3 }));
      world.reconcile();
      return world.live.map(({ name, uid }) => ({ name, uid }));
    });
    expect(first).toEqual(second!);
  });
});

describe("fenceposts", () => {
  test.each([
    { replicas: 1, rollingUpdate: undefined, want: { surge: 1, unavailable: 0 } },
    { replicas: 4, rollingUpdate: undefined, want: { surge: 1, unavailable: 1 } },
    { replicas: 10, rollingUpdate: undefined, want: { surge: 3, unavailable: 2 } },
    { replicas: 10, rollingUpdate: { maxSurge: 0, maxUnavailable: "5%" }, want: { surge: 0, unavailable: 1 } },
    { replicas: 2, rollingUpdate: { maxSurge: "100%", maxUnavailable: 5 }, want: { surge: 2, unavailable: 2 } },
  ])("$replicas replicas, $rollingUpdate", ({ replicas, rollingUpdate, want }) => {
    const [object] = readObjects(deployment({ replicas, strategy: { rollingUpdate } }));
    expect(computeFenceposts(object!.object.spec as never)).toEqual(want);
  });
});

describe("a rolling update", () => {
  test("of one replica starts the new pod first, and ends the old one when the new one is Ready", () => {
    const world = started();
    world.apply(deployment({ template: podTemplate("busybox:2") }));
    expect(world.images).toEqual(["busybox:1", "busybox:2"]);
    const fresh = world.live.find((pod) => world.imageOf(pod) === "busybox:2")!;
    world.set(fresh, { phase: "Running" });
    expect(world.images).toEqual(["busybox:1", "busybox:2"]);
    world.set(fresh, { isReady: true });
    expect(world.images).toEqual(["busybox:2"]);
    const scalings = world.events.filter(({ reason }) => reason === "ScalingReplicaSet");
    expect(scalings.map(({ message }) => message.replace(/web-\w+/, "web"))).toEqual([
      "Scaled up replica set web to 1",
      "Scaled down replica set web to 0",
    ]);
  });

  test("of ten replicas keeps at least eight available and at most thirteen in all", () => {
    const world = started({ replicas: 10 });
    world.apply(deployment({ replicas: 10, template: podTemplate("busybox:2") }));
    for (let step = 0; step < 40; step++) {
      expect(world.live.length).toBeLessThanOrEqual(13);
      const ready = world.live.filter((pod) => world.imageOf(pod) === "busybox:1").length;
      const next = world.live.find((pod) => world.imageOf(pod) === "busybox:2" && !ups.has(pod.uid));
      expect(ready + ups.size).toBeGreaterThanOrEqual(8);
      if (!next) break;
      ups.add(next.uid);
      world.set(next, { phase: "Running", isReady: true });
    }
    expect(world.images).toEqual(new Array(10).fill("busybox:2"));
  });
  const ups = new Set<string>();

  test("to an image that never comes up leaves the old pods alone", () => {
    const world = started({ replicas: 4 });
    world.apply(deployment({ replicas: 4, template: podTemplate("busybox:bad") }));
    for (let pass = 0; pass < 5; pass++) world.reconcile();
    // 25%: one less, one more.
    expect(world.images.filter((image) => image === "busybox:1")).toHaveLength(3);
    expect(world.images.filter((image) => image === "busybox:bad")).toHaveLength(2);
  });

  test("back to the text before takes the old ReplicaSet up again", () => {
    const world = started({ replicas: 2 });
    const before = world.live.map(({ name }) => name);
    world.apply(deployment({ replicas: 2, template: podTemplate("busybox:bad") }));
    world.apply(deployment({ replicas: 2 }));
    world.settle();
    expect(world.live.map(({ name }) => name)).toEqual(before);
    const revisions = Object.values(world.record!.revisions).map(({ revision, replicas }) => [revision, replicas]);
    expect(revisions.sort()).toEqual([
      [2, 0],
      [3, 2],
    ]);
  });

  test("waits for minReadySeconds, and asks to be woken then", async () => {
    const world = started({ minReadySeconds: 30 });
    await world.clock.advance(31_000);
    world.reconcile();
    world.apply(deployment({ minReadySeconds: 30, template: podTemplate("busybox:2") }));
    const fresh = world.live.find((pod) => world.imageOf(pod) === "busybox:2")!;
    world.set(fresh, { phase: "Running", isReady: true });
    expect(world.images).toEqual(["busybox:1", "busybox:2"]);
    expect(world.wakeInMs).toBe(30_000);
    await world.clock.advance(30_000);
    world.reconcile();
    expect(world.images).toEqual(["busybox:2"]);
  });

  test("of a pod that holds a host port replaces it in place", () => {
    const world = started({ template: withPort("busybox:1") });
    world.apply(deployment({ template: withPort("busybox:2") }));
    expect(world.images).toEqual(["busybox:2"]);
    expect(world.leaving).toHaveLength(1);
  });

  test("without progress in time is reported once", async () => {
    const world = started({ progressDeadlineSeconds: 60 });
    world.apply(deployment({ progressDeadlineSeconds: 60, template: podTemplate("busybox:bad") }));
    world.reconcile();
    expect(world.wakeInMs).toBe(60_000);
    await world.clock.advance(60_000);
    world.reconcile();
    world.controllerState = undefined;
    world.reconcile();
    expect(world.events.filter(({ reason }) => reason === "ProgressDeadlineExceeded")).toHaveLength(1);
    expect(world.record!.progressDeadlineExceeded).toBe(true);
    world.apply(deployment({ progressDeadlineSeconds: 60 }));
    world.settle();
    expect(world.record!.progressDeadlineExceeded).toBeUndefined();
  });
});

test("Recreate ends every old pod before the first new one", () => {
  const strategy = { type: "Recreate" };
  const world = started({ replicas: 2, strategy });
  world.apply(deployment({ replicas: 2, strategy, template: podTemplate("busybox:2") }));
  expect(world.images).toEqual([]);
  world.set(world.leaving[0]!, { isGone: true });
  expect(world.images).toEqual([]);
  world.set(world.leaving[0]!, { isGone: true });
  expect(world.images).toEqual(["busybox:2", "busybox:2"]);
});

describe("scale", () => {
  test("down takes pods that are not Ready first, then the youngest", () => {
    const world = started({ replicas: 4 });
    const [oldest, sick, third] = world.live;
    world.set(sick!, { isReady: false });
    world.apply(deployment({ replicas: 2 }));
    expect(world.live).toEqual([oldest!, third!]);
  });

  test("in the middle of a rollout keeps the proportions", () => {
    // The example of docs/concepts/workloads/controllers/deployment: 10 replicas, maxSurge 3, maxUnavailable 2.
    const strategy = { rollingUpdate: { maxSurge: 3, maxUnavailable: 2 } };
    const world = started({ replicas: 10, strategy });
    world.apply(deployment({ replicas: 10, strategy, template: podTemplate("busybox:bad") }));
    const count = (image: string) => world.images.filter((name) => name === image).length;
    expect([count("busybox:1"), count("busybox:bad")]).toEqual([8, 5]);
    world.apply(deployment({ replicas: 15, strategy, template: podTemplate("busybox:bad") }));
    expect([count("busybox:1"), count("busybox:bad")]).toEqual([11, 7]);
  });

  test("to nothing", () => {
    const world = started({ replicas: 3 });
    world.apply(deployment({ replicas: 0 }));
    expect(world.live).toEqual([]);
    world.settle();
    expect(world.record!.pods).toEqual([]);
  });
});

test("a paused Deployment scales and does not roll", () => {
  const world = started({ replicas: 1 });
  world.apply(deployment({ replicas: 2, paused: true, template: podTemplate("busybox:2") }));
  world.settle();
  expect(world.images).toEqual(["busybox:1", "busybox:1"]);
  world.apply(deployment({ replicas: 2, template: podTemplate("busybox:2") }));
  world.settle();
  expect(world.images).toEqual(["busybox:2", "busybox:2"]);
});

test("old ReplicaSets beyond revisionHistoryLimit are forgotten", () => {
  const world = started({ revisionHistoryLimit: 2 });
  for (let version = 2; version < 7; version++) {
    world.apply(deployment({ revisionHistoryLimit: 2, template: podTemplate(`busybox:${version}`) }));
    world.settle();
  }
  const revisions = Object.values(world.record!.revisions).map(({ revision }) => revision);
  expect(revisions.sort()).toEqual([4, 5, 6]);
});

test.each(["ReplicaSet", "ReplicationController"])("a %s keeps its pods when its template is edited", (kind) => {
  const isLegacy = kind === "ReplicationController";
  const manifest = (replicas: number, image: string) => ({
    apiVersion: isLegacy ? "v1" : "apps/v1",
    kind,
    metadata: { name: "web" },
    spec: {
      replicas,
      selector: isLegacy ? { app: "web" } : { matchLabels: { app: "web" } },
      template: podTemplate(image),
    },
  });
  const world = new WorkloadWorld(manifest(2, "busybox:1"));
  world.reconcile();
  world.settle();
  expect(world.live[0]!.name).toMatch(/^web-\w{5}$/);
  world.apply(manifest(3, "busybox:2"));
  expect(world.images).toEqual(["busybox:1", "busybox:1", "busybox:2"]);
  world.apply(manifest(1, "busybox:2"));
  world.settle();
  expect(world.images).toEqual(["busybox:1"]);
});

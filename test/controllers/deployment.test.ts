import { describe, expect, test } from "bun:test";
import { computeFenceposts } from "../../src/controllers/deployment.ts";
import { computeWorkloadStatus } from "../../src/controllers/workload-reader.ts";
import { manifest, podTemplate, readObjects, WorkloadWorld } from "./workload-world.ts";

const deployment = (spec: object = {}) =>
  manifest(
    "Deployment",
    { name: "web" },
    { selector: { matchLabels: { app: "web" } }, template: podTemplate(), ...spec },
  );

const started = (spec: object = {}) => WorkloadWorld.settled(deployment(spec));

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

test.each([
  { replicas: 1, rollingUpdate: undefined, want: { surge: 1, unavailable: 0 } },
  { replicas: 4, rollingUpdate: undefined, want: { surge: 1, unavailable: 1 } },
  { replicas: 10, rollingUpdate: undefined, want: { surge: 3, unavailable: 2 } },
  { replicas: 10, rollingUpdate: { maxSurge: 0, maxUnavailable: "5%" }, want: { surge: 0, unavailable: 1 } },
  { replicas: 2, rollingUpdate: { maxSurge: "100%", maxUnavailable: 5 }, want: { surge: 2, unavailable: 2 } },
])("fenceposts: $replicas replicas, $rollingUpdate", ({ replicas, rollingUpdate, want }) => {
  const [object] = readObjects(deployment({ replicas, strategy: { rollingUpdate } }));
  expect(computeFenceposts(object!.object.spec as never)).toEqual(want);
});

describe("a rolling update", () => {
  test("of a pod that holds a host port replaces it in place", () => {
    const world = started({ template: withPort("busybox:1") });
    world.apply(deployment({ template: withPort("busybox:2") }));
    expect(world.images).toEqual(["busybox:2"]);
    expect(world.leaving).toHaveLength(1);
  });

  test("keeps a pod until the ingress server sends requests to the one in its place, but not for long", async () => {
    let awaited = true;
    const world = started();
    const [before] = world.live;
    world.apply(deployment({ template: podTemplate("busybox:2") }));
    const next = world.live.find((pod) => pod !== before && pod.uid !== before!.uid)!;
    world.set(next, { phase: "Running", isReady: true, isAwaited: () => awaited });
    expect([world.leaving.length, world.wakeInMs]).toEqual([0, 100]);
    awaited = false;
    world.reconcile();
    expect(world.leaving).toHaveLength(1);
    world.apply(deployment({ template: podTemplate("busybox:3") }));
    const last = world.live.find(({ uid }) => uid !== next.uid)!;
    world.set(last, { phase: "Running", isReady: true, isAwaited: () => true });
    await world.clock.advance(10_000);
    world.reconcile();
    expect(world.live).toEqual([last]);
  });

  test("counts pods of an old revision as available by the minReadySeconds that it had", () => {
    const strategy = { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } };
    const world = started({ replicas: 2, strategy });
    const later = { replicas: 2, strategy, minReadySeconds: 10 };
    world.apply(deployment({ ...later, template: podTemplate("busybox:2") }));
    const available = () => world.record!.conditions!.find(({ type }) => type === "Available")?.status;
    expect([world.live.length, available()]).toEqual([3, "True"]);
    const pods = () => ({ isReady: true, readyForMs: 0 });
    const input = { kind: "Deployment" as const, record: world.record!, pod: pods, generation: 1 };
    const status = computeWorkloadStatus({ ...input, minReadySeconds: 10, jobOf: undefined! });
    expect(status).toMatchObject({ readyReplicas: 3, availableReplicas: 2 });
    // That of the present revision follows the Deployment, as that of a ReplicaSet.
    world.apply(deployment({ replicas: 2, strategy, template: podTemplate("busybox:2") }));
    world.settle();
    world.apply(deployment({ ...later, template: podTemplate("busybox:2") }));
    expect(available()).toBe("False");
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

test("scale: down takes pods that are not Ready first, then the youngest", () => {
  const world = started({ replicas: 4 });
  const [oldest, sick, third] = world.live;
  world.set(sick!, { isReady: false });
  world.apply(deployment({ replicas: 2 }));
  expect(world.live).toEqual([oldest!, third!]);
});

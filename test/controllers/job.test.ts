import { describe, expect, test } from "bun:test";
import type { ContainerStatus } from "../../src/base/api/pod.ts";
import type { PodRecord } from "../../src/controllers/workload-records.ts";
import { manifest, podTemplate, WorkloadWorld } from "./workload-world.ts";

const job = (spec: object = {}, image = "busybox:1") =>
  manifest("Job", { name: "once" }, { template: podTemplate(image, { restartPolicy: "Never" }), ...spec });

const begun = (spec: object = {}) => {
  const world = new WorkloadWorld(job(spec));
  world.reconcile();
  return world;
};

const containerStatus = (exitCode: number, restartCount = 0) =>
  ({ name: "app", restartCount, state: { terminated: { exitCode } } }) as ContainerStatus;

const end = (world: WorkloadWorld, pod: PodRecord, exitCode: number) => {
  const phase = exitCode === 0 ? ("Succeeded" as const) : ("Failed" as const);
  world.set(pod, { phase, status: { phase, containerStatuses: [containerStatus(exitCode)] } });
};

const active = (world: WorkloadWorld) => world.live.filter(({ ended }) => !ended);
const outcome = (world: WorkloadWorld) => world.record!.job!.finished;

test("one success completes it, and it never runs again", async () => {
  const world = begun();
  end(world, active(world)[0]!, 0);
  expect(outcome(world)).toMatchObject({ type: "Complete" });
  world.controllerState = undefined;
  await world.clock.advance(86_400_000);
  world.reconcile();
  expect(world.live).toHaveLength(1);
});

test("failures are made up for after 10, 20 and 40 seconds, until backoffLimit", async () => {
  const world = begun({ backoffLimit: 2 });
  for (const pauseMs of [10_000, 20_000]) {
    end(world, active(world)[0]!, 1);
    expect(active(world)).toEqual([]);
    expect(world.wakeInMs).toBe(pauseMs);
    await world.clock.advance(pauseMs);
    world.reconcile();
    expect(active(world)).toHaveLength(1);
  }
  end(world, active(world)[0]!, 1);
  expect(outcome(world)).toMatchObject({ type: "Failed", reason: "BackoffLimitExceeded" });
});

test("restarts in place count when the policy is OnFailure", () => {
  const template = podTemplate("busybox:1", { restartPolicy: "OnFailure" });
  const world = begun({ backoffLimit: 2, template });
  const [pod] = active(world);
  world.set(pod!, { phase: "Running", status: { containerStatuses: [containerStatus(1, 1)] } });
  expect(outcome(world)).toBeUndefined();
  world.set(pod!, { phase: "Running", status: { containerStatuses: [containerStatus(1, 2)] } });
  expect(outcome(world)).toMatchObject({ reason: "BackoffLimitExceeded" });
  expect(world.leaving).toHaveLength(1);
});

test("a pod that the node refuses or evicts has not failed", () => {
  const world = begun();
  const [pod] = active(world);
  for (const reason of ["OutOfcpu", "Evicted"]) {
    world.set(pod!, { phase: "Failed", status: { phase: "Failed", reason } });
    expect(active(world)).toEqual([pod!]);
  }
});

test("activeDeadlineSeconds ends it, by the time that passes and not by the wall clock", async () => {
  const world = begun({ activeDeadlineSeconds: 60 });
  expect(world.wakeInMs).toBe(60_000);
  world.clock.jump(new Date(world.clock.now().getTime() + 3_600_000));
  world.reconcile();
  expect(outcome(world)).toBeUndefined();
  await world.clock.advance(60_000);
  world.reconcile();
  expect(outcome(world)).toMatchObject({ reason: "DeadlineExceeded" });
  expect(active(world)).toEqual([]);
});

test("a deadline counts from our start when the clock was set since the Job began", async () => {
  const world = new WorkloadWorld(job({ activeDeadlineSeconds: 60 }));
  world.clock.jump("1970-01-01T00:01:00Z");
  world.reconcile();
  world.clock.jump("2026-01-01T00:00:00Z");
  world.controllerState = undefined;
  world.reconcile();
  expect(outcome(world)).toBeUndefined();
  await world.clock.advance(60_000);
  world.reconcile();
  expect(outcome(world)).toMatchObject({ reason: "DeadlineExceeded" });
});

test("suspend takes the pods away and stops the clock", async () => {
  const world = begun({ activeDeadlineSeconds: 60 });
  world.apply(job({ activeDeadlineSeconds: 60, suspend: true }));
  expect(active(world)).toEqual([]);
  await world.clock.advance(120_000);
  world.apply(job({ activeDeadlineSeconds: 60 }));
  expect(active(world)).toHaveLength(1);
  expect(outcome(world)).toBeUndefined();
});

test("ttlSecondsAfterFinished takes its pods away, and the manifest does not run it again", async () => {
  const world = begun({ ttlSecondsAfterFinished: 100 });
  end(world, active(world)[0]!, 0);
  expect(world.wakeInMs).toBe(100_000);
  await world.clock.advance(100_000);
  world.reconcile();
  expect(world.live).toEqual([]);
  world.settle();
  world.reconcile();
  expect(world.record!.pods).toEqual([]);
  expect(world.record!.job).toMatchObject({ isExpired: true, expired: { succeeded: 1, failed: 0 } });
});

test("an edited template runs it again", () => {
  const world = begun();
  end(world, active(world)[0]!, 0);
  world.apply(job({}, "busybox:2"));
  expect(world.images).toEqual(["busybox:2"]);
  expect(outcome(world)).toBeUndefined();
});

describe("indexed", () => {
  const indexed = { completionMode: "Indexed", completions: 3, parallelism: 2 };

  test("each index completes once", () => {
    const world = begun(indexed);
    expect(active(world).map(({ name }) => name)).toEqual([
      expect.stringMatching(/^once-0-\w{5}$/),
      expect.stringMatching(/^once-1-\w{5}$/),
    ]);
    end(world, active(world)[0]!, 0);
    expect(active(world).map(({ index }) => index)).toEqual([1, 2]);
    end(world, active(world)[0]!, 0);
    end(world, active(world)[0]!, 0);
    expect(outcome(world)).toMatchObject({ type: "Complete" });
  });

  test("backoffLimitPerIndex gives up an index, not the others", () => {
    const world = begun({ ...indexed, backoffLimitPerIndex: 0 });
    end(world, active(world)[0]!, 1);
    expect(active(world).map(({ index }) => index)).toEqual([1, 2]);
    end(world, active(world)[0]!, 0);
    end(world, active(world)[0]!, 0);
    expect(outcome(world)).toMatchObject({ type: "Failed", reason: "FailedIndexes" });
  });

  test("maxFailedIndexes ends it early", () => {
    const world = begun({ ...indexed, backoffLimitPerIndex: 0, maxFailedIndexes: 0 });
    end(world, active(world)[0]!, 1);
    expect(outcome(world)).toMatchObject({ reason: "MaxFailedIndexesExceeded" });
  });
});

describe("podFailurePolicy", () => {
  const rule = (action: string, operator: string, values: number[]) => ({
    podFailurePolicy: { rules: [{ action, onExitCodes: { operator, values } }] },
  });

  test("FailJob ends it at once", () => {
    const world = begun(rule("FailJob", "In", [42]));
    end(world, active(world)[0]!, 42);
    expect(outcome(world)).toMatchObject({ reason: "PodFailurePolicy" });
  });

  test("Ignore does not count", () => {
    const world = begun({ backoffLimit: 0, ...rule("Ignore", "NotIn", [1]) });
    end(world, active(world)[0]!, 7);
    expect(active(world)).toHaveLength(1);
    end(world, active(world)[0]!, 1);
    expect(outcome(world)).toMatchObject({ reason: "BackoffLimitExceeded" });
  });
});

import { expect, test } from "bun:test";
import { manifest, podTemplate, WorkloadWorld } from "./workload-world.ts";

const MAX_PODS = 110;
const selector = { matchLabels: { app: "web" } };
const jobTemplate = podTemplate("busybox:1", { restartPolicy: "Never" });

test.each([
  { kind: "Deployment", count: "replicas", spec: { selector, template: podTemplate() } },
  { kind: "ReplicaSet", count: "replicas", spec: { selector, template: podTemplate() } },
  { kind: "StatefulSet", count: "replicas", spec: { selector, serviceName: "s", template: podTemplate() } },
  {
    kind: "StatefulSet",
    count: "replicas",
    spec: { selector, serviceName: "s", template: podTemplate(), podManagementPolicy: "Parallel" },
  },
  { kind: "Job", count: "parallelism", spec: { template: jobTemplate } },
  {
    kind: "Job",
    count: "parallelism",
    spec: { completions: 100_000, completionMode: "Indexed", template: jobTemplate },
  },
])(
  "a $kind of 2147483647 makes as many pods as the node admits, and follows the next edit",
  ({ kind, count, spec }) => {
    const sized = (size: number) => manifest(kind, { name: "web" }, { ...spec, [count]: size });
    const startMs = performance.now();
    const world = new WorkloadWorld(sized(2_147_483_647));
    world.reconcile();
    // The rest follows: one reconciliation does not hold the event loop.
    expect(world.live.length).toBeLessThanOrEqual(20);
    if (world.live.length > 1) expect(world.wakeInMs).toBeLessThan(1000);
    for (let round = 0; round < MAX_PODS + 10; round++) {
      world.reconcile();
      for (const pod of world.live) world.setFacts(pod, { phase: "Running", isReady: true });
    }
    expect(world.live).toHaveLength(MAX_PODS);
    world.apply(sized(3));
    for (let round = 0; round < MAX_PODS; round++) {
      for (const pod of world.leaving) world.setFacts(pod, { isGone: true, isReady: false });
      world.reconcile();
    }
    expect(world.live).toHaveLength(3);
    expect(performance.now() - startMs).toBeLessThan(5000);
  },
);

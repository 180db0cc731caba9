import { beforeEach, expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import { Listeners } from "../../src/base/concurrency/listeners.ts";
import type { ProcessSample } from "../../src/base/model/pod-snapshot.ts";
import { type RunOnceResult, waitForPods } from "../../src/daemon/wait-for-pods.ts";
import type { RunOnceWait } from "../../src/plan/status/run-once-verdict.ts";
import { KubeletWorld, named } from "../support/kubelet-world.ts";

let world: KubeletWorld;
/** The sample of every process. */
let sample: ProcessSample;
let isHere: boolean;
let workloads: { isAtRest: boolean; syncs: Listeners };
let wait: RunOnceWait;
let timeoutMs: number;
let showsProgress: boolean;
let progress: number;
let results: readonly RunOnceResult[] | undefined;

beforeEach(() => {
  world = new KubeletWorld();
  sample = { state: "asleep", switches: 1, cpuMs: 10 };
  isHere = true;
  workloads = { isAtRest: true, syncs: new Listeners() };
  wait = "running";
  timeoutMs = 0;
  showsProgress = false;
  progress = 0;
  results = undefined;
});

/** Runs pod "job" for this time; `results` when that was enough. */
async function runFor(ms: number, restartPolicy: "Never" | "Always" = "Never"): Promise<void> {
  world.kubelet.start();
  begin(named("job", { restartPolicy }));
  await world.clock.advance(ms);
}

function begin(...pods: Pod[]): void {
  if (pods.length > 0) world.want(...pods);
  void waitForPods({
    kubelet: world.kubelet,
    workloads,
    clock: world.clock,
    processes: { sample: (pids) => pids.map(() => ({ ...sample })), isOfContainer: () => isHere },
    wait,
    timeoutMs,
    ...(showsProgress && { onProgress: () => void progress++ }),
    signal: new AbortController().signal,
  }).then((found) => {
    results = found;
  });
}

const verdicts = () => results?.map(({ verdict }) => `${verdict.state}: ${verdict.message}`);
const end = (exitCode: number) => world.engine.exit(world.engine.idOf("job-node1", "app"), exitCode);

test("a program that waits for something is up at the second sample, also when pods were listed before", async () => {
  expect(world.kubelet.pods()).toEqual([]);
  await runFor(20);
  expect(results).toBeUndefined();
  await world.clock.advance(20);
  expect(verdicts()).toEqual(["up: Running"]);
});

test("the last of several pods is waited for, with and without a progress to show", async () => {
  for (showsProgress of [false, true]) {
    world = new KubeletWorld();
    results = undefined;
    world.kubelet.start();
    world.want(named("first", { restartPolicy: "Never" }), named("second", { restartPolicy: "Never" }));
    begin();
    await world.clock.advance(20);
    world.engine.exit(world.engine.idOf("second-node1", "app"), 0);
    await world.clock.advance(20);
    expect(verdicts()).toEqual(["up: Running", "succeeded: Succeeded"]);
  }
  expect(progress).toBeGreaterThan(1);
});

test("one that has ended before the engine knows is waited for, and has failed", async () => {
  sample.state = "gone";
  await runFor(2_000);
  expect(results).toBeUndefined();
  end(1);
  await world.clock.advance(40);
  expect(verdicts()).toEqual(["failed: container app exited with code 1"]);
});

test("one that works for a while before it fails has failed", async () => {
  sample.state = "busy";
  await runFor(200);
  end(3);
  await world.clock.advance(40);
  expect(verdicts()).toEqual(["failed: container app exited with code 3"]);
});

test("one that fails whenever it is started is not a pod that runs", async () => {
  sample.state = "busy";
  await runFor(20, "Always");
  end(1);
  await world.clock.advance(40);
  expect(results).toBeUndefined();
  end(1);
  await world.clock.advance(40);
  expect(verdicts()).toEqual(["failed: container app exited with code 1"]);
});

test("where the engine's processes are invisible, a container has to run for a quarter of a second", async () => {
  isHere = false;
  sample.state = "gone";
  await runFor(240);
  expect(results).toBeUndefined();
  await world.clock.advance(20);
  expect(verdicts()).toEqual(["up: Running"]);
});

test("what is not reached in time has failed, with the reason", async () => {
  wait = "completed";
  timeoutMs = 5_000;
  await runFor(4_900);
  expect(results).toBeUndefined();
  await world.clock.advance(200);
  expect(verdicts()).toEqual(["failed: not completed within 5 s: Running"]);
});

test("an edited pod is up when the new container runs, not while the old one is stopped", async () => {
  await runFor(100, "Always");
  expect(verdicts()).toEqual(["up: Running"]);
  const old = world.engine.idOf("job-node1", "app");
  world.engine.stopTakesMs = 30_000;
  results = undefined;
  const edited = named("job", { restartPolicy: "Always" });
  edited.spec.containers[0]!.image = "other:1";
  begin(edited);
  await world.clock.advance(1_000);
  expect(results).toBeUndefined();
  await world.clock.advance(60_000);
  expect(verdicts()).toEqual(["up: Running"]);
  expect(world.engine.idOf("job-node1", "app")).not.toBe(old);
});

test("while workloads are not at rest, there may be more pods than there are now", async () => {
  workloads.isAtRest = false;
  world.kubelet.start();
  begin();
  await world.clock.advance(1_000);
  expect(results).toBeUndefined();
  world.want(named("job"));
  workloads.isAtRest = true;
  workloads.syncs.emit();
  await world.clock.advance(1_000);
  expect(verdicts()).toEqual(["up: Running"]);
});

test("a pod that is being removed is waited for: a rollout leaves none of the earlier ones", async () => {
  world.kubelet.start();
  world.engine.stopTakesMs = 3_000;
  begin(named("job"), named("old"));
  await world.clock.advance(20);
  world.want(named("job"));
  await world.clock.advance(1_000);
  expect(results).toBeUndefined();
  await world.clock.advance(5_000);
  expect(verdicts()).toEqual(["up: Running"]);
});

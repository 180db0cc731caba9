import { beforeEach, describe, expect, test } from "bun:test";
import type { Pod } from "../../../src/base/api/pod.ts";
import { type ShutdownHost, ShutdownManager } from "../../../src/kubelet/shutdown/shutdown-manager.ts";
import { aContainer } from "../../support/builders.ts";
import { KubeletWorld, named } from "../../support/kubelet-world.ts";

/** A machine that goes down on command. */
class FakeHost implements ShutdownHost {
  readonly calls: string[] = [];
  isStoppingAll = false;
  refuses: string | undefined;
  #onChange: (isGoingDown: boolean) => void = () => {};
  #broken = Promise.withResolvers<never>();

  async hold(maxSeconds: number) {
    if (this.refuses) throw new Error(this.refuses);
    this.calls.push(`hold ${maxSeconds}`);
    return { release: () => void this.calls.push("release"), lost: new Promise<never>(() => {}) };
  }

  watch(onChange: (isGoingDown: boolean) => void, signal: AbortSignal): Promise<never> {
    this.#onChange = onChange;
    this.#broken = Promise.withResolvers<never>();
    signal.addEventListener("abort", () => this.#broken.reject(new Error("stopped")));
    return this.#broken.promise;
  }

  async isStopping() {
    return this.isStoppingAll;
  }

  goDown(isGoingDown = true) {
    this.#onChange(isGoingDown);
  }

  breakBus() {
    this.#broken.reject(new Error("the bus is gone"));
  }
}

const PERIODS = [
  { priority: 0, shutdownGracePeriodSeconds: 20 },
  { priority: 2_000_000_000, shutdownGracePeriodSeconds: 10 },
];
const critical = { priorityClassName: "system-node-critical" };
const END = { phase: "Failed", reason: "Terminated" } as const;

let world: KubeletWorld;
let host: FakeHost;
let stop: AbortController;

beforeEach(() => {
  world = new KubeletWorld();
  host = new FakeHost();
  stop = new AbortController();
});

/** These pods run, and a manager attends to the machine. */
async function attended(...pods: Pod[]): Promise<ShutdownManager> {
  if (pods.length > 0) await world.started(...pods);
  const { clock, logger, kubelet } = world;
  const manager = new ShutdownManager({ clock, logger, kubelet, host, periods: PERIODS });
  void manager.run(stop.signal);
  await clock.advance(1);
  return manager;
}

async function goDown(thenMs: number): Promise<void> {
  host.goDown();
  await world.clock.advance(thenMs);
}

const kills = () => world.engine.calls.filter((call) => call.startsWith("kill"));

describe("a shutdown of the machine", () => {
  test("stops critical pods after all others, removes nothing, and then lets the machine go down", async () => {
    world.engine.stopTakesMs = 3_000;
    await attended(named("web"), named("dns", critical));
    expect(host.calls).toEqual(["hold 30"]);
    await goDown(1_000);
    expect(world.engine.running()).toEqual(["dns-node1/POD", "dns-node1/app", "web-node1/POD", "web-node1/app"]);
    expect(kills()).toHaveLength(1);
    expect(world.statusOf("web")).toMatchObject({
      ...END,
      message: "Pod was terminated in response to imminent node shutdown.",
    });
    const disruption = world.statusOf("web")?.conditions?.find(({ type }) => type === "DisruptionTarget");
    expect(disruption).toMatchObject({ status: "True", reason: "TerminationByKubelet" });
    expect(world.statusOf("dns")).toMatchObject({ phase: "Running" });
    await world.clock.advance(10_000);
    expect(world.engine.running()).toEqual([]);
    expect(world.statusOf("dns")).toMatchObject(END);
    expect(host.calls).toEqual(["hold 30", "release"]);
    expect(world.engine.calls.filter((call) => /remove|tear-down/.test(call))).toEqual([]);
    // Nothing starts again while the machine still runs.
    await world.clock.advance(600_000);
    expect(world.engine.running()).toEqual([]);
  });

  test("the grace period is the shorter one of pod and group", async () => {
    await world.started(
      named("a", { terminationGracePeriodSeconds: 7 }),
      named("b", { terminationGracePeriodSeconds: 99 }),
    );
    await attended();
    await goDown(1_000);
    expect(kills()).toEqual(["kill app 7s", "kill app 20s"]);
  });

  test("a pod that does not stop holds the others up for no longer than its group's time", async () => {
    await world.started(named("web"), named("dns", critical));
    world.engine.failures.set("kill", { error: new Error("no answer"), times: 1_000 });
    await attended();
    await goDown(19_000);
    expect(world.statusOf("dns")).toMatchObject({ phase: "Running" });
    await world.clock.advance(2_000);
    expect(world.statusOf("dns")).toMatchObject(END);
    expect(host.calls).toEqual(["hold 30"]);
    await world.clock.advance(10_000);
    expect(host.calls).toEqual(["hold 30", "release"]);
    expect(world.logger.lines).toContain("warn 1 of 1 pods did not stop within 20 s");
  });

  test("pods without a worker yet are stopped too", async () => {
    await world.started(named("web"));
    world.renew();
    await attended();
    world.want(...world.desired);
    host.goDown();
    world.kubelet.start();
    await world.clock.advance(1_000);
    expect(world.engine.running()).toEqual([]);
  });

  test("which containers it cut off is remembered, as long as they are there", async () => {
    world.shutdownTerminated = ["gone-since-the-last-shutdown"];
    await world.restarted(named("web"));
    const ids = world.kubelet.workers.get("uid-web")!.snapshot.containers.map(({ id }) => id);
    await attended();
    await goDown(1_000);
    expect(ids).toHaveLength(1);
    expect(world.shutdownTerminated).toEqual(ids);
  });

  test("new pods are refused meanwhile", async () => {
    const manager = await attended();
    await world.started(named("web"));
    expect(manager.refusal()).toBeUndefined();
    host.goDown();
    expect(manager.refusal()).toEqual({
      reason: "NodeShutdown",
      message: "Pod was rejected as the node is shutting down.",
    });
  });

  test("cancelled: stopped pods run again, and the next shutdown is delayed too", async () => {
    const manager = await attended(named("web"));
    await goDown(1_000);
    expect(world.engine.running()).toEqual([]);
    host.goDown(false);
    await world.clock.advance(1_000);
    expect(manager.refusal()).toBeUndefined();
    expect(world.engine.running()).toEqual(["web-node1/POD", "web-node1/app"]);
    expect(world.statusOf("web")).toMatchObject({ phase: "Running" });
    expect(host.calls).toEqual(["hold 30", "release", "hold 30"]);
  });

  test("cancelled in the middle: pods that were not stopped yet continue", async () => {
    world.engine.stopTakesMs = 5_000;
    await attended(named("web"), named("dns", critical));
    const dns = world.engine.idOf("dns-node1", "app");
    await goDown(1_000);
    host.goDown(false);
    await world.clock.advance(20_000);
    expect(world.engine.idOf("dns-node1", "app")).toBe(dns);
    expect(world.statusOf("web")).toMatchObject({ phase: "Running" });
  });
});

describe("after the machine has started again", () => {
  async function restarted(): Promise<void> {
    await goDown(60_000);
    stop.abort();
    await world.restarted(...world.desired);
  }

  test.each([
    { when: "pods run again", policy: "Always", stopExitCode: 137, want: { phase: "Running" } },
    { when: "an OnFailure pod that obeyed goes on", policy: "OnFailure", stopExitCode: 0, want: { phase: "Running" } },
    { when: "a Never pod is not started twice and says why it ended", policy: "Never", stopExitCode: 137, want: END },
  ])("$when", async ({ policy, stopExitCode, want }) => {
    world.engine.stopExitCode = stopExitCode;
    await attended(named("web", { restartPolicy: policy }));
    await restarted();
    expect(world.statusOf("web")).toMatchObject(want);
    expect(world.engine.running()).toEqual(want === END ? [] : ["web-node1/POD", "web-node1/app"]);
  });

  test("an OnFailure pod that obeyed while no process observed it is not done either", async () => {
    await attended(named("job", { restartPolicy: "OnFailure" }));
    world.engine.failures.set("kill", { error: new Error("no answer"), times: 1_000 });
    await goDown(1);
    const id = world.engine.idOf("job-node1", "app");
    stop.abort();
    world.renew();
    world.engine.failures.clear();
    for (const container of ["app", "POD"]) world.engine.exit(world.engine.idOf("job-node1", container), 0);
    await world.started(...world.desired);
    expect(world.engine.idOf("job-node1", "app")).not.toBe(id);
    expect(world.statusOf("job")).toMatchObject({ phase: "Running" });
  });

  test("a container of an OnFailure pod that had succeeded is not started again", async () => {
    const spec = {
      restartPolicy: "OnFailure" as const,
      containers: [aContainer({ name: "a" }), aContainer({ name: "b" })],
    };
    await world.started(named("job", spec));
    await world.exit("job", "a", 0, 1_000);
    const id = world.engine.idOf("job-node1", "a");
    await attended();
    await goDown(60_000);
    expect(world.engine.idOf("job-node1", "a")).toBe(id);
  });

  test("a Never pod that had succeeded stays so", async () => {
    await world.started(named("once", { restartPolicy: "Never" }));
    await world.exit("once", "app", 0, 1_000);
    await attended();
    await restarted();
    expect(world.engine.running()).toEqual([]);
    expect(world.statusOf("once")).toMatchObject({ phase: "Succeeded" });
  });
});

describe("without logind", () => {
  test("that is reported once, and tried again", async () => {
    host.refuses = "systemd-inhibit is not there";
    await attended();
    await world.clock.advance(200_000);
    expect(world.logger.lines.filter((line) => line.includes("does not wait"))).toEqual([
      "warn A shutdown of the machine does not wait for pods: systemd-inhibit is not there",
    ]);
    host.refuses = undefined;
    await world.clock.advance(60_000);
    expect(host.calls).toEqual(["hold 30"]);
  });

  test("a lost connection to the bus is made again", async () => {
    await attended();
    host.breakBus();
    await world.clock.advance(61_000);
    expect(host.calls).toEqual(["hold 30", "release", "hold 30"]);
  });

  test.each([
    { when: "because the machine goes down: pods end first", isStoppingAll: true, running: [] as string[] },
    { when: "for another reason: pods continue", isStoppingAll: false, running: ["web-node1/POD", "web-node1/app"] },
  ])("the process is stopped $when", async ({ isStoppingAll, running }) => {
    const manager = await attended(named("web"));
    host.isStoppingAll = isStoppingAll;
    const done = manager.beforeExit();
    await world.clock.advance(5_000);
    await done;
    expect(world.engine.running()).toEqual([...running]);
  });
});

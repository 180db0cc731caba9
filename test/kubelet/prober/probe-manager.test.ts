import { describe, expect, test } from "bun:test";
import type { Container, Pod, Probe } from "../../../src/base/api/pod.ts";
import type { ContainerSnapshot } from "../../../src/base/model/pod-snapshot.ts";
import type { ProbeOutcome, ProbeTarget, StoredProbeResults } from "../../../src/base/model/prober.ts";
import { type ProbeAttemptRecord, ProbeManager } from "../../../src/kubelet/prober/probe-manager.ts";
import { aContainer, aPod, aProbe, aRunning, aSandbox, aSnapshot, at, EPOCH } from "../../support/builders.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { RecordingLogger, RecordingRecorder } from "../../support/recording-logger.ts";

const UID = "u".repeat(32);
const OK: ProbeOutcome = { result: "success", output: "" };
const NO: ProbeOutcome = { result: "failure", output: "no" };
const TIMED_OUT: ProbeOutcome = { result: "failure", output: "timed out", isTimeout: true };
const CANNOT: ProbeOutcome = { result: "unknown", output: "engine is unreachable" };

const exec = (fields: Partial<Probe> = {}): Probe => aProbe({ exec: { command: ["cat", "/ok"] }, ...fields });
const http = (fields: Partial<Probe> = {}): Probe =>
  aProbe({ httpGet: { path: "/", port: 80, scheme: "HTTP" }, ...fields });

type HttpResponse = (
  atMs: number,
  probe: Probe,
  target: ProbeTarget,
  signal: AbortSignal,
) => ProbeOutcome | Promise<ProbeOutcome>;

type Stored = Map<string, StoredProbeResults>;

interface WorldOptions {
  random?: () => number;
  stored?: Stored;
  clock?: FakeClock;
  /** A write of the results ends with this. */
  disk?: Promise<void>;
}

/** A manager at second 0 of the builders' time, with a prober that gives the set answers and records the times of its attempts. */
class World {
  readonly clock: FakeClock;
  readonly recorder = new RecordingRecorder();
  readonly logger = new RecordingLogger();
  readonly asked: number[] = [];
  /** `<ms> <container> <kind> <result>` */
  readonly changes: string[] = [];
  readonly attempts: ProbeAttemptRecord[] = [];
  readonly saves: Stored[] = [];
  readonly manager: ProbeManager;

  constructor(answer: HttpResponse, { random = () => 0.5, stored, clock, disk }: WorldOptions = {}) {
    this.clock = clock ?? new FakeClock(EPOCH);
    this.manager = new ProbeManager({
      clock: this.clock,
      logger: this.logger,
      recorder: this.recorder,
      prober: {
        attempt: async (asked, target, signal) => {
          this.asked.push(this.clock.monotonicMs());
          return answer(this.clock.monotonicMs(), asked, target, signal);
        },
      },
      random,
      node: { ip: "192.0.2.7" },
      file: {
        read: () => stored && [...stored],
        write: async (all) => {
          this.saves.push(new Map(all));
          await disk;
        },
      },
    });
    this.manager.changes.add(({ containerName, kind, result }) => {
      this.changes.push(`${this.clock.monotonicMs()} ${containerName} ${kind} ${result}`);
    });
    this.manager.attempts.add((record) => this.attempts.push(record));
  }

  /** The pod is observed with these containers. */
  see(pod: Pod, containers: ContainerSnapshot[], heldBack?: ReadonlySet<string>): void {
    this.manager.update(pod, aSnapshot(containers), heldBack);
  }

  state(name = "app") {
    return this.manager.states(UID).get(name);
  }
}

const podWith = (container: Partial<Container>): Pod => aPod({ containers: [aContainer(container)] });

describe("recorded case 39, readiness", () => {
  // Container of readyflip: `sleep 6; touch /ok; sleep 8; rm /ok`, every second, thresholds 2.
  test("readyflip becomes ready after two successes and not ready after two failures", async () => {
    const world = new World((ms) => (ms >= 6000 && ms < 14_000 ? OK : NO));
    const pod = podWith({ readinessProbe: exec({ periodSeconds: 1, failureThreshold: 2, successThreshold: 2 }) });
    world.see(pod, [aRunning()]);
    expect(world.state()).toEqual({ containerId: "app-0", started: true, ready: false });
    await world.clock.advance(20_000);
    expect(world.changes).toEqual(["7600 app readiness success", "15600 app readiness failure"]);
    expect(world.recorder.events[0]).toContain("Unhealthy Readiness probe failed: no");
  });

  test("readydelay is not asked before its initial delay", async () => {
    const world = new World(() => OK);
    world.see(podWith({ readinessProbe: exec({ periodSeconds: 1, initialDelaySeconds: 10 }) }), [aRunning()]);
    await world.clock.advance(15_000);
    expect(world.asked[0]).toBe(10_600);
    expect(world.changes).toEqual(["10600 app readiness success"]);
    expect(world.state()?.ready).toBe(true);
  });

  test("readytimeout: attempts that take longer than the period follow one another at once", async () => {
    const clock = new FakeClock(EPOCH);
    const world = new World(() => clock.sleep(1200).then(() => NO), { clock });
    world.see(podWith({ readinessProbe: exec({ periodSeconds: 1 }) }), [aRunning()]);
    await world.clock.advance(6000);
    expect(world.asked).toEqual([600, 1800, 3000, 4200, 5400]);
  });

  test("a container without a readiness probe is ready as soon as it runs", () => {
    const world = new World(() => NO);
    world.see(aPod(), [aRunning()]);
    expect(world.state()).toEqual({ containerId: "app-0", started: true, ready: true });
    expect(world.clock.pendingTimers).toBe(0);
  });
});

describe("recorded case 40, liveness", () => {
  // Container of livefail: `touch /ok; sleep 4; rm /ok`, every second, failureThreshold 2.
  test("livefail fails five to six seconds into each container, in one rhythm, and is then left alone", async () => {
    let startedMs = 0;
    const world = new World((ms) => (ms - startedMs < 4000 ? OK : NO));
    const pod = podWith({ livenessProbe: exec({ periodSeconds: 1, failureThreshold: 2 }) });
    world.see(pod, [aRunning()]);
    await world.clock.advance(8000);
    expect(world.changes).toEqual(["5600 app liveness failure"]);
    expect(world.asked.at(-1)).toBe(5600);
    expect(world.state()).toMatchObject({ liveness: "failure", ready: true });

    startedMs = 9460;
    await world.clock.advance(1460);
    world.see(pod, [aRunning("app", { restartCount: 1, startedAt: at(9460) })]);
    expect(world.state()).toMatchObject({ containerId: "app-1", liveness: "success" });
    await world.clock.advance(10_000);
    expect(world.changes).toEqual(["5600 app liveness failure", "14600 app liveness failure"]);
    expect(world.recorder.events.filter((event) => event.includes("Liveness probe failed: no"))).toHaveLength(4);
  });
});

describe("startup", () => {
  const pod = podWith({
    startupProbe: exec({ periodSeconds: 1, failureThreshold: 5 }),
    readinessProbe: exec(),
    livenessProbe: exec(),
  });

  test("gates the others, which ask as soon as it succeeded", async () => {
    const world = new World((ms) => (ms > 2000 ? OK : NO));
    world.see(pod, [aRunning()]);
    expect(world.state()).toEqual({ containerId: "app-0", liveness: "success", started: false, ready: false });
    await world.clock.advance(4000);
    expect(world.changes).toEqual(["2600 app startup success", "2600 app readiness success"]);
    expect(world.state()).toEqual({
      containerId: "app-0",
      liveness: "success",
      startup: "success",
      started: true,
      ready: true,
    });
    await world.clock.advance(16_000);
    // 5 s and 15 s: liveness and readiness in the rhythm they were given at the start; startup asks no more.
    expect(world.asked).toEqual([600, 1600, 2600, 2600, 5000, 5000, 15_000, 15_000]);
  });

  test("that fails asks to be killed and holds everything", async () => {
    const world = new World(() => NO);
    world.see(pod, [aRunning()]);
    await world.clock.advance(60_000);
    expect(world.changes).toEqual(["4600 app startup failure"]);
    expect(world.state()).toMatchObject({ startup: "failure", started: false, ready: false });
    expect(world.asked).toHaveLength(5);
    expect(world.recorder.events[0]).toContain("Unhealthy Startup probe failed: no");
  });
});

describe("early attempts", () => {
  test("find a quick service ready long before its turn, make no event and count no failure", async () => {
    const world = new World((ms) => (ms >= 1000 ? OK : NO), { random: () => 0.9 });
    world.see(podWith({ readinessProbe: http() }), [aRunning()]);
    await world.clock.advance(9500);
    expect(world.asked).toEqual([200, 600, 1400, 9000]);
    expect(world.changes).toEqual(["1400 app readiness success"]);
    expect(world.recorder.events).toEqual([]);
  });

  test("are not for a container that has run a while", async () => {
    const world = new World(() => OK, { random: () => 0.9 });
    world.see(podWith({ readinessProbe: http() }), [aRunning("app", { startedAt: at(-60_000) })]);
    await world.clock.advance(10_000);
    expect(world.asked).toEqual([9000]);
  });
});

describe("attempts that could not be made", () => {
  test("are tried three times, reported, and change nothing", async () => {
    const world = new World((ms) => (ms < 5000 ? OK : CANNOT));
    const pod = podWith({
      livenessProbe: exec({ failureThreshold: 1 }),
      readinessProbe: exec({ failureThreshold: 1 }),
    });
    world.see(pod, [aRunning("app", { startedAt: at(-60_000) })]);
    await world.clock.advance(6000);
    expect(world.asked).toEqual([5000, 5000, 5000, 5000, 5000, 5000]);
    expect(world.state()).toMatchObject({ liveness: "success", ready: false });
    expect(world.changes).toEqual([]);
    expect(world.recorder.events.join("\n")).toContain("Unhealthy Liveness probe errored: engine is unreachable");
    expect(world.attempts.map(({ kind, outcome }) => `${kind} ${outcome.result}`)).toEqual([
      "liveness unknown",
      "readiness unknown",
    ]);
  });

  test("a warning is a success with an event", async () => {
    const world = new World(() => ({ result: "warning", output: "Probe terminated redirects" }));
    world.see(podWith({ readinessProbe: exec() }), [aRunning()]);
    await world.clock.advance(5000);
    expect(world.state()?.ready).toBe(true);
    expect(world.recorder.events[0]).toContain("ProbeWarning Readiness probe warning: Probe terminated redirects");
  });
});

describe("a probe's target", () => {
  /** A world whose probes succeed, and what they were asked. */
  const observed = () => {
    const targets: ProbeTarget[] = [];
    const commands: unknown[] = [];
    const world = new World((_ms, { exec: action }, target) => {
      commands.push(action?.command);
      targets.push(target);
      return OK;
    });
    return { world, targets, commands };
  };

  test("the pod's address, the host's with host networking; the container's ports", async () => {
    const { world, targets } = observed();
    const ports = [{ name: "web", containerPort: 80, protocol: "TCP" as const }];
    const pod = podWith({ readinessProbe: exec({ periodSeconds: 1 }), ports });
    world.see(pod, [aRunning()]);
    await world.clock.advance(1000);
    expect(targets[0]).toMatchObject({ containerId: "app-0", podIp: "172.17.0.2", ports });

    const onHost = aPod({ ...pod.spec, hostNetwork: true });
    world.manager.update(onHost, aSnapshot([aRunning()], [aSandbox({ ips: [], hostNetwork: true })]));
    await world.clock.advance(1000);
    expect(targets[1]).toMatchObject({ podIp: "192.0.2.7" });
  });

  test("the command with the container's own variables in it, shown as the manifest has it", async () => {
    const { world, targets, commands } = observed();
    const readinessProbe = aProbe({ exec: { command: ["test", "$(A)", "$$(A)", "$(B)"] } });
    world.see(podWith({ readinessProbe, env: [{ name: "A", value: "1" }] }), [aRunning()]);
    await world.clock.advance(5000);
    expect(targets[0]?.execCommand).toEqual(["test", "1", "$(A)", "$(B)"]);
    expect(commands[0]).toEqual(["test", "$(A)", "$$(A)", "$(B)"]);
  });

  test("the command as written when it would become longer than the kernel takes", async () => {
    const { world, targets } = observed();
    const readinessProbe = aProbe({ exec: { command: ["$(A)".repeat(200)] } });
    world.see(podWith({ readinessProbe, env: [{ name: "A", value: "x".repeat(1000) }] }), [aRunning()]);
    await world.clock.advance(5000);
    expect(targets[0]?.execCommand).toBeUndefined();
  });

  test("nothing while the postStart hook runs", async () => {
    const world = new World(() => OK);
    const pod = podWith({ readinessProbe: exec({ periodSeconds: 1 }) });
    world.see(pod, [aRunning()], new Set(["app-0"]));
    await world.clock.advance(5000);
    expect(world.asked).toEqual([]);
    world.see(pod, [aRunning()]);
    await world.clock.advance(1000);
    expect(world.state()?.ready).toBe(true);
  });

  test("sidecars too, named in events as the init containers they are", async () => {
    const world = new World(() => NO);
    const sidecar = aContainer({ name: "side", restartPolicy: "Always", readinessProbe: exec() });
    const events: unknown[] = [];
    world.recorder.record = (_pod, event) => void events.push(event);
    world.see(aPod({ initContainers: [sidecar] }), [aRunning("side"), aRunning()]);
    await world.clock.advance(5000);
    expect(events).toEqual([
      {
        type: "Warning",
        reason: "Unhealthy",
        message: "Readiness probe failed: no",
        fieldPath: "spec.initContainers{side}",
      },
    ]);
    expect(world.state("side")?.ready).toBe(false);
  });
});

describe("containers that start and end", () => {
  const pod = podWith({ readinessProbe: exec({ periodSeconds: 1 }), livenessProbe: exec({ periodSeconds: 1 }) });

  test("an attempt in flight ends with its container and no longer counts", async () => {
    let signal: AbortSignal | undefined;
    const pending = Promise.withResolvers<ProbeOutcome>();
    const world = new World((_ms, _probe, _target, given) => {
      signal = given;
      return pending.promise;
    });
    world.see(podWith({ livenessProbe: exec({ periodSeconds: 1, failureThreshold: 1 }) }), [aRunning()]);
    await world.clock.advance(1000);
    expect(signal?.aborted).toBe(false);
    world.see(podWith({ livenessProbe: exec({ periodSeconds: 1, failureThreshold: 1 }) }), []);
    expect(signal?.aborted).toBe(true);
    pending.resolve(NO);
    await world.clock.advance(1000);
    expect(world.changes).toEqual([]);
    expect(world.recorder.events).toEqual([]);
    expect(world.state()).toBeUndefined();
  });

  test("the newest container of a name is the one that counts; a process started again begins at the start", async () => {
    const world = new World(() => OK);
    world.see(pod, [aRunning("app", { restartCount: 1 }), aRunning("app", { restartCount: 0 })]);
    await world.clock.advance(1000);
    expect(world.state()).toMatchObject({ containerId: "app-1", ready: true });
    world.see(pod, [aRunning("app", { restartCount: 1, startedAt: at(900) })]);
    expect(world.state()).toMatchObject({ containerId: "app-1", ready: false });
  });

  test("an observation without the container for a moment changes no result", async () => {
    const world = new World(() => OK);
    world.see(pod, [aRunning()]);
    await world.clock.advance(1000);
    world.see(pod, []);
    world.see(pod, [aRunning()]);
    expect(world.state()?.ready).toBe(true);
    const before = world.asked.length;
    await world.clock.advance(1000);
    expect(world.asked.length).toBe(before + 2);
  });

  test("an edited probe takes over what the old one knew; the container runs on", async () => {
    const world = new World(() => OK);
    world.see(pod, [aRunning()]);
    await world.clock.advance(1000);
    world.see(podWith({ readinessProbe: exec({ periodSeconds: 5 }) }), [aRunning()]);
    expect(world.state()).toEqual({ containerId: "app-0", started: true, ready: true });
    const before = world.asked.length;
    await world.clock.advance(5000);
    expect(world.asked.length).toBe(before + 1);
  });

  test("a removed pod leaves no timer and no state", async () => {
    const world = new World(() => OK);
    world.see(pod, [aRunning()]);
    await world.clock.advance(3000);
    world.manager.remove(UID);
    world.manager.remove(UID);
    await world.clock.advance(2000);
    expect(world.clock.pendingTimers).toBe(0);
    expect(world.manager.states(UID).size).toBe(0);
  });

  test("a stopped manager asks nothing and takes no pods", async () => {
    const world = new World(() => OK);
    world.see(pod, [aRunning()]);
    await world.clock.advance(1000);
    const before = world.asked.length;
    await world.manager.stop();
    world.see(pod, [aRunning("app", { restartCount: 1 })]);
    await world.clock.advance(60_000);
    expect(world.asked.length).toBe(before);
    expect(world.clock.pendingTimers).toBe(0);
    expect(world.saves.at(-1)?.get("app-0")).toMatchObject({ readiness: "success" });
  });
});

describe("our own restart", () => {
  const pod = podWith({ startupProbe: exec(), readinessProbe: exec(), livenessProbe: exec() });

  test("changes nothing: stored results of a container hold until its probes have results", async () => {
    const before = new World(() => OK);
    before.see(pod, [aRunning()]);
    await before.clock.advance(30_000);
    expect(before.state()?.ready).toBe(true);
    const stored = before.saves.at(-1)!;
    expect([...stored]).toEqual([
      ["app-0", { startedAtMs: EPOCH.getTime(), startup: "success", liveness: "success", readiness: "success" }],
    ]);

    const after = new World(() => OK, { stored, clock: before.clock });
    after.see(pod, [aRunning()]);
    expect(after.state()).toMatchObject({ started: true, ready: true, liveness: "success", startup: "success" });
    await after.clock.advance(60_000);
    expect(after.changes).toEqual([]);
  });

  test("what was stored is for that very start of that very container", () => {
    const stored: Stored = new Map([
      ["app-0", { startedAtMs: EPOCH.getTime() - 1, startup: "success", readiness: "success" }],
    ]);
    const world = new World(() => OK, { stored });
    world.see(pod, [aRunning()]);
    expect(world.state()).toMatchObject({ started: false, ready: false });
  });

  test("containers not yet observed again keep their place in the store for a while", async () => {
    const stored: Stored = new Map([["other", { startedAtMs: 1, readiness: "success" }]]);
    const world = new World((ms) => (ms < 700_000 ? OK : NO), { stored });
    world.see(podWith({ readinessProbe: exec() }), [aRunning()]);
    await world.clock.advance(6000);
    expect(world.saves.at(-1)?.get("other")).toEqual({ startedAtMs: 1, readiness: "success" });
    await world.clock.advance(800_000);
    expect(world.saves.at(-1)?.has("other")).toBe(false);
  });

  test("changes of one turn are saved once", async () => {
    const world = new World(() => OK);
    world.see(podWith({ readinessProbe: exec({ periodSeconds: 1 }), livenessProbe: exec() }), [aRunning()]);
    await world.clock.advance(600);
    expect(world.saves).toHaveLength(1);
  });

  test.each([
    { when: "a change is visible after its save, so that a kill does not take it back", savedAtMs: 50, at: 650 },
    { when: "a disk that hangs holds a change back for 200 ms at most", savedAtMs: 100_000, at: 800 },
  ])("$when", async ({ savedAtMs, at: visibleAtMs }) => {
    const clock = new FakeClock(EPOCH);
    const world = new World(() => OK, { clock, disk: clock.sleep(600 + savedAtMs) });
    world.see(podWith({ readinessProbe: exec({ periodSeconds: 1 }) }), [aRunning()]);
    await clock.advance(5000);
    expect(world.changes).toEqual([`${visibleAtMs} app readiness success`]);
  });
});

test("200 pods with three probes each ask each probe once in its period, and wake up five times a second", async () => {
  let seed = 1;
  const random = () => {
    seed = (seed * 16_807) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  const { clock, asked, manager } = new World(() => OK, { random });
  for (let n = 0; n < 200; n++) {
    const container = aContainer({ startupProbe: exec(), livenessProbe: exec(), readinessProbe: exec() });
    const snapshot = { ...aSnapshot([aRunning("app", { id: `c${n}` })]), uid: `pod-${n}` };
    manager.update(aPod({ containers: [container] }), snapshot);
  }
  await clock.advance(30_000);
  const before = asked.length;
  let wakeUps = 0;
  for (let ms = 0; ms < 10_000; ms++) {
    const asleep = asked.length;
    await clock.advance(1);
    if (asked.length > asleep) wakeUps++;
  }
  expect(asked.length - before).toBe(400);
  expect(wakeUps).toBeLessThanOrEqual(50);
});

describe("a stall of our own event loop", () => {
  const pod = podWith({ livenessProbe: http({ failureThreshold: 1 }) });

  test("voids an attempt that timed out, which is repeated after a second", async () => {
    let isStalled = true;
    const world = new World(async () => {
      if (!isStalled) return OK;
      isStalled = false;
      world.clock.stall(1500);
      return TIMED_OUT;
    });
    world.see(pod, [aRunning()]);
    await world.clock.advance(12_000);
    expect(world.state()?.liveness).toBe("success");
    expect(world.recorder.events).toEqual([]);
    expect(world.asked[1]! - world.asked[0]!).toBeLessThan(3000);
  });

  test.each([
    { what: "lets an answer count: the container has failed", stallMs: 1500, answer: NO, liveness: "failure" },
    { what: "leaves a success alone: the container has answered", stallMs: 600, answer: OK, liveness: "success" },
    { what: "is not needed for a failure to count", stallMs: 0, answer: NO, liveness: "failure" },
  ] as const)("$what", async ({ stallMs, answer, liveness }) => {
    const world = new World(async () => {
      if (stallMs > 0) world.clock.stall(stallMs);
      return answer;
    });
    world.see(pod, [aRunning()]);
    await world.clock.advance(12_000);
    expect(world.state()?.liveness).toBe(liveness);
    if (liveness === "failure") expect(world.asked).toHaveLength(1);
  });

  test("voids at most three attempts in a row, and logs each", async () => {
    const world = new World(async () => {
      world.clock.stall(1500);
      return TIMED_OUT;
    });
    world.see(pod, [aRunning()]);
    await world.clock.advance(25_000);
    expect(world.state()?.liveness).toBe("failure");
    expect(world.asked).toHaveLength(4);
    expect(world.logger.lines.filter((line) => line.includes("does not count"))).toHaveLength(3);
  });
});

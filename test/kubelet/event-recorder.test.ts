import { expect, test } from "bun:test";
import type { PodEvent } from "../../src/base/model/pod-event.ts";
import { PodEventRecorder } from "../../src/kubelet/event-recorder.ts";
import { EPOCH } from "../support/builders.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { StoredFile } from "../support/stored-file.ts";

const WEB = { uid: "u1", name: "web-node1", namespace: "default" };
const UNHEALTHY: PodEvent = {
  type: "Warning",
  reason: "Unhealthy",
  message: "Readiness probe failed: no\n",
  fieldPath: "spec.containers{app}",
};
const STARTED: PodEvent = {
  type: "Normal",
  reason: "Started",
  message: "Started container app",
  fieldPath: "spec.containers{app}",
};

function recorder(rate = { perSecond: 0, burst: 0 }) {
  const clock = new FakeClock(EPOCH);
  const logger = new RecordingLogger();
  return { clock, logger, events: new PodEventRecorder({ clock, logger, nodeName: "node1", rate }) };
}

const messages = (events: PodEventRecorder, uid?: string) => events.list(uid).map(({ message }) => message);

test("events of the scheduler are told from those of the kubelet", () => {
  const { events } = recorder();
  for (const reason of ["FailedScheduling", "Scheduled", "Pulled"]) events.record(WEB, { ...STARTED, reason });
  const components = ["default-scheduler", "default-scheduler", "kubelet"];
  expect(events.list().map(({ source }) => source.component)).toEqual(components);
});

test("equal events are one with a count, in the shape of core/v1", async () => {
  const { clock, events } = recorder();
  events.record(WEB, UNHEALTHY);
  events.record(WEB, STARTED);
  await clock.advance(90_000);
  events.record(WEB, UNHEALTHY);
  const [started, unhealthy] = events.list();
  expect(started).toMatchObject({ reason: "Started", count: 1 });
  expect(unhealthy).toEqual({
    apiVersion: "v1",
    kind: "Event",
    metadata: {
      name: expect.stringMatching(/^web-node1\.[0-9a-f]{16}$/),
      namespace: "default",
      uid: expect.stringMatching(/^u1\.[0-9a-f]{16}$/),
      resourceVersion: "3",
      creationTimestamp: "2026-01-02T03:04:05Z",
    },
    involvedObject: {
      kind: "Pod",
      namespace: "default",
      name: "web-node1",
      uid: "u1",
      apiVersion: "v1",
      fieldPath: "spec.containers{app}",
    },
    reason: "Unhealthy",
    message: "Readiness probe failed: no\n",
    source: { component: "kubelet", host: "node1" },
    firstTimestamp: "2026-01-02T03:04:05Z",
    lastTimestamp: "2026-01-02T03:05:35Z",
    count: 2,
    type: "Warning",
    eventTime: null,
    reportingComponent: "kubelet",
    reportingInstance: "node1",
  });
  expect(started!.metadata.name).not.toBe(unhealthy!.metadata.name);
});

test("an event of the whole pod names no field", () => {
  const { events } = recorder();
  events.record(WEB, { type: "Warning", reason: "FailedCreatePodSandBox", message: "no network" });
  expect(events.list()[0]!.involvedObject).not.toHaveProperty("fieldPath");
});

test("a new event is one line of the log; one that continues is reported once a minute", async () => {
  const { clock, logger, events } = recorder();
  events.record(WEB, STARTED);
  for (let second = 0; second < 130; second++) {
    events.record(WEB, UNHEALTHY);
    await clock.advance(1000);
  }
  expect(logger.lines).toEqual([
    "info Started: Started container app",
    "warn Unhealthy: Readiness probe failed: no",
    "warn Unhealthy: Readiness probe failed: no",
    "warn Unhealthy: Readiness probe failed: no",
  ]);
  expect(events.list("u1").at(-1)?.count).toBe(130);
});

test("what follows the end of a container or of a pod is reported again, however soon", async () => {
  const { clock, logger, events } = recorder();
  const killing: PodEvent = { ...STARTED, reason: "Killing", message: "Container app definition changed" };
  for (let round = 0; round < 2; round++) {
    events.record(WEB, STARTED);
    await clock.advance(1000);
    events.record(WEB, killing);
    events.record(WEB, STARTED);
    events.record(WEB, killing);
    events.record(WEB, STARTED);
    events.objectGone("u1");
    await clock.advance(1000);
  }
  const started = "info Started: Started container app";
  const once = [started, "info Killing: Container app definition changed", started];
  expect(logger.lines).toEqual([...once, ...once]);
});

test("messages that differ only in generated names are one event, which shows the last", async () => {
  const { clock, logger, events } = recorder();
  const failed = (id: string, file: string) =>
    `write /data/overlay2/${id.repeat(64)}-init/${file}: no space left on device`;
  events.record(WEB, { ...UNHEALTHY, message: failed("a", "json3692264313") });
  await clock.advance(10_000);
  events.record(WEB, { ...UNHEALTHY, message: failed("b", "json2209565255") });
  expect(messages(events)).toEqual([failed("b", "json2209565255")]);
  expect(events.list()[0]?.count).toBe(2);
  expect(logger.lines).toHaveLength(1);
});

test("the log names pod, container and count", async () => {
  const clock = new FakeClock();
  const seen: unknown[] = [];
  const logger = new RecordingLogger();
  logger.warn = (...line: unknown[]) => void seen.push(line);
  const events = new PodEventRecorder({ clock, logger, nodeName: "node1", rate: { perSecond: 0, burst: 0 } });
  events.record(WEB, UNHEALTHY);
  await clock.advance(60_000);
  events.record(WEB, UNHEALTHY);
  expect(seen).toEqual([
    ["Unhealthy: Readiness probe failed: no", { pod: "default/web-node1", container: "app" }],
    ["Unhealthy: Readiness probe failed: no", { pod: "default/web-node1", container: "app", count: 2 }],
  ]);
});

test("events of one reason with ever new messages displace only each other", () => {
  const { events } = recorder();
  events.record(WEB, STARTED);
  for (let port = 1; port <= 500; port++) events.record(WEB, { ...UNHEALTHY, message: `read tcp :${port}: reset` });
  expect(messages(events)).toEqual([
    "Started container app",
    ...Array.from({ length: 10 }, (_, n) => `read tcp :${491 + n}: reset`),
  ]);
});

test("a pod keeps its fifty latest events, an event its first thousand characters", () => {
  const { events } = recorder();
  for (let n = 0; n < 80; n++) events.record(WEB, { type: "Normal", reason: `Reason${n}`, message: "x".repeat(5000) });
  const listed = events.list("u1");
  expect(listed.map(({ reason }) => reason)).toEqual(Array.from({ length: 50 }, (_, n) => `Reason${n + 30}`));
  expect(listed[0]!.message).toBe(`${"x".repeat(1023)}…`);
});

test("events of a pod that is gone stay for an hour", async () => {
  const { clock, events } = recorder();
  events.record(WEB, STARTED);
  events.record({ ...WEB, uid: "u2", name: "db-node1" }, STARTED);
  events.objectGone("u1");
  await clock.advance(59 * 60_000);
  expect(events.list("u1")).toHaveLength(1);
  await clock.advance(60_000);
  expect(events.newerThan(0).map(({ involvedObject }) => involvedObject.uid)).toEqual(["u2"]);
  expect(events.list("u1")).toEqual([]);
});

test("a pod that comes back keeps its events", async () => {
  const { clock, events } = recorder();
  events.record(WEB, STARTED);
  events.objectGone("u1");
  events.record(WEB, UNHEALTHY);
  await clock.advance(2 * 60 * 60_000);
  expect(events.list("u1")).toHaveLength(2);
  events.objectGone("u1");
  await clock.advance(30 * 60_000);
  events.objectGone("u1");
  await clock.advance(59 * 60_000);
  expect(events.list("u1")).toHaveLength(2);
  await clock.advance(60_000);
  expect([events.newerThan(0), clock.pendingTimers]).toEqual([[], 0]);
});

test("of more than a thousand pods those without recent events are dropped first", () => {
  const { events } = recorder();
  events.record(WEB, STARTED);
  for (let n = 0; n < 1000; n++) {
    events.record({ ...WEB, uid: `p${n}` }, STARTED);
    if (n === 500) events.record(WEB, UNHEALTHY);
  }
  expect(events.list("u1")).toHaveLength(2);
  expect(events.list("p0")).toEqual([]);
  expect(events.list()).toHaveLength(1001);
});

test("the revision grows with each event", () => {
  const { events } = recorder();
  const before = events.revision;
  events.record(WEB, STARTED);
  expect(events.revision).toBe(before + 1);
});

test("events beyond the rate are dropped, counted, and reported once", async () => {
  const { clock, logger, events } = recorder({ perSecond: 2, burst: 3 });
  for (let index = 0; index < 10; index++) events.record(WEB, { ...STARTED, message: `number ${index}` });
  expect(messages(events)).toEqual(["number 0", "number 1", "number 2"]);
  expect(events.dropped).toBe(7);
  await clock.advance(1000);
  const notices = () => logger.lines.filter((line) => line.includes("dropped"));
  expect(notices()).toEqual(["warn 7 events were dropped: more than --event-qps=2 with --event-burst=3 allow"]);
  for (let index = 10; index < 15; index++) events.record(WEB, { ...STARTED, message: `number ${index}` });
  expect(messages(events)).toEqual(["number 0", "number 1", "number 2", "number 10", "number 11"]);
  expect(events.dropped).toBe(10);
  await clock.advance(1000);
  expect(notices()[1]).toStartWith("warn 3 events were dropped");
});

test("events outlive a restart, for an hour after their last occurrence", async () => {
  const { clock, logger, events } = recorder();
  const file = new StoredFile<never>();
  events.keepIn(file);
  events.record(WEB, UNHEALTHY);
  await clock.advance(10_000);
  events.record(WEB, STARTED);
  events.store();
  const before = events.list();
  const restart = () => {
    const next = new PodEventRecorder({ clock, logger, nodeName: "node1", rate: { perSecond: 0, burst: 0 } });
    next.keepIn(file);
    return next;
  };
  const after = restart();
  expect(after.list()).toEqual(before);
  after.record(WEB, STARTED);
  expect(after.list().map(({ reason, count }) => [reason, count])).toEqual([
    ["Unhealthy", 1],
    ["Started", 2],
  ]);
  await clock.advance(3_600_000 - 5_000);
  expect(messages(restart())).toEqual(["Started container app"]);
});

test("events that only repeat are stored every five minutes", async () => {
  const { clock, events } = recorder();
  const times: number[] = [];
  events.keepIn({ read: () => undefined, write: () => void times.push(clock.monotonicMs() - startMs) });
  const startMs = clock.monotonicMs();
  for (let seconds = 0; seconds < 700; seconds += 10) {
    events.record(WEB, seconds === 400 ? STARTED : UNHEALTHY);
    await clock.advance(10_000);
  }
  expect(times).toEqual([10_000, 310_000, 410_000]);
});

test("a write of the events waits for others; the newest thousand are stored", async () => {
  const { clock, events } = recorder();
  const writes: unknown[][] = [];
  events.keepIn({ read: () => undefined, write: (value) => void writes.push([...value]) });
  for (let pod = 0; pod < 30; pod++) {
    for (let n = 0; n < 40; n++) events.record({ ...WEB, uid: `u${pod}` }, { ...STARTED, reason: `R${n}` });
  }
  await clock.advance(60_000);
  expect(writes.map(({ length }) => length)).toEqual([1000]);
  expect(writes[0]?.at(-1)).toMatchObject({ ref: { uid: "u29" }, event: { reason: "R39" } });
});

import { beforeEach, expect, test } from "bun:test";
import type { PodSnapshot } from "../../src/base/model/pod-snapshot.ts";
import { OomNotices } from "../../src/kubelet/oom-notices.ts";
import { anExited, aRunning, aSandbox, aSnapshot } from "../support/builders.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { RecordingRecorder } from "../support/recording-logger.ts";

let clock: FakeClock;
let recorder: RecordingRecorder;
let pods: PodSnapshot[];
/** Keys are process ids. */
let kills: Map<number, number | undefined>;
let notices: OomNotices;

/** A container that began after us, and one that was there before. */
const young = (name: string, pid: number) =>
  aRunning(name, { id: name, pid, sandboxId: "box", startedAt: new Date(clock.now().getTime() + 1) });
const old = (name: string, pid: number) => ({ ...young(name, pid), startedAt: new Date(clock.now().getTime() - 1) });

beforeEach(() => {
  clock = new FakeClock();
  recorder = new RecordingRecorder();
  kills = new Map();
  notices = new OomNotices({ clock, recorder, pods: () => pods, readKills: (pid) => kills.get(pid) });
});

const messages = () =>
  recorder.events.map((event) => event.replace(/^\S+ OOMKilling /, "").replace(/ killed by .*/, ""));
const settle = () => clock.advance(500);

test("a child of the main process is killed: reported once for each kill", async () => {
  pods = [aSnapshot([young("app", 7)], [aSandbox({ id: "box" })])];
  kills.set(7, 1);
  notices.note("app");
  await settle();
  expect(recorder.events).toEqual([
    'web-node1 OOMKilling A process in container "app" was killed by the kernel: its memory limit, or that of its pod, was reached',
  ]);
  kills.set(7, 4);
  notices.note("app");
  notices.note("app");
  await settle();
  expect(messages()[1]).toBe('3 processes in container "app" were');
  expect(messages()).toHaveLength(2);
});

test("the limit of the pod: every container is named, the counters identify that of the process", async () => {
  pods = [aSnapshot([young("a", 7), young("b", 8)], [aSandbox({ id: "box" })])];
  kills.set(7, 0).set(8, 1);
  for (const id of ["a", "b", "box"]) notices.note(id);
  await settle();
  expect(messages()).toEqual(['A process in container "b" was']);
});

test("a container that is older than the process: earlier kills are not reported again", async () => {
  pods = [aSnapshot([old("app", 7)], [aSandbox({ id: "box" })])];
  kills.set(7, 5);
  notices.note("app");
  await settle();
  expect(messages()).toEqual(['A process in container "app" was']);
});

test.each([
  { when: "it died of it", oomKilled: true, named: "app", want: 1 },
  { when: "it died of something else", oomKilled: false, named: "app", want: 0 },
  { when: "the pod was named", oomKilled: true, named: "box", want: 1 },
])("the container is gone, and $when: $want events", async ({ oomKilled, named, want }) => {
  pods = [aSnapshot([anExited("app", 137, { id: "app", sandboxId: "box", oomKilled })], [aSandbox({ id: "box" })])];
  notices.note(named);
  await settle();
  notices.note(named);
  await settle();
  expect(messages()).toHaveLength(want);
});

test("without the kernel's counters only the containers that the notice names are reported", async () => {
  pods = [aSnapshot([young("a", 7), young("b", 8)], [aSandbox({ id: "box" })])];
  notices.note("a");
  await settle();
  expect(messages()).toEqual(['A process in container "a" was']);
});

test("a container of no pod, and a pod that is gone by then", async () => {
  pods = [aSnapshot([young("app", 7)], [aSandbox({ id: "box" })])];
  notices.note("stranger");
  expect(clock.pendingTimers).toBe(0);
  notices.note("app");
  pods = [];
  await settle();
  expect(messages()).toEqual([]);
});

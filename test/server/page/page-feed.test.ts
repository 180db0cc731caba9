import { expect, test } from "bun:test";
import type { Pod } from "../../../src/base/api/pod.ts";
import type {
  NodeState,
  NodeUsage,
  Rejection,
  ServiceRow,
  Snapshot,
  Update,
  WorkloadRow,
} from "../../../src/page/wire.ts";
import {
  FIRST_SAMPLE_MS,
  IDLE_PERIOD_MS,
  OPEN_PERIOD_MS,
  PageFeed,
  type PageSource,
  PageStream,
  type PageSubscriber,
} from "../../../src/server/page/page-feed.ts";
import { UsageRecorder } from "../../../src/server/page/usage-history.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";
import { podRow } from "../../support/pod-row.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";

const pod = (uid: string): Pod =>
  ({ metadata: { uid, name: uid, namespace: "default" }, spec: { containers: [] } }) as unknown as Pod;
const nodeUsage = { cpuCores: 0 } as NodeUsage;
const ACCESS = { privileged: false, canAct: false };

function world(over: Partial<PageSource> = {}) {
  const clock = new FakeClock();
  const usage = new UsageRecorder();
  const state = {
    pods: [pod("a")],
    measured: 0,
    listeners: new Set<() => void>(),
    isComplete: true,
    rejections: [] as Rejection[],
    workloads: [] as WorkloadRow[],
    services: [] as ServiceRow[],
    problem: "",
  };
  const source: PageSource = {
    get isComplete() {
      return state.isComplete;
    },
    pods: () => state.pods,
    onPodsChanged: (callback) => {
      state.listeners.add(callback);
      return () => state.listeners.delete(callback);
    },
    toRow: (it) => podRow(it.metadata.uid ?? ""),
    node: async () => ({ name: "n", problem: state.problem }) as NodeState,
    rejections: () => state.rejections,
    workloads: () => state.workloads,
    services: () => state.services,
    measure: async () => {
      state.measured++;
      return { summary: { node: { nodeName: "n", startTime: "" }, pods: [] }, node: nodeUsage };
    },
    ...over,
  };
  const feed = new PageFeed(clock, new RecordingLogger(), usage, source);
  const change = (pods: Pod[]) => {
    state.pods = pods;
    for (const listener of state.listeners) listener();
  };
  return { clock, state, feed, change, usage };
}

function subscriber() {
  const events: [string, Snapshot & Update][] = [];
  let hasState = false;
  const it: PageSubscriber = {
    access: ACCESS,
    // As a stream, which takes no update before its snapshot.
    send: (event, data) => {
      hasState ||= event === "snapshot";
      if (hasState) events.push([event, JSON.parse(data)]);
    },
  };
  return { it, events };
}

/** A world with a page that is open. */
async function opened(over: Partial<PageSource> = {}) {
  const made = world(over);
  const page = subscriber();
  const end = await made.feed.subscribe(page.it);
  const changed = async (pods: Pod[]) => {
    made.change(pods);
    await made.clock.advance(100);
  };
  return { ...made, ...page, end, changed };
}

test("a page gets a snapshot, then only what changed", async () => {
  const { state, events, end, changed } = await opened();
  expect(events.map(([event, { pods }]) => [event, pods.map(({ uid }) => uid)])).toEqual([["snapshot", ["a"]]]);
  await changed([...state.pods, pod("b")]);
  const last = () => events.at(-1)!;
  expect([last()[0], last()[1].pods.map(({ uid }) => uid)]).toEqual(["update", ["a", "b"]]);
  await changed(state.pods.slice(1));
  expect(last()[1].pods.map(({ uid }) => uid)).toEqual(["b"]);
  end();
  expect(state.listeners.size).toBe(0);
});

test("usage is sampled every ten seconds for an open page, every two minutes without one, first 45 s after the start", async () => {
  const { clock, feed, state } = world();
  feed.start();
  await clock.advance(FIRST_SAMPLE_MS);
  expect(state.measured).toBe(1);
  await clock.advance(IDLE_PERIOD_MS * 3);
  expect(state.measured).toBe(4);
  const end = await feed.subscribe(subscriber().it);
  state.measured = 0;
  await clock.advance(OPEN_PERIOD_MS * 3);
  expect(state.measured).toBe(4);
  end();
  state.measured = 0;
  await clock.advance(IDLE_PERIOD_MS);
  expect(state.measured).toBe(1);
  feed.stop();
  await clock.advance(IDLE_PERIOD_MS * 5);
  expect(state.measured).toBe(1);
});

test("refused manifests, workloads, sources that were read and the state of the node are sent when they change", async () => {
  const { clock, feed, change, state } = world();
  state.isComplete = false;
  const { it, events } = subscriber();
  await feed.subscribe(it);
  await clock.advance(100);
  const changed = async () => {
    change([...state.pods]);
    await clock.advance(100);
    return events.splice(0).map(([, update]) => update);
  };
  await changed();
  expect(await changed()).toEqual([]);
  state.isComplete = true;
  expect(await changed()).toEqual([{ isComplete: true } as never]);
  state.rejections = [{ source: "/m/a.yaml", line: 1, column: 2, message: "bad" }];
  expect(await changed()).toEqual([{ rejections: state.rejections } as never]);
  state.workloads = [{ kind: "Job", name: "backup" } as WorkloadRow];
  expect(await changed()).toEqual([{ workloads: state.workloads } as never]);
  state.services = [{ name: "web" } as ServiceRow];
  expect(await changed()).toEqual([{ services: state.services } as never]);
  state.problem = "no engine";
  await clock.advance(OPEN_PERIOD_MS);
  expect(events.at(-1)?.[1].node?.problem).toBe("no engine");
});

test("a pod that is not ready is explained again with each change, and sent if its reason is another one", async () => {
  let why = "";
  const { state, events, changed } = await opened({
    toRow: (it) => podRow(it.metadata.uid ?? "", { isReady: false, why }),
  });
  why = "its image is being pulled";
  await changed(state.pods);
  expect(events.at(-1)![1].pods).toMatchObject([{ why }]);
});

test("a pod that changed in nothing that a row shows is not sent again", async () => {
  const { clock, events, changed } = await opened();
  await clock.advance(100);
  const count = events.length;
  await changed([pod("a")]);
  expect(events.length).toBe(count);
});

test("the first state is reported without a sample and leaves no page open", async () => {
  const { feed, state } = world();
  const { pods, usage } = await feed.firstState(ACCESS);
  expect([pods.map(({ uid }) => uid), usage.times, state.measured, feed.isOpen]).toEqual([["a"], [], 0, false]);
});

/** The socket of a page. @param take resolves when the reader has taken a message */
function reader(take: () => Promise<void> = async () => {}) {
  const gone = new AbortController();
  const sent: string[] = [];
  const send = (payload: Uint8Array) => {
    sent.push(Buffer.from(payload).toString());
    return take();
  };
  const leave = () => gone.abort();
  return { socket: { gone: gone.signal, send, close: leave }, sent, leave };
}

const streamOf = (feed: PageFeed, { clock = new FakeClock(), isAllowed = (): boolean => true } = {}) =>
  new PageStream(clock, feed, ACCESS, isAllowed, "main-1.js");
const silentFeed = { subscribe: async () => () => {}, resume: () => {} } as unknown as PageFeed;

test("a reader that is behind gets the whole state again; a reader that leaves unsubscribes", async () => {
  let resumed = 0;
  let unsubscribed = 0;
  const feed = {
    subscribe: async () => {
      stream.send("snapshot", "1");
      return () => unsubscribed++;
    },
    resume: () => {
      resumed++;
      stream.send("snapshot", "3");
    },
  } as unknown as PageFeed;
  const stream = streamOf(feed);
  let taken = Promise.withResolvers<void>();
  const { socket, sent, leave } = reader(() => taken.promise);
  const take = async () => {
    const before = taken;
    taken = Promise.withResolvers();
    before.resolve();
    await settle();
  };
  const end = stream.run(socket);
  expect(sent).toEqual(["build main-1.js"]);
  await take();
  expect(sent.at(-1)).toBe("snapshot 1");
  stream.send("update", "2");
  stream.send("update", "lost");
  await take();
  expect(sent.at(-1)).toBe("update 2");
  stream.send("update", "lost, too");
  await take();
  expect([sent.at(-1), resumed]).toEqual(["snapshot 3", 1]);
  leave();
  await take();
  await end;
  expect([sent.slice(1), unsubscribed]).toEqual([["snapshot 1", "update 2", "snapshot 3"], 1]);
});

test("a stream reports that its session has expired, and ends", async () => {
  let isAllowed = true;
  const stream = streamOf(silentFeed, { isAllowed: () => isAllowed });
  const { socket, sent } = reader();
  const end = stream.run(socket);
  stream.send("snapshot", "1");
  await settle();
  isAllowed = false;
  stream.send("update", "2");
  await end;
  expect(sent).toEqual(["build main-1.js", "snapshot 1", "expired "]);
  expect(socket.gone.aborted).toBe(true);
});

test("a silent stream is kept alive: a page that hears nothing longer than that reconnects", async () => {
  const clock = new FakeClock();
  const { socket, sent, leave } = reader();
  const end = streamOf(silentFeed, { clock }).run(socket);
  await clock.advance(10_000);
  expect(sent.at(-1)).toBe("ping ");
  leave();
  await end;
});

test("a page whose first state cannot be computed is not kept as a reader", async () => {
  const { feed } = world({ node: () => Promise.reject(new Error("no engine")) });
  const { socket } = reader();
  await expect(streamOf(feed).run(socket)).rejects.toThrow("no engine");
  expect([feed.isOpen, socket.gone.aborted]).toEqual([false, true]);
});

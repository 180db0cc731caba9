import { expect, test } from "bun:test";
import { EventStream } from "../../../src/server/page/event-stream.ts";
import { PageFeed } from "../../../src/server/page/page-feed.ts";
import { UsageRecorder } from "../../../src/server/page/usage-recorder.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const ACCESS = { privileged: false, canAct: false };

test("a reader that is behind gets the whole state again; a reader that leaves unsubscribes", async () => {
  const clock = new FakeClock();
  const gone = new AbortController();
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
  const stream = new EventStream(clock, feed, ACCESS, gone.signal, () => true, "main-1.js");
  const chunks = stream.chunks();
  const next = async () => Buffer.from((await chunks.next()).value ?? []).toString();
  expect(await next()).toBe("event: build\ndata: main-1.js\n\n");
  expect(await next()).toBe("event: snapshot\ndata: 1\n\n");
  expect(stream.send("update", "2")).toBe(true);
  expect(stream.send("update", "lost")).toBe(false);
  expect(await next()).toBe("event: update\ndata: 2\n\n");
  expect(await next()).toBe("event: snapshot\ndata: 3\n\n");
  expect(resumed).toBe(1);
  const last = chunks.next();
  gone.abort();
  expect((await last).done).toBe(true);
  expect(unsubscribed).toBe(1);
});

test("a stream tells that its session has expired, and ends", async () => {
  let isAllowed = true;
  const feed = { subscribe: async () => () => {} } as unknown as PageFeed;
  const stream = new EventStream(
    new FakeClock(),
    feed,
    ACCESS,
    new AbortController().signal,
    () => isAllowed,
    "main-1.js",
  );
  stream.send("snapshot", "1");
  const chunks = stream.chunks();
  await chunks.next();
  expect((await chunks.next()).done).toBe(false);
  isAllowed = false;
  expect(Buffer.from((await chunks.next()).value ?? []).toString()).toBe("event: expired\ndata:\n\n");
  expect((await chunks.next()).done).toBe(true);
});

test("a silent stream is kept alive: a page that hears nothing longer than that reconnects", async () => {
  const clock = new FakeClock();
  const feed = { subscribe: async () => () => {} } as unknown as PageFeed;
  const stream = new EventStream(clock, feed, ACCESS, new AbortController().signal, () => true, "main-1.js");
  const chunks = stream.chunks();
  await chunks.next();
  const next = chunks.next();
  await clock.advance(10_000);
  expect(Buffer.from((await next).value ?? []).toString()).toBe("event: ping\ndata:\n\n");
});

test("a page whose first state cannot be computed is not kept as a reader", async () => {
  const feed = new PageFeed({
    clock: new FakeClock(),
    usage: new UsageRecorder(),
    pods: () => [],
    onPodsChanged: () => () => {},
    node: () => Promise.reject(new Error("no engine")),
    rejections: () => [],
    workloads: () => [],
  } as unknown as ConstructorParameters<typeof PageFeed>[0]);
  const stream = new EventStream(new FakeClock(), feed, ACCESS, new AbortController().signal, () => true, "main-1.js");
  const chunks = stream.chunks();
  await chunks.next();
  await expect(chunks.next()).rejects.toThrow("no engine");
  expect(feed.isOpen).toBe(false);
});

import { describe, expect, test } from "bun:test";
import { ObjectStore, RevisionClock } from "../../src/apiserver/object-store.ts";
import { parseStreamQuery } from "../../src/server/pod-streams.ts";
import { aConfigMap, anApiServer, CONFIG_MAPS, memoryMark, PODS } from "./support.ts";

const KEY = { name: "a", namespace: "default" };

/** An API, the revision of its beginning, and ways to change ConfigMap a. */
function aWorld(window = { events: 1_000, bytes: 1e6 }) {
  const api = anApiServer({ window });
  const since = `&resourceVersion=${api.store.revision}`;
  const add = () => api.post(CONFIG_MAPS, aConfigMap("a"));
  const change = (body: object) => api.patch(`${CONFIG_MAPS}/a`, body);
  const put = (data: Record<string, string>) =>
    api.store.put("configmaps", { ...aConfigMap("a", data), metadata: KEY });
  return { ...api, since, add, change, put };
}

test("a list is sorted after each change, and does not change itself", () => {
  const { store } = aWorld();
  const names = () => store.list("configmaps").map(({ metadata }) => metadata.name);
  const put = (name: string, namespace = "default") =>
    store.put("configmaps", { ...aConfigMap(name), metadata: { name, namespace } });
  for (const name of ["c", "a", "e"]) put(name);
  const before = store.list("configmaps");
  for (const name of ["b", "e", "f", "0"]) put(name);
  put("z", "another");
  expect(names()).toEqual(["z", "0", "a", "b", "c", "e", "f"]);
  for (const name of ["0", "c", "f"]) store.remove("configmaps", "default", name);
  expect([names(), before.length]).toEqual([["z", "a", "b", "e"], 3]);
  expect(store.list("configmaps")[3]).toBe(store.get("configmaps", "default", "e")!);
});

describe("a watch", () => {
  test("sends what changes after a revision, and continues", async () => {
    const { watch, since, add, change, remove, store } = aWorld();
    const before = store.revision;
    await add();
    const { next, end } = await watch(CONFIG_MAPS, since);
    expect(await next()).toMatchObject({ type: "ADDED", object: { kind: "ConfigMap", metadata: { name: "a" } } });
    const waiting = next();
    await change({ data: { a: "2" } });
    expect(await waiting).toMatchObject({ type: "MODIFIED", object: { data: { a: "2" } } });
    await remove(`${CONFIG_MAPS}/a`);
    const last = await next();
    expect(last.type).toBe("DELETED");
    expect(Number(last.object.metadata.resourceVersion)).toBeGreaterThan(before);
    await end();
  });

  test("begins with what there is where no revision is given", async () => {
    const { watch, add } = aWorld();
    await add();
    const { next, end } = await watch(CONFIG_MAPS);
    expect((await next()).type).toBe("ADDED");
    await end();
  });

  test("what leaves a selection was deleted, what enters it was added", async () => {
    const { watch, add, change, store } = aWorld();
    await add();
    const { next, end } = await watch(CONFIG_MAPS, `&labelSelector=app%3Dx&resourceVersion=${store.revision}`);
    for (const app of ["x", "y"]) await change({ metadata: { labels: { app } } });
    expect([(await next()).type, (await next()).type]).toEqual(["ADDED", "DELETED"]);
    await end();
  });

  test("256 are open at a time; a user who has none gets one, and one that ends makes room", async () => {
    const { send } = anApiServer();
    const ends = Array.from({ length: 257 }, () => new AbortController());
    const open = async ({ signal }: AbortController, role: "view" | "admin" = "view") =>
      await send({ path: `${CONFIG_MAPS}?watch=true`, role, signal });
    for (const end of ends.slice(1)) expect(await open(end)).toMatchObject({ status: 200 });
    expect(await open(ends[0]!)).toMatchObject({ status: 429, body: expect.stringContaining("256 watches are open") });
    expect(await open(new AbortController(), "admin")).toMatchObject({ status: 200 });
    for (const end of ends.slice(1, 3)) end.abort();
    expect(await open(ends[0]!)).toMatchObject({ status: 200 });
  });

  test("410 when the events are no longer known, and for a revision of the future", async () => {
    const { watch, since, post } = aWorld({ events: 3, bytes: 1e6 });
    for (let round = 0; round < 10; round++) await post(CONFIG_MAPS, aConfigMap(`a${round}`));
    for (const query of [since, "&resourceVersion=999999999"]) {
      const { next } = await watch(CONFIG_MAPS, query);
      expect(await next()).toMatchObject({ type: "ERROR", object: { kind: "Status", code: 410, reason: "Expired" } });
      expect(await next()).toBeUndefined();
    }
  });

  test("a reader that falls too far behind is sent back to list", async () => {
    const { watch, since, put } = aWorld({ events: 100, bytes: 1e6 });
    const { next, end } = await watch(CONFIG_MAPS, since);
    const first = next();
    const putRounds = (from: number, to: number) => {
      for (let round = from; round <= to; round++) put({ round: String(round) });
    };
    putRounds(0, 0);
    expect((await first).object.data.round).toBe("0");
    // It reads nothing meanwhile.
    putRounds(1, 80);
    expect((await next()).object.data.round).toBe("1");
    putRounds(81, 300);
    expect((await next()).object.code).toBe(410);
    await end();
  });

  test("few events are kept of large objects", async () => {
    const { watch, since, put, store } = aWorld({ events: 100, bytes: 10_000 });
    for (let round = 0; round < 50; round++) put({ round: String(round), large: "x".repeat(1_000) });
    expect((await (await watch(CONFIG_MAPS, since)).next()).object.code).toBe(410);
    const recent = await watch(CONFIG_MAPS, `&resourceVersion=${store.revision - 5}`);
    expect((await recent.next()).object.data.round).toBe("45");
    await recent.end();
  });

  test("two watches get the same events, each in its own form", async () => {
    const { watch, add, remove } = aWorld();
    const Accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    const all = [await watch(CONFIG_MAPS), await watch(CONFIG_MAPS), await watch(CONFIG_MAPS, "", { Accept })];
    for (const [type, change] of [
      ["ADDED", add],
      ["DELETED", () => remove(`${CONFIG_MAPS}/a`)],
    ] as const) {
      const waiting = all.map(({ next }) => next());
      await change();
      const events = await Promise.all(waiting);
      expect(events.map((event) => event.type)).toEqual([type, type, type]);
      expect(events.map(({ object }) => object.kind)).toEqual(["ConfigMap", "ConfigMap", "PartialObjectMetadata"]);
    }
    for (const { end } of all) await end();
  });

  test("bookmarks and the timeout", async () => {
    const { watch, since, clock, store } = aWorld();
    const { next } = await watch(CONFIG_MAPS, `&allowWatchBookmarks=true&timeoutSeconds=90${since}`);
    const bookmark = next();
    await clock.advance(60_000);
    const metadata = { resourceVersion: String(store.revision) };
    expect(await bookmark).toMatchObject({ type: "BOOKMARK", object: { kind: "ConfigMap", metadata } });
    const end = next();
    await clock.advance(30_000);
    expect(await end).toBeUndefined();
  });

  test("as a table it names its columns once", async () => {
    const { watch, post } = aWorld();
    for (const name of ["a", "b"]) await post(CONFIG_MAPS, aConfigMap(name));
    const { next, end } = await watch(CONFIG_MAPS, "", { Accept: "application/json;as=Table;g=meta.k8s.io;v=v1" });
    expect((await next()).object.columnDefinitions.length).toBe(3);
    expect((await next()).object.columnDefinitions).toEqual([]);
    await end();
  });
});

test("revisions continue above those of the last process", () => {
  const kept = memoryMark();
  const first = new ObjectStore(new RevisionClock(kept));
  for (let round = 0; round < 5; round++) first.put("pods", { apiVersion: "v1", kind: "Pod", metadata: { name: "p" } });
  const second = new ObjectStore(new RevisionClock(kept));
  expect(second.revision).toBeGreaterThan(first.revision);
});

test.each(["true", "True", "1"])("watch=%s is a watch", async (value) => {
  const { send } = anApiServer();
  const stop = new AbortController();
  const response = await send({ path: `${PODS}?watch=${value}`, signal: stop.signal });
  stop.abort();
  expect(response).toHaveProperty("chunks");
});

test.each(["false", "0"])("watch=%s is a list", async (value) => {
  const { call } = anApiServer();
  expect((await call({ path: `${PODS}?watch=${value}` })).json.kind).toBe("PodList");
});

test.each(["true", "True", "1"])("stdout=%s asks for standard output", (value) => {
  expect(parseStreamQuery(new URLSearchParams({ stdout: value, stderr: "False" }))).toEqual({
    stdin: false,
    stdout: true,
    stderr: false,
    tty: false,
  });
});

import { describe, expect, test } from "bun:test";
import { ObjectStore, RevisionClock } from "../../src/apiserver/object-store.ts";
import { parseStreamQuery } from "../../src/server/pod-streams.ts";
import { aConfigMap, anApiServer, CONFIG_MAPS, linesOf, memoryMark, PODS } from "./support.ts";

const merge = { "Content-Type": "application/merge-patch+json" };

describe("a watch", () => {
  test("sends what changes after a revision, and continues", async () => {
    const { call, send } = anApiServer();
    const { json: list } = await call({ path: CONFIG_MAPS });
    await call({ method: "POST", path: CONFIG_MAPS, body: aConfigMap("a") });
    const { next, end } = linesOf(
      await send({ path: `${CONFIG_MAPS}?watch=true&resourceVersion=${list.metadata.resourceVersion}` }),
    );
    expect(await next()).toMatchObject({ type: "ADDED", object: { kind: "ConfigMap", metadata: { name: "a" } } });
    const waiting = next();
    await call({ method: "PATCH", path: `${CONFIG_MAPS}/a`, body: { data: { a: "2" } }, headers: merge });
    expect(await waiting).toMatchObject({ type: "MODIFIED", object: { data: { a: "2" } } });
    await call({ method: "DELETE", path: `${CONFIG_MAPS}/a` });
    const last = await next();
    expect(last.type).toBe("DELETED");
    expect(Number(last.object.metadata.resourceVersion)).toBeGreaterThan(Number(list.metadata.resourceVersion));
    await end();
  });

  test("begins with what there is where no revision is given", async () => {
    const { call, send } = anApiServer();
    await call({ method: "POST", path: CONFIG_MAPS, body: aConfigMap("a") });
    const { next, end } = linesOf(await send({ path: `${CONFIG_MAPS}?watch=1` }));
    expect((await next()).type).toBe("ADDED");
    await end();
  });

  test("what leaves a selection was deleted, what enters it was added", async () => {
    const { call, send } = anApiServer();
    const label = (value: string) =>
      call({
        method: "PATCH",
        path: `${CONFIG_MAPS}/a`,
        body: { metadata: { labels: { app: value } } },
        headers: merge,
      });
    await call({ method: "POST", path: CONFIG_MAPS, body: aConfigMap("a") });
    const { json } = await call({ path: CONFIG_MAPS });
    const { next, end } = linesOf(
      await send({
        path: `${CONFIG_MAPS}?watch=true&labelSelector=app%3Dx&resourceVersion=${json.metadata.resourceVersion}`,
      }),
    );
    await label("x");
    await label("y");
    expect([(await next()).type, (await next()).type]).toEqual(["ADDED", "DELETED"]);
    await end();
  });

  test("410 when the events are no longer known, and when they cannot be", async () => {
    const { call, send } = anApiServer({ window: { events: 3, bytes: 1e6 } });
    const { json: list } = await call({ path: CONFIG_MAPS });
    for (let round = 0; round < 10; round++)
      await call({ method: "POST", path: CONFIG_MAPS, body: aConfigMap(`a${round}`) });
    for (const revision of [list.metadata.resourceVersion, "999999999"]) {
      const { next } = linesOf(await send({ path: `${CONFIG_MAPS}?watch=true&resourceVersion=${revision}` }));
      expect(await next()).toMatchObject({ type: "ERROR", object: { kind: "Status", code: 410, reason: "Expired" } });
      expect(await next()).toBeUndefined();
    }
  });

  test("a reader that falls too far behind is sent back to list", async () => {
    const { call, send, store } = anApiServer({ window: { events: 100, bytes: 1e6 } });
    const { json } = await call({ path: CONFIG_MAPS });
    const { next, end } = linesOf(
      await send({ path: `${CONFIG_MAPS}?watch=true&resourceVersion=${json.metadata.resourceVersion}` }),
    );
    const put = (round: number) =>
      store.put("configmaps", {
        ...aConfigMap("a", { round: String(round) }),
        metadata: { name: "a", namespace: "default" },
      });
    const first = next();
    put(0);
    expect((await first).object.data.round).toBe("0");
    // It reads nothing meanwhile.
    for (let round = 1; round <= 80; round++) put(round);
    expect((await next()).object.data.round).toBe("1");
    for (let round = 81; round <= 300; round++) put(round);
    expect((await next()).object.code).toBe(410);
    await end();
  });

  test("few events are kept of large objects", async () => {
    const { call, send, store } = anApiServer({ window: { events: 100, bytes: 10_000 } });
    const { json } = await call({ path: CONFIG_MAPS });
    for (let round = 0; round < 50; round++) {
      store.put("configmaps", {
        ...aConfigMap("a", { round: String(round), large: "x".repeat(1_000) }),
        metadata: { name: "a", namespace: "default" },
      });
    }
    const since = (revision: number) => send({ path: `${CONFIG_MAPS}?watch=true&resourceVersion=${revision}` });
    const old = linesOf(await since(Number(json.metadata.resourceVersion)));
    expect((await old.next()).object.code).toBe(410);
    const recent = linesOf(await since(store.revision - 5));
    expect((await recent.next()).object.data.round).toBe("45");
    await recent.end();
  });

  test("two watches get the same events, each in its own form", async () => {
    const { call, send } = anApiServer();
    const plain = linesOf(await send({ path: `${CONFIG_MAPS}?watch=true` }));
    const other = linesOf(await send({ path: `${CONFIG_MAPS}?watch=true` }));
    const headers = { Accept: "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io" };
    const metadata = linesOf(await send({ path: `${CONFIG_MAPS}?watch=true`, headers }));
    const all = [plain, other, metadata];
    for (const change of ["POST", "DELETE"] as const) {
      const waiting = all.map(({ next }) => next());
      const path = change === "POST" ? CONFIG_MAPS : `${CONFIG_MAPS}/a`;
      await call({ method: change, path, ...(change === "POST" && { body: aConfigMap("a") }) });
      const events = await Promise.all(waiting);
      const type = change === "POST" ? "ADDED" : "DELETED";
      expect(events.map((event) => event.type)).toEqual([type, type, type]);
      expect(events.map(({ object }) => object.kind)).toEqual(["ConfigMap", "ConfigMap", "PartialObjectMetadata"]);
    }
    for (const { end } of all) await end();
  });

  test("bookmarks and the timeout", async () => {
    const { call, send, clock, store } = anApiServer();
    const { json } = await call({ path: CONFIG_MAPS });
    const query = `watch=true&allowWatchBookmarks=true&timeoutSeconds=90&resourceVersion=${json.metadata.resourceVersion}`;
    const { next } = linesOf(await send({ path: `${CONFIG_MAPS}?${query}` }));
    const bookmark = next();
    await clock.advance(60_000);
    expect(await bookmark).toMatchObject({
      type: "BOOKMARK",
      object: { kind: "ConfigMap", metadata: { resourceVersion: String(store.revision) } },
    });
    const end = next();
    await clock.advance(30_000);
    expect(await end).toBeUndefined();
  });

  test("as a table it names its columns once", async () => {
    const { call, send } = anApiServer();
    for (const name of ["a", "b"]) await call({ method: "POST", path: CONFIG_MAPS, body: aConfigMap(name) });
    const headers = { Accept: "application/json;as=Table;v=v1;g=meta.k8s.io" };
    const { next, end } = linesOf(await send({ path: `${CONFIG_MAPS}?watch=true`, headers }));
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

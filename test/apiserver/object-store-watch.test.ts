import { describe, expect, test } from "bun:test";
import { ObjectStore } from "../../src/apiserver/object-store.ts";
import { RevisionClock } from "../../src/apiserver/revision-clock.ts";
import { parseStreamQuery } from "../../src/server/stream-query.ts";
import { aConfigMap, anApiServer, CONFIG_MAPS, linesOf, memoryMark, PODS } from "./support.ts";

const merge = { "Content-Type": "application/merge-patch+json" };

describe("a watch", () => {
  test("tells what changes after a revision, and goes on", async () => {
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
    const { call, send } = anApiServer({ windowSize: 3 });
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
    const { call, send, store } = anApiServer();
    const { json } = await call({ path: CONFIG_MAPS });
    const { next, end } = linesOf(
      await send({ path: `${CONFIG_MAPS}?watch=true&resourceVersion=${json.metadata.resourceVersion}` }),
    );
    const first = next();
    for (let round = 0; round < 1_200; round++) {
      store.put("configmaps", {
        ...aConfigMap("a", { round: String(round) }),
        metadata: { name: "a", namespace: "default" },
      });
    }
    let event = await first;
    let count = 0;
    while (event?.type !== "ERROR" && event) {
      count++;
      event = await next();
    }
    expect(event.object.code).toBe(410);
    expect(count).toBeLessThanOrEqual(1_001);
    await end();
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

test("revisions go on where the last process could have been", () => {
  const kept = memoryMark();
  const first = new ObjectStore(new RevisionClock(kept));
  for (let round = 0; round < 5; round++) first.put("pods", { apiVersion: "v1", kind: "Pod", metadata: { name: "p" } });
  const second = new ObjectStore(new RevisionClock(kept));
  expect(second.revision).toBeGreaterThan(first.revision);
});

test.each(["true", "True", "1"])("watch=%s is a watch", async (value) => {
  const { send } = anApiServer();
  const stop = new AbortController();
  const answer = await send({ path: `${PODS}?watch=${value}`, signal: stop.signal });
  stop.abort();
  expect(answer).toHaveProperty("chunks");
});

test.each(["false", "0"])("watch=%s is a list", async (value) => {
  const { call } = anApiServer();
  expect((await call({ path: `${PODS}?watch=${value}` })).json.kind).toBe("PodList");
});

test.each(["true", "True", "1"])("stdout=%s asks for standard output", (value) => {
  expect(parseStreamQuery(new URLSearchParams({ stdout: value, stderr: "False" }))).toEqual({
    value: { stdin: false, stdout: true, stderr: false, tty: false },
  });
});

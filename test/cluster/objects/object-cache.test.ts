import { expect, test } from "bun:test";
import { ObjectCache } from "../../../src/cluster/objects/object-cache.ts";
import { FakeApi } from "../../support/cluster/fake-api.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const PATH = "/api/v1/namespaces/shop/configmaps";
const REFERENCE = { kind: "ConfigMap", fullName: "shop/settings" } as const;
const aConfigMap = (resourceVersion: string, a: string) => ({
  metadata: { namespace: "shop", name: "settings", resourceVersion },
  data: { a },
});

async function aCache(items: object[] = [aConfigMap("1", "old")]) {
  const clock = new FakeClock();
  const api = new FakeApi(clock);
  api.set(PATH, { metadata: { resourceVersion: "1" }, items });
  let changes = 0;
  const cache = new ObjectCache({ client: api as never, clock, onChange: () => changes++ });
  cache.setReferences([REFERENCE]);
  await clock.advance(0);
  const seen = () => cache.configMaps().map(({ data }) => data?.a);
  return { clock, api, cache, seen, changes: () => changes };
}

test("a deleted object counts for ten seconds: the pods of a namespace that ends have nothing to miss meanwhile", async () => {
  const { clock, api, seen, changes } = await aCache();
  api.emit(PATH, "DELETED", aConfigMap("2", "old"));
  await clock.advance(9_999);
  expect(seen()).toEqual(["old"]);
  const before = changes();
  await clock.advance(1);
  expect([seen(), changes() - before]).toEqual([[], 1]);
});

test("an object that is made again within that time is the new one at once, and stays", async () => {
  const { clock, api, seen } = await aCache();
  api.emit(PATH, "DELETED", aConfigMap("2", "old"));
  await clock.advance(1_000);
  api.emit(PATH, "ADDED", aConfigMap("3", "new"));
  expect(seen()).toEqual(["new"]);
  await clock.advance(60_000);
  expect(seen()).toEqual(["new"]);
});

test("an object that is not there at the first answer is missing at once", async () => {
  const { cache, seen } = await aCache([]);
  expect([seen(), cache.isSettled(REFERENCE)]).toEqual([[], true]);
});

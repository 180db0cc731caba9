import { expect, test } from "bun:test";
import { ListCache } from "../../src/apiserver/list-cache.ts";
import { FakeClock } from "../support/fake-clock.ts";

function aCache() {
  const clock = new FakeClock();
  const cache = new ListCache(clock);
  let made = 0;
  const ask = (key: string, revision = 1) =>
    Buffer.from(
      cache.answer(key, revision, () => ({ status: 200, headers: {}, body: `${key} ${++made}` })).body,
    ).toString();
  return { clock, ask };
}

test("a list is given again in the same second, until the store changes", async () => {
  const { clock, ask } = aCache();
  expect([ask("pods"), ask("pods"), ask("secrets")]).toEqual(["pods 1", "pods 1", "secrets 2"]);
  expect(ask("pods", 2)).toBe("pods 3");
  await clock.advance(1_000);
  expect(ask("pods", 2)).toBe("pods 4");
});

test("nothing is kept, and no timer runs, when no one asks any more", async () => {
  const { clock, ask } = aCache();
  ask("pods");
  await clock.advance(1_000);
  expect(clock.pendingTimers).toBe(0);
});

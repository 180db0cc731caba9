import { expect, test } from "bun:test";
import { ConcurrencyLimit } from "../../src/kubelet/concurrency-limit.ts";
import { settle } from "../support/fake-clock.ts";

const never = new AbortController().signal;

test("lets so many run and the rest follow in order", async () => {
  const limit = new ConcurrencyLimit(2);
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const runs = [0, 1, 2, 3].map((n) =>
    limit.run(never, () => {
      begun.push(n);
      return new Promise<void>((resolve) => ends.push(resolve));
    }),
  );
  await settle();
  expect(begun).toEqual([0, 1]);
  ends[1]!();
  await settle();
  expect(begun).toEqual([0, 1, 2]);
  for (let n = 0; n < 4; n++) {
    ends[n]?.();
    await settle();
  }
  await Promise.all(runs);
  expect(begun).toEqual([0, 1, 2, 3]);
});

test("work that failed makes room, work that was aborted while it waited never begins", async () => {
  const limit = new ConcurrencyLimit(1);
  const stop = new AbortController();
  const first = Promise.withResolvers<void>();
  const failing = limit.run(never, () => first.promise).catch((error: unknown) => error);
  let hasBegun = false;
  const stopped = limit
    .run(stop.signal, async () => {
      hasBegun = true;
    })
    .catch((error: unknown) => error);
  stop.abort("stopped");
  first.reject("failed");
  expect(await failing).toBe("failed");
  expect(await stopped).toBe("stopped");
  expect(hasBegun).toBe(false);
  expect(await limit.run(never, async () => "room")).toBe("room");
});

import { expect, test } from "bun:test";
import { ConcurrencyLimit } from "../../../src/base/concurrency/concurrency-limit.ts";
import { settle } from "../../support/fake-clock.ts";

const never = new AbortController().signal;

test("runs as many as the limit and the rest follow in order", async () => {
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

// Between the end of one piece of work and the beginning of the next there are a few turns of the loop.
test.each([0, 1, 2, 3, 4, 5, 6, 7])(
  "a caller that comes %d turns after the end of another does not overtake",
  async (turns) => {
    const limit = new ConcurrencyLimit(1);
    const begun: string[] = [];
    const first = Promise.withResolvers<void>();
    const work = (name: string) => async () => void begun.push(name);
    const runs = [limit.run(never, () => first.promise), limit.run(never, work("b"))];
    await settle();
    first.resolve();
    for (let turn = 0; turn < turns; turn++) await null;
    await Promise.all([...runs, limit.run(never, work("c"))]);
    expect(begun).toEqual(["b", "c"]);
  },
);

test("preferred work goes before what waits, in the order of its coming", async () => {
  const limit = new ConcurrencyLimit(1);
  const begun: string[] = [];
  const first = Promise.withResolvers<void>();
  const work = (name: string) => async () => void begun.push(name);
  const stop = new AbortController();
  const runs = [
    limit.run(never, () => first.promise),
    limit.run(never, work("sandbox 1")),
    limit.run(never, work("container 1"), true),
    limit.run(never, work("sandbox 2")),
    limit.run(stop.signal, work("stopped"), true).catch(() => {}),
    limit.run(never, work("container 2"), true),
  ];
  stop.abort("stopped");
  first.resolve();
  await Promise.all(runs);
  expect(begun).toEqual(["container 1", "container 2", "sandbox 1", "sandbox 2"]);
});

test("work that failed makes room", async () => {
  const limit = new ConcurrencyLimit(1);
  const failed = limit.run(never, () => Promise.reject("failed")).catch((error: unknown) => error);
  expect(await failed).toBe("failed");
  expect(await limit.run(never, async () => "room")).toBe("room");
});

test("work that is aborted while it waits ends at once, never begins and takes no turn", async () => {
  const limit = new ConcurrencyLimit(1);
  const stop = new AbortController();
  const first = Promise.withResolvers<void>();
  const running = limit.run(never, () => first.promise);
  const begin = async () => expect.unreachable();
  const stopped = limit.run(stop.signal, begin).catch((error: unknown) => error);
  const later = limit.run(never, async () => "my turn");
  stop.abort("stopped");
  expect(await stopped).toBe("stopped");
  first.resolve();
  await running;
  expect(await later).toBe("my turn");
  expect(await limit.run(AbortSignal.abort("too late"), begin).catch((error: unknown) => error)).toBe("too late");
});

import { expect, test } from "bun:test";
import { SingleFlight } from "../../../src/base/concurrency/single-flight.ts";
import { settle } from "../../support/fake-clock.ts";

const never = new AbortController().signal;

test("the work is done once for all that wait", async () => {
  const shared = new SingleFlight<number>();
  const { promise, resolve } = Promise.withResolvers<number>();
  let runs = 0;
  const work = () => {
    runs++;
    return promise;
  };
  const waiting = [shared.do("a", work, never), shared.do("a", work, never), shared.do("b", work, never)];
  resolve(5);
  expect(await Promise.all(waiting)).toEqual([5, 5, 5]);
  expect(runs).toBe(2);
  expect(shared.size).toBe(0);
  await shared.do("a", work, never);
  expect(runs).toBe(3);
});

test("a failure reaches all callers, and the next one tries again", async () => {
  const shared = new SingleFlight<number>();
  const fail = () => Promise.reject(new Error("no"));
  const outcomes = await Promise.allSettled([shared.do("a", fail, never), shared.do("a", fail, never)]);
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(await shared.do("a", () => Promise.resolve(1), never)).toBe(1);
});

test("a caller that aborts does not stop the others; the last one does", async () => {
  const shared = new SingleFlight<number>();
  let stop: AbortSignal | undefined;
  const work = (signal: AbortSignal) => {
    stop = signal;
    return new Promise<number>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  };
  const [one, two] = [new AbortController(), new AbortController()];
  const first = shared.do("a", work, one.signal);
  const second = shared.do("a", work, two.signal);
  one.abort(new Error("one"));
  await expect(first).rejects.toThrow("one");
  expect(stop?.aborted).toBe(false);
  two.abort(new Error("two"));
  await expect(second).rejects.toThrow("two");
  expect(stop?.aborted).toBe(true);
  expect(shared.size).toBe(0);
});

test("a caller that comes while the work is being stopped begins it again", async () => {
  const shared = new SingleFlight<string>();
  const slowToStop = new Promise<string>(() => {});
  const one = new AbortController();
  const first = shared.do("a", () => slowToStop, one.signal).catch(() => "gone");
  one.abort();
  expect(await first).toBe("gone");
  expect(await shared.do("a", () => Promise.resolve("again"), never)).toBe("again");
});

test("an aborted signal begins nothing", async () => {
  const shared = new SingleFlight<number>();
  let runs = 0;
  const call = shared.do("a", () => Promise.resolve(++runs), AbortSignal.abort(new Error("late")));
  await expect(call).rejects.toThrow("late");
  await settle();
  expect(runs).toBe(0);
});

import { expect, test } from "bun:test";
import { TurnPace } from "../../../src/base/concurrency/turn-pace.ts";

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

test("what comes together is spread over turns of the loop, in its order", async () => {
  const turns: number[] = [];
  const pace = new TurnPace(3, (done) => turns.push(done));
  const begun: number[] = [];
  const all = Array.from({ length: 8 }, async (_, index) => {
    await pace.enter(1);
    begun.push(index);
  });
  await nextTurn();
  expect(begun.length).toBeLessThanOrEqual(6);
  await Promise.all(all);
  expect(begun).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  await nextTurn();
  expect(turns).toEqual([3, 3, 2]);
});

test("what costs more than a turn has one of its own", async () => {
  const turns: number[] = [];
  const pace = new TurnPace(3, (done) => turns.push(done));
  await Promise.all([pace.enter(10), pace.enter(10), pace.enter(1)]);
  await nextTurn();
  expect(turns).toEqual([10, 10, 1]);
});

import { expect, test } from "bun:test";
import { type PullLimits, PullQueue } from "../../../src/kubelet/images/image-manager.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";

const never = new AbortController().signal;

/** Pulls that last until they are ended. */
function pulls(limits: Partial<PullLimits>) {
  const clock = new FakeClock();
  const queue = new PullQueue({ maxParallel: 0, perSecond: 0, burst: 0, progressDeadlineMs: 0, ...limits }, clock);
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const begin = (name: string, signal = never) =>
    queue.run(() => {
      begun.push(name);
      return new Promise<void>((resolve) => ends.set(name, resolve));
    }, signal);
  return { clock, begun, begin, end: (name: string) => ends.get(name)?.() };
}

test.each([
  { maxParallel: 1, begins: ["a", "ab", "abc"] },
  { maxParallel: 2, begins: ["ab", "abc", "abc"] },
  { maxParallel: 0, begins: ["abc", "abc", "abc"] },
])("$maxParallel at a time (0: no limit), in the order they came", async ({ maxParallel, begins }) => {
  const { begun, begin, end } = pulls({ maxParallel });
  for (const name of ["a", "b", "c"]) void begin(name);
  for (const [turn, expected] of begins.entries()) {
    await settle();
    expect(begun.join("")).toBe(expected);
    end("abc"[turn]!);
  }
});

// Between the end of one pull and the beginning of the next there are a few turns of the loop.
test.each([0, 1, 2, 3, 4, 5, 6, 7])("who comes %d turns after the end of another does not overtake", async (turns) => {
  const { begun, begin, end } = pulls({ maxParallel: 1 });
  void begin("a");
  void begin("b");
  await settle();
  end("a");
  for (let turn = 0; turn < turns; turn++) await null;
  void begin("c");
  await settle();
  expect(begun).toEqual(["a", "b"]);
});

test("a burst, then so many per second", async () => {
  const { clock, begun, begin } = pulls({ perSecond: 2, burst: 3 });
  for (const name of ["a", "b", "c", "d", "e"]) void begin(name);
  await settle();
  expect(begun).toEqual(["a", "b", "c"]);
  await clock.advance(500);
  expect(begun).toEqual(["a", "b", "c", "d"]);
  await clock.advance(500);
  expect(begun).toEqual(["a", "b", "c", "d", "e"]);
});

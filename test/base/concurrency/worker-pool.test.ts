import { expect, test } from "bun:test";
import {
  FileSlot,
  type PoolThread,
  type TaskRequest,
  type TaskResponse,
  TaskTimeoutError,
  WorkerPool,
} from "../../../src/base/concurrency/worker-pool.ts";
import { FakeClock } from "../../support/fake-clock.ts";

/** A thread that answers when the test lets it. */
class FakeThread implements PoolThread {
  readonly requests: TaskRequest[] = [];
  isTerminated = false;
  #answer: (answer: TaskResponse) => void = () => {};
  #error: (message: string) => void = () => {};

  postMessage(message: TaskRequest): void {
    this.requests.push(message);
  }
  onResponse(listener: (answer: TaskResponse) => void): void {
    this.#answer = listener;
  }
  onError(listener: (message: string) => void): void {
    this.#error = listener;
  }
  terminate(): void {
    this.isTerminated = true;
  }
  answer(value: unknown): void {
    this.#answer({ id: this.requests.at(-1)!.id, ok: true, value });
  }
  fail(error: { message: string; code?: string }): void {
    this.#answer({ id: this.requests.at(-1)!.id, ok: false, error });
  }
  crash(message: string): void {
    this.#error(message);
  }
}

function aPool() {
  const clock = new FakeClock();
  const threads: FakeThread[] = [];
  const pool = new WorkerPool({
    clock,
    startThread: () => {
      const thread = new FakeThread();
      threads.push(thread);
      return thread;
    },
  });
  const run = (key: string, timeoutMs = 10_000) => pool.run<string>("task", [key], { key, timeoutMs });
  return { clock, threads, pool, run };
}

test("a thread is used again, and ends when it was idle for a while", async () => {
  const { clock, threads, run } = aPool();
  const first = run("a");
  threads[0]!.answer("one");
  expect(await first).toBe("one");
  const second = run("b");
  threads[0]!.answer("two");
  expect(await second).toBe("two");
  expect(threads).toHaveLength(1);
  expect(threads[0]!.requests.map(({ args }) => args)).toEqual([["a"], ["b"]]);
  await clock.advance(10_000);
  expect(threads[0]!.isTerminated).toBe(true);
  expect(clock.pendingTimers).toBe(0);
});

test("what a task throws arrives with its code", async () => {
  const { threads, run } = aPool();
  const failed = run("a");
  threads[0]!.fail({ message: "no room", code: "ENOSPC" });
  expect(failed).rejects.toMatchObject({ message: "no room", code: "ENOSPC" });
});

test("four tasks at a time; those that wait long delay no others", async () => {
  const { clock, threads, run } = aPool();
  for (const key of ["a", "b", "c", "d", "e"]) void run(key).catch(() => {});
  expect(threads).toHaveLength(4);
  await clock.advance(500);
  expect(threads).toHaveLength(5);
});

test("a task that hangs fails at its deadline; others of its key fail at once until it comes back", async () => {
  const { clock, threads, pool, run } = aPool();
  const hung = run("a");
  hung.catch(() => {});
  await clock.advance(10_000);
  expect(hung).rejects.toThrow("no answer within 10 s");
  expect(run("a")).rejects.toThrow("an earlier attempt still waits");
  const other = run("b");
  threads[1]!.answer("fine");
  expect(await other).toBe("fine");
  expect(pool.hungCount).toBe(1);
  threads[0]!.answer("late");
  expect(pool.hungCount).toBe(0);
  expect(threads[0]!.isTerminated).toBe(true);
  const again = run("a");
  threads[1]!.answer("fine");
  expect(await again).toBe("fine");
});

test("threads that hang are limited", async () => {
  const { clock, run } = aPool();
  for (let index = 0; index < 32; index++) {
    run(`path ${index}`, 1000).catch(() => {});
    await clock.advance(600);
  }
  await clock.advance(1000);
  expect(run("another")).rejects.toThrow("32 operations wait");
});

test("a thread that ends fails its task only", async () => {
  const { threads, run } = aPool();
  const crashed = run("a");
  threads[0]!.crash("cannot start");
  expect(crashed).rejects.toThrow("cannot start");
  const next = run("a");
  threads[1]!.answer("fine");
  expect(await next).toBe("fine");
});

test("tasks behind a slow one of their key wait for it, and need no threads", async () => {
  const { clock, threads, run } = aPool();
  const slow = run("disk");
  await clock.advance(600);
  const waiting = ["disk", "disk", "disk"].map((key) => run(key));
  const other = run("other");
  expect(threads).toHaveLength(2);
  threads[1]!.answer("fine");
  expect(await other).toBe("fine");
  threads[0]!.answer("late");
  expect(await slow).toBe("late");
  expect(threads.flatMap(({ requests }) => requests)).toHaveLength(5);
  expect(threads).toHaveLength(3);
  for (const promise of waiting) promise.catch(() => {});
});

test("tasks behind one that hangs fail with it", async () => {
  const { clock, threads, run } = aPool();
  const failures: string[] = [];
  const note = ({ message }: Error) => void failures.push(message);
  void run("disk").catch(note);
  await clock.advance(600);
  for (const key of ["disk", "disk"]) void run(key).catch(note);
  await clock.advance(10_000);
  expect(failures).toHaveLength(3);
  expect(threads).toHaveLength(1);
});

test("accesses to files run one after the other; what one throws arrives", async () => {
  const slot = new FileSlot(new FakeClock());
  const order: string[] = [];
  const first = slot.run(async () => void order.push("first"), 1_000);
  const second = slot.run(() => Promise.reject(new Error("ENOENT")), 1_000);
  await first;
  expect(await second.catch((error: Error) => error.message)).toBe("ENOENT");
  expect(await slot.run(async () => order, 1_000)).toEqual(["first"]);
});

test("an access that hangs keeps the slot: later ones fail at their deadline and never begin", async () => {
  const clock = new FakeClock();
  const slot = new FileSlot(clock);
  const ended = Promise.withResolvers<string>();
  const hung = slot.run(() => ended.promise, 1_000).catch((error) => error);
  let begun = 0;
  const next = slot.run(async () => begun++, 1_000).catch((error) => error);
  await clock.advance(1_000);
  expect(await hung).toBeInstanceOf(TaskTimeoutError);
  expect(await next).toMatchObject({ message: "no answer within 1 s" });
  ended.resolve("late");
  expect(await slot.run(async () => "free", 1_000)).toBe("free");
  expect(begun).toBe(0);
});

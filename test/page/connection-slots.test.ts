import { expect, test } from "bun:test";
import { claimSlot, type Locks } from "../../src/page/connection-slots.ts";

/** Exclusive locks, granted in the order of the requests. */
class FakeLocks implements Locks {
  readonly #held = new Set<string>();
  readonly #waiting: { name: string; start: () => void }[] = [];

  async request(
    name: string,
    { ifAvailable, signal }: Parameters<Locks["request"]>[1],
    use: Parameters<Locks["request"]>[2],
  ) {
    signal?.throwIfAborted();
    if (this.#held.has(name)) {
      if (ifAvailable) return use(null);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      this.#waiting.push({ name, start: resolve });
      signal?.addEventListener("abort", () => {
        this.#waiting.splice(0, this.#waiting.length, ...this.#waiting.filter(({ start }) => start !== resolve));
        reject(signal.reason);
      });
      await promise;
    }
    this.#held.add(name);
    await use({});
    this.#held.delete(name);
    const next = this.#waiting.findIndex((request) => request.name === name);
    if (next >= 0) this.#waiting.splice(next, 1)[0]?.start();
  }

  get heldCount(): number {
    return this.#held.size;
  }

  get waitingCount(): number {
    return this.#waiting.length;
  }
}

test("four connections stay open; the fifth waits, asks hidden tabs for one, and takes the first that is free", async () => {
  const locks = new FakeLocks();
  const { signal } = new AbortController();
  let asked = 0;
  const claim = () =>
    claimSlot(
      locks,
      signal,
      () => {},
      () => asked++,
    );
  const [, second] = [await claim(), await claim(), await claim(), await claim()];
  expect([locks.heldCount, asked]).toEqual([4, 0]);
  const fifth = claim();
  second?.();
  const release = await fifth;
  expect(asked).toBe(1);
  expect([locks.heldCount, locks.waitingCount]).toEqual([4, 0]);
  release?.();
  await Bun.sleep(0);
  expect(locks.heldCount).toBe(3);
});

test("a wait ends with its signal, and holds nothing then", async () => {
  const locks = new FakeLocks();
  const gone = new AbortController();
  const claim = (signal: AbortSignal) =>
    claimSlot(
      locks,
      signal,
      () => {},
      () => {},
    );
  for (let count = 0; count < 4; count++) await claim(new AbortController().signal);
  const waiting = claim(gone.signal);
  gone.abort();
  expect(await waiting).toBeUndefined();
  expect([locks.heldCount, locks.waitingCount]).toEqual([4, 0]);
});

import type { Clock } from "../base/model/clock.ts";
import { type FsCapacity, readCapacityNow } from "./disk-usage.ts";

/** A request waits this long for file systems; those that have not answered are shown as they were. */
const ANSWER_MS = 1_000;
/** Figures of a file system that has not answered for this long are not shown. */
const MAX_AGE_MS = 60_000;

/**
 * Capacities of file systems. The event loop waits for a file system at most once, when its path is new: later a thread
 * asks it, and one that hangs is asked no second time.
 */
export class Capacities {
  readonly #clock: Clock;
  readonly #measure: (path: string) => Promise<FsCapacity | undefined>;
  readonly #measureNow: (path: string) => FsCapacity | undefined;
  readonly #known = new Map<string, { capacity: FsCapacity | undefined; atMs: number }>();
  readonly #running = new Map<string, { answer: Promise<void>; sinceMs: number }>();

  constructor(clock: Clock, measure: (path: string) => Promise<FsCapacity | undefined>, measureNow = readCapacityNow) {
    this.#clock = clock;
    this.#measure = measure;
    this.#measureNow = measureNow;
  }

  /** The last figures; starts to bring them up to date. undefined when the path is not there, or does not answer. */
  last(path: string): FsCapacity | undefined {
    const nowMs = this.#clock.monotonicMs();
    const known = this.#known.get(path);
    if (!known) {
      const capacity = this.#measureNow(path);
      this.#known.set(path, { capacity, atMs: nowMs });
      return capacity;
    }
    if (known.atMs < nowMs) void this.#start(path);
    const hangsSinceMs = this.#running.get(path)?.sinceMs ?? nowMs;
    return nowMs - hangsSinceMs < MAX_AGE_MS ? known.capacity : undefined;
  }

  /** Brings these up to date. Resolves within a second, even if a file system hangs. */
  async refresh(paths: readonly string[]): Promise<void> {
    const late = Promise.withResolvers<void>();
    const cancel = this.#clock.schedule(ANSWER_MS, late.resolve);
    const known = paths.filter((path) => this.#known.has(path));
    await Promise.race([Promise.all(known.map((path) => this.#start(path))), late.promise]);
    cancel();
  }

  #start(path: string): Promise<void> {
    const running = this.#running.get(path);
    if (running) return running.answer;
    const answer = this.#measure(path).then((capacity) => {
      this.#running.delete(path);
      const nowMs = this.#clock.monotonicMs();
      const before = this.#known.get(path);
      // The thread was busy with other work, or the path is gone: a later request tells.
      if (!capacity && before && nowMs - before.atMs <= MAX_AGE_MS) return;
      this.#known.set(path, { capacity, atMs: nowMs });
    });
    this.#running.set(path, { answer, sinceMs: this.#clock.monotonicMs() });
    return answer;
  }
}

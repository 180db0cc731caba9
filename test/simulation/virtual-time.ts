import { drainMicrotasks } from "bun:jsc";
import { SeededRandom } from "./seeded-random.ts";

const RealDate = Date;

/** How often the time is asked for at one moment: a start with many pods does some thousand times. */
const MOST_QUESTIONS = 200_000;

interface Entry {
  dueMs: number;
  /** Entries of one time run in the order in which they were made. */
  order: number;
  run: (() => void) | undefined;
  /** Process that set it; 0: the world, which outlives every process. */
  process: number;
}

/** Changes that only some looks follow: those of containers by the program, and by themselves. */
export type Stirred = "engine";

/** A look that the program repeats. */
interface Look {
  /** When it last began. */
  ranMs: number;
  /** Time before that in which it waited for something to happen. */
  heldMs: number;
  isHeld: boolean;
}

/** Time in which the outcome of an event settles: a look after it finds that. */
const SETTLES_MS = 60_000;
/** Looks that come every minute or more seldom look once more after this: what is kept for 15 minutes may go. */
const REMEMBERED_MS = 16 * 60_000;
/** In a world in which nothing happens, looks come no more seldom than this. */
const LONGEST_STILL_MS = 6 * 3_600_000;

/** The process has crashed: whatever it calls after that has no effect. */
export class CrashedError extends Error {
  constructor() {
    super("the process is dead");
  }
}

/**
 * The clocks, timers and chance of a simulated machine. Nothing waits: the time jumps to the next timer, and between two timers
 * every promise that can settle does. One process runs at a time; when it ends, its timers and everything it waits for
 * are dropped.
 */
export class VirtualTime {
  /** Milliseconds since the machine was made; runs on through reboots. */
  nowMs = 0;
  /** Wall clock less `nowMs`: people may set it. */
  wallOffsetMs: number;
  /** Chance of the program under test. */
  readonly programRandom: SeededRandom;
  readonly #heap: Entry[] = [];
  #order = 0;
  /** The process that runs; 0 when there is none. */
  #process = 0;
  #processes = 0;
  #processStartMs = 0;
  #isDead = false;
  /** Effects until the process crashes. */
  #effectsLeft = Number.POSITIVE_INFINITY;
  onCrash: (() => void) | undefined;
  /** When something last happened to the machine, or an answer came that may be another the next time. */
  #stirredMs = 0;
  #engineStirredMs = 0;
  readonly #looks = new WeakMap<object, Look>();
  /** Ends the wait of each look that waits for something to happen, with what it follows. */
  readonly #held = new Map<() => void, Stirred | undefined>();
  /** The program does not rest: it asks what time it is again and again, and no time passes. */
  onBusy: (() => void) | undefined;
  #asked = { ms: 0, count: 0 };

  constructor(seed: number, startOfWallMs: number) {
    this.wallOffsetMs = startOfWallMs;
    this.programRandom = new SeededRandom(seed ^ 0x5eed);
  }

  get wallMs(): number {
    return this.nowMs + this.wallOffsetMs;
  }

  /** Timers of the process that have neither fired nor been cancelled. */
  get processTimers(): number {
    return this.#heap.filter(({ process, run }) => run && process !== 0 && process === this.#process).length;
  }

  get isRunning(): boolean {
    return this.#process !== 0 && !this.#isDead;
  }

  /** Runs something of the world at a time. */
  at(ms: number, run: () => void): () => void {
    return this.#push(ms, run, 0);
  }

  after(ms: number, run: () => void): () => void {
    return this.at(this.nowMs + ms, run);
  }

  /** As {@link after}, for the process that runs now: dropped with it. */
  afterForProcess(ms: number, run: () => void): () => void {
    if (!this.isRunning) return () => {};
    return this.#push(this.nowMs + Math.max(0, ms), run, this.#process);
  }

  /** Something has happened. @param what undefined: every look of the process may find something */
  stir(what?: Stirred): void {
    this.#engineStirredMs = this.nowMs;
    if (!what) this.#stirredMs = this.nowMs;
    for (const [release, followed] of this.#held) if (!what || followed === what) release();
  }

  /**
   * As {@link afterForProcess}, for a look of the process that it repeats. When nothing has happened for long, also not by the last look,
   * this one would find the same: it waits for the next of its times after something has happened.
   * @param owner whose look it is; undefined: it is none
   */
  look(owner: object | undefined, ms: number, run: () => void, follows?: Stirred): () => void {
    if (!owner || !this.isRunning) return this.afterForProcess(ms, run);
    const dueMs = this.nowMs + ms;
    const look = this.#looks.getOrInsertComputed(owner, () => ({ ranMs: 0, heldMs: 0, isHeld: false }));
    const begin = () => {
      look.heldMs = look.isHeld ? this.nowMs - ms - look.ranMs : 0;
      look.isHeld = false;
      look.ranMs = this.nowMs;
      run();
    };
    let cancel = this.afterForProcess(ms, () => {
      // A crash that comes at a step comes soon.
      const stirredMs = follows ? this.#engineStirredMs : this.#stirredMs;
      const isStill = look.ranMs - stirredMs > SETTLES_MS;
      if (!isStill || Number.isFinite(this.#effectsLeft)) return begin();
      look.isHeld = true;
      const isLast = ms < 60_000 || look.ranMs - stirredMs > REMEMBERED_MS;
      const heldMs = isLast ? LONGEST_STILL_MS : stirredMs + REMEMBERED_MS + ms - this.nowMs;
      const stop = this.afterForProcess(heldMs, () => {
        this.#held.delete(release);
        begin();
      });
      const release = () => {
        cancel();
        const periods = Math.ceil((this.nowMs - dueMs) / ms);
        cancel = this.afterForProcess(dueMs + periods * ms - this.nowMs, begin);
      };
      cancel = () => {
        this.#held.delete(release);
        stop();
      };
      this.#held.set(release, follows);
    });
    return () => cancel();
  }

  /** How much of the time since a look its owner had no need to look again. */
  heldMs(owner: object): number {
    const { isHeld = false, ranMs = 0, heldMs = 0 } = this.#looks.get(owner) ?? {};
    return isHeld ? this.nowMs - ranMs : heldMs;
  }

  /** Distinguishes the process that runs now from those before it. */
  get process(): number {
    return this.#process;
  }

  /** A process begins; the time of its monotonic clock runs since the machine was made. */
  beginProcess(run: () => void): void {
    this.#process = ++this.#processes;
    this.#processStartMs = this.nowMs;
    this.#isDead = false;
    this.#effectsLeft = Number.POSITIVE_INFINITY;
    this.#guarded(run);
  }

  get processAgeMs(): number {
    return this.nowMs - this.#processStartMs;
  }

  /** The process is gone: nothing of it runs any more. */
  dropProcess(): void {
    this.#isDead = true;
    drainMicrotasks();
    this.#process = 0;
    this.#held.clear();
  }

  /** The process crashes at its n-th effect from now on. */
  crashAfter(effects: number): void {
    this.#effectsLeft = effects;
  }

  /** Before each effect of the process. @throws CrashedError once it is dead */
  effect(): void {
    if (this.#isDead) throw new CrashedError();
    if (this.#process === 0) return;
    if (--this.#effectsLeft > 0) return;
    this.#isDead = true;
    this.onCrash?.();
    throw new CrashedError();
  }

  /** The program asks what time it is. */
  tell(): number {
    if (this.#asked.ms !== this.nowMs) this.#asked = { ms: this.nowMs, count: 0 };
    if (++this.#asked.count > MOST_QUESTIONS) this.onBusy?.();
    return this.nowMs;
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  /** Runs everything up to a time. @returns false when `until` said so before */
  runTo(ms: number, until: () => boolean = () => false): boolean {
    for (;;) {
      const next = this.#heap[0];
      if (!next || next.dueMs > ms) break;
      this.#pop();
      const { run, process } = next;
      next.run = undefined;
      if (!run || (process !== 0 && (process !== this.#process || this.#isDead))) continue;
      if (next.dueMs > this.nowMs) this.nowMs = next.dueMs;
      this.#guarded(run);
      if (until()) return false;
    }
    this.nowMs = Math.max(this.nowMs, ms);
    return true;
  }

  #guarded(run: () => void): void {
    try {
      run();
    } catch (error) {
      if (!(error instanceof CrashedError)) throw error;
    }
    drainMicrotasks();
  }

  #push(dueMs: number, run: () => void, process: number): () => void {
    const entry: Entry = { dueMs, order: this.#order++, run, process };
    const heap = this.#heap;
    let index = heap.length;
    heap.push(entry);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(entry, heap[parent]!)) break;
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = entry;
    return () => {
      entry.run = undefined;
    };
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = last;
  }

  /** The clocks, timers and chance of this JavaScript realm are its own, until another machine's are. */
  install(): void {
    if (!current) replaceClocks();
    current = this;
  }
}

/** The time of the machine that lives now. */
let current: VirtualTime | undefined;

/** The runtime's clocks, timers and chance become those of the current machine, until the end of the program. */
function replaceClocks(): void {
  const time = () => current!;
  class SimulatedDate extends RealDate {
    // biome-ignore lint/suspicious/noExplicitAny: the constructor of Date takes anything
    constructor(...values: any[]) {
      if (values.length === 0) super(Math.floor(time().wallMs));
      // biome-ignore lint/suspicious/noExplicitAny: as above
      else super(...(values as [any]));
    }

    static override now(): number {
      return Math.floor(time().wallMs);
    }
  }
  const setTimer = (callback: (...values: unknown[]) => void, ms = 0, ...values: unknown[]) =>
    new SimulatedTimer(time(), () => callback(...values), Number(ms) || 0, false);
  const setRepeating = (callback: (...values: unknown[]) => void, ms = 0, ...values: unknown[]) =>
    new SimulatedTimer(time(), () => callback(...values), Math.max(1, Number(ms) || 0), true);
  const clear = (timer: unknown) => {
    if (timer instanceof SimulatedTimer) timer.cancel();
  };
  Object.assign(globalThis, {
    Date: SimulatedDate,
    setTimeout: setTimer,
    setInterval: setRepeating,
    setImmediate: (callback: (...values: unknown[]) => void, ...values: unknown[]) => setTimer(callback, 0, ...values),
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
  });
  AbortSignal.timeout = (ms) => {
    const controller = new AbortController();
    time().afterForProcess(ms, () => controller.abort(new DOMException("The operation timed out.", "TimeoutError")));
    return controller.signal;
  };
  performance.now = () => time().tell();
  Math.random = () => time().programRandom.next();
  crypto.randomUUID = () => time().programRandom.uuid();
  Bun.sleepSync = () => {};
  Bun.gc = () => 0;
}

const isBefore = (a: Entry, b: Entry) => a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order);

class SimulatedTimer {
  readonly #time: VirtualTime;
  readonly #run: () => void;
  readonly #ms: number;
  readonly #repeats: boolean;
  #cancel: () => void = () => {};

  constructor(time: VirtualTime, run: () => void, ms: number, repeats: boolean) {
    this.#time = time;
    this.#run = run;
    this.#ms = ms;
    this.#repeats = repeats;
    this.#arm();
  }

  #arm(): void {
    this.#cancel = this.#time.afterForProcess(this.#ms, () => {
      if (this.#repeats) this.#arm();
      this.#run();
    });
  }

  cancel(): void {
    this.#cancel();
  }

  refresh(): this {
    this.#cancel();
    this.#arm();
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

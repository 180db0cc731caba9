import type { Clock } from "../model/clock.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";

/** One thread; the part of `Worker` that is used. */
export interface PoolThread {
  postMessage(message: TaskRequest): void;
  /** Set once, before the first message. */
  onResponse(listener: (response: TaskResponse) => void): void;
  /** It ended, or cannot be started. */
  onError(listener: (message: string) => void): void;
  terminate(): void;
}

export interface TaskRequest {
  id: number;
  task: string;
  args: readonly unknown[];
}

export type TaskResponse =
  | { id: number; ok: true; value: unknown }
  | { id: number; ok: false; error: { message: string; code?: string; name?: string } };

export interface TaskOptions {
  /**
   * A resource that may block the task, e.g. a path: others with that key wait while it is slow, fail while it hangs.
   */
  key: string;
  timeoutMs: number;
}

/** Functions that other threads run: their results arrive later. */
export type Threaded<T> = {
  readonly [K in keyof T]: T[K] extends (...args: infer A) => infer R ? (...args: A) => Promise<Awaited<R>> : never;
};

interface WorkerPoolDeps {
  clock: Clock;
  startThread: () => PoolThread;
}

/** Tasks that run at a time. */
const MAX_ACTIVE = 4;
/** A task that runs longer no longer counts as active: it waits for something, and must not delay others. */
const SLOW_MS = 500;
/** Threads that wait for something or do not come back; each costs some megabytes. */
const MAX_SLOW = 32;
/** An idle thread ends after this time. */
const IDLE_MS = 10_000;

interface Task {
  request: TaskRequest;
  options: TaskOptions;
  resolve: (value: never) => void;
  reject: (error: Error) => void;
}

/** The task did not end in time. Its thread may hang forever, in a file system that does not response. */
export class TaskTimeoutError extends Error {
  override readonly name = "TaskTimeoutError";
}

/**
 * Runs tasks that may wait for a file system in other threads, each with a deadline. A thread that hangs is left alone,
 * since a system call cannot be interrupted, and another one takes its place.
 */
export class WorkerPool {
  readonly #deps: WorkerPoolDeps;
  readonly #queue: Task[] = [];
  readonly #idle: { thread: PoolThread; cancelEnd: () => void; run: (task: Task) => void }[] = [];
  /** Keys of tasks that timed out and still run. */
  readonly #hung = new KeyCounts();
  /** Keys of tasks that run for longer than {@link SLOW_MS}, hung ones among them. */
  readonly #slow = new KeyCounts();
  /** Called when a task has ended or was abandoned. */
  readonly #onIdle = new Set<() => void>();
  #active = 0;
  #nextId = 1;

  constructor(deps: WorkerPoolDeps) {
    this.#deps = deps;
  }

  /** @throws TaskTimeoutError, or an Error with message and code of what the task threw */
  run<T>(task: string, args: readonly unknown[], options: TaskOptions): Promise<T> {
    if (this.#hung.has(options.key)) return Promise.reject(new TaskTimeoutError(EARLIER_HANGS));
    if (this.hungCount >= MAX_SLOW) return Promise.reject(new TaskTimeoutError(ALL_HANG));
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const request = { id: this.#nextId++, task, args };
    this.#queue.push({ request, options, resolve: resolve as (value: never) => void, reject });
    this.#startNext();
    return promise;
  }

  /** Threads that timed out and did not come back. */
  get hungCount(): number {
    return this.#hung.total;
  }

  /** Resolves when no task waits or runs, except for those that hang. */
  async settled(): Promise<void> {
    while (this.#queue.length > 0 || this.#active + this.#slow.total > this.hungCount) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#onIdle.add(resolve);
      await promise;
    }
  }

  #startNext(): void {
    while (this.#active < MAX_ACTIVE && this.#slow.total < MAX_SLOW) {
      const index = this.#queue.findIndex(({ options }) => !this.#slow.has(options.key));
      const [task] = index < 0 ? [] : this.#queue.splice(index, 1);
      if (!task) return;
      const idle = this.#idle.pop();
      idle?.cancelEnd();
      (idle?.run ?? this.#newThread())(task);
    }
  }

  #newThread(): (task: Task) => void {
    const { clock } = this.#deps;
    const thread = this.#deps.startThread();
    let current: { task: Task; release: () => void; cancel: () => void; isHung: boolean } | undefined;
    const end = (settle: (task: Task) => void, isAlive: boolean) => {
      const done = current;
      if (!done) return;
      current = undefined;
      done.cancel();
      if (done.isHung) this.#hung.remove(done.task.options.key);
      else settle(done.task);
      if (isAlive && !done.isHung) {
        const entry = {
          thread,
          run,
          cancelEnd: clock.schedule(IDLE_MS, () => {
            this.#idle.splice(this.#idle.indexOf(entry), 1);
            thread.terminate();
          }),
        };
        this.#idle.push(entry);
      } else thread.terminate();
      done.release();
    };
    const run = (task: Task) => {
      const { key, timeoutMs } = task.options;
      this.#active++;
      let state: "active" | "slow" = "active";
      const cancelSlow = clock.schedule(SLOW_MS, () => {
        state = "slow";
        this.#slow.add(key);
        this.#active--;
        this.#startNext();
      });
      const release = () => {
        if (state === "slow") this.#slow.remove(key);
        else this.#active--;
        this.#startNext();
        this.#wakeSettled();
      };
      const cancelTimeout = clock.schedule(timeoutMs, () => {
        if (current?.task !== task) return;
        current.isHung = true;
        this.#hung.add(key);
        task.reject(new TaskTimeoutError(`no answer within ${timeoutMs / 1000} s`));
        this.#refuseWaiting(key);
        this.#wakeSettled();
      });
      const cancel = () => {
        cancelSlow();
        cancelTimeout();
      };
      current = { task, release, cancel, isHung: false };
      thread.postMessage(task.request);
    };
    thread.onResponse((response) => {
      if (response.id !== current?.task.request.id) return;
      if (response.ok) end(({ resolve }) => resolve(response.value as never), true);
      else end(({ reject }) => reject(toError(response.error)), true);
    });
    thread.onError((message) => end(({ reject }) => reject(new Error(message)), false));
    return run;
  }

  #wakeSettled(): void {
    for (const resolve of this.#onIdle) resolve();
    this.#onIdle.clear();
  }

  /** Refuses the tasks that wait behind one that hangs, and all when no thread is left. */
  #refuseWaiting(key: string): void {
    const isFull = this.hungCount >= MAX_SLOW;
    for (const task of this.#queue.filter(({ options }) => isFull || options.key === key)) {
      this.#queue.splice(this.#queue.indexOf(task), 1);
      task.reject(new TaskTimeoutError(isFull ? ALL_HANG : EARLIER_HANGS));
    }
  }
}

const ALL_HANG = `${MAX_SLOW} operations wait for file systems that do not respond`;
const EARLIER_HANGS = "the file system does not respond (an earlier attempt still waits)";

/** How often each key is in use. */
class KeyCounts {
  readonly #counts = new Map<string, number>();
  #total = 0;

  get total(): number {
    return this.#total;
  }

  has(key: string): boolean {
    return this.#counts.has(key);
  }

  add(key: string): void {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    this.#total++;
  }

  remove(key: string): void {
    const left = (this.#counts.get(key) ?? 0) - 1;
    if (left > 0) this.#counts.set(key, left);
    else this.#counts.delete(key);
    this.#total--;
  }
}

function toError({ message, code, name }: { message: string; code?: string; name?: string }): Error {
  const error = new Error(message);
  if (name !== undefined) error.name = name;
  return code === undefined ? error : Object.assign(error, { code });
}

/**
 * One asynchronous file access at a time: the runtime may have two threads for them, and a call to a file system that
 * does not respond keeps its thread.
 */
export class FileSlot {
  readonly #clock: Pick<Clock, "schedule">;
  readonly #limit = new ConcurrencyLimit(1);

  constructor(clock: Pick<Clock, "schedule">) {
    this.#clock = clock;
  }

  /** Work that takes longer keeps the slot until it ends. @param timeoutMs from now on @throws TaskTimeoutError */
  async run<T>(work: () => Promise<T>, timeoutMs: number): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const giveUp = new AbortController();
    const cancel = this.#clock.schedule(timeoutMs, () => {
      const error = new TaskTimeoutError(`no answer within ${timeoutMs / 1000} s`);
      giveUp.abort(error);
      reject(error);
    });
    const done = this.#limit.run(giveUp.signal, work);
    // A failure after the deadline is dropped.
    done.catch(() => {});
    try {
      return await Promise.race([done, late]);
    } finally {
      cancel();
    }
  }
}

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
  /** `slow`: it runs for longer than {@link SLOW_MS}. `hung`: it timed out and still runs. */
  state: "active" | "slow" | "hung";
  cancelTimers: () => void;
}

/** A thread with the task that it runs. */
interface PoolWorker {
  thread: PoolThread;
  task: Task | undefined;
  /** Cancels the end of an idle thread. */
  cancelEnd: () => void;
}

/** The task did not end in time. Its thread may hang forever, in a file system that does not respond. */
export class TaskTimeoutError extends Error {}

/**
 * Runs tasks that may wait for a file system in other threads, each with a deadline. A thread that hangs is left alone,
 * since a system call cannot be interrupted, and another one takes its place.
 */
export class WorkerPool {
  readonly #deps: WorkerPoolDeps;
  readonly #queue: Task[] = [];
  /** Tasks that have a thread. */
  readonly #running = new Set<Task>();
  readonly #idle: PoolWorker[] = [];
  /** Called when a task has ended or was abandoned. */
  readonly #onIdle = new Set<() => void>();
  #nextId = 1;

  constructor(deps: WorkerPoolDeps) {
    this.#deps = deps;
  }

  /** @throws TaskTimeoutError, or an Error with message and code of what the task threw */
  run<T>(task: string, args: readonly unknown[], options: TaskOptions): Promise<T> {
    const hung = this.#running.values().filter(({ state }) => state === "hung");
    if (hung.some((other) => other.options.key === options.key)) {
      return Promise.reject(new TaskTimeoutError(EARLIER_HANGS));
    }
    if (this.hungCount >= MAX_SLOW) return Promise.reject(new TaskTimeoutError(ALL_HANG));
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const request = { id: this.#nextId++, task, args };
    const settle = { resolve: resolve as (value: never) => void, reject };
    this.#queue.push({ request, options, ...settle, state: "active", cancelTimers: () => {} });
    this.#startNext();
    return promise;
  }

  /** Threads that timed out and did not come back. */
  get hungCount(): number {
    return this.#count("hung");
  }

  /** Resolves when no task waits or runs, except for those that hang. */
  async settled(): Promise<void> {
    while (this.#queue.length > 0 || this.#running.size > this.hungCount) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#onIdle.add(resolve);
      await promise;
    }
  }

  #count(state: Task["state"]): number {
    return [...this.#running].filter((task) => task.state === state).length;
  }

  #startNext(): void {
    for (;;) {
      const active = this.#count("active");
      if (active >= MAX_ACTIVE || this.#running.size - active >= MAX_SLOW) return;
      const slowKeys = new Set([...this.#running].filter((it) => it.state !== "active").map((it) => it.options.key));
      const index = this.#queue.findIndex(({ options }) => !slowKeys.has(options.key));
      const [task] = index < 0 ? [] : this.#queue.splice(index, 1);
      if (!task) return;
      const worker = this.#idle.pop() ?? this.#newWorker();
      worker.cancelEnd();
      this.#begin(worker, task);
    }
  }

  #newWorker(): PoolWorker {
    const worker: PoolWorker = { thread: this.#deps.startThread(), task: undefined, cancelEnd: () => {} };
    worker.thread.onResponse((response) => {
      const { task } = worker;
      if (response.id !== task?.request.id) return;
      if (response.ok) task.resolve(response.value as never);
      else task.reject(toError(response.error));
      this.#end(worker, task, task.state !== "hung");
    });
    worker.thread.onError((message) => {
      worker.task?.reject(new Error(message));
      if (worker.task) this.#end(worker, worker.task, false);
    });
    return worker;
  }

  #begin(worker: PoolWorker, task: Task): void {
    const { clock } = this.#deps;
    const { key, timeoutMs } = task.options;
    worker.task = task;
    this.#running.add(task);
    const cancelSlow = clock.schedule(SLOW_MS, () => {
      if (task.state === "active") task.state = "slow";
      this.#startNext();
    });
    const cancelTimeout = clock.schedule(timeoutMs, () => {
      task.state = "hung";
      task.reject(new TaskTimeoutError(`no answer within ${timeoutMs / 1000} s`));
      this.#refuseWaiting(key);
      this.#startNext();
      this.#wakeSettled();
    });
    task.cancelTimers = () => {
      cancelSlow();
      cancelTimeout();
    };
    worker.thread.postMessage(task.request);
  }

  #end(worker: PoolWorker, task: Task, isUsable: boolean): void {
    worker.task = undefined;
    this.#running.delete(task);
    task.cancelTimers();
    if (isUsable) {
      worker.cancelEnd = this.#deps.clock.schedule(IDLE_MS, () => {
        this.#idle.splice(this.#idle.indexOf(worker), 1);
        worker.thread.terminate();
      });
      this.#idle.push(worker);
    } else worker.thread.terminate();
    this.#startNext();
    this.#wakeSettled();
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

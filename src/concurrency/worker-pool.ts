import type { Clock } from "../model/clock.ts";

/** One thread; the part of `Worker` that is used. */
export interface PoolThread {
  postMessage(message: TaskRequest): void;
  /** Set once, before the first message. */
  onAnswer(listener: (answer: TaskAnswer) => void): void;
  /** It ended, or cannot be started. */
  onError(listener: (message: string) => void): void;
  terminate(): void;
}

export interface TaskRequest {
  id: number;
  task: string;
  args: readonly unknown[];
}

export type TaskAnswer =
  | { id: number; ok: true; value: unknown }
  | { id: number; ok: false; error: { message: string; code?: string; name?: string } };

export interface TaskOptions {
  /** The resource that may block the task, e.g. a path: while one task hangs, others with the same key fail at once. */
  key: string;
  timeoutMs: number;
}

export interface WorkerPoolDeps {
  clock: Clock;
  startThread: () => PoolThread;
}

/** Tasks that run at a time. */
const MAX_ACTIVE = 4;
/** A task that runs longer no longer counts as active: it waits for something, and must not hold up others. */
const SLOW_MS = 500;
/** Threads that do not come back; each costs some megabytes. */
const MAX_HUNG = 32;
/** An idle thread ends after this time. */
const IDLE_MS = 10_000;

interface Task {
  request: TaskRequest;
  options: TaskOptions;
  resolve: (value: never) => void;
  reject: (error: Error) => void;
}

/** The task did not end in time. Its thread may hang for good, in a file system that does not answer. */
export class TaskTimeoutError extends Error {
  override readonly name = "TaskTimeoutError";
}

/**
 * Runs tasks that may wait for a file system, or take long, in other threads, each with a deadline. A thread that hangs
 * is left alone, since a system call cannot be taken back, and another one takes its place.
 */
export class WorkerPool {
  readonly #deps: WorkerPoolDeps;
  readonly #queue: Task[] = [];
  readonly #idle: { thread: PoolThread; cancelEnd: () => void; run: (task: Task) => void }[] = [];
  /** Keys of tasks that timed out and still run. */
  readonly #hung = new Map<string, number>();
  #active = 0;
  #nextId = 1;

  constructor(deps: WorkerPoolDeps) {
    this.#deps = deps;
  }

  /** @throws TaskTimeoutError, or an Error with message and code of what the task threw */
  run<T>(task: string, args: readonly unknown[], options: TaskOptions): Promise<T> {
    if (this.#hung.has(options.key)) {
      return Promise.reject(new TaskTimeoutError("the file system does not answer (an earlier attempt still waits)"));
    }
    if (this.hungCount >= MAX_HUNG) {
      return Promise.reject(new TaskTimeoutError(`${MAX_HUNG} operations wait for file systems that do not answer`));
    }
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const request = { id: this.#nextId++, task, args };
    this.#queue.push({ request, options, resolve: resolve as (value: never) => void, reject });
    this.#startNext();
    return promise;
  }

  /** Threads that timed out and did not come back. */
  get hungCount(): number {
    return [...this.#hung.values()].reduce((sum, count) => sum + count, 0);
  }

  #startNext(): void {
    while (this.#active < MAX_ACTIVE) {
      const task = this.#queue.shift();
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
      if (done.isHung) this.#noteHung(done.task.options.key, -1);
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
      this.#active++;
      let isActive = true;
      const release = () => {
        if (!isActive) return;
        isActive = false;
        this.#active--;
        this.#startNext();
      };
      const cancelSlow = clock.schedule(SLOW_MS, release);
      const cancelTimeout = clock.schedule(task.options.timeoutMs, () => {
        if (current?.task !== task) return;
        current.isHung = true;
        this.#noteHung(task.options.key, 1);
        task.reject(new TaskTimeoutError(`no answer within ${task.options.timeoutMs / 1000} s`));
      });
      const cancel = () => {
        cancelSlow();
        cancelTimeout();
      };
      current = { task, release, cancel, isHung: false };
      thread.postMessage(task.request);
    };
    thread.onAnswer((answer) => {
      if (answer.id !== current?.task.request.id) return;
      if (answer.ok) end(({ resolve }) => resolve(answer.value as never), true);
      else end(({ reject }) => reject(toError(answer.error)), true);
    });
    thread.onError((message) => end(({ reject }) => reject(new Error(message)), false));
    return run;
  }

  #noteHung(key: string, change: 1 | -1): void {
    const count = (this.#hung.get(key) ?? 0) + change;
    if (count > 0) this.#hung.set(key, count);
    else this.#hung.delete(key);
  }
}

function toError({ message, code, name }: { message: string; code?: string; name?: string }): Error {
  const error = new Error(message);
  if (name !== undefined) error.name = name;
  return code === undefined ? error : Object.assign(error, { code });
}

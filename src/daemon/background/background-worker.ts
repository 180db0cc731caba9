/** Entry point of the threads of `BackgroundThreads`; scripts/build.ts compiles it into the executable. */
import type { TaskRequest, TaskResponse } from "../../base/concurrency/worker-pool.ts";
import { BACKGROUND_TASKS } from "./background-tasks.ts";

declare const self: { onmessage: (event: { data: unknown }) => void; postMessage(response: TaskResponse): void };

/** The request that comes, after it its arguments. */
let parts: unknown[] = [];
self.onmessage = async ({ data }) => {
  parts.push(data);
  const [{ id, task, count }, ...args] = parts as [Omit<TaskRequest, "args"> & { count: number }, ...unknown[]];
  if (args.length < count) return;
  parts = [];
  try {
    const run = BACKGROUND_TASKS[task as keyof typeof BACKGROUND_TASKS] as (...all: unknown[]) => unknown;
    self.postMessage({ id, ok: true, value: await run(...args) });
  } catch (error) {
    const { message, code, name } = error as NodeJS.ErrnoException;
    self.postMessage({ id, ok: false, error: { message, name, ...(code !== undefined && { code }) } });
  }
};

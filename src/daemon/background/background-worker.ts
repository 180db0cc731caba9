/** Entry point of the threads of `BackgroundThreads`; scripts/build.ts compiles it into the executable. */
import type { TaskRequest, TaskResponse } from "../../base/concurrency/worker-pool.ts";
import { BACKGROUND_TASKS } from "./background-tasks.ts";

declare const self: { onmessage: (event: { data: TaskRequest }) => void; postMessage(response: TaskResponse): void };

self.onmessage = async ({ data: { id, task, args } }) => {
  try {
    const run = BACKGROUND_TASKS[task as keyof typeof BACKGROUND_TASKS] as (...all: unknown[]) => unknown;
    self.postMessage({ id, ok: true, value: await run(...args) });
  } catch (error) {
    const { message, code, name } = error as NodeJS.ErrnoException;
    self.postMessage({ id, ok: false, error: { message, name, ...(code !== undefined && { code }) } });
  }
};

import type { Browser } from "playwright-core";

/** A task of the main thread of a page. */
export interface MainThreadTask {
  /** Since the first task. */
  startMs: number;
  /** CPU time: on a busy machine the clock's says little. */
  cpuMs: number;
  wallMs: number;
}

/** An event of Chromium's trace. Times are in microseconds; `tdur` is the CPU time of the thread. */
interface TraceEvent {
  name: string;
  ph: string;
  pid: number;
  tid: number;
  ts: number;
  dur?: number;
  tdur?: number;
  args: { name?: string };
}

/** Tasks of the main threads of all pages of a browser while `during` runs. */
export async function traceMainThread(browser: Browser, during: () => Promise<unknown>): Promise<MainThreadTask[]> {
  const session = await browser.newBrowserCDPSession();
  const events: TraceEvent[] = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...(value as unknown as TraceEvent[])));
  await session.send("Tracing.start", {
    transferMode: "ReportEvents",
    traceConfig: { includedCategories: ["toplevel", "__metadata"] },
  });
  await during();
  const complete = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
  await session.send("Tracing.end");
  await complete;
  await session.detach();
  const threadOf = ({ pid, tid }: TraceEvent) => `${pid}:${tid}`;
  const mains = new Set(
    events.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain").map(threadOf),
  );
  const tasks = events
    .filter((event) => event.name.endsWith("::RunTask") && mains.has(threadOf(event)))
    .toSorted((a, b) => a.ts - b.ts);
  return tasks.map(({ ts, tdur = 0, dur = 0 }) => ({
    startMs: (ts - (tasks[0]?.ts ?? 0)) / 1000,
    cpuMs: tdur / 1000,
    wallMs: dur / 1000,
  }));
}

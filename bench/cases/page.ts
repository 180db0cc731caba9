import type { Browser, Page } from "playwright-core";
import { launchBrowser } from "../../test/support/browser.ts";
import { TestNode } from "../../test/support/test-node.ts";
import { type BenchCase, type Measurement, median } from "../bench-case.ts";
import { traceMainThread } from "../main-thread.ts";
import { measureCpuPercent, readMegabytes } from "../process-usage.ts";
import { startWithPods } from "../running-pods.ts";

const PODS = 110;
const LOADS = 10;
/** An open page gets the usage of all pods every ten seconds. */
const UPDATE_MS = 10_000;
const UPDATES = 6;
/**
 * The history has sampled all pods after this time, and the memory of the start was reclaimed. The next reclaim, five
 * minutes after the start, comes after the last reading.
 */
const HISTORY_MS = 75_000;

/** Loads the page with an empty cache. */
async function measureLoad(browser: Browser, address: string) {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.goto(address);
    await page
      .locator("table.pods tbody tr")
      .nth(PODS - 1)
      .waitFor();
    return await page.evaluate<{ paintMs: number; transferred: number }>(`({
      paintMs: performance.getEntriesByName("first-contentful-paint")[0].startTime,
      transferred: performance.getEntriesByType("resource").reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0),
    })`);
  } finally {
    await context.close();
  }
}

/** Average main thread time of one update of all rows, including other work of the page in that time. */
async function measureUpdates(browser: Browser, page: Page) {
  await page.evaluate(`(() => {
    window.longest = 0;
    window.shift = 0;
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration);
    }).observe({ type: "longtask" });
    new PerformanceObserver((list) => {
      for (const { value } of list.getEntries()) window.shift += value;
    }).observe({ type: "layout-shift", buffered: true });
  })()`);
  const tasks = await traceMainThread(browser, () => Bun.sleep(UPDATES * UPDATE_MS));
  const sum = (key: "cpuMs" | "wallMs") => tasks.reduce((total, task) => total + task[key], 0);
  const longestMs = await page.evaluate<number>("window.longest");
  const shift = await page.evaluate<number>("window.shift");
  return { updateMs: sum("cpuMs") / UPDATES, wallMs: sum("wallMs") / UPDATES, longestMs, shift };
}

async function run(): Promise<Measurement[]> {
  const node = new TestNode();
  const browser = await launchBrowser();
  try {
    const { pid } = await startWithPods(node, PODS);
    await Bun.sleep(HISTORY_MS);
    const address = `http://127.0.0.1:${node.cadvisorPort}/`;
    const closedPercent = await measureCpuPercent([pid], () => Bun.sleep(UPDATES * UPDATE_MS));
    const closed = { all: readMegabytes(pid, "VmRSS"), own: readMegabytes(pid, "RssAnon") };
    const loads: Awaited<ReturnType<typeof measureLoad>>[] = [];
    for (let i = 0; i < LOADS; i++) loads.push(await measureLoad(browser, address));
    const paints = loads.map(({ paintMs }) => paintMs);
    const page = await browser.newPage();
    await page.goto(address);
    await page
      .locator("table.pods tbody tr")
      .nth(PODS - 1)
      .waitFor();
    await Bun.sleep(2 * UPDATE_MS);
    let updates = { updateMs: 0, wallMs: 0, longestMs: 0, shift: 0 };
    const openPercent = await measureCpuPercent([pid], async () => {
      updates = await measureUpdates(browser, page);
    });
    const open = { all: readMegabytes(pid, "VmRSS"), own: readMegabytes(pid, "RssAnon") };
    return [
      { what: "first paint", unit: "ms", value: median(paints), runs: paints, goal: { atMost: 200 } },
      {
        what: "  transferred before the terminal, gzip",
        unit: "MB",
        value: loads[0]!.transferred / 1e6,
        goal: { atMost: 0.15 },
      },
      {
        what: "CPU of the browser's main thread for an update of all pods",
        unit: "ms",
        value: updates.updateMs,
        goal: { atMost: 16 },
      },
      { what: "  by the clock", unit: "ms", value: updates.wallMs },
      { what: "  longest task over 50 ms", unit: "ms", value: updates.longestMs },
      { what: "  layout shift (CLS), per cent", unit: "%", value: updates.shift * 100 },
      {
        what: "CPU of kubelet-ts that an open page adds",
        unit: "%",
        value: openPercent - closedPercent,
        goal: { atMost: 1.5 },
      },
      { what: "  without a page", unit: "%", value: closedPercent },
      {
        what: "anonymous memory that an open page adds",
        unit: "MB",
        value: open.own - closed.own,
        goal: { atMost: 10 },
      },
      { what: "  RSS, pages of the program's file included", unit: "MB", value: open.all - closed.all },
    ];
  } finally {
    await browser.close();
    await node.cleanUp();
  }
}

export const pageCases: readonly BenchCase[] = [
  { name: "page-110", about: `the page with ${PODS} pods: the browser's and our own cost of it`, run },
];

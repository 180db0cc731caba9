/**
 * `bun scripts/page-benchmark.ts [PODS]`: cost of the page in a browser, with PODS (110) synthetic pods and no engine: first
 * paint, and the main thread's time for an update of the usage of all pods, for one in which every pod has restarted, and
 * for one that changes every cell but the name. Needs Chromium.
 */
import type { Page } from "playwright-core";
import { traceMainThread } from "../bench/main-thread.ts";
import type { Pod } from "../src/base/api/pod.ts";
import { SystemClock } from "../src/base/host/system-clock.ts";
import type { Clock } from "../src/base/model/clock.ts";
import type { ContainerAccess } from "../src/base/model/container-access.ts";
import type { PodRow } from "../src/page/pod-row.ts";
import { Listener } from "../src/server/listener.ts";
import { OPEN_PERIOD_MS, PageFeed, type PageSource } from "../src/server/page/page-feed.ts";
import { PageRoutes } from "../src/server/page/page-routes.ts";
import { PageSessions } from "../src/server/page/page-session.ts";
import { UsageRecorder } from "../src/server/page/usage-history.ts";
import { launchBrowser } from "../test/support/browser.ts";

const PODS = Number(process.argv[2] ?? 110);
const UPDATES = 30;
const PAINTS = 15;
const TRACED_UPDATES = 15;
/** The time between two updates. */
const PERIOD_MS = 700;

const system = new SystemClock();
/** Updates come faster than those of an open page. */
const clock: Clock = {
  now: () => system.now(),
  monotonicMs: () => system.monotonicMs(),
  sleep: (ms, signal) => system.sleep(ms, signal),
  schedule: (ms, callback) => system.schedule(ms === OPEN_PERIOD_MS ? PERIOD_MS : ms, callback),
};
let generation = 0;
/** Every cell of every row changes, not only the restarts. */
let areAllCellsNew = false;
let isMeasuring = true;
const listeners = new Set<() => void>();
const makePods = (): Pod[] =>
  Array.from({ length: PODS }, (_, index) => ({
    metadata: { uid: `uid-${index}`, name: `worker-${index}`, namespace: index % 3 === 0 ? "batch" : "default" },
    spec: { containers: [] },
  })) as unknown as Pod[];
let pods = makePods();
const random = (max: number) => Math.round(Math.random() * max);
const time = new Date().toISOString();
const isDown = () => areAllCellsNew && generation % 2 === 1;
const toRow = ({ metadata }: Pod): PodRow => ({
  uid: metadata.uid ?? "",
  namespace: metadata.namespace ?? "",
  name: metadata.name ?? "",
  status: isDown() ? "CrashLoopBackOff" : "Running",
  ready: isDown() ? 0 : 1,
  total: 1,
  isReady: !isDown(),
  restarts: generation,
  lastRestart: generation > 0 ? Date.now() : 0,
  createdAt: Date.now() - 3_600_000 - (areAllCellsNew ? generation * 3_600_000 : 0),
  owner: "",
  source: `/etc/kubernetes/manifests/${metadata.name}.yaml:${areAllCellsNew ? generation : 1}`,
  why: isDown() ? "container app: its program ends with an error (exit code 1)" : "",
  notice: "",
  ip: "10.0.0.1",
});
const measureUsage = async () => ({
  summary: {
    node: { nodeName: "bench", startTime: time, cpu: { time, usageNanoCores: random(2e9) } },
    pods: pods.map(({ metadata }) => ({
      podRef: { name: metadata.name ?? "", namespace: "default", uid: metadata.uid ?? "" },
      startTime: time,
      containers: [],
      cpu: { time, usageNanoCores: random(1e8) },
      memory: { time, workingSetBytes: random(1e9) },
    })),
  },
  node: {
    cpuCores: Math.random() * 2,
    memoryBytes: random(4e9),
    diskUsedBytes: random(4e10),
    diskBytes: 8e10,
    imageUsedBytes: 1e9,
    imageDiskUsedBytes: 8e10,
    imageDiskBytes: 8e10,
    load: [1, 2, 3] as [number, number, number],
  },
});
const usage = new UsageRecorder();
for (let minute = 60; minute > 0; minute--) usage.add((await measureUsage()).summary, Date.now() - minute * 10_000);
const source: PageSource = {
  isComplete: true,
  services: () => [],
  pods: () => pods,
  onPodsChanged: (callback) => {
    listeners.add(callback);
    return () => listeners.delete(callback);
  },
  toRow,
  node: async () => ({
    name: "bench",
    version: "kubelet-ts",
    engine: "Docker",
    problem: "",
    isEngineAway: false,
    conditions: [{ type: "Ready", status: "True", reason: "", message: "", since: 1 }],
    cpuCount: 2,
    memoryBytes: 8e9,
    bootTime: 1,
    cluster: null,
  }),
  rejections: () => [],
  workloads: () => [],
  measure: () => (isMeasuring ? measureUsage() : new Promise(() => {})),
};
const none = () => {};
const logger = { error: console.error, warn: console.error, info: none, debug: console.error, trace: none };
const feed = new PageFeed(clock, logger, usage, source);
const routes = new PageRoutes({
  clock,
  feed,
  sessions: new PageSessions(Buffer.alloc(32, 1), () => Date.now()),
  isLocal: true,
  details: {
    pods: () => pods,
    podDetail: async () => undefined,
    nodeDetail: () => Promise.reject(new Error("not here")),
    processes: async () => [],
  },
  containers: {} as ContainerAccess,
  clientUserId: () => undefined,
  actions: undefined,
});
const listener = new Listener(
  {
    name: "benchmark",
    address: { hostname: "127.0.0.1", port: 0 },
    route: (request) => routes.route(request) ?? { status: 404, headers: {}, body: "" },
    acceptsHost: () => true,
    transport: "Bun.serve",
  },
  { clock, logger },
);
listener.start();
while (listener.port === undefined) await Bun.sleep(10);
const address = `http://127.0.0.1:${listener.port}/`;

const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
const round = (value: number) => value.toFixed(1);

/** Milliseconds since the navigation: the first paint of anything, and the frame with all pods. */
async function paint(page: Page): Promise<{ first: number; pods: number }> {
  await page.addInitScript(`window.podsAt = new Promise((resolve) => {
    const check = () => document.querySelectorAll("table.pods tbody tr").length >= ${PODS}
      ? requestAnimationFrame(() => setTimeout(() => resolve(performance.now())))
      : requestAnimationFrame(check);
    requestAnimationFrame(check);
  })`);
  await page.goto(address);
  const podsAt = await page.evaluate<number>("window.podsAt");
  // The entry may come after the frame. The page's policy lets no script evaluate a text, as waitForFunction does.
  const first = await page.evaluate<number>(`new Promise((resolve) => {
    new PerformanceObserver((list) => {
      for (const { startTime } of list.getEntriesByName("first-contentful-paint")) resolve(startTime);
    }).observe({ type: "paint", buffered: true });
  })`);
  return { first, pods: podsAt };
}

const METRICS = ["TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration"] as const;
const browser = await launchBrowser();
try {
  const paints: { first: number; pods: number }[] = [];
  for (let run = 0; run < PAINTS; run++) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    paints.push(await paint(await context.newPage()));
    await context.close();
  }
  console.log(
    `empty cache, median of ${PAINTS}: first paint ${round(median(paints.map(({ first }) => first)))} ms,`,
    `all pods painted ${round(median(paints.map((it) => it.pods)))} ms`,
  );
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await paint(page);
  const session = await context.newCDPSession(page);
  // CPU time of the main thread: other work on the machine does not count.
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const read = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return METRICS.map((wanted) => (metrics.find(({ name }) => name === wanted)?.value ?? 0) * 1000);
  };
  const makeUpdates = async (count: number, each: () => void) => {
    for (let update = 0; update < count; update++) {
      each();
      await Bun.sleep(PERIOD_MS);
    }
  };
  /** @param each makes an update */
  const measure = async (what: string, each = none) => {
    const before = await read();
    await makeUpdates(UPDATES, each);
    const costs = (await read()).map((value, index) => (value - (before[index] ?? 0)) / UPDATES);
    const parts = METRICS.map((name, index) => `${name} ${round(costs[index] ?? 0)} ms`);
    // Apart from that: a trace is work for the main thread, too.
    const tasks = await traceMainThread(browser, () => makeUpdates(TRACED_UPDATES, each));
    const longest = Array.from({ length: TRACED_UPDATES }, (_, update) =>
      Math.max(
        0,
        ...tasks.filter(({ startMs }) => Math.floor(startMs / PERIOD_MS) === update).map(({ cpuMs }) => cpuMs),
      ),
    );
    console.log(`${what}: ${parts.join(", ")}; longest task, median ${round(median(longest))} ms`);
  };
  await Bun.sleep(2000);
  await measure(`usage of ${PODS} pods`);
  isMeasuring = false;
  await Bun.sleep(2000);
  await measure("nothing, for the same time");
  const changeAll = () => {
    generation++;
    pods = makePods();
    for (const notify of listeners) notify();
  };
  await measure(`all ${PODS} pods restarted`, changeAll);
  areAllCellsNew = true;
  await measure(`every cell of ${PODS} pods changed`, changeAll);
} finally {
  await browser.close();
  feed.stop();
  await listener.stop();
}
process.exit(0);

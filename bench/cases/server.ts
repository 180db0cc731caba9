import { TestNode } from "../../test/support/test-node.ts";
import { type BenchCase, type Measurement, median, percentile } from "../bench-case.ts";
import { measureCpuPercent, readCpuMs, readMegabytes } from "../process-usage.ts";
import { benchPod, startWithPods } from "../running-pods.ts";

const PODS = 110;
/** Answers are cached for a second; with this pause each one is measured. */
const PAUSE_MS = 1_050;
const WARM_UP = 10;
const REQUESTS = 50;

/** As Prometheus asks. */
const SCRAPE_HEADERS = {
  Accept: "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5",
  "Accept-Encoding": "gzip",
};
const SCRAPED = ["/metrics", "/metrics/cadvisor", "/metrics/resource", "/metrics/probes"];
const SCRAPE_PERIOD_MS = 15_000;
/** `KUBELET_TS_SCRAPE_MINUTES` sets another time. */
const SCRAPE_MINUTES = Number(process.env.KUBELET_TS_SCRAPE_MINUTES ?? 10);

interface Endpoint {
  path: string;
  headers?: Record<string, string>;
  pauseMs: number;
  /** Goal for the median, ms. */
  atMost?: number;
}

const ENDPOINTS: readonly Endpoint[] = [
  { path: "/pods", pauseMs: 20, atMost: 3 },
  { path: "/stats/summary", pauseMs: PAUSE_MS, atMost: 25 },
  { path: "/stats/summary?only_cpu_and_memory=true", pauseMs: PAUSE_MS },
  { path: "/metrics/cadvisor", pauseMs: PAUSE_MS, atMost: 100 },
  { path: "/metrics/cadvisor", headers: SCRAPE_HEADERS, pauseMs: PAUSE_MS },
  { path: "/metrics/resource", pauseMs: PAUSE_MS },
];

/**
 * A pod whose container wakes up each second, since a container that never runs is cheaper to measure than a real one.
 * Its requests are small enough for all pods to be admitted on two processors.
 */
const wakingPod = (name: string) =>
  benchPod(name, {
    command: ["tail", "-f", "/dev/null"],
    resources: { requests: { cpu: "5m" }, limits: { cpu: "100m", memory: "32Mi" } },
  });

async function ask(port: number, { path, headers = { "Accept-Encoding": "identity" } }: Omit<Endpoint, "pauseMs">) {
  const startMs = performance.now();
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers, decompress: false });
  const { byteLength } = await response.arrayBuffer();
  if (!response.ok) throw new Error(`${path} answered ${response.status}`);
  return { ms: performance.now() - startMs, bytes: byteLength };
}

async function measureEndpoint(node: TestNode, pid: number, endpoint: Endpoint): Promise<Measurement[]> {
  const { path, headers, pauseMs, atMost } = endpoint;
  for (let i = 0; i < WARM_UP; i++) {
    await ask(node.readOnlyPort, endpoint);
    await Bun.sleep(pauseMs);
  }
  const runs: number[] = [];
  let bytes = 0;
  const beforeMs = readCpuMs([pid]);
  for (let i = 0; i < REQUESTS; i++) {
    const answer = await ask(node.readOnlyPort, endpoint);
    runs.push(answer.ms);
    ({ bytes } = answer);
    await Bun.sleep(pauseMs);
  }
  const cpuMs = (readCpuMs([pid]) - beforeMs) / REQUESTS;
  return [
    {
      what: `${path}${headers ? ", gzip" : ""}, p50`,
      unit: "ms",
      value: median(runs),
      runs,
      ...(atMost !== undefined && { goal: { atMost } }),
    },
    { what: "  p99", unit: "ms", value: percentile(runs, 0.99) },
    { what: "  CPU of each, the kubelet's other work included", unit: "ms", value: cpuMs },
    { what: "  size", unit: "MB", value: bytes / 1e6 },
  ];
}

/** Runs `measure` with 110 pods whose containers wake up each second. */
async function withPods(measure: (node: TestNode, pid: number) => Promise<Measurement[]>): Promise<Measurement[]> {
  await using node = new TestNode();
  const { pid } = await startWithPods(node, PODS, wakingPod);
  return await measure(node, pid);
}

async function measureEndpoints(node: TestNode, pid: number): Promise<Measurement[]> {
  const measurements: Measurement[] = [];
  for (const endpoint of ENDPOINTS) measurements.push(...(await measureEndpoint(node, pid, endpoint)));
  return measurements;
}

async function measureScraping(node: TestNode, pid: number): Promise<Measurement[]> {
  const runs = new Map<string, number[]>(SCRAPED.map((path) => [path, []]));
  const scrape = async () => {
    for (const path of SCRAPED) {
      runs.get(path)!.push((await ask(node.readOnlyPort, { path, headers: SCRAPE_HEADERS })).ms);
    }
  };
  const periods = Math.max(1, Math.round((SCRAPE_MINUTES * 60_000) / SCRAPE_PERIOD_MS));
  const rest = Math.max(1, Math.ceil(periods / 5));
  const idle = await measureCpuPercent([pid], () => Bun.sleep(rest * SCRAPE_PERIOD_MS));
  await scrape();
  await Bun.sleep(SCRAPE_PERIOD_MS);
  const busy = await measureCpuPercent([pid], async () => {
    const startMs = performance.now();
    for (let period = 1; period <= periods; period++) {
      await scrape();
      await Bun.sleep(Math.max(0, startMs + period * SCRAPE_PERIOD_MS - performance.now()));
    }
  });
  return [
    { what: `CPU while all metrics are scraped each 15 s, over ${periods / 4} min`, unit: "%", value: busy },
    { what: "  without requests, before", unit: "%", value: idle },
    { what: "  CPU of one scrape", unit: "ms", value: ((busy - idle) / 100) * SCRAPE_PERIOD_MS },
    ...SCRAPED.flatMap((path): Measurement[] => [
      { what: `${path}, gzip, p50`, unit: "ms", value: median(runs.get(path)!), runs: runs.get(path)! },
      { what: "  p99", unit: "ms", value: percentile(runs.get(path)!, 0.99) },
    ]),
    { what: "RSS at the end", unit: "MB", value: readMegabytes(pid, "VmRSS") },
    { what: "  of which anonymous", unit: "MB", value: readMegabytes(pid, "RssAnon") },
  ];
}

export const serverCases: readonly BenchCase[] = [
  {
    name: "server-110",
    about: `cost of an answer of the read-only port with ${PODS} running pods`,
    run: () => withPods(measureEndpoints),
  },
  {
    name: "scrape-110",
    about: `CPU while Prometheus scrapes ${PODS} pods each 15 s for ${SCRAPE_MINUTES} minutes (KUBELET_TS_SCRAPE_MINUTES)`,
    run: () => withPods(measureScraping),
  },
];

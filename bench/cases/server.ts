import { readFileSync } from "node:fs";
import { TestNode } from "../../test/support/test-node.ts";
import { type BenchCase, type Measurement, median } from "../bench-case.ts";

/** An answer is cached for a second; asked more slowly than that, each one is measured anew. */
const PAUSE_MS = 1_050;
const WARM_UP = 3;
const REQUESTS = 20;

interface Endpoint {
  path: string;
  headers?: Record<string, string>;
  pauseMs: number;
  /** Goal for the median, ms. */
  atMost?: number;
}

const ENDPOINTS: readonly Endpoint[] = [
  { path: "/pods", pauseMs: 20, atMost: 1 },
  { path: "/stats/summary", pauseMs: PAUSE_MS, atMost: 10 },
  { path: "/stats/summary?only_cpu_and_memory=true", pauseMs: PAUSE_MS },
  { path: "/metrics/cadvisor", pauseMs: PAUSE_MS, atMost: 30 },
  { path: "/metrics/cadvisor", headers: { "Accept-Encoding": "gzip" }, pauseMs: PAUSE_MS },
  { path: "/metrics/resource", pauseMs: PAUSE_MS },
];

const TICKS_PER_SECOND = 100;

/** User and system time of a process, ms. */
function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
}

async function ask(port: number, { path, headers = { "Accept-Encoding": "identity" } }: Endpoint) {
  const startMs = performance.now();
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers, decompress: false });
  const { byteLength } = await response.arrayBuffer();
  if (!response.ok) throw new Error(`${path} answered ${response.status}`);
  return { ms: performance.now() - startMs, bytes: byteLength };
}

async function measureEndpoint(node: TestNode, pid: number, endpoint: Endpoint): Promise<Measurement[]> {
  const { path, headers, pauseMs, atMost } = endpoint;
  const what = headers ? `${path}, gzip` : path;
  for (let i = 0; i < WARM_UP; i++) {
    await ask(node.readOnlyPort, endpoint);
    await Bun.sleep(pauseMs);
  }
  const runs: number[] = [];
  let bytes = 0;
  const before = cpuMs(pid);
  for (let i = 0; i < REQUESTS; i++) {
    const answer = await ask(node.readOnlyPort, endpoint);
    runs.push(answer.ms);
    ({ bytes } = answer);
    await Bun.sleep(pauseMs);
  }
  const cpu = (cpuMs(pid) - before) / REQUESTS;
  const slowest = Math.max(...runs);
  return [
    { what, unit: "ms", value: median(runs), runs, ...(atMost !== undefined && { goal: { atMost } }) },
    { what: "  slowest of 20", unit: "ms", value: slowest },
    { what: "  CPU of each, the kubelet's other work included", unit: "ms", value: cpu },
    { what: "  size", unit: "MB", value: bytes / 1e6 },
  ];
}

async function measure(count: number): Promise<Measurement[]> {
  const node = new TestNode();
  try {
    for (let i = 0; i < count; i++) {
      node.writeManifest(`p${i}.json`, {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: `p${i}` },
        spec: {
          terminationGracePeriodSeconds: 0,
          containers: [
            {
              name: "app",
              image: "busybox:test",
              command: ["sleep", "100000"],
              // Requests small enough for all of them to be admitted on two processors.
              resources: { requests: { cpu: "5m" }, limits: { cpu: "100m", memory: "32Mi" } },
            },
          ],
        },
      });
    }
    const kubelet = await node.start();
    await node.until(
      `${count} running pods`,
      async () => (await node.pods()).filter(({ status }) => status.phase === "Running").length === count,
      300_000,
    );
    const measurements: Measurement[] = [];
    for (const endpoint of ENDPOINTS) measurements.push(...(await measureEndpoint(node, kubelet.pid, endpoint)));
    return measurements;
  } finally {
    await node.cleanUp();
  }
}

export const serverCases: readonly BenchCase[] = [
  {
    name: "server-110",
    about: "what an answer of the read-only port costs with 110 running pods",
    run: () => measure(110),
  },
];

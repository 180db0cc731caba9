import { join } from "node:path";
import { removeContainersOf, TestNode } from "../../test/support/test-node.ts";
import { until } from "../../test/support/until.ts";
import { type BenchCase, type Measurement, median, percentile } from "../bench-case.ts";
import { readPodBodies, startBare } from "../floor.ts";
import { readMegabytes } from "../process-usage.ts";
import { idlePod, SETTLE_MS, startWithPods } from "../running-pods.ts";

const PODS = 110;
const WARM_UP = 20;
const REQUESTS = 200;
const STARTS = 10;
/** Lists after which memory is compared with before. */
const LISTS = 1_000;
const OBJECTS = 10_000;
const WRITERS = 8;

const PODS_PATH = "/api/v1/namespaces/default/pods";
const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
/** As kubectl asks. */
const AS_TABLE = { Accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" };

/** Requests over the Unix socket. */
class LocalApi {
  readonly #socket: string;

  constructor(node: TestNode) {
    this.#socket = join(node.rootDir, "api.sock");
  }

  async open(method: string, path: string, init: RequestInit = {}): Promise<Response> {
    const response = await fetch(`http://node${path}`, { ...init, method, unix: this.#socket });
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${await response.text()}`);
    return response;
  }

  /** @returns milliseconds to the last byte */
  async ask(method: string, path: string, init: RequestInit = {}): Promise<number> {
    const startMs = performance.now();
    await (await this.open(method, path, init)).arrayBuffer();
    return performance.now() - startMs;
  }

  write(method: string, path: string, body: unknown, type = "application/json"): Promise<number> {
    return this.ask(method, path, { body: JSON.stringify(body), headers: { "Content-Type": type } });
  }

  /** Calls with each event of a watch until the signal aborts. */
  async watch(path: string, signal: AbortSignal, onEvent: (text: string) => void): Promise<void> {
    const { body } = await this.open("GET", `${path}?watch=true`, { signal });
    const decoder = new TextDecoder();
    let rest = "";
    for await (const chunk of body ?? []) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) onEvent(line);
    }
  }
}

async function repeat(count: number, one: (index: number) => Promise<number>): Promise<number[]> {
  for (let index = 0; index < WARM_UP; index++) await one(index);
  const runs: number[] = [];
  for (let index = 0; index < count; index++) runs.push(await one(index));
  return runs;
}

const rows = (what: string, runs: readonly number[], atMost?: number): Measurement[] => [
  { what: `${what}, p50`, unit: "ms", value: median(runs), runs, ...(atMost !== undefined && { goal: { atMost } }) },
  { what: "  p99", unit: "ms", value: percentile(runs, 0.99) },
];

/** @returns milliseconds from the answer to a write to the event of it; negative when the event comes first */
async function measureWatch(api: LocalApi): Promise<number[]> {
  await api.write("POST", CONFIG_MAPS, { metadata: { name: "watched" }, data: { round: "" } });
  const seenAtMs = new Map<string, number>();
  const stop = new AbortController();
  const reading = api
    .watch(CONFIG_MAPS, stop.signal, (line) => {
      const { object } = JSON.parse(line) as { object: { data?: { round?: string } } };
      if (object.data?.round) seenAtMs.set(object.data.round, performance.now());
    })
    .catch(() => {});
  let round = 0;
  const runs = await repeat(REQUESTS, async () => {
    const name = String(++round);
    await api.write("PATCH", `${CONFIG_MAPS}/watched`, { data: { round: name } }, "application/merge-patch+json");
    const answeredAtMs = performance.now();
    await until(`event ${name}`, () => seenAtMs.has(name));
    return seenAtMs.get(name)! - answeredAtMs;
  });
  stop.abort();
  await reading;
  return runs;
}

/**
 * @returns milliseconds from the request that creates a pod to the event that shows its container running, and those of
 * the same calls alone, taken in turn
 */
async function measureCreate(node: TestNode, api: LocalApi): Promise<{ runs: number[]; floor: number[] }> {
  const bodies = await readPodBodies(node.docker, await node.listAll(), node.bareName);
  const runningAtMs = new Map<string, number>();
  const stop = new AbortController();
  const reading = api
    .watch(PODS_PATH, stop.signal, (line) => {
      const { object } = JSON.parse(line) as {
        object: { metadata: { name: string }; status?: { containerStatuses?: { state?: { running?: object } }[] } };
      };
      const isRunning = object.status?.containerStatuses?.every(({ state }) => state?.running) ?? false;
      if (isRunning && !runningAtMs.has(object.metadata.name)) runningAtMs.set(object.metadata.name, performance.now());
    })
    .catch(() => {});
  const runs: number[] = [];
  const floor: number[] = [];
  for (let index = 0; index < STARTS; index++) {
    floor.push(await startBare(node.docker, bodies, 1));
    const name = `new-${index}`;
    const startMs = performance.now();
    await api.write("POST", PODS_PATH, idlePod(name));
    await until(`${name} runs`, () => runningAtMs.has(name), { limitMs: 60_000 });
    runs.push(runningAtMs.get(name)! - startMs);
  }
  stop.abort();
  await reading;
  await removeContainersOf(node.docker, node.bareName);
  return { runs, floor };
}

async function startNode(node: TestNode, pods: number) {
  const { pid } = await startWithPods(node, pods);
  const api = new LocalApi(node);
  await until("the local API answers", async () => (await api.ask("GET", "/version").catch(() => -1)) >= 0);
  return { pid, api };
}

/** Answers with 110 pods, and the memory they cost. */
async function measureResponses(): Promise<Measurement[]> {
  await using node = new TestNode();
  const { pid, api } = await startNode(node, PODS);
  await Bun.sleep(SETTLE_MS);
  const beforeMb = readMegabytes(pid, "VmRSS");
  const beforeAnonMb = readMegabytes(pid, "RssAnon");
  const list = await repeat(REQUESTS, (index) =>
    api.ask("GET", `${PODS_PATH}?limit=${1_000 + index}`, { headers: AS_TABLE }),
  );
  const whole = await repeat(REQUESTS, (index) => api.ask("GET", `${PODS_PATH}?limit=${1_000 + index}`));
  const get = await repeat(REQUESTS, (index) => api.ask("GET", `${PODS_PATH}/p${index % PODS}-${node.name}`));
  for (let i = 0; i < LISTS; i++) await api.ask("GET", PODS_PATH, { headers: AS_TABLE });
  await Bun.sleep(SETTLE_MS);
  return [
    ...rows(`list of ${PODS} pods as Table`, list, 5),
    ...rows(`list of ${PODS} pods`, whole),
    ...rows("get of a pod", get, 1),
    {
      what: `RSS growth after ${LISTS + 3 * (REQUESTS + WARM_UP)} requests`,
      unit: "MB",
      value: readMegabytes(pid, "VmRSS") - beforeMb,
      goal: { atMost: 10 },
    },
    { what: "  of which anonymous", unit: "MB", value: readMegabytes(pid, "RssAnon") - beforeAnonMb },
    ...rows("event of a watch after the answer to the write", await measureWatch(api), 5),
  ];
}

async function measureStarts(): Promise<Measurement[]> {
  await using node = new TestNode();
  const { api } = await startNode(node, 1);
  const { runs, floor } = await measureCreate(node, api);
  return [
    {
      what: "create to container running",
      unit: "ms",
      value: median(runs),
      runs,
      floor: median(floor),
      floorText: "same calls",
      goal: { ratioAtMost: 1.3 },
    },
  ];
}

async function measureObjects(): Promise<Measurement[]> {
  await using node = new TestNode();
  const { pid, api } = await startNode(node, 0);
  const creations: number[] = [];
  let next = 0;
  const startMs = performance.now();
  await Promise.all(
    Array.from({ length: WRITERS }, async () => {
      for (let index = next++; index < OBJECTS; index = next++) {
        const body = { metadata: { name: `c${index}` }, data: { index: String(index) } };
        creations.push(await api.write("POST", CONFIG_MAPS, body));
      }
    }),
  );
  const createdMs = performance.now() - startMs;
  const list = await repeat(20, () => api.ask("GET", CONFIG_MAPS, { headers: AS_TABLE }));
  const page = await repeat(20, () => api.ask("GET", `${CONFIG_MAPS}?limit=500`, { headers: AS_TABLE }));
  const get = await repeat(REQUESTS, (index) => api.ask("GET", `${CONFIG_MAPS}/c${index * 7}`));
  const create = await repeat(20, (index) =>
    api.write("POST", CONFIG_MAPS, { metadata: { name: `more-${index}-${Math.random().toString(36).slice(2)}` } }),
  );
  return [
    {
      what: `creating ${OBJECTS} ConfigMaps, ${WRITERS} at a time`,
      unit: "per s",
      value: (1000 * OBJECTS) / createdMs,
    },
    ...rows(`  one of them`, creations),
    ...rows(`list of ${OBJECTS} ConfigMaps as Table`, list),
    ...rows("  one page of 500", page),
    ...rows("get of one of them", get, 1),
    ...rows("one more", create),
    ...rows("event of a watch after the answer to the write", await measureWatch(api), 5),
    { what: "RSS with them", unit: "MB", value: readMegabytes(pid, "VmRSS") },
  ];
}

export const localApiCases: readonly BenchCase[] = [
  {
    name: "local-api-110",
    about: `answers of the local Kubernetes API with ${PODS} running pods, and the memory they cost`,
    run: measureResponses,
  },
  {
    name: "local-api-create",
    about: "a pod submitted to the local API, from the request to the running container",
    run: measureStarts,
  },
  {
    name: "local-api-10000",
    about: `the local API with ${OBJECTS} ConfigMaps`,
    run: measureObjects,
  },
];

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { askApi } from "../../test/support/local-api.ts";
import { object, podSpec, shell, workload } from "../../test/support/manifests.ts";
import { TestNode } from "../../test/support/test-node.ts";
import { until } from "../../test/support/until.ts";
import { type BenchCase, type Measurement, median, percentile } from "../bench-case.ts";
import { measureCpuPercent, readCpuMs, readMegabytes } from "../process-usage.ts";
import { SETTLE_MS } from "../running-pods.ts";

const SERVICES = 200;
const PODS = 5;
const CHANGES = 20;
const REST_MS = 30_000;
const TRANSFERS = 9;
/** A change is over by then, with all that follows it. */
const AFTER_MS = 500;
/** No change takes longer, or the case has failed. */
const LONGEST_CHANGE_MS = 60_000;
const FILE_MIB = 128;

const PATH = "/api/v1/namespaces/default/services";

/** Port 8001 answers with another text than port 8000. */
const SERVER = `mkdir -p /tmp/a /tmp/b; echo a > /tmp/a/index.html; echo b > /tmp/b/index.html
dd if=/dev/zero of=/tmp/a/file bs=1M count=${FILE_MIB} 2>/dev/null; httpd -p 8001 -h /tmp/b; exec httpd -f -p 8000 -h /tmp/a`;

interface ServiceItem {
  metadata: { name: string };
  spec: { clusterIP?: string };
}

const read = async (url: string): Promise<string> =>
  (await fetch(url, { keepalive: false, signal: AbortSignal.timeout(3_000) })).text().then((text) => text.trim());

/** @returns milliseconds of a transfer of the file */
async function transfer(address: string): Promise<number> {
  const startMs = performance.now();
  const child = Bun.spawn(["curl", "-s", "-o", "/dev/null", `http://${address}/file`]);
  if ((await child.exited) !== 0) throw new Error(`no transfer from ${address}`);
  return performance.now() - startMs;
}

/** A pod whose readiness is a file of this directory. */
function probedPod(directory: string): object {
  const probe = { httpGet: { path: "/ready", port: 8000 }, periodSeconds: 1, failureThreshold: 1 };
  const volumeMounts = [{ name: "www", mountPath: "/www" }];
  const container = { ...shell("exec httpd -f -p 8000 -h /www"), readinessProbe: probe, volumeMounts };
  const spec = podSpec(container, { volumes: [{ name: "www", hostPath: { path: directory } }] });
  return object("Pod", "probed", { spec }, { labels: { app: "probed" } });
}

/** Mean CPU of a change beyond that of the kubelet at rest with the same probe. Unit: milliseconds. */
async function measureChanges(pid: number, change: (index: number) => Promise<unknown>): Promise<number> {
  const restPercent = await measureCpuPercent([pid], () => Bun.sleep(REST_MS));
  const [beforeMs, startMs] = [readCpuMs([pid]), performance.now()];
  for (let index = 0; index < CHANGES; index++) await change(index).then(() => Bun.sleep(AFTER_MS));
  const restMs = ((performance.now() - startMs) * restPercent) / 100;
  return (readCpuMs([pid]) - beforeMs - restMs) / CHANGES;
}

async function measure(): Promise<Measurement[]> {
  await using node = new TestNode();
  const directory = join(node.directory, "www");
  const readyFile = join(directory, "ready");
  mkdirSync(directory, { mode: 0o755 });
  for (const file of ["index.html", "ready"]) writeFileSync(join(directory, file), "c");
  node.writeManifest("probed.yaml", probedPod(directory));
  node.writeManifest("web.yaml", workload("Deployment", "web", { replicas: PODS }, podSpec(shell(SERVER))));
  const kubelet = await node.start();
  const pod = (await node.readyPods(PODS + 1)).find(({ metadata }) => metadata.labels?.app === "web");
  await Bun.sleep(SETTLE_MS);
  const withoutMB = readMegabytes(kubelet.pid, "VmRSS");
  const spec = (port: number) => ({ selector: { app: "web" }, ports: [{ port: 80, targetPort: port }] });
  for (let index = 0; index < SERVICES; index++) {
    const { status } = await askApi(node, "POST", PATH, object("Service", `s${index}`, { spec: spec(8000) }));
    if (status !== 201) throw new Error(`Service ${index}: ${status}`);
  }
  const items = await until("the addresses", async () => {
    const all: ServiceItem[] = (await askApi(node, "GET", PATH)).json.items;
    return all.every(({ spec }) => spec.clusterIP) && all;
  });
  const addresses = items.map(({ spec }) => spec.clusterIP!);
  const answers = (address: string) => read(`http://${address}/`).catch(() => "");
  for (const address of addresses) await until(address, async () => (await answers(address)) === "a");
  await Bun.sleep(SETTLE_MS);
  const restCpu = await measureCpuPercent([kubelet.pid], () => Bun.sleep(REST_MS));
  // Garbage of the 200 requests has gone back by now.
  const withMB = readMegabytes(kubelet.pid, "VmRSS");

  const changed = items.find(({ metadata }) => metadata.name === "s7")!.spec.clusterIP!;
  const changes: number[] = [];
  const follow = async (address: string, isDone: (answer: string) => boolean, what: string) => {
    const startMs = performance.now();
    while (!isDone(await answers(address))) {
      if (performance.now() - startMs > LONGEST_CHANGE_MS) throw new Error(`connections do not follow ${what}`);
      await Bun.sleep(2);
    }
  };
  const writtenMs = await measureChanges(kubelet.pid, async (index) => {
    const [wanted, port] = index % 2 === 0 ? ["b", 8001] : ["a", 8000];
    const startMs = performance.now();
    const body = { spec: spec(port as number) };
    const { status } = await askApi(node, "PATCH", `${PATH}/s7`, body, "application/merge-patch+json");
    if (status !== 200) throw new Error(`the change answered ${status}`);
    await follow(changed, (answer) => answer === wanted, `change ${index}`);
    changes.push(performance.now() - startMs);
  });
  const probed = { spec: { selector: { app: "probed" }, ports: [{ port: 80, targetPort: 8000 }] } };
  const { json } = await askApi(node, "POST", PATH, object("Service", "probed", probed));
  await until("the probed pod", async () => (await answers(json.spec.clusterIP)) === "c");
  const flippedMs = await measureChanges(kubelet.pid, async (index) => {
    const isReady = index % 2 === 1;
    if (isReady) writeFileSync(readyFile, "c");
    else rmSync(readyFile);
    await follow(json.spec.clusterIP, (answer) => (answer === "c") === isReady, `the pod's readiness ${isReady}`);
  });

  const through: number[] = [];
  const direct: number[] = [];
  for (let round = 0; round < TRANSFERS; round++) {
    direct.push(await transfer(`${pod!.status.podIP}:8000`));
    through.push(await transfer(changed));
  }
  const all = `${SERVICES} Services with ${SERVICES * PODS} endpoints`;
  return [
    {
      what: `${all}: change of one until a connection follows it, p50`,
      unit: "ms",
      value: median(changes),
      runs: changes,
      goal: { atMost: 100 },
    },
    { what: "  p99", unit: "ms", value: percentile(changes, 0.99) },
    {
      what: "  CPU of the kubelet for this write of a client, beyond rest",
      unit: "ms",
      value: writtenMs,
      goal: { atMost: 5 },
    },
    {
      what: "  CPU of the kubelet when a pod's readiness changes behind one, with its status and event",
      unit: "ms",
      value: flippedMs,
      goal: { atMost: 5 },
    },
    { what: `  CPU at rest, over ${REST_MS / 1000} s`, unit: "%", value: restCpu },
    { what: "  resident memory", unit: "MB", value: withMB - withoutMB, goal: { atMost: 2 } },
    {
      what: `  ${FILE_MIB} MiB through an address`,
      unit: "ms",
      value: median(through),
      runs: through,
      floor: median(direct),
      floorText: "from the pod itself",
      goal: { ratioAtMost: 1.03 },
    },
  ];
}

export const servicesCases: readonly BenchCase[] = [
  {
    name: "services-200",
    about: `${SERVICES} Services of ${PODS} pods: time and CPU of a change, rest, memory and throughput`,
    run: measure,
  },
];

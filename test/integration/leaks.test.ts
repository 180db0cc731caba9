import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { sleeper } from "../support/manifests.ts";
import type { TestNode } from "../support/test-node.ts";
import { until } from "../support/until.ts";

const CALLS = 1_000;
const AT_A_TIME = 20;
/** Idle connections of the engine and of clients come and go. */
const SPARE_DESCRIPTORS = 8;
/** Threads of the runtime's pools and of background work end some seconds after their work. */
const SPARE_THREADS = 6;
const SPARE_TIMERS = 12;
const SPARE_MEGABYTES = 120;

const READ_ONLY = ["/pods", "/healthz?verbose", "/metrics", "/metrics/resource", "/api/v1/events", "/node", "/spec/"];
const CADVISOR = ["/api/v1.3/machine", "/api/v1.3/containers/", "/api/v1.3/subcontainers/", "/metrics", "/"];
const AUTHENTICATED = [
  "/pods",
  "/stats/summary?only_cpu_and_memory=true",
  "/metrics/cadvisor",
  "/runningpods/",
  "/configz",
];
const KUBERNETES = [
  "/api/v1/pods",
  "/api/v1/pods?watch=true&timeoutSeconds=1",
  "/api/v1/nodes",
  "/apis",
  "/version",
  "/api/v1/namespaces/default/pods/nothing",
];

interface Use {
  descriptors: number;
  threads: number;
  timers: number;
  megabytes: number;
}

async function useOf(pid: number, node: TestNode): Promise<Use> {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const figure = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1]);
  const metrics = await (await fetch(`http://127.0.0.1:${node.readOnlyPort}/metrics`)).text();
  return {
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    threads: figure("Threads"),
    timers: Number(/^kubelet_ts_timers (\d+)$/m.exec(metrics)?.[1]),
    megabytes: figure("VmRSS") / 1024,
  };
}

async function callOften(paths: readonly string[], fetchPath: (path: string) => Promise<Response>, calls = CALLS) {
  for (const path of paths) {
    let left = calls;
    const caller = async () => {
      while (left-- > 0) await (await fetchPath(path)).bytes();
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, caller));
  }
}

describeWithEngine("a thousand calls of each route leave nothing behind", () => {
  test.each([
    { port: "read-only", paths: READ_ONLY },
    { port: "cAdvisor", paths: CADVISOR },
    { port: "authenticated", paths: AUTHENTICATED },
    { port: "Kubernetes", paths: KUBERNETES },
  ] as const)("$port", async ({ port, paths }) => {
    const node = testNode();
    node.writeManifest("web.json", sleeper("web"));
    const { pid } = await node.start(["--anonymous-auth"]);
    await node.runningContainer("app");
    const local = (number: number) => (path: string) => fetch(`http://127.0.0.1:${number}${path}`);
    const fetchPath = {
      "read-only": local(node.readOnlyPort),
      cAdvisor: local(node.cadvisorPort),
      authenticated: (path: string) =>
        fetch(`https://127.0.0.1:${node.kubeletPort}${path}`, { tls: { rejectUnauthorized: false } }),
      Kubernetes: (path: string) => fetch(`http://localhost${path}`, { unix: join(node.rootDir, "api.sock") }),
    }[port];
    // Modules and caches that are filled on first use are not a leak.
    await callOften(paths, fetchPath, 50);
    const before = await useOf(pid, node);
    await callOften(paths, fetchPath, port === "Kubernetes" ? CALLS / 2 : CALLS);
    const limits = {
      descriptors: before.descriptors + SPARE_DESCRIPTORS,
      threads: before.threads + SPARE_THREADS,
      timers: before.timers + SPARE_TIMERS,
      megabytes: before.megabytes + SPARE_MEGABYTES,
    };
    let after = before;
    await until(
      `no more than ${JSON.stringify(limits)}`,
      async () => {
        after = await useOf(pid, node);
        return Object.entries(limits).every(([name, limit]) => after[name as keyof Use] <= limit);
      },
      { details: () => JSON.stringify(after) },
    );
    console.log(`${port}: ${JSON.stringify(before)} -> ${JSON.stringify(after)}`);
    expect(after.timers).toBeGreaterThan(0);
  });
});

import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { createLoginToken, readPageSecret } from "../../src/server/page/page-session.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { sleeper } from "../support/manifests.ts";
import { countDescriptors } from "../support/open-files.ts";
import type { TestNode } from "../support/test-node.ts";
import { until } from "../support/until.ts";

const CALLS = 1_000;
const AT_A_TIME = 10;
/** Idle connections of clients, and up to 32 to the engine that are kept for later calls, come and go. */
const SPARE_DESCRIPTORS = 40;
/** Threads of the runtime's pools and of background work end some seconds after their work. */
const SPARE_THREADS = 6;
const SPARE_TIMERS = 12;
const SPARE_MEGABYTES = 80;

const READ_ONLY = ["/pods", "/healthz?verbose", "/metrics", "/metrics/resource", "/api/v1/events", "/node", "/spec/"];
const CADVISOR = ["/api/v1.3/machine", "/api/v1.3/containers/", "/api/v1.3/subcontainers/", "/metrics", "/"];
const SUMMARY = "/stats/summary?only_cpu_and_memory=true";
const AUTHENTICATED = ["/pods", SUMMARY, "/metrics/cadvisor", "/runningpods/", "/configz", "/logs/"];
const KUBERNETES = ["/api/v1/pods", "/api/v1/nodes", "/apis", "/version", "/api/v1/namespaces/default/pods/nothing"];

interface Use {
  descriptors: number;
  threads: number;
  timers: number;
  megabytes: number;
}

async function useOf(pid: number, node: TestNode): Promise<Use> {
  const metrics = await node.read("/metrics");
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const figure = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1]);
  return {
    descriptors: countDescriptors(pid),
    threads: figure("Threads"),
    timers: Number(/^kubelet_ts_timers (\d+)$/m.exec(metrics)?.[1]),
    megabytes: Math.round(figure("VmRSS") / 1024),
  };
}

async function repeat(calls: number, call: () => Promise<unknown>): Promise<void> {
  let left = calls;
  const caller = async () => {
    while (left-- > 0) await call();
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, caller));
}

/** Runs `work`, which makes `calls` calls, and waits until the kubelet uses no more than it did before. */
async function expectNothingLeft(
  what: string,
  node: TestNode,
  pid: number,
  calls: number,
  work: () => Promise<void>,
): Promise<void> {
  const before = await useOf(pid, node);
  await work();
  const limits = {
    // One that each call left behind would be noticed.
    descriptors: before.descriptors + Math.min(SPARE_DESCRIPTORS, calls / 2),
    threads: before.threads + SPARE_THREADS,
    timers: before.timers + SPARE_TIMERS,
    megabytes: before.megabytes + SPARE_MEGABYTES,
  };
  let after = before;
  await until(
    `${what}: no more than ${JSON.stringify(limits)}`,
    async () => {
      after = await useOf(pid, node);
      return Object.entries(limits).every(([name, limit]) => after[name as keyof Use] <= limit);
    },
    { details: () => JSON.stringify(after) },
  );
  console.log(`${what}: ${JSON.stringify(before)} -> ${JSON.stringify(after)}`);
  expect(after.timers).toBeGreaterThan(0);
}

const TLS = { rejectUnauthorized: false };

interface SocketAddress {
  /** Path of a Unix socket, or a port of the loopback. */
  at: string | number;
  protocol?: string;
  /** The server ends the session; else the client leaves as soon as it is open. */
  isAwaited?: boolean;
  cookie?: string;
}

/** Opens a WebSocket session; without a client library, whose connections stay open for a while. */
async function openSession(path: string, { at, protocol = "", isAwaited = false, cookie = "" }: SocketAddress) {
  const socket = typeof at === "number" ? connect(at, "127.0.0.1") : connect(at);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.on("error", reject);
  socket.on("close", () => resolve());
  socket.once("data", (data) => {
    const [status = ""] = data.toString("latin1").split("\r\n");
    if (!status.startsWith("HTTP/1.1 101")) reject(new Error(`${path}: ${status}`));
    if (!isAwaited) socket.destroy();
  });
  const offered = protocol === "" ? "" : `Sec-WebSocket-Protocol: ${protocol}\r\n`;
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${at}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${offered}Cookie: ${cookie}\r\n\r\n`,
  );
  await promise.finally(() => socket.destroy());
}

async function logInToPage(node: TestNode): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${node.cadvisorPort}/page/login`, {
    method: "POST",
    body: JSON.stringify({ token: createLoginToken(readPageSecret(node.rootDir), Date.now()) }),
  });
  return response.headers.get("set-cookie")!.split(";")[0]!;
}

describeWithEngine("a thousand calls leave nothing behind", () => {
  let node: TestNode;
  let pid: number;
  let uid: string;
  let cookie: string;

  beforeAll(async () => {
    node = testNode();
    node.writeManifest("web.json", sleeper("web"));
    ({ pid } = await node.start(["--anonymous-auth", `--port=${node.kubeletPort}`]));
    await node.runningContainer("app");
    uid = (await node.pods())[0]!.metadata.uid!;
    cookie = await logInToPage(node);
  });
  afterAll(() => node.cleanUp());

  test.each([
    { port: "read-only", paths: READ_ONLY },
    { port: "cAdvisor", paths: CADVISOR },
    { port: "authenticated", paths: AUTHENTICATED },
    { port: "Kubernetes", paths: KUBERNETES },
  ] as const)("routes of the $port port", async ({ port, paths }) => {
    const local = (number: number) => (path: string) => fetch(`http://127.0.0.1:${number}${path}`);
    const fetchPath = {
      "read-only": local(node.readOnlyPort),
      cAdvisor: local(node.cadvisorPort),
      authenticated: (path: string) => fetch(`https://127.0.0.1:${node.kubeletPort}${path}`, { tls: TLS }),
      Kubernetes: (path: string) => fetch(`http://localhost${path}`, { unix: join(node.rootDir, "api.sock") }),
    }[port];
    const callAll = async (calls: number) => {
      for (const path of paths) await repeat(calls, async () => (await fetchPath(path)).bytes());
    };
    // Modules and caches that are filled on first use are not a leak.
    await callAll(50);
    await expectNothingLeft(port, node, pid, CALLS, () => callAll(CALLS));
  });

  test.each([
    { what: "stream of the page", calls: CALLS },
    { what: "log stream of the page", calls: CALLS },
    { what: "watch", calls: CALLS },
    { what: "attach", calls: CALLS },
    // Each starts a process: a thousand take minutes.
    { what: "port-forward", calls: CALLS / 20 },
    { what: "exec", calls: CALLS / 20 },
    // More than may be open at a time.
    { what: "shell of the page", calls: CALLS / 40 },
  ] as const)("$what", async ({ what, calls }) => {
    const page = `http://127.0.0.1:${node.cadvisorPort}/page`;
    const api = join(node.rootDir, "api.sock");
    const pod = `/api/v1/namespaces/default/pods/web-${node.name}`;
    const kubectl = { at: api, protocol: "v4.channel.k8s.io" };
    // So many at a time: one that is refused because the end of others was not noticed yet is tried again.
    const open = (path: string, address: SocketAddress) =>
      until(`a session of ${path}`, async () => {
        await openSession(path, address);
        return true;
      });
    const call = {
      "stream of the page": () => open("/page/stream", { at: node.cadvisorPort }),
      "log stream of the page": () =>
        open(`/page/api/pods/${uid}/logs?container=app&follow=true`, { at: node.cadvisorPort, cookie }),
      watch: async () => {
        const stop = new AbortController();
        const { body } = await fetch("http://localhost/api/v1/pods?watch=true", { unix: api, signal: stop.signal });
        await body?.getReader().read();
        stop.abort();
      },
      "port-forward": () => open(`${pod}/portforward?ports=80`, kubectl),
      attach: () => open(`${pod}/attach?container=app&stdout=true`, kubectl),
      exec: () => open(`${pod}/exec?container=app&command=true&stdout=true`, { ...kubectl, isAwaited: true }),
      "shell of the page": () => {
        const path = `/page/api/pods/${uid}/shell?container=app`;
        return open(path, { at: node.cadvisorPort, protocol: "v5.channel.k8s.io", cookie });
      },
    }[what];
    await repeat(Math.min(AT_A_TIME, calls), call);
    await expectNothingLeft(what, node, pid, calls, () => repeat(calls, call));
    await until("the end of every shell in the container", async () => {
      const response = await fetch(`${page}/api/pods/${uid}/processes`, { headers: { Cookie: cookie } });
      const processes = (await response.json()) as { command: string }[];
      return processes.length > 0 && !processes.some(({ command }) => command === "sh");
    });
  });
});

describeWithEngine("a thousand reads of each source leave nothing behind", () => {
  test("file, directory and URL", async () => {
    const node = testNode();
    const file = join(node.directory, "file.json");
    writeFileSync(file, JSON.stringify(sleeper("from-file")));
    node.writeManifest("web.json", sleeper("from-directory"));
    let asked = 0;
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      // Another text each time, so that it is parsed.
      fetch: () => Response.json(sleeper("from-url", {}, {}, { annotations: { n: `${asked++ % 2}` } })),
    });
    const reads = async () => {
      const found = [
        ...(await node.read("/metrics")).matchAll(/^kubelet_ts_source_reads_total\{[^}]*\} (\d+)$/gm),
      ].filter(
        // Objects of the local API are read when they change.
        ([line]) => !line.includes(`${node.rootDir}/manifests`),
      );
      return found.map(([, count]) => Number(count));
    };
    const { pid } = await node.start([
      `--manifest-url=http://127.0.0.1:${server.port}/`,
      "--file-check-frequency=2ms",
      "--http-check-frequency=2ms",
      file,
    ]);
    await node.until("the pods", async () => (await node.pods()).every(({ status }) => status.phase === "Running"));
    await until("some reads", async () => (await reads()).filter((count) => count > 100).length === 3);
    await expectNothingLeft("sources", node, pid, CALLS, async () => {
      const start = await reads();
      await until("a thousand reads", async () =>
        (await reads()).every((count, index) => count >= start[index]! + CALLS),
      );
      // Edits, too: each is another file.
      for (let edit = 0; edit < 100; edit++) {
        node.writeManifest("web.json", sleeper("from-directory", {}, {}, { annotations: { edit: `${edit}` } }));
        await Bun.sleep(2);
      }
    });
  });
});

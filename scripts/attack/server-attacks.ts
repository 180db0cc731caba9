import { readdirSync, readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { countDescriptors } from "../../test/support/open-files.ts";
import type { TestNode } from "../../test/support/test-node.ts";
import { type Attack, type AttackTarget, flood, frame, openWebSocket, pour, timeHttps } from "./attack.ts";

const get = (path: string, headers = "") => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`;

const threads = (pid: number) => readdirSync(`/proc/${pid}/task`).length;

/** Resident memory of a process. */
export const residentMegabytes = (pid: number) =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;

/** Path of the bystander's container below `/exec` and the like. */
async function containerPath({ node }: AttackTarget): Promise<string> {
  const [pod] = await node.pods();
  return `default/${pod!.metadata.name}/app`;
}

const ANONYMOUS = ({ kubeletPort }: TestNode) => [
  "--anonymous-auth=true",
  "--address=127.0.0.1",
  `--port=${kubeletPort}`,
];

/** Attacks on the HTTP ports. */
export const serverAttacks: readonly Attack[] = [
  {
    name: "stats-pipelined",
    about: "200 connections, each with 16 pipelined requests for every cgroup of the machine",
    maxGrowthMegabytes: 64,
    run: async ({ node }) => {
      const bytes = get("/stats/container?containerName=/&subcontainers=true").repeat(16);
      await flood(node.readOnlyPort, bytes, { count: 200, seconds: 15 });
      return [];
    },
  },
  {
    name: "stats-different",
    about: "100 connections with 16 pipelined requests each, no two of them for the same cgroup",
    maxGrowthMegabytes: 64,
    run: async ({ node }) => {
      const paths = Array.from(
        { length: 1_600 },
        (_, index) => `/api/v1.3/subcontainers/${"../".repeat(index % 2)}x${index}`,
      );
      const subtrees = ["/", "/kubepods", "/docker", "/system.slice", "/kubepods/burstable", "/kubepods/besteffort"];
      const floods = subtrees.flatMap((subtree, index) =>
        [0, 1, 2].map((numStats) => {
          const own = get(`/stats/container?containerName=${subtree}&subcontainers=true&num_stats=${numStats}`);
          return flood(
            node.readOnlyPort,
            own +
              paths
                .slice(index * 15, index * 15 + 15)
                .map((path) => get(path))
                .join(""),
            {
              count: 6,
              seconds: 15,
            },
          );
        }),
      );
      await Promise.all(floods);
      return [];
    },
  },
  {
    name: "metrics-unread",
    about: "50 connections that pipeline gzip requests for /metrics and read nothing",
    maxGrowthMegabytes: 64,
    run: async ({ node }) => {
      const bytes = get("/metrics", "Accept-Encoding: gzip\r\n").repeat(500);
      await flood(node.readOnlyPort, bytes, { count: 50, seconds: 12, reads: false });
      return [];
    },
  },
  {
    name: "slow-readers",
    about: "300 connections that ask for the largest answers and read nothing; others are answered meanwhile",
    maxGrowthMegabytes: 64,
    run: async ({ node }) => {
      const done = flood(node.readOnlyPort, get("/metrics/cadvisor"), { count: 300, seconds: 15, reads: false });
      await Bun.sleep(7_000);
      const startMs = performance.now();
      const { status } = await fetch(`http://127.0.0.1:${node.readOnlyPort}/pods`, {
        signal: AbortSignal.timeout(8_000),
      }).catch(() => ({ status: 0 }));
      const ms = status === 200 ? performance.now() - startMs : Number.POSITIVE_INFINITY;
      await done;
      return [{ what: "another client's request", unit: "ms", value: ms, atMost: 1_000 }];
    },
  },
  {
    name: "foreign-cgroups",
    about: "48 requests for every cgroup of the machine leave no descriptor open",
    maxGrowthMegabytes: 64,
    run: async ({ node, pid }) => {
      const ask = async () => {
        const response = await fetch(`http://127.0.0.1:${node.cadvisorPort}/api/v1.3/subcontainers/`);
        await response.arrayBuffer();
      };
      await ask();
      const before = countDescriptors(pid);
      for (let i = 0; i < 48; i++) {
        await ask();
        // The answer is shared for a second.
        await Bun.sleep(i < 8 ? 1_050 : 0);
      }
      return [{ what: "descriptors more than before", unit: "", value: countDescriptors(pid) - before, atMost: 10 }];
    },
  },
  {
    name: "cadvisor-unread",
    about: "50 connections to the cAdvisor port that pipeline requests for its metrics and read nothing",
    maxGrowthMegabytes: 64,
    run: async ({ node }) => {
      await flood(node.cadvisorPort, get("/metrics").repeat(500), { count: 50, seconds: 12, reads: false });
      return [];
    },
  },
  {
    name: "leaks",
    about: "1,000 requests to each path leave neither descriptors nor threads nor memory behind",
    maxGrowthMegabytes: 64,
    run: async ({ node, pid }) => {
      const { name, namespace = "default", uid } = (await node.pods())[0]!.metadata;
      const paths = [
        ...[
          "/healthz",
          "/pods",
          "/pods?labelSelector=a",
          "/runningpods/",
          "/api/v1/events",
          "/configz",
          "/node",
          "/spec/",
        ],
        ...[
          "/stats/",
          "/stats/summary",
          "/stats/container?subcontainers=true",
          `/stats/${namespace}/${name}/${uid}/app`,
        ],
        ...["/metrics", "/metrics/cadvisor", "/metrics/resource", "/metrics/probes", "/nowhere"],
      ].map((path) => [node.readOnlyPort, path] as const);
      const cadvisor = [
        "/",
        "/metrics",
        "/api/v1.3/machine",
        "/api/v1.3/containers/",
        "/api/v1.3/subcontainers/kubepods",
      ];
      const all = [...paths, ...cadvisor.map((path) => [node.cadvisorPort, path] as const)];
      const askAll = async (times: number) => {
        for (const [port, path] of all) {
          const ask = async () => (await fetch(`http://127.0.0.1:${port}${path}`)).arrayBuffer();
          for (let i = 0; i < times; i += 10) await Promise.all(Array.from({ length: Math.min(10, times) }, ask));
        }
      };
      await askAll(10);
      const rest = () => Bun.sleep(2_000);
      await rest();
      const before = { files: countDescriptors(pid), threads: threads(pid), megabytes: residentMegabytes(pid) };
      await askAll(1_000);
      await rest();
      return [
        { what: "descriptors more than before", unit: "", value: countDescriptors(pid) - before.files, atMost: 20 },
        { what: "threads more than before", unit: "", value: threads(pid) - before.threads, atMost: 8 },
        { what: "RSS more than before", unit: "MB", value: residentMegabytes(pid) - before.megabytes, atMost: 60 },
      ];
    },
  },
  {
    name: "silent-plain",
    about:
      "6,000 silent connections to the read-only port, renewed when they are cut; descriptors stay, others are answered",
    maxGrowthMegabytes: 150,
    run: async ({ node, pid }) => {
      const done = flood(node.readOnlyPort, "G", { count: 6_000, seconds: 15 });
      await Bun.sleep(13_000);
      const startMs = performance.now();
      const { status } = await fetch(`http://127.0.0.1:${node.cadvisorPort}/healthz`, {
        signal: AbortSignal.timeout(8_000),
      }).catch(() => ({ status: 0 }));
      const ms = status === 200 ? performance.now() - startMs : Number.POSITIVE_INFINITY;
      await done;
      return [
        { what: "another client's request", unit: "ms", value: ms, atMost: 1_000 },
        { what: "open files", unit: "", value: countDescriptors(pid), atMost: 8_000 },
      ];
    },
  },
  {
    name: "silent-tls",
    about: "600 silent connections to the authenticated port; another client is answered",
    flags: ANONYMOUS,
    maxGrowthMegabytes: 150,
    run: async ({ node }) => {
      const sockets: Socket[] = Array.from({ length: 600 }, () =>
        connect(node.kubeletPort, "127.0.0.1").on("error", () => {}),
      );
      await Bun.sleep(2_000);
      const ms = await timeHttps(node.kubeletPort, "/healthz");
      for (const socket of sockets) socket.destroy();
      return [{ what: "another client's request", unit: "ms", value: ms, atMost: 1_000 }];
    },
  },
  {
    name: "websocket-pings",
    about: "an exec session whose client sends up to 1 GB of pings and reads no pong",
    flags: ANONYMOUS,
    maxGrowthMegabytes: 150,
    run: async (target) => {
      const path = `/exec/${await containerPath(target)}?command=sleep&command=60&output=1`;
      const { socket } = await openWebSocket(target.node.kubeletPort, path);
      socket.pause();
      const pings = Buffer.concat(Array.from({ length: 8_000 }, () => frame(9, Buffer.alloc(125))));
      await pour(socket, pings, 15, 1_000);
      socket.destroy();
      return [];
    },
  },
  {
    name: "websocket-parts",
    about: "an exec session whose client sends up to 200 MB of empty parts of one message",
    flags: ANONYMOUS,
    maxGrowthMegabytes: 150,
    run: async (target) => {
      const path = `/exec/${await containerPath(target)}?command=sleep&command=60&output=1&input=1`;
      const { socket } = await openWebSocket(target.node.kubeletPort, path);
      socket.write(frame(2, Buffer.from([0]), false));
      const parts = Buffer.concat(Array.from({ length: 100_000 }, () => frame(0, Buffer.alloc(0), false)));
      await pour(socket, parts, 15, 200);
      socket.destroy();
      return [];
    },
  },
  {
    name: "forward-3000",
    about: "one port-forward request with 3,000 ports",
    flags: ANONYMOUS,
    maxGrowthMegabytes: 150,
    run: async (target) => {
      const [namespace, pod] = (await containerPath(target)).split("/");
      const ports = Array.from({ length: 3_000 }, (_, index) => index + 1).join(",");
      const { socket, status } = await openWebSocket(
        target.node.kubeletPort,
        `/portForward/${namespace}/${pod}?ports=${ports}`,
      );
      await Bun.sleep(3_000);
      const children = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && isChildOf(name, target.pid)).length;
      socket.destroy();
      return [
        { what: "child processes", unit: "", value: children, atMost: 40 },
        { what: "status of the answer (400 is a refusal)", unit: "", value: status, atMost: 400 },
      ];
    },
  },
];

function isChildOf(pid: string, parent: number): boolean {
  try {
    const { stdout } = Bun.spawnSync(["cat", `/proc/${pid}/stat`]);
    const text = stdout.toString();
    return Number(text.slice(text.lastIndexOf(")") + 2).split(" ")[1]) === parent;
  } catch {
    return false;
  }
}

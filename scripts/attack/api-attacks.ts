import { readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import tls from "node:tls";
import { freePorts, type TestNode } from "../../test/support/test-node.ts";
import type { Attack, AttackTarget, Figure } from "./attack.ts";

const [API_PORT = 0] = freePorts(1);
const TOKEN_FILE = join("/tmp", `kubelet-ts-attack-tokens-${process.pid}.csv`);
const ADMIN = "attack-admin";
const VIEWER = "attack-viewer";
const FLAGS = [`--local-api-port=${API_PORT}`, `--token-auth-file=${TOKEN_FILE}`];
writeFileSync(TOKEN_FILE, `${ADMIN},admin,1,"system:masters"\n${VIEWER},viewer,2\n`, { mode: 0o600 });
process.on("exit", () => Bun.spawnSync(["rm", "-f", TOKEN_FILE]));

const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";

interface Answer {
  status: number;
  text: string;
}

/** One request to the local API over TLS. Status 0: no answer within a minute. */
async function ask(method: string, path: string, body?: unknown, type = "application/json"): Promise<Answer> {
  const headers = { Authorization: `Bearer ${ADMIN}`, "Content-Type": type };
  try {
    const response = await fetch(`https://127.0.0.1:${API_PORT}${path}`, {
      method,
      headers,
      tls: { rejectUnauthorized: false },
      signal: AbortSignal.timeout(60_000),
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    return { status: response.status, text: await response.text() };
  } catch (error) {
    return { status: 0, text: String(error) };
  }
}

const configMap = (name: string, data: Record<string, string>) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name },
  data,
});

/** Fails when a status is none of those wanted. */
const refused = (what: string, { status }: Answer, wanted: readonly number[]): Figure => ({
  what: `${what}: answered with ${status}, wanted ${wanted.join(" or ")}`,
  unit: "",
  value: wanted.includes(status) ? 0 : 1,
  atMost: 0,
});

/** A connection that sends one request as a viewer. @param isRead false: nothing of the response is taken */
function openRequest(path: string, isRead: boolean, onData: (chunk: Buffer) => void = () => {}): tls.TLSSocket {
  const socket = tls.connect({ host: "127.0.0.1", port: API_PORT, rejectUnauthorized: false }, () => {
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${VIEWER}\r\n\r\n`);
    if (isRead) socket.on("data", onData);
    else socket.pause();
  });
  socket.on("error", () => {});
  return socket;
}

/** The slowest of some requests of another client. */
async function slowestRequest(seconds: number): Promise<Figure> {
  const endMs = performance.now() + seconds * 1_000;
  let slowest = 0;
  while (performance.now() < endMs) {
    const startMs = performance.now();
    const { status } = await ask("GET", `${CONFIG_MAPS}/none`);
    slowest = Math.max(slowest, status === 404 ? performance.now() - startMs : Number.POSITIVE_INFINITY);
    await Bun.sleep(200);
  }
  return { what: "slowest request of another client", unit: "ms", value: slowest, atMost: 1_000 };
}

/** Objects of 200 KB each. */
async function fill(count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    await ask("POST", CONFIG_MAPS, configMap(`large-${i}`, { text: `${i} `.padEnd(200_000, "x") }));
  }
}

async function openWatches(count: number): Promise<tls.TLSSocket[]> {
  const sockets: tls.TLSSocket[] = [];
  for (let i = 0; i < count; i++) {
    sockets.push(openRequest(`${CONFIG_MAPS}?watch=true&resourceVersion=0`, false));
    // TLS handshakes of all at once would measure those alone.
    if (i % 5 === 4) await Bun.sleep(50);
  }
  return sockets;
}

const engineSockets = ({ node, pid }: AttackTarget): number => {
  const inodes = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${name}`))?.[1] ?? [];
      } catch {
        return [];
      }
    }),
  );
  // Sockets of a client have no path: all Unix sockets of the process but those on which it listens or was connected to.
  const lines = readFileSync("/proc/net/unix", "utf8").split("\n");
  return lines.filter((line) => {
    const [, , , , , , inode = "", path = ""] = line.trim().split(/\s+/);
    return inodes.has(inode) && !path.startsWith(node.rootDir);
  }).length;
};

const residentMegabytes = (pid: number) =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;

/** Memory after the clients are gone. */
async function growthAtRest(pid: number, before: number): Promise<Figure> {
  await Bun.sleep(5_000);
  return { what: "growth of RSS 5 s later", unit: "MB", value: residentMegabytes(pid) - before, atMost: 96 };
}

const workload = (kind: string, apiVersion: string, name: string, count: number, template: object) => ({
  apiVersion,
  kind,
  metadata: { name },
  spec:
    kind === "Job"
      ? { parallelism: count, completions: count, template: { spec: { restartPolicy: "Never", ...template } } }
      : {
          replicas: count,
          selector: { matchLabels: { app: name } },
          template: { metadata: { labels: { app: name } }, spec: template },
        },
});

const SLEEPER = {
  terminationGracePeriodSeconds: 0,
  containers: [{ name: "crowd", image: "busybox:test", command: ["sleep", "100000"] }],
};

async function removeCrowd(node: TestNode): Promise<void> {
  await node.until(
    "the pods of the workload to be gone",
    async () => (await node.containers("crowd")).length === 0,
    90_000,
  );
}

/** Attacks on the local API, of users with a token. */
export const apiAttacks: readonly Attack[] = [
  {
    name: "api-watches",
    about: "900 watches that no one reads, and 60 writes of 100 KB",
    flags: FLAGS,
    // 2 GB pass: half of it is garbage that is not collected yet.
    maxGrowthMegabytes: 256,
    run: async ({ pid }) => {
      const before = residentMegabytes(pid);
      const sockets = await openWatches(900);
      await Bun.sleep(1_000);
      let events = 0;
      const reader = openRequest(`${CONFIG_MAPS}?watch=true`, true, (chunk) => {
        events += chunk.toString("latin1").split('"resourceVersion"').length - 1;
      });
      await Bun.sleep(500);
      for (let i = 0; i < 60; i++) {
        await ask("POST", CONFIG_MAPS, configMap(`map-${i}`, { text: `${i} `.padEnd(100_000, "x") }));
      }
      const other = await slowestRequest(3);
      for (const socket of [...sockets, reader]) socket.destroy();
      return [
        await growthAtRest(pid, before),
        other,
        { what: "events that a reader missed", unit: "", value: 60 - events, atMost: 0 },
      ];
    },
  },
  {
    name: "api-lists",
    about: "20 connections of a viewer that list 20 MB again and again, 20 more that read nothing",
    flags: FLAGS,
    // 4 GB pass. The objects and their texts are 40 MB.
    maxGrowthMegabytes: 256,
    run: async ({ pid }) => {
      await fill(100);
      await Bun.sleep(3_000);
      const before = residentMegabytes(pid);
      const unread = Array.from({ length: 20 }, () => openRequest(CONFIG_MAPS, false));
      let received = 0;
      const endMs = performance.now() + 12_000;
      const read = async () => {
        while (performance.now() < endMs) {
          const { promise, resolve } = Promise.withResolvers<void>();
          const socket = openRequest(CONFIG_MAPS, true, (chunk) => {
            received += chunk.length;
            if (chunk.subarray(-8).includes("]}") || chunk.subarray(-8).includes("0\r\n\r\n")) socket.destroy();
          });
          socket.once("close", () => resolve());
          setTimeout(() => socket.destroy(), Math.max(0, endMs - performance.now()));
          await promise;
        }
      };
      const [other] = await Promise.all([slowestRequest(10), ...Array.from({ length: 20 }, read)]);
      for (const socket of unread) socket.destroy();
      return [
        other,
        await growthAtRest(pid, before),
        { what: "received", unit: "MB", value: received / 1e6, atMost: Number.POSITIVE_INFINITY },
      ];
    },
  },
  {
    name: "api-patches",
    about: "a JSON patch that copies a list into itself 40 times, and one with 9,900 copies of a long list",
    flags: FLAGS,
    maxGrowthMegabytes: 64,
    run: async () => {
      await ask("POST", CONFIG_MAPS, configMap("patched", { a: "x".repeat(100_000) }));
      const path = `${CONFIG_MAPS}/patched`;
      const type = "application/json-patch+json";
      const doubled = Array.from({ length: 40 }, (_, i) => ({
        op: "copy",
        from: "/metadata",
        path: `/metadata/l${i}`,
      }));
      const copies = Array.from({ length: 9_900 }, (_, i) => ({ op: "copy", from: "/data/a", path: `/data/k${i}` }));
      return [
        refused("copies over itself", await ask("PATCH", path, doubled, type), [400, 413, 422]),
        refused("9,900 copies", await ask("PATCH", path, copies, type), [400, 413, 422]),
        await slowestRequest(2),
      ];
    },
  },
  {
    name: "api-objects",
    about: "a ConfigMap of 60,000 keys, 150,000 unknown fields, JSON and YAML nested 400,000 levels deep",
    flags: FLAGS,
    maxGrowthMegabytes: 64,
    run: async () => {
      const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, "v"]));
      const deep = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"deep"},"x":${"[".repeat(400_000)}${"]".repeat(400_000)}}`;
      const unknown = { ...configMap("unknown", {}), ...keys(150_000) };
      const yaml = "application/yaml";
      const apply = "application/apply-patch+yaml";
      const merge = "application/merge-patch+json";
      await ask("POST", CONFIG_MAPS, configMap("small", {}));
      const target = `${CONFIG_MAPS}/small`;
      return [
        refused("60,000 keys", await ask("POST", CONFIG_MAPS, configMap("keys", keys(60_000))), [413]),
        refused("60,000 keys merged", await ask("PATCH", target, { data: keys(60_000) }, merge), [413]),
        refused(
          "60,000 keys applied",
          await ask("PATCH", `${target}?fieldManager=a`, configMap("small", keys(60_000)), apply),
          [413],
        ),
        refused("150,000 unknown fields", await ask("POST", CONFIG_MAPS, unknown), [400, 413]),
        refused("nested JSON", await ask("POST", CONFIG_MAPS, deep), [400, 413]),
        refused("nested YAML", await ask("POST", CONFIG_MAPS, deep, yaml), [400, 413, 415]),
        refused("nested JSON as YAML", await ask("PATCH", `${target}?fieldManager=a`, deep, apply), [400, 413]),
        await slowestRequest(2),
      ];
    },
  },
  {
    name: "api-replicas",
    about: "a Deployment of 1e9 replicas, a ReplicaSet of 20,000, a Job of 2^31-1, from the API and from a file",
    flags: [...FLAGS, "--max-pods=8"],
    maxGrowthMegabytes: 64,
    run: async ({ node }) => {
      const apps = "/apis/apps/v1/namespaces/default";
      const jobs = "/apis/batch/v1/namespaces/default/jobs";
      const most = 2 ** 31 - 1;
      const created = [
        refused(
          "Deployment",
          await ask("POST", `${apps}/deployments`, workload("Deployment", "apps/v1", "d", 1e9, SLEEPER)),
          [201, 422],
        ),
        refused(
          "ReplicaSet",
          await ask("POST", `${apps}/replicasets`, workload("ReplicaSet", "apps/v1", "r", 20_000, SLEEPER)),
          [201, 422],
        ),
        refused("Job", await ask("POST", jobs, workload("Job", "batch/v1", "j", most, SLEEPER)), [201, 422]),
      ];
      node.writeManifest("crowd.json", workload("Deployment", "apps/v1", "f", 1e9, SLEEPER));
      const other = await slowestRequest(20);
      const running = (await node.containers("crowd")).length;
      node.removeManifest("crowd.json");
      const gone = [
        refused("delete Deployment", await ask("DELETE", `${apps}/deployments/d`), [200, 404]),
        refused("delete ReplicaSet", await ask("DELETE", `${apps}/replicasets/r`), [200, 404]),
        refused("delete Job", await ask("DELETE", `${jobs}/j?propagationPolicy=Background`), [200, 404]),
      ];
      await removeCrowd(node);
      return [...created, other, ...gone, { what: "containers", unit: "", value: running, atMost: 8 }];
    },
  },
  {
    name: "expansion",
    about: "a manifest of 1 KB whose environment expands `$(A)` over twelve levels",
    maxGrowthMegabytes: 64,
    run: async ({ node }) => {
      const env = Array.from({ length: 12 }, (_, i) => ({
        name: `A${i}`,
        value: i === 0 ? "xxxxxxxxxx" : `$(A${i - 1})`.repeat(10),
      }));
      const container = { ...SLEEPER.containers[0], env, command: ["sleep", "$(A11)", "$(A11)"] };
      const metadata = { name: "expanded" };
      node.writeManifest("expanded.json", {
        apiVersion: "v1",
        kind: "Pod",
        metadata,
        spec: { ...SLEEPER, containers: [container] },
      });
      const { reason = "" } = await node.until("the pod to be refused", async () => {
        const waiting = await node.waitingOf("expanded");
        return waiting?.reason !== "ContainerCreating" && waiting;
      });
      await Bun.sleep(5_000);
      node.removeManifest("expanded.json");
      return [
        {
          what: `its reason is ${reason}`,
          unit: "",
          value: reason.endsWith("Error") ? 0 : 1,
          atMost: 0,
        },
      ];
    },
  },
  {
    name: "execs",
    about: "420 execs, 40 at a time; their connections to the engine are closed",
    flags: ["--anonymous-auth=true", "--address=127.0.0.1"],
    maxGrowthMegabytes: 64,
    run: async (target) => {
      const { node } = target;
      const before = engineSockets(target);
      const [pod] = await node.pods();
      const url = `https://127.0.0.1:${node.kubeletPort}/run/default/${pod!.metadata.name}/app?cmd=true`;
      const exec = async () => {
        const response = await fetch(url, { method: "POST", tls: { rejectUnauthorized: false } });
        await response.text();
        return response.ok;
      };
      let failed = 0;
      for (let i = 0; i < 420; i += 40) {
        const done = await Promise.all(Array.from({ length: Math.min(40, 420 - i) }, exec));
        failed += done.filter((isOk) => !isOk).length;
      }
      await Bun.sleep(5_000);
      return [
        { what: "execs that failed", unit: "", value: failed, atMost: 0 },
        { what: "sockets more than before, 5 s later", unit: "", value: engineSockets(target) - before, atMost: 40 },
      ];
    },
  },
  {
    name: "api-writers",
    about: "three writers for 45 seconds: patches, creations, deletions; what stays when they are quiet",
    flags: FLAGS,
    maxGrowthMegabytes: 160,
    run: async ({ pid }) => {
      const write = async (writer: number, untilMs: number) => {
        let count = 0;
        for (; performance.now() < untilMs; count++) {
          const name = `w${writer}-${count % 20}`;
          await ask("POST", CONFIG_MAPS, configMap(name, { text: `${count}`.padEnd(5_000, "y") }));
          await ask("PATCH", `${CONFIG_MAPS}/${name}`, { data: { n: `${count}` } }, "application/merge-patch+json");
          await ask("DELETE", `${CONFIG_MAPS}/${name}`);
        }
        return count * 3;
      };
      // The first ones fill the window of events.
      const all = (seconds: number) =>
        Promise.all([1, 2, 3].map((writer) => write(writer, performance.now() + seconds * 1_000)));
      await all(15);
      await Bun.sleep(3_000);
      const before = residentMegabytes(pid);
      const counts = await all(30);
      await Bun.sleep(3_000);
      const writes = counts.reduce((sum, count) => sum + count, 0);
      return [
        {
          what: `RSS more than before ${writes} writes`,
          unit: "MB",
          value: residentMegabytes(pid) - before,
          atMost: 32,
        },
      ];
    },
  },
];

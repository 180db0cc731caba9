import { readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import tls from "node:tls";
import { askApi } from "../../test/support/local-api.ts";
import type { TestNode } from "../../test/support/test-node.ts";
import { freePorts } from "../../test/support/test-servers.ts";
import type { Attack, AttackTarget, Figure } from "./attack.ts";
import { residentMegabytes } from "./server-attacks.ts";

const TOKEN = "token-of-a-viewer";
const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
const DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments";
/** Ports of the local API, by the directory of the node. */
const ports = new Map<string, number>();

/** The local API on a port, with a token that may only read. */
function withApi(node: TestNode): string[] {
  const file = join(node.directory, "tokens.csv");
  writeFileSync(file, `${TOKEN},viewer,1,"view"\n`);
  const [port = 0] = freePorts(1);
  ports.set(node.directory, port);
  return [`--local-api-port=${port}`, `--token-auth-file=${file}`];
}

const configMap = (name: string, data: Record<string, string>) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name },
  data,
});

/** A TLS connection that has sent a GET with the viewer's token. */
function ask({ directory }: TestNode, path: string): tls.TLSSocket {
  const socket = tls.connect({ host: "127.0.0.1", port: ports.get(directory) ?? 0, rejectUnauthorized: false });
  socket.on("error", () => {});
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TOKEN}\r\nConnection: close\r\n\r\n`,
  );
  return socket;
}

/** Sends a request and says how it was refused: 4xx, at once. */
async function refused(target: AttackTarget, what: string, ...request: [string, string, unknown, string?]) {
  const startMs = performance.now();
  const { status } = await askApi(target.node, ...request);
  const ms = performance.now() - startMs;
  return [
    { what: `status of ${what}`, unit: status >= 400 ? "" : "(must be a refusal)", value: status, atMost: 499 },
    { what: `time of ${what}`, unit: "ms", value: status >= 400 ? ms : Number.POSITIVE_INFINITY, atMost: 2_000 },
  ];
}

async function create({ node }: AttackTarget, path: string, object: object): Promise<void> {
  const { status, json } = await askApi(node, "POST", path, object);
  if (status >= 300) throw new Error(`POST ${path}: ${status} ${json?.message}`);
}

const deployment = (replicas: number) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "many" },
  spec: {
    replicas,
    selector: { matchLabels: { app: "many" } },
    template: {
      metadata: { labels: { app: "many" } },
      // The image is not there: no container starts.
      spec: { containers: [{ name: "app", image: "no-such-image:1", imagePullPolicy: "Never" }] },
    },
  },
});

/** Sockets of the process. */
const socketsOf = (pid: number): number =>
  readdirSync(`/proc/${pid}/fd`).filter((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith("socket:");
    } catch {
      return false;
    }
  }).length;

/** Attacks on the local API. */
export const apiAttacks: readonly Attack[] = [
  {
    name: "patch-copies",
    about: "JSON patches that double an object 40 times, and that copy a long list 9,900 times",
    flags: withApi,
    maxGrowthMegabytes: 64,
    run: async (target) => {
      await create(target, CONFIG_MAPS, configMap("seed", { a: "x".repeat(1_000) }));
      const doubling = Array.from({ length: 40 }, (_, index) => ({
        op: "copy",
        from: "/data",
        path: `/data/k${index}`,
      }));
      const labels = Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`l${index}`, "v"]));
      await create(target, CONFIG_MAPS, configMap("list", labels));
      const copies = Array.from({ length: 9_900 }, (_, index) => ({ op: "copy", from: "/data", path: `/x${index}` }));
      const type = "application/json-patch+json";
      return [
        ...(await refused(target, "a doubling patch", "PATCH", `${CONFIG_MAPS}/seed`, doubling, type)),
        ...(await refused(target, "9,900 copies", "PATCH", `${CONFIG_MAPS}/list`, copies, type)),
      ];
    },
  },
  {
    name: "many-replicas",
    about: "a Deployment of 20,000 replicas, one of 1e9 in a manifest, a Job of 2^31-1 pods at a time",
    flags: withApi,
    maxGrowthMegabytes: 64,
    run: async (target) => {
      await create(target, DEPLOYMENTS, deployment(20_000));
      target.node.writeManifest("many.json", { ...deployment(1e9), metadata: { name: "of-a-file" } });
      await create(target, "/apis/batch/v1/namespaces/default/jobs", {
        apiVersion: "batch/v1",
        kind: "Job",
        metadata: { name: "many" },
        spec: {
          parallelism: 2 ** 31 - 1,
          completions: 2 ** 31 - 1,
          template: { spec: { ...deployment(1).spec.template.spec, restartPolicy: "Never" } },
        },
      });
      await Bun.sleep(15_000);
      const pods = await target.node.pods();
      return [{ what: "pods of the node", unit: "", value: pods.length, atMost: 500 }];
    },
  },
  {
    name: "large-objects",
    about: "a ConfigMap of 60,000 keys, 150,000 unknown fields, 400,000 nested lists",
    flags: withApi,
    maxGrowthMegabytes: 64,
    run: async (target) => {
      const many = (count: number) =>
        Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, "v"]));
      const figures: Figure[] = [];
      const keys = configMap("keys", many(60_000));
      figures.push(...(await refused(target, "60,000 keys", "POST", CONFIG_MAPS, keys)));
      await Bun.sleep(1_000);
      const fields = { ...configMap("fields", {}), ...many(150_000) };
      figures.push(...(await refused(target, "150,000 unknown fields", "POST", CONFIG_MAPS, fields)));
      await Bun.sleep(1_000);
      const text = `{"apiVersion":"v1","kind":"ConfigMap","x":${"[".repeat(400_000)}${"]".repeat(400_000)}}`;
      const startMs = performance.now();
      const response = await fetch(`http://node1${CONFIG_MAPS}`, {
        unix: join(target.node.rootDir, "api.sock"),
        method: "POST",
        body: text,
        headers: { "Content-Type": "application/json" },
      } as RequestInit);
      const ms = performance.now() - startMs;
      figures.push({ what: "status of nested lists", unit: "", value: response.status, atMost: 499 });
      figures.push({ what: "time of nested lists", unit: "ms", value: ms, atMost: 2_000 });
      return figures;
    },
  },
  {
    name: "wide-objects",
    about:
      "a ConfigMap of 20,000 labels; objects that are as wide as they may be, applied by many managers and patched",
    flags: withApi,
    maxGrowthMegabytes: 64,
    run: async (target) => {
      const many = (count: number, value = "v") =>
        Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, value]));
      const labeled = { ...configMap("labeled", {}), metadata: { name: "labeled", labels: many(20_000) } };
      const figures = await refused(target, "20,000 labels", "POST", CONFIG_MAPS, labeled);
      await create(target, CONFIG_MAPS, configMap("wide", many(4_900)));
      const apply = "application/apply-patch+yaml";
      for (let index = 0; index < 5; index++) {
        const path = `${CONFIG_MAPS}/wide?fieldManager=m${index}&force=true`;
        await askApi(target.node, "PATCH", path, configMap("wide", many(4_900, `${index >> 1}`)), apply);
      }
      const merge = "application/merge-patch+json";
      await askApi(target.node, "PATCH", `${CONFIG_MAPS}/wide`, { data: many(4_900, "merged") }, merge);
      const { spec, ...web } = deployment(0);
      const withEnv = (count: number, image: string) => {
        const env = Array.from({ length: count }, (_, index) => ({ name: `E${index}`, value: "v" }));
        return {
          ...web,
          spec: { ...spec, template: { ...spec.template, spec: { containers: [{ name: "app", image, env }] } } },
        };
      };
      for (const [count, image] of [
        [1_600, "a"],
        [0, "a"],
        [1_600, "b"],
      ] as const) {
        await askApi(
          target.node,
          "PATCH",
          `${DEPLOYMENTS}/many?fieldManager=m&force=true`,
          withEnv(count, image),
          apply,
        );
      }
      const strategic = "application/strategic-merge-patch+json";
      await askApi(target.node, "PATCH", `${DEPLOYMENTS}/many`, withEnv(1_600, "c"), strategic);
      return figures;
    },
  },
  {
    name: "log-flood",
    about: "a container that logs 300 MB as fast as it can and a line of 20 MB; ten viewers follow, five read nothing",
    flags: withApi,
    maxGrowthMegabytes: 64,
    run: async ({ node }) => {
      const script =
        "yes 0123456789012345678901234567890123456789 | head -c 300000000; tr '\\0' x < /dev/zero | head -c 20000000";
      const containers = [{ name: "app", image: "busybox:test", command: ["sh", "-c", `${script}; sleep 1000`] }];
      const spec = { terminationGracePeriodSeconds: 0, containers };
      node.writeManifest("flood.json", { apiVersion: "v1", kind: "Pod", metadata: { name: "flood" }, spec });
      const pod = await node.until("the flood", async () => {
        const found = (await node.pods()).find(({ metadata }) => metadata.name?.startsWith("flood"));
        return found?.status.phase === "Running" && found.metadata.name;
      });
      const path = `/api/v1/namespaces/default/pods/${pod}/log?follow=true`;
      const unread = Array.from({ length: 5 }, () => ask(node, path).pause());
      const read = Array.from({ length: 5 }, () => ask(node, path).resume());
      await Bun.sleep(15_000);
      for (const socket of [...unread, ...read]) socket.destroy();
      return [];
    },
  },
  {
    name: "log-clients",
    about: "200 clients follow the log of a container that writes 1,000 lines a second",
    flags: withApi,
    maxGrowthMegabytes: 64,
    run: async ({ node }) => {
      const script = "while :; do seq 100; usleep 100000; done";
      const containers = [{ name: "app", image: "busybox:test", command: ["sh", "-c", script] }];
      const spec = { terminationGracePeriodSeconds: 0, containers };
      node.writeManifest("chatty.json", { apiVersion: "v1", kind: "Pod", metadata: { name: "chatty" }, spec });
      const pod = await node.until("the chatty one", async () => {
        const found = (await node.pods()).find(({ metadata }) => metadata.name?.startsWith("chatty"));
        return found?.status.phase === "Running" && found.metadata.name;
      });
      const path = `/api/v1/namespaces/default/pods/${pod}/log?follow=true`;
      const clients = Array.from({ length: 200 }, () => ask(node, path).resume());
      await Bun.sleep(15_000);
      for (const client of clients) client.destroy();
      return [];
    },
  },
  {
    name: "list-storm",
    about: "20 connections of a viewer that list 20 MB, five times, and 20 that read nothing of it",
    flags: withApi,
    maxGrowthMegabytes: 64,
    run: async (target) => {
      for (let index = 0; index < 20; index++) {
        await create(target, CONFIG_MAPS, configMap(`large-${index}`, { text: "x".repeat(1_000_000) }));
      }
      // The growth by the objects themselves is not the attack's.
      await Bun.sleep(3_000);
      const before = residentMegabytes(target.pid);
      const unread = Array.from({ length: 20 }, () => ask(target.node, CONFIG_MAPS).pause());
      for (let round = 0; round < 5; round++) {
        const readers = Array.from({ length: 20 }, async () => {
          const socket = ask(target.node, CONFIG_MAPS);
          for await (const chunk of socket) void chunk;
        });
        await Promise.all(readers.map((reader) => reader.catch(() => {})));
      }
      const during = residentMegabytes(target.pid);
      for (const socket of unread) socket.destroy();
      return [{ what: "growth after the objects were there", unit: "MB", value: during - before, atMost: 64 }];
    },
  },
  {
    name: "unread-watches",
    about: "900 watches of a viewer that read nothing, and 60 writes of 100 KB",
    flags: withApi,
    maxGrowthMegabytes: 64,
    run: async (target) => {
      await create(target, CONFIG_MAPS, configMap("watched", { text: "x" }));
      const sockets = Array.from({ length: 900 }, () => ask(target.node, `${CONFIG_MAPS}?watch=true`).pause());
      await Bun.sleep(5_000);
      let slowestMs = 0;
      for (let index = 0; index < 60; index++) {
        const startMs = performance.now();
        const body = configMap("watched", { text: String(index % 10).repeat(100_000) });
        await askApi(target.node, "PUT", `${CONFIG_MAPS}/watched`, body);
        slowestMs = Math.max(slowestMs, performance.now() - startMs);
      }
      await Bun.sleep(3_000);
      for (const socket of sockets) socket.destroy();
      return [{ what: "slowest write", unit: "ms", value: slowestMs, atMost: 1_000 }];
    },
  },
  {
    name: "many-services",
    about: "as many Services as are taken in 30 s, at most 5,000, then ten Ingresses of 200 rules each",
    flags: withApi,
    maxGrowthMegabytes: 64,
    run: async (target) => {
      let slowestMs = 0;
      let count = 0;
      const post = async (path: string, object: object) => {
        const startMs = performance.now();
        await create(target, path, object);
        slowestMs = Math.max(slowestMs, performance.now() - startMs);
      };
      const services = "/api/v1/namespaces/default/services";
      const spec = { selector: { app: "none" }, ports: [{ port: 80 }] };
      for (const endMs = performance.now() + 30_000; performance.now() < endMs && count < 5_000; count++) {
        await post(services, { apiVersion: "v1", kind: "Service", metadata: { name: `s${count}` }, spec });
      }
      const service = { name: "s1", port: { number: 80 } };
      const paths = [{ path: "/", pathType: "Prefix", backend: { service } }];
      for (let at = 0; at < 10; at++) {
        const rules = Array.from({ length: 200 }, (_, index) => ({ host: `h${at}-${index}.example`, http: { paths } }));
        const ingress = {
          apiVersion: "networking.k8s.io/v1",
          kind: "Ingress",
          metadata: { name: `i${at}` },
          spec: { rules },
        };
        await post("/apis/networking.k8s.io/v1/namespaces/default/ingresses", ingress);
      }
      return [{ what: "slowest write", unit: `ms, of ${count} Services`, value: slowestMs, atMost: 1_000 }];
    },
  },
  {
    name: "nested-variables",
    about: "a manifest of 1 KB whose variables refer to each other twelve levels deep",
    maxGrowthMegabytes: 64,
    run: async ({ node }) => {
      const env = Array.from({ length: 12 }, (_, level) => ({
        name: `V${level}`,
        value: level === 0 ? "xxxxxxxxxx" : `$(V${level - 1})`.repeat(10),
      }));
      node.writeManifest("nested.json", {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: "nested" },
        spec: { containers: [{ name: "app", image: "busybox:test", command: ["echo", "$(V11)"], env }] },
      });
      await Bun.sleep(10_000);
      return [];
    },
  },
  {
    name: "blank-lines",
    about: "a manifest of 60 blank lines and one word",
    maxGrowthMegabytes: 64,
    run: async ({ node }) => {
      node.writeManifest("blank.yaml", `${"\n".repeat(60)}nginx\n`);
      await Bun.sleep(5_000);
      return [];
    },
  },
  {
    name: "many-execs",
    about: "400 commands in a container, 20 at a time; a moment later their sockets are closed",
    flags: withApi,
    maxGrowthMegabytes: 64,
    run: async (target) => {
      const { node, pid } = target;
      const [pod] = await node.pods();
      const before = socketsOf(pid);
      const run = async () => {
        for (let index = 0; index < 20; index++) {
          const url = `/api/v1/namespaces/default/pods/${pod!.metadata.name}/exec?command=true&container=app&stdout=true`;
          await runExec(join(node.rootDir, "api.sock"), url);
        }
      };
      await Promise.all(Array.from({ length: 20 }, run));
      await Bun.sleep(10_000);
      return [{ what: "sockets more than before", unit: "", value: socketsOf(pid) - before, atMost: 40 }];
    },
  },
  {
    name: "writers",
    about: "three writers for 40 s; the memory when it is quiet again",
    flags: withApi,
    maxGrowthMegabytes: 64,
    run: async (target) => {
      const { node, pid } = target;
      const write = async (name: string, untilMs: number) => {
        for (let index = 0; performance.now() < untilMs; index++) {
          await askApi(node, "PUT", `${CONFIG_MAPS}/${name}`, configMap(name, { text: `${index}`.repeat(1_000) }));
        }
      };
      const names = ["one", "two", "three"];
      for (const name of names) await create(target, CONFIG_MAPS, configMap(name, {}));
      await Promise.all(names.map((name) => write(name, performance.now() + 10_000)));
      await Bun.sleep(3_000);
      const before = residentMegabytes(pid);
      await Promise.all(names.map((name) => write(name, performance.now() + 30_000)));
      await Bun.sleep(5_000);
      return [{ what: "growth between 10 s and 40 s", unit: "MB", value: residentMegabytes(pid) - before, atMost: 16 }];
    },
  },
];

/** Runs a command by the API's WebSocket to its end. */
function runExec(socketPath: string, path: string): Promise<void> {
  return new Promise((resolve) => {
    const client = new WebSocket(`ws+unix://${socketPath}:${path}`, { protocols: ["v4.channel.k8s.io"] });
    client.onclose = () => resolve();
    client.onerror = () => resolve();
  });
}

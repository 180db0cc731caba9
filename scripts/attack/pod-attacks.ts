import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { computeRootHash, LABEL } from "../../src/docker/labels.ts";
import { makeDeepTree } from "../../test/support/deep-tree.ts";
import { canHang, hangingDisk } from "../../test/support/hanging-disk.ts";
import { freePorts } from "../../test/support/test-servers.ts";
import type { Attack, AttackTarget, Figure } from "./attack.ts";
import { residentMegabytes } from "./server-attacks.ts";

const SETTLED = "sleep 100000";

/** A pod that runs a shell script as root. */
const attacker = (script: string, { spec = {}, container = {} }: { spec?: object; container?: object } = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "attacker" },
  spec: {
    terminationGracePeriodSeconds: 0,
    ...spec,
    containers: [{ name: "app", image: "busybox:test", command: ["sh", "-c", script], ...container }],
  },
});

const peakMegabytes = (pid: number) =>
  Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;

/** Slowest answer of /healthz over some seconds. Unit: milliseconds; Infinity without an answer. */
async function slowestHealthz({ node }: AttackTarget, seconds: number): Promise<Figure> {
  const endMs = performance.now() + seconds * 1_000;
  let slowest = 0;
  while (performance.now() < endMs) {
    const startMs = performance.now();
    const answer = await fetch(`http://127.0.0.1:${node.healthzPort}/healthz`, {
      signal: AbortSignal.timeout(10_000),
    }).catch(() => undefined);
    slowest = Math.max(slowest, answer ? performance.now() - startMs : Number.POSITIVE_INFINITY);
    await Bun.sleep(100);
  }
  return { what: "slowest answer of /healthz", unit: "ms", value: slowest, atMost: 1_000 };
}

/** Milliseconds until the containers of the attacker are gone from the engine. */
async function removeAttacker({ node }: AttackTarget): Promise<void> {
  node.removeManifest("attacker.json");
  await node.until(
    "the attacker to be gone",
    async () => (await node.containers("app")).length === BYSTANDER_CONTAINERS,
  );
}

/** Containers named `app` without the attacker's: those of the bystanders. */
const BYSTANDER_CONTAINERS = 3;

const countSetuid = (directory: string) =>
  readdirSync(directory, { recursive: true }).filter((name) => statSync(join(directory, String(name))).mode & 0o4000)
    .length;

async function listen(server: Server, place: string | number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (typeof place === "string") server.listen(place, resolve);
  else server.listen(place, "127.0.0.1", resolve);
  await promise;
}

/** Writes `chunk` without end, as fast as the other side takes it. */
function answerWithoutEnd(socket: Socket, head: string, chunk: string): void {
  socket.on("error", () => {});
  socket.write(head);
  const more = () => {
    while (!socket.destroyed && socket.write(chunk));
    if (!socket.destroyed) socket.once("drain", () => setImmediate(more));
  };
  more();
}

/** Attacks by containers, manifests, disks and an engine. */
export const podAttacks: readonly Attack[] = [
  {
    name: "hosts-file",
    about: "a container that extends its /etc/hosts to 8 GiB and exits, repeatedly",
    maxGrowthMegabytes: 64,
    run: async (target) => {
      target.node.writeManifest("attacker.json", attacker("truncate -s 8G /etc/hosts; exit 1"));
      return [await slowestHealthz(target, 25)];
    },
  },
  {
    name: "log-links",
    about: "a container that plants links in its own log directory, to a directory of others",
    maxGrowthMegabytes: 64,
    run: async (target) => {
      const { node } = target;
      const victim = join(node.directory, "victim");
      mkdirSync(victim);
      for (let i = 0; i < 20; i++) symlinkSync("/bin/true", join(victim, `link-${i}`));
      const plant = 'cd /logs/*attacker* && ln -sfn "$V" x && rm -rf app && ln -sfn "$V" app; exit 1';
      const volume = { name: "logs", hostPath: { path: join(node.directory, "log-pods") } };
      const mounts = [
        { name: "logs", mountPath: "/logs" },
        { name: "victim", mountPath: victim },
      ];
      node.writeManifest(
        "attacker.json",
        attacker(`sleep 1; ${plant}`, {
          spec: { volumes: [volume, { name: "victim", hostPath: { path: victim } }] },
          container: { env: [{ name: "V", value: victim }], volumeMounts: mounts },
        }),
      );
      const healthz = await slowestHealthz(target, 20);
      await removeAttacker(target);
      await Bun.sleep(2_000);
      const left = readdirSync(victim);
      const links = left.filter((name) => name.startsWith("link-")).length;
      return [
        healthz,
        { what: "links of others removed", unit: "", value: 20 - links, atMost: 0 },
        { what: "files made in a directory of others", unit: "", value: left.length - links, atMost: 0 },
      ];
    },
  },
  {
    name: "hanging-volume",
    about: "a hostPath volume on a file system that never answers",
    maxGrowthMegabytes: 64,
    ...(canHang ? {} : { impossible: "needs root and /dev/fuse" }),
    run: async (target) => {
      const path = join(target.node.directory, "hanging");
      mkdirSync(path);
      const end = hangingDisk(path);
      try {
        const volumes = [{ name: "data", hostPath: { path: join(path, "data"), type: "Directory" } }];
        const volumeMounts = [{ name: "data", mountPath: "/data" }];
        target.node.writeManifest(
          "attacker.json",
          attacker(SETTLED, { spec: { volumes }, container: { volumeMounts } }),
        );
        return [await slowestHealthz(target, 20)];
      } finally {
        end();
      }
    },
  },
  {
    name: "endless-informational",
    about: "a probed port that answers `HTTP/1.1 100 Continue` without end",
    maxGrowthMegabytes: 64,
    run: async (target) => {
      const server = createServer((socket) => answerWithoutEnd(socket, "", "HTTP/1.1 100 C\r\n\r\n".repeat(1_000)));
      await listen(server, 0);
      const { port } = server.address() as { port: number };
      const readinessProbe = { httpGet: { host: "127.0.0.1", port }, periodSeconds: 1, timeoutSeconds: 1 };
      target.node.writeManifest("attacker.json", attacker(SETTLED, { container: { readinessProbe } }));
      try {
        return [await slowestHealthz(target, 20)];
      } finally {
        server.close();
      }
    },
  },
  {
    name: "manifests",
    about: "a quantity of 8,000 zeros, 5 GB of YAML aliases, a file of 90,000 pods, a FIFO and a link to /proc/kmsg",
    maxGrowthMegabytes: 300,
    run: async (target) => {
      const { node } = target;
      const resources = { requests: { cpu: `${"0".repeat(8_000)}x` } };
      node.writeManifest("quantity.json", attacker(SETTLED, { container: { resources } }));
      const aliases = `  a: &a "${"x".repeat(800_000)}"\n${Array.from({ length: 6_000 }, (_, i) => `  b${i}: *a`).join("\n")}`;
      node.writeManifest(
        "aliases.yaml",
        `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: aliases}\ndata:\n${aliases}\n`,
      );
      const pod = (i: number) =>
        `{apiVersion: v1, kind: Pod, metadata: {name: p${i}}, spec: {containers: [{name: a, image: b}]}}`;
      node.writeManifest("many.yaml", Array.from({ length: 90_000 }, (_, i) => pod(i)).join("\n---\n"));
      Bun.spawnSync(["mkfifo", join(node.manifestDir, "fifo.yaml")]);
      symlinkSync("/proc/kmsg", join(node.manifestDir, "kmsg.yaml"));
      return [await slowestHealthz(target, 45)];
    },
  },
  {
    name: "many-files",
    about: "3,000 manifests come into the directory, of which 2,700 are broken",
    maxGrowthMegabytes: 64,
    run: async (target) => {
      const { node } = target;
      for (let i = 0; i < 3_000; i++) {
        const data = { apiVersion: "v1", kind: i % 10 === 0 ? "ConfigMap" : "Config", metadata: { name: `c${i}` } };
        node.writeManifest(`c${i}.json`, data);
      }
      return [await slowestHealthz(target, 30)];
    },
  },
  {
    name: "shared-objects",
    about: "50 pods whose environment and volumes are a ConfigMap and a Secret of 500 KB, edited each second",
    maxGrowthMegabytes: 96,
    run: async (target) => {
      const { node } = target;
      const names = { configMap: { name: "shared" }, secret: { secretName: "shared" } };
      const sources = [{ configMap: names.configMap }, { secret: { name: "shared" } }];
      const volumes = [
        { name: "config", configMap: names.configMap },
        { name: "secret", secret: names.secret },
        {
          name: "both",
          projected: {
            sources: [sources[0], { secret: { ...sources[1]?.secret, items: [{ key: "k0", path: "s" }] } }],
          },
        },
      ];
      const container = {
        // Its containers do not start: an edit of their environment is not 50 restarts.
        ...{
          imagePullPolicy: "Never",
          image: "no-such-image:1",
          envFrom: [{ configMapRef: names.configMap }, { secretRef: { name: "shared" } }],
        },
        volumeMounts: volumes.map(({ name }) => ({ name, mountPath: `/${name}` })),
      };
      const write = (edit: number) => {
        const texts = Array.from(
          { length: 10 },
          (_, index) => [`k${index}`, String(edit % 10).repeat(50_000)] as const,
        );
        const base64 = texts.map(([key, text]) => [key, btoa(text)] as const);
        const metadata = { name: "shared" };
        const items = [
          { apiVersion: "v1", kind: "ConfigMap", metadata, data: Object.fromEntries(texts) },
          { apiVersion: "v1", kind: "Secret", metadata, data: Object.fromEntries(base64) },
        ];
        node.writeManifest("shared.json", { apiVersion: "v1", kind: "List", items });
      };
      write(0);
      for (let index = 0; index < 50; index++) {
        node.writeManifest(`attacker-${index}.json`, {
          ...attacker(SETTLED, { spec: { volumes }, container }),
          metadata: { name: `attacker-${index}` },
        });
      }
      await Bun.sleep(30_000);
      // The memory of 50 pods is not the attack's.
      const before = residentMegabytes(target.pid);
      writeFileSync(`/proc/${target.pid}/clear_refs`, "5");
      for (let edit = 1; edit <= 20; edit++, await Bun.sleep(1_000)) write(edit);
      const growth = peakMegabytes(target.pid) - before;
      return [await slowestHealthz(target, 5), { what: "growth by the edits", unit: "MB", value: growth, atMost: 64 }];
    },
  },
  {
    name: "endless-url",
    about: "a manifest URL that answers without end, and one that answers 9 MB of documents",
    flags: () => {
      const documents = Array.from(
        { length: 9_000 },
        (_, i) => `apiVersion: v1\nkind: Config\nmetadata: {name: u${i}, x: ${"y".repeat(900)}}\n`,
      );
      const large = documents.join("---\n");
      const server = createServer((socket) => {
        socket.on("error", () => {});
        socket.once("data", (first) => {
          const head = "HTTP/1.1 200 OK\r\nContent-Type: application/yaml\r\nConnection: close\r\n";
          if (first.toString().includes("/large")) socket.end(`${head}Content-Length: ${large.length}\r\n\r\n${large}`);
          else answerWithoutEnd(socket, `${head}\r\n`, "# comment\n".repeat(6_000));
        });
      }).unref();
      const [port = 0] = freePorts(1);
      server.listen(port, "127.0.0.1");
      const urls = ["endless", "large"].map((path) => `http://127.0.0.1:${port}/${path}`);
      return [`--manifest-url=${urls.join(",")}`, "--http-check-frequency=2s"];
    },
    maxGrowthMegabytes: 64,
    run: async (target) => [await slowestHealthz(target, 25)],
  },
  {
    name: "hostile-copy",
    about:
      "`kubelet-ts cp` from containers that send other files than asked, devices or bytes without end; to one that reads nothing",
    maxGrowthMegabytes: 64,
    run: async ({ node }) => {
      const tars = {
        others: "cd /evil; exec busybox tar -cf - hosts .bashrc .ssh",
        devices: "mkdir /d; mknod /d/null c 1 3; mknod /d/disk b 7 0; exec busybox tar -C / -cf - d",
        endless: "exec yes evil",
        silent: "exec sleep 1000",
      };
      const files =
        "mkdir -p /evil/.ssh; cd /evil; for f in hosts .bashrc .ssh/keys; do echo evil > $f; chmod 4755 $f; done";
      for (const [name, tar] of Object.entries(tars)) {
        const script = `${files}; rm /bin/tar; printf '#!/bin/sh\\n${tar}\\n' > /bin/tar; chmod +x /bin/tar; exec sleep 100000`;
        node.writeManifest(`${name}.json`, { ...attacker(script), metadata: { name } });
        await node.untilPhase(name, "Running");
      }
      const into = join(node.directory, "copied");
      mkdirSync(into);
      const large = join(node.directory, "large");
      Bun.spawnSync(["truncate", "-s", "500M", large]);
      const pod = async (name: string) => (await node.pod(name))!.metadata.name;
      const copies = [
        [`${await pod("others")}:/etc/hosts`, `${into}/`],
        [`${await pod("devices")}:/d`, `${into}/`],
        [`${await pod("endless")}:/etc/hosts`, `${into}/endless`],
        [large, `${await pod("silent")}:/tmp/large`],
      ];
      let peak = 0;
      const running = copies.map((sides) => node.spawn([`--root-dir=${node.rootDir}`, "cp", ...(sides as string[])]));
      for (const endMs = performance.now() + 15_000; performance.now() < endMs; await Bun.sleep(200)) {
        for (const { pid, running: runs } of running) if (runs) peak = Math.max(peak, peakMegabytes(pid) || 0);
      }
      for (const child of running) if (child.running) await child.kill();
      const others = readdirSync(into).filter((name) => name.startsWith("."));
      const devices = readdirSync(into, { recursive: true, withFileTypes: true }).filter(
        (entry) => entry.isCharacterDevice() || entry.isBlockDevice(),
      );
      return [
        { what: "devices", unit: "", value: devices.length, atMost: 0 },
        { what: "files that were not asked for", unit: "", value: others.length, atMost: 0 },
        { what: "files that keep their set-user-ID bit", unit: "", value: countSetuid(into), atMost: 0 },
        { what: "peak RSS of a command", unit: "MB", value: peak, atMost: 128 },
      ];
    },
  },
  {
    name: "deep-tree",
    about: "an emptyDir volume 20,000 directories deep",
    maxGrowthMegabytes: 64,
    run: async (target) => {
      const { node } = target;
      const volumes = [{ name: "data", emptyDir: {} }];
      const volumeMounts = [{ name: "data", mountPath: "/data" }];
      node.writeManifest("attacker.json", attacker(SETTLED, { spec: { volumes }, container: { volumeMounts } }));
      const uid = await node.until("the attacker to run", async () => {
        const found = (await node.pods()).find(({ metadata }) => metadata.name?.startsWith("attacker"));
        return found?.status.phase === "Running" && found.metadata.uid;
      });
      const podDirectory = join(node.rootDir, "pods", uid);
      makeDeepTree(join(podDirectory, "volumes/kubernetes.io~empty-dir/data"), 20_000);
      node.removeManifest("attacker.json");
      const healthz = await slowestHealthz(target, 10);
      await node.until("the volume to be gone", () => !existsSync(podDirectory));
      return [healthz];
    },
  },
  {
    name: "endless-engine",
    about: "a second kubelet whose engine answers without end",
    maxGrowthMegabytes: 64,
    run: async (target) => {
      const { node } = target;
      const socketPath = join(node.directory, "engine.sock");
      const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nApi-Version: 1.41\r\n\r\n";
      const server = createServer((socket) =>
        socket.once("data", () => answerWithoutEnd(socket, head, " ".repeat(65_536))),
      );
      await listen(server, socketPath);
      const manifests = join(node.directory, "other-manifests");
      mkdirSync(manifests);
      writeFileSync(join(manifests, "pod.json"), JSON.stringify(attacker(SETTLED)));
      const places = [`--root-dir=${join(node.directory, "other-root")}`, `--pod-manifest-path=${manifests}`];
      const ports = ["read-only-port", "healthz-port", "cadvisor-port", "local-api-port", "port"].map(
        (it) => `--${it}=0`,
      );
      const other = node.spawn([...places, ...ports, `--docker-endpoint=unix://${socketPath}`]);
      try {
        const healthz = await slowestHealthz(target, 15);
        return [
          healthz,
          { what: "peak RSS of the second one", unit: "MB", value: peakMegabytes(other.pid), atMost: 200 },
        ];
      } finally {
        await other.kill();
        server.close();
      }
    },
  },
  {
    name: "flooding-engine",
    about: "a second kubelet whose engine lists 100,000 of its containers and sends events as fast as they are taken",
    maxGrowthMegabytes: 64,
    run: async (target) => {
      const { node } = target;
      const root = join(node.directory, "other-root");
      const labels = { [LABEL.node]: node.name, [LABEL.root]: computeRootHash(root), [LABEL.type]: "container" };
      const id = (index: number) => index.toString(16).padStart(64, "0");
      const list = Array.from({ length: 100_000 }, (_, index) => ({
        ...{ Id: id(index), Names: [`/c${index}`], Image: "busybox:test", ImageID: id(0), Labels: labels },
        ...{ State: "running", Status: "Up", Created: 1, Command: "sh", Ports: [], Mounts: [] },
      }));
      const events = Array.from({ length: 500 }, (_, index) =>
        JSON.stringify({
          ...{
            Type: "container",
            Action: "die",
            id: id(index),
            status: "die",
            from: "busybox:test",
            time: 1,
            timeNano: index,
          },
          Actor: { ID: id(index), Attributes: { ...labels, exitCode: "0" } },
        }),
      );
      const chunk = Buffer.from(`${events.join("\n")}\n`);
      const version = { Version: "20.10.24", ApiVersion: "1.41", MinAPIVersion: "1.12", Os: "linux", Arch: "amd64" };
      const answers: Record<string, () => Response> = {
        _ping: () => new Response("OK", { headers: { "Api-Version": "1.41" } }),
        version: () => Response.json(version),
        info: () =>
          Response.json({ ID: "x", Name: "x", Driver: "overlay2", CgroupDriver: "cgroupfs", OSType: "linux" }),
        "containers/json": () => Response.json(list),
        events: () => new Response(new ReadableStream({ pull: (controller) => controller.enqueue(chunk) })),
      };
      const unix = join(node.directory, "flood.sock");
      const server = Bun.serve({
        unix,
        fetch: ({ url }) => {
          const path = new URL(url).pathname.replace(/^\/(v1\.\d+\/)?/, "");
          return answers[path]?.() ?? Response.json({ message: "No such container" }, { status: 404 });
        },
      });
      const ports = freePorts(1);
      const off = ["read-only-port", "cadvisor-port", "local-api-port", "port"].map((it) => `--${it}=0`);
      const manifests = join(node.directory, "other-manifests");
      mkdirSync(manifests);
      const other = node.spawn([
        ...[
          `--pod-manifest-path=${manifests}`,
          `--root-dir=${root}`,
          `--hostname-override=${node.name}`,
          `--docker-endpoint=unix://${unix}`,
        ],
        ...off,
        `--healthz-port=${ports[0]}`,
      ]);
      try {
        await Bun.sleep(5_000);
        let slowest = 0;
        for (let index = 0; index < 30; index++, await Bun.sleep(500)) {
          const startMs = performance.now();
          const signal = AbortSignal.timeout(10_000);
          const answer = await fetch(`http://127.0.0.1:${ports[0]}/healthz`, { signal }).catch(() => undefined);
          slowest = Math.max(slowest, answer ? performance.now() - startMs : Number.POSITIVE_INFINITY);
        }
        return [
          { what: "slowest answer of its /healthz", unit: "ms", value: slowest, atMost: 1_000 },
          { what: "its peak RSS", unit: "MB", value: peakMegabytes(other.pid), atMost: 200 },
          { what: "its end", unit: "", value: other.running ? 0 : 1, atMost: 0 },
        ];
      } finally {
        await other.kill();
        await server.stop(true);
      }
    },
  },
  {
    name: "silent-sockets",
    about: "2,000 silent connections to the Unix sockets; another client is answered",
    maxGrowthMegabytes: 64,
    run: async (target) => {
      const { node } = target;
      const sockets: Socket[] = [];
      for (const name of ["kubelet-ts.sock", "api.sock"]) {
        for (let i = 0; i < 1_000; i++) {
          const socket = connect(join(node.rootDir, name));
          socket.on("error", () => {});
          sockets.push(socket);
        }
      }
      const healthz = await slowestHealthz(target, 10);
      const startMs = performance.now();
      const answer = await fetch("http://localhost/pods", {
        unix: join(node.rootDir, "kubelet-ts.sock"),
        signal: AbortSignal.timeout(10_000),
      }).catch(() => undefined);
      const ms = answer?.ok ? performance.now() - startMs : Number.POSITIVE_INFINITY;
      for (const socket of sockets) socket.destroy();
      return [healthz, { what: "another client's request", unit: "ms", value: ms, atMost: 1_000 }];
    },
  },
];

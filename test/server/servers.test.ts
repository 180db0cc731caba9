import { expect, test } from "bun:test";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import type { KubeletOptions } from "../../src/config/option-table.ts";
import { Servers } from "../../src/server/servers.ts";
import { metricsText } from "../../src/stats/metrics/metric.ts";
import { layTree } from "../stats/lay-tree.ts";
import { aPod } from "../support/builders.ts";
import { cleanUps } from "../support/clean-ups.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { freePorts } from "../support/test-servers.ts";
import { until } from "../support/until.ts";
import { aClient } from "./a-client.ts";
import { aServerWorld } from "./a-context.ts";

const tempDir = tempDirs();
const tree = layTree("cgroup-v2", tempDir());
const HOST = "127.0.0.1";

const cleanUp = cleanUps();

/** @param serving ports to wait for */
async function start(
  options: Partial<KubeletOptions> = {},
  serving: ("healthz" | "readOnly" | "cadvisor")[] = ["healthz", "readOnly", "cadvisor"],
) {
  const world = aServerWorld(tree);
  const [healthzPort, readOnlyPort, cadvisorPort] = freePorts(3);
  const addresses = { healthzBindAddress: HOST, readOnlyAddress: HOST, cadvisorBindAddress: HOST };
  const all = { ...addresses, healthzPort, readOnlyPort, cadvisorPort, ...options } as KubeletOptions;
  const servers = new Servers(world.view, { ...world.parts, options: all });
  cleanUp(() => servers.stop());
  await until("the ports", () => serving.every((name) => servers.ports()[name] !== undefined));
  return { ...world, servers, options: all, url: `http://${HOST}:${all.readOnlyPort}` };
}

/** A server's answer to these bytes, until it closes or `enough` is true. */
async function exchange(port: number, text: string, enough: (answer: string) => boolean): Promise<string> {
  const { socket, seen } = aClient(port, { text });
  await until("the answer", () => seen.isClosed || enough(seen.text));
  socket.destroy();
  return seen.text;
}

test("three ports answer, each what it is for", async () => {
  const { servers, options } = await start();
  expect(servers.ports()).toEqual({
    healthz: options.healthzPort,
    readOnly: options.readOnlyPort,
    cadvisor: options.cadvisorPort,
    authenticated: undefined,
  });
  const get = async (port: number, path: string) => (await fetch(`http://${HOST}:${port}${path}`)).text();
  expect(await get(options.healthzPort, "/healthz")).toBe("ok");
  expect(await get(options.readOnlyPort, "/pods")).toContain('"items":null');
  expect(await get(options.cadvisorPort, "/api/v1.3/machine")).toContain('"num_cores":4');
});

test("a port of 0 is off", async () => {
  const { servers } = await start({ healthzPort: 0, readOnlyPort: 0, cadvisorPort: 0 }, []);
  expect(Object.values(servers.ports())).toEqual([undefined, undefined, undefined, undefined]);
});

test("a port in use is reported once and served as soon as it is free; the others do not wait for it", async () => {
  const holder = createServer();
  await new Promise<void>((resolve) => holder.listen(0, HOST, resolve));
  const { port } = holder.address() as { port: number };
  const { servers, clock, logger } = await start({ readOnlyPort: port }, ["healthz"]);
  const attempts = () => logger.lines.filter((line) => line.includes("read-only port")).length;
  await until("the first attempt", () => attempts() === 1);
  await clock.advance(1_000);
  await until("the second attempt", () => attempts() === 2);
  expect(servers.ports().readOnly).toBeUndefined();
  expect(logger.lines.filter((line) => line.startsWith("error"))).toEqual([
    "error Cannot serve the read-only port, trying again",
  ]);
  await new Promise((resolve) => holder.close(resolve));
  await clock.advance(60_000);
  await until("the port", () => servers.ports().readOnly === port);
  expect(logger.lines).toContain("info Serving the read-only port");
});

test("two kubelets do not share a port", async () => {
  const { servers: first } = await start({});
  const port = first.ports().readOnly ?? 0;
  const { servers: second, logger } = await start({ readOnlyPort: port }, ["healthz"]);
  await until("the refusal", () => logger.lines.includes("error Cannot serve the read-only port, trying again"));
  expect(second.ports().readOnly).toBeUndefined();
});

test("stopping ends the attempts to get a port too", async () => {
  const { servers, clock } = await start({ readOnlyAddress: "192.0.2.1", healthzPort: 0, cadvisorPort: 0 }, []);
  await until("the next attempt to be planned", () => clock.pendingTimers === 1);
  expect(servers.ports().readOnly).toBeUndefined();
  await servers.stop();
  expect(clock.pendingTimers).toBe(0);
});

test("a socket for our own user answers as the read-only port does, also where that is off", async () => {
  const path = join(tempDir(), "kubelet-ts.sock");
  // Left behind by a killed kubelet.
  writeFileSync(path, "");
  const world = aServerWorld(tree);
  const options = { healthzPort: 0, readOnlyPort: 0, cadvisorPort: 0 } as KubeletOptions;
  const servers = new Servers(world.view, { ...world.parts, options, socketPath: path });
  cleanUp(() => servers.stop());
  await until("the socket", () => servers.socketPath() === path);
  expect((statSync(path).mode & 0o777).toString(8)).toBe("600");
  const answer = await fetch("http://kubelet/pods", { unix: path });
  expect(await answer.text()).toContain('"items":null');
  await servers.stop();
  expect(existsSync(path)).toBe(false);
});

test("HEAD has the headers of GET and no body", async () => {
  const { url, view } = await start();
  view.show(aPod());
  // A browser's header: only the root of the port has a hint for it.
  const headers = { Accept: "text/html,*/*;q=0.8" };
  const [get, head] = [await fetch(`${url}/pods`, { headers }), await fetch(`${url}/pods`, { method: "HEAD" })];
  expect(get.status).toBe(200);
  expect(head.headers.get("content-length")).toBe(get.headers.get("content-length"));
  expect(head.headers.get("etag")).toBe(get.headers.get("etag"));
  expect(await head.text()).toBe("");
});

test("requests are counted by what they ask for, and no stranger's path becomes a label", async () => {
  const { url, kubeletMetrics } = await start();
  for (const path of ["/pods", "/pods/", "/metrics/resource", "/wp-login.php", "/a/b/c"]) {
    await (await fetch(url + path)).arrayBuffer();
  }
  const { httpRequests, httpInflightRequests, httpRequestsDuration } = kubeletMetrics;
  const text = [...metricsText([httpRequests, httpInflightRequests, httpRequestsDuration], "prometheus")].join("");
  const figure = (name: string, path: string) =>
    new RegExp(`^kubelet_http_${name}.*path="${path}".* (\\d+)$`, "m").exec(text)?.[1];
  expect(["pods", "metrics/resource", "other"].map((path) => figure("requests_total", path))).toEqual(["2", "1", "2"]);
  expect(figure("inflight_requests", "pods")).toBe("0");
  expect(figure("requests_duration_seconds_count", "pods")).toBe("2");
});

test.each([
  ["garbage", "\0\x01\x02 nonsense\r\n\r\n"],
  ["a header block without end", `GET /pods HTTP/1.1\r\nHost: localhost\r\n${"X-Long: y\r\n".repeat(4000)}`],
  ["one endless header", `GET /pods HTTP/1.1\r\nHost: localhost\r\nX-Long: ${"y".repeat(100_000)}\r\n\r\n`],
  ["a path of 100 kB", `GET /${"a".repeat(100_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`],
  ["a path that is not a text", "GET /%zz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"],
  ["a length that is none", "POST /pods HTTP/1.1\r\nHost: localhost\r\nContent-Length: many\r\n\r\n"],
  ["a body of 1 GB announced", "POST /pods HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\n\r\n"],
])("%s is refused and hurts no other client", async (_, bytes) => {
  const { url, options } = await start();
  const answer = await exchange(options.readOnlyPort, bytes, (text) => text.includes("\r\n\r\n"));
  expect(answer === "" || /^HTTP\/1\.1 4\d\d /.test(answer)).toBe(true);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
});

test("a thousand idle connections and a hundred readers that take nothing delay no other client", async () => {
  const { url, options, view } = await start();
  view.show(...Array.from({ length: 110 }, (_, index) => aPod({}, { name: `pod-${index}-node1`, uid: String(index) })));
  const sockets: Socket[] = [];
  cleanUp(() => sockets.map((socket) => socket.destroy()));
  let connected = 0;
  for (let index = 0; index < 1100; index++) {
    const socket = connect(options.readOnlyPort, HOST, () => {
      connected++;
      // Asks for much and reads none of it.
      if (index >= 1000) socket.write("GET /pods HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(20));
    });
    socket.on("error", () => {});
    if (index >= 1000) socket.pause();
    sockets.push(socket);
  }
  await until("1100 connections", () => connected === 1100);
  for (let round = 0; round < 5; round++) {
    const list = (await (await fetch(`${url}/pods`)).json()) as { items: unknown[] };
    expect(list.items).toHaveLength(110);
  }
});

test.each([
  ["evil.example", 421],
  ["evil.example:10255", 421],
  ["localhost", 200],
  ["127.0.0.1:10255", 200],
  ["[::1]:10255", 200],
  ["node1", 200],
  // A health check of HTTP/1.0 names no host.
  [undefined, 200],
])("a port on the loopback answers a request for %s with %d", async (host, want) => {
  const { options } = await start();
  const head = host === undefined ? "HTTP/1.0" : `HTTP/1.1\r\nHost: ${host}\r\nConnection: close`;
  for (const port of [options.healthzPort, options.readOnlyPort, options.cadvisorPort]) {
    const bytes = `GET /healthz ${head}\r\n\r\n`;
    expect(await exchange(port, bytes, (text) => text.endsWith("ok"))).toStartWith(`HTTP/1.1 ${want} `);
  }
});

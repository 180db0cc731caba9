import { describe, expect, test } from "bun:test";
import { pageAddress, pageHint, routeCadvisor } from "../../src/server/cadvisor-routes.ts";
import type { HttpResponse, RouteRequest } from "../../src/server/request-handler.ts";
import { CONTAINER_ID, CONTAINER_PATHS, layTree, podOf } from "../stats/lay-tree.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { aRequest, aServerWorld } from "./a-context.ts";

const tree = layTree("cgroup-v2", tempDirs()());
const PATH = CONTAINER_PATHS["cgroup-v2"];
const DOCKER_NAME = podOf("cgroup-v2").containers[0]!.dockerName;

async function ask(target: string, options: Parameters<typeof aRequest>[1] = {}, world = aServerWorld(tree)) {
  return await routeCadvisor(aRequest(target, options), world.context);
}
const json = async (target: string, options: Parameters<typeof aRequest>[1] = {}) =>
  JSON.parse((await ask(target, options)).body as string);

describe("version 1", () => {
  test.each(["v1.0", "v1.1", "v1.2", "v1.3"])("%s describes the machine and any cgroup", async (version) => {
    expect(await json(`/api/${version}/machine`)).toMatchObject({ num_cores: 4, instance_type: "m5.xlarge" });
    expect(await json(`/api/${version}/containers`)).toMatchObject({ name: "/" });
    expect(await json(`/api/${version}/containers/`)).toMatchObject({ name: "/" });
    expect(await json(`/api/${version}/containers${PATH}`)).toMatchObject({ id: CONTAINER_ID, name: PATH });
  });

  test("resources came one by one", async () => {
    expect((await ask("/api/v1.0/docker/")).status).toBe(404);
    expect((await ask("/api/v1.1/subcontainers/")).status).toBe(200);
    expect((await ask("/api/v1.1/docker/")).status).toBe(404);
    expect((await ask("/api/v1.3/ps/")).status).toBe(404);
  });

  test("subcontainers are a list, containers of the engine a map by path", async () => {
    const below: { name: string }[] = await json("/api/v1.3/subcontainers/kubepods.slice");
    expect(below).toHaveLength(5);
    expect(Object.keys(await json("/api/v1.3/docker/"))).toHaveLength(2);
    expect(Object.keys(await json(`/api/v1.3/docker/${DOCKER_NAME}`))).toEqual([PATH]);
  });

  test("cAdvisor's client posts its query", async () => {
    const world = aServerWorld(tree);
    await ask("/api/v1.3/containers/", {}, world);
    await world.clock.advance(10_000);
    const posted = async (body: string) => {
      const answer = await ask("/api/v1.3/containers/", { method: "POST", body }, world);
      return JSON.parse(answer.body as string).stats.length;
    };
    expect(await posted('{"num_stats":1}')).toBe(1);
    expect(await posted('{"num_stats":60}')).toBe(2);
    expect(await posted("no JSON")).toBe(2);
    expect(await posted("null")).toBe(2);
  });

  test("an unknown cgroup or container", async () => {
    const answer = await ask("/api/v1.3/containers/nowhere");
    expect([answer.status, answer.body]).toEqual([404, 'unknown container "/nowhere"\n']);
    expect((await ask("/api/v1.3/docker/absent")).status).toBe(404);
    expect((await ask("/api/v1.3/subcontainers/nowhere")).status).toBe(404);
  });
});

test("what there is to ask for is reported", async () => {
  const versions = "Supported API versions: v1.0,v1.1,v1.2,v1.3\n";
  expect((await ask("/api/")).body).toBe(versions);
  expect((await ask("/api/v2.1/machine")) as HttpResponse).toMatchObject({ status: 404, body: versions });
  expect((await ask("/api/constructor/machine")) as HttpResponse).toMatchObject({ status: 404, body: versions });
  expect((await ask("/api/v1.3/")).body).toContain("subcontainers");
});

test("the page names the pods and links everything, and runs no script", async () => {
  const world = aServerWorld(tree);
  world.view.facts = [podOf("cgroup-v2", { namespace: "<script>" })];
  const page = await ask("/", {}, world);
  expect(page.headers["Content-Security-Policy"]).toContain("default-src 'none'");
  const html = page.body as string;
  expect(html).toContain("&lt;script&gt;/web-node1");
  expect(html).not.toContain("<script>");
  for (const [, link] of html.matchAll(/href="([^"]+)"/g)) {
    const target = link!.replaceAll("&amp;", "&");
    expect({ target, status: (await ask(target, {}, world)).status }).toEqual({ target, status: 200 });
  }
  const linked = (await ask("/", { headers: { Host: "box.example:4194" } }, world)).body as string;
  expect(linked).toContain('<a href="http://box.example:10255/node">/node</a>');
  expect((await ask("/", { headers: { Host: 'x"><b>' } }, world)).body).not.toContain("10255");
  const empty = aServerWorld(tree);
  empty.view.facts = [];
  expect((await ask("/", {}, empty)).body).toContain("No pod runs.");
});

test("metrics and health", async () => {
  const { body } = await ask("/metrics");
  expect(new TextDecoder().decode(body as Uint8Array)).toContain("container_cpu_usage_seconds_total{");
  expect((await ask("/healthz")).body).toBe("ok");
  expect((await ask("/nope")).status).toBe(404);
  expect((await ask("/api/v1.3/containers/../../etc")).status).toBe(301);
  expect((await ask("//api/v1.3/docker?num_stats=1")).headers.Location).toBe("/api/v1.3/docker?num_stats=1");
});

const BROWSER = "text/html,application/xhtml+xml,*/*;q=0.8";

function askHint(accept: string | null, host = "box:10255", address = "127.0.0.1", method = "GET") {
  const header = (name: string) => (name === "Accept" ? accept : host);
  return pageHint({ method, header } as RouteRequest, { address, port: 4194, nodeName: "node<1>" });
}

test.each([
  { place: { address: "127.0.0.1", port: 4194 }, host: "box:10255", link: "http://localhost:4194/" },
  { place: { address: "0.0.0.0", port: 4194 }, host: "box:10255", link: "https://box:4194/" },
  { place: { address: "::", port: 4194 }, host: "[fd00::1]:10255", link: "https://[fd00::1]:4194/" },
  { place: { address: "0.0.0.0", port: 4194 }, host: "box/<b>", link: undefined },
  { place: { address: "127.0.0.1", port: 0 }, host: "box:10255", link: undefined },
])("the page on $place.address:$place.port, seen by a client of $host: $link", ({ place, host, link }) => {
  expect(pageAddress(host, place)).toBe(link as string);
});

test("a browser at the root gets a link; the status stays 404", () => {
  const answer = askHint(BROWSER);
  expect(answer?.status).toBe(404);
  expect(String(answer?.body)).toContain('<a href="http://localhost:4194/">');
  expect(String(answer?.body)).toContain("ssh -L 4194:localhost:4194 box");
  for (const host of ["localhost:10255", "127.0.0.1:10255", "[::1]:10255"]) {
    expect(String(askHint(BROWSER, host)?.body)).toContain("ssh -L 4194:localhost:4194 node&lt;1&gt;<");
  }
  expect(String(askHint(BROWSER, "box:10255", "0.0.0.0")?.body)).not.toContain("ssh");
});

test.each([
  ["no Accept header", null, "GET"],
  ["curl", "*/*", "GET"],
  ["an API client", "application/json", "GET"],
  ["another method", BROWSER, "POST"],
])("%s gets the answer of the port", (_, accept, method) => {
  expect(askHint(accept, "box:10255", "127.0.0.1", method)).toBeUndefined();
});

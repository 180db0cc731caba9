import { describe, expect, test } from "bun:test";
import { gunzipSync } from "node:zlib";
import type { CoreEventList } from "../../src/base/api/event.ts";
import { routeReadOnly } from "../../src/server/read-only-routes.ts";
import type { HttpResponse } from "../../src/server/request-handler.ts";
import { acceptsGzip, cleanPath } from "../../src/server/request-handler.ts";
import { routeHealthzPort } from "../../src/server/servers.ts";
import recordedRequests from "../fixtures/oracle/http/get.json";
import recordedMethods from "../fixtures/oracle/http/other-methods.json";
import recordedHeaders from "../fixtures/oracle/http/request-headers.json";
import { layTree } from "../stats/lay-tree.ts";
import { aCoreEvent, aPod } from "../support/builders.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { aRequest, aServerWorld, expectRecorded, type RecordedResponse } from "./a-context.ts";

const tree = layTree("cgroup-v2", tempDirs()());

/** Answers of our route; summaries need a moment of the clock for their first rates. */
async function ask(target: string, options: Parameters<typeof aRequest>[1] = {}, world = aServerWorld(tree)) {
  const answer = routeReadOnly(aRequest(target, options), world.context);
  await world.clock.advance(300);
  return await answer;
}

const textOf = async ({ body }: HttpResponse) => (typeof body === "string" ? body : Buffer.from(body).toString());

/** Paths of the recorded pods, which the laid tree has not, and what differs on purpose. */
const OURS: Readonly<Record<string, string>> = {
  "/stats/web-node1/www": "/stats/web-node1/app",
  "/stats/default/web-node1/uid/www": "/stats/default/web-node1/uid/app",
};
const DIFFERS = new Set(["/configz", "/runningpods/"]);

describe("as recorded from kubelet 1.20", () => {
  test.each((recordedRequests as RecordedResponse[]).filter(({ path }) => !DIFFERS.has(path)))(
    "GET $path is $status",
    async (want) => {
      const answer = await ask(OURS[want.path] ?? want.path);
      await expectRecorded(answer, () => textOf(answer), want);
    },
  );

  test.each(
    (recordedMethods as RecordedResponse[]).filter(
      ({ method, path }) => method !== "HEAD" && !/^\/(metrics|healthz|stats)/.test(path),
    ),
  )("$method $path is $status", async ({ method, path, status, body }) => {
    const answer = await ask(path, { method });
    expect(answer.status).toBe(status);
    expect(await textOf(answer)).toBe(body!);
  });

  test.each(
    (recordedHeaders as RecordedResponse[]).filter(({ headers }) => !headers["Content-Type"]!.includes("protobuf")),
  )("$path with $requestHeaders is $status", async ({ path, requestHeaders = "", status, headers }) => {
    const [name = "", value = ""] = requestHeaders.split(": ");
    const answer = await ask(path, { headers: { [name]: value } });
    expect(answer.status).toBe(status);
    // Upstream cannot do OpenMetrics.
    if (!value.includes("openmetrics")) expect(answer.headers["Content-Type"]).toBe(headers["Content-Type"]!);
    expect(answer.headers["Content-Encoding"]).toBe(headers["Content-Encoding"] as string);
  });
});

describe("deliberately not as recorded", () => {
  test.each(["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])("%s changes and finds nothing anywhere", async (method) => {
    for (const path of ["/healthz", "/metrics", "/metrics/cadvisor", "/stats/", "/stats/summary", "/stats/container"]) {
      const { status, headers } = await ask(path, { method });
      expect([path, status, headers.Allow]).toEqual([path, 405, "GET, HEAD"]);
    }
  });

  test("the configuration is shown as the view masks it", async () => {
    const world = aServerWorld(tree);
    const kubeletconfig = { staticPodURLHeader: { Authorization: ["<masked>"] } };
    world.view.shownConfig = kubeletconfig;
    expect(JSON.parse(await textOf(await ask("/configz", {}, world)))).toEqual({ kubeletconfig });
  });

  test("running pods with no more than the engine knows", async () => {
    const uid = "6f1c0d2e-8a4b-4c1d-9e7f-0a1b2c3d4e5f";
    const pod = {
      metadata: { name: "web-node1", namespace: "default", uid, creationTimestamp: null },
      spec: { containers: [{ name: "app", image: "sha256:2a97", resources: {} }] },
      status: {},
    };
    const list = { kind: "PodList", apiVersion: "v1", metadata: {}, items: [pod] };
    expect(JSON.parse(await textOf(await ask("/runningpods/")))).toEqual(list);
  });
});

describe("/pods", () => {
  const items = async (world: ReturnType<typeof aServerWorld>, query = "") =>
    JSON.parse(await textOf(await ask(`/pods${query}`, {}, world))).items ?? [];

  test("without pods items is null, and the JSON is compact", async () => {
    expect(await textOf(await ask("/pods"))).toBe('{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}');
  });

  test.each([
    ["labelSelector=tier%3Dweb", ["a"]],
    ["labelSelector=tier+notin+(web)", ["b", "c"]],
    ["fieldSelector=metadata.namespace%3Dkube-system", ["c"]],
    ["fieldSelector=status.phase!%3DRunning,metadata.namespace%3Ddefault", ["b"]],
    ["labelSelector=tier&fieldSelector=metadata.name%3Db", []],
  ])("?%s lists %p", async (query, want) => {
    const world = aServerWorld(tree);
    world.view.show(
      { ...aPod({}, { name: "a", uid: "1", labels: { tier: "web" } }), status: { phase: "Running" } } as never,
      { ...aPod({}, { name: "b", uid: "2" }), status: { phase: "Pending" } } as never,
      aPod({}, { name: "c", uid: "3", namespace: "kube-system" }),
    );
    const listed: { metadata: { name: string } }[] = await items(world, `?${query}`);
    expect(listed.map(({ metadata }) => metadata.name)).toEqual(want);
  });

  test.each(["labelSelector=a%3D%3D%3Db", "fieldSelector=spec.image%3Dx", "fieldSelector=nonsense"])(
    "?%s is refused",
    async (query) => {
      expect((await ask(`/pods?${query}`)).status).toBe(400);
    },
  );

  test("pods by namespace and name, each as upstream shows it", async () => {
    const world = aServerWorld(tree);
    world.view.show(
      aPod({}, { name: "b-node1", namespace: "jobs", uid: "3" }),
      aPod({}, { name: "b-node1", uid: "2" }),
      aPod({}, { name: "a-node1", uid: "1" }),
    );
    const listed = await items(world);
    expect(listed.map(({ metadata }: never) => (metadata as { uid: string }).uid)).toEqual(["1", "2", "3"]);
    expect(listed[0].metadata).toMatchObject({
      selfLink: "/api/v1/namespaces/default/pods/a-node1",
      creationTimestamp: null,
    });
    expect(listed[0]).not.toHaveProperty("kind");
  });

  test("rendered once while it is the same, and distinguished by its ETag", async () => {
    const world = aServerWorld(tree);
    world.view.show(aPod());
    const first = await ask("/pods", {}, world);
    const etag = first.headers.ETag!;
    expect((await ask("/pods?x=1", {}, world)).body).toBe(first.body);
    for (const sent of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const cached = await ask("/pods", { headers: { "If-None-Match": sent } }, world);
      expect([cached.status, cached.body, cached.headers.ETag]).toEqual([304, "", etag]);
    }
    world.view.show(aPod({ restartPolicy: "Never" }));
    const second = await ask("/pods", { headers: { "If-None-Match": etag } }, world);
    expect(second.status).toBe(200);
    expect(second.headers.ETag).not.toBe(etag);
  });

  const secretive = () => {
    const container = {
      name: "app",
      env: [
        { name: "PASSWORD", value: "s3cret" },
        { name: "EMPTY", value: "" },
        { name: "FROM", valueFrom: { secretKeyRef: { name: "creds", key: "password" } } },
      ],
      livenessProbe: {
        httpGet: { httpHeaders: [header("Authorization", "Bearer s3cret"), header("Accept", "text/html")] },
      },
      lifecycle: { preStop: { httpGet: { httpHeaders: [header("X-Token", "s3cret")] } } },
    };
    const annotations = { "kubectl.kubernetes.io/last-applied-configuration": '{"value":"s3cret"}', other: "kept" };
    return aPod({ containers: [container], initContainers: [container] } as never, { annotations });
  };
  const header = (name: string, value: string) => ({ name, value });

  test("what may be secret is not shown on a port without authentication", async () => {
    const world = aServerWorld(tree);
    world.view.show(secretive());
    const text = await textOf(await ask("/pods", {}, world));
    expect(text).not.toContain("s3cret");
    const [pod] = JSON.parse(text).items;
    expect(pod.spec.containers[0].env).toEqual([
      { name: "PASSWORD", value: "<redacted>" },
      { name: "EMPTY", value: "" },
      { name: "FROM", valueFrom: { secretKeyRef: { name: "creds", key: "password" } } },
    ]);
    expect(pod.spec.containers[0].livenessProbe.httpGet.httpHeaders[1].value).toBe("text/html");
    expect(pod.metadata.annotations.other).toBe("kept");
  });

  test("unless the node's owner allows it; and the pod itself is never changed", async () => {
    const world = aServerWorld(tree, { full: true });
    const pod = secretive();
    world.view.show(pod);
    expect(await textOf(await ask("/pods", {}, world))).toContain('"value":"s3cret"');
    const hidden = aServerWorld(tree);
    hidden.view.show(pod);
    await ask("/pods", {}, hidden);
    expect(JSON.stringify(pod)).toContain("s3cret");
  });
});

const BROKEN = [{ name: "syncloop", ok: false, message: "no list of the engine for 3m0s" }];

test.each<[target: string, isWell: boolean, status: number, body: string]>([
  ["/healthz", true, 200, "ok"],
  ["/healthz/log", true, 200, "ok"],
  ["/healthz/none", true, 404, "404 page not found\n"],
  ["/healthz?verbose", true, 200, "[+]ping ok\n[+]log ok\n[+]syncloop ok\nhealthz check passed\n"],
  [
    "/healthz?verbose&exclude=log&exclude=x",
    true,
    200,
    '[+]ping ok\n[+]log excluded: ok\n[+]syncloop ok\nwarn: some health checks cannot be excluded: no matches for "x"\nhealthz check passed\n',
  ],
  [
    "/healthz",
    false,
    500,
    "[+]ping ok\n[+]log ok\n[-]syncloop failed: no list of the engine for 3m0s\nhealthz check failed\n",
  ],
  ["/healthz/syncloop", false, 500, "internal server error: no list of the engine for 3m0s\n"],
  ["/healthz?exclude=syncloop", false, 200, "ok"],
])("%s of a kubelet that is well: %p", async (target, isWell, status, body) => {
  const world = aServerWorld(tree);
  if (!isWell) world.view.checks = [...world.view.checks.slice(0, 2), ...BROKEN];
  expect(await ask(target, {}, world)).toMatchObject({ status, body });
  expect(routeHealthzPort(aRequest(target), world.view)).toMatchObject({ status, body });
});

test("on its own port there is nothing but health", () => {
  const { view } = aServerWorld(tree);
  expect(routeHealthzPort(aRequest("/pods"), view).status).toBe(404);
  expect(routeHealthzPort(aRequest("/healthz", { method: "POST" }), view).status).toBe(405);
});

describe("metrics", () => {
  test("compressed when the scraper can take it, in the format it asks for", async () => {
    const headers = { "Accept-Encoding": "deflate, gzip;q=0.5", Accept: "application/openmetrics-text;version=1.0.0" };
    const answer = await ask("/metrics/resource", { headers });
    expect(answer.headers).toMatchObject({
      "Content-Encoding": "gzip",
      "Content-Type": "application/openmetrics-text; version=1.0.0; charset=utf-8",
    });
    expect(gunzipSync(answer.body as Uint8Array).toString()).toEndWith("# EOF\n");
  });

  test.each([
    [null, false],
    ["gzip", true],
    ["br, GZIP", true],
    ["gzip;q=0", false],
    ["gzip;q=0.0", false],
    ["identity", false],
  ])("Accept-Encoding %p takes gzip: %p", (header, want) => expect(acceptsGzip(header)).toBe(want));

  test("families of the process and of the kubelet come sorted", async () => {
    const names = [...(await textOf(await ask("/metrics"))).matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name!);
    expect(names).toContain("process_resident_memory_bytes");
    expect(names).toContain("kubelet_running_pods");
    expect(names).toEqual(names.toSorted());
  });

  test("probes and the start of the process", async () => {
    const text = await textOf(await ask("/metrics/probes"));
    expect(text).toContain('probe_type="Liveness",result="successful"} 1\n');
  });
});

test("a query of the statistics as GET carries it", async () => {
  const answer = await ask("/stats/container?containerName=/kubepods.slice&num_stats=1&subcontainers=true");
  const infos = JSON.parse(await textOf(answer));
  expect(Object.keys(infos)).toHaveLength(5);
  expect((await ask("/stats/container?containerName=/../../etc")).status).toBe(404);
});

test("a redirect stays on this server and keeps the query", async () => {
  const answer = await ask("//evil.example/pods?a=1");
  expect([answer.status, answer.headers.Location]).toEqual([301, "/evil.example/pods?a=1"]);
  expect((await ask("/spec?a=<b>")).body).not.toContain("<b>");
});

test.each([
  { target: "//a%0d%0aX-Bad:%20y", location: "/a%0D%0AX-Bad:%20y" },
  { target: "//%C3%A9", location: "/%C3%A9" },
  { target: "//a%3Fb%23c%25", location: "/a%3Fb%23c%25" },
])("a redirect leads to the same path as before: $target", async ({ target, location }) => {
  expect((await ask(target)).headers.Location).toBe(location);
});

test.each([
  ["/", "/"],
  ["/pods/", "/pods/"],
  ["//pods", "/pods"],
  ["/a/./b/", "/a/b/"],
  ["/a/../b", "/b"],
  ["/../..", "/"],
  ["/a/b/..", "/a"],
  ["/.hidden", "/.hidden"],
])("%s is cleaned to %s", (path, want) => expect(cleanPath(path)).toBe(want));

const AT = "2026-11-21T06:40:00Z";
const EVENTS = [
  aCoreEvent("a", AT),
  aCoreEvent("b", AT, { type: "Warning", reason: "BackOff" }),
  aCoreEvent("a", AT, { reason: "Pulled" }, "kube-system"),
];

function askEvents(target: string, headers: Record<string, string> = {}) {
  const world = aServerWorld(tree);
  world.view.happened = EVENTS;
  return ask(target, { headers }, world);
}

const named = (body: unknown) =>
  (JSON.parse(String(body)) as CoreEventList).items.map(({ metadata, reason }) => `${metadata.namespace}/${reason}`);

describe("/api/v1/events", () => {
  test("is an EventList in the order of the view", async () => {
    const { status, headers, body } = await askEvents("/api/v1/events");
    expect(status).toBe(200);
    expect(headers["Content-Type"]).toBe("application/json");
    const list = JSON.parse(String(body)) as CoreEventList;
    expect(list).toEqual({ kind: "EventList", apiVersion: "v1", metadata: { resourceVersion: "3" }, items: EVENTS });
  });

  test.each([
    ["/api/v1/namespaces/kube-system/events", ["kube-system/Pulled"]],
    ["/api/v1/namespaces/nowhere/events", []],
    ["/api/v1/events?fieldSelector=involvedObject.name%3Da", ["default/Started", "kube-system/Pulled"]],
    ["/api/v1/events?fieldSelector=involvedObject.name=a,involvedObject.namespace==default", ["default/Started"]],
    ["/api/v1/events?fieldSelector=type!=Normal", ["default/BackOff"]],
    [
      "/api/v1/events?fieldSelector=involvedObject.fieldPath=",
      ["default/Started", "default/BackOff", "kube-system/Pulled"],
    ],
  ])("%s", async (path, want) => {
    expect(named((await askEvents(path)).body)).toEqual(want);
  });

  test.each([
    ["/api/v1/events?fieldSelector=spec.nodeName=x", "spec.nodeName"],
    ["/api/v1/events?fieldSelector=__proto__=x", "__proto__"],
    ["/api/v1/events?fieldSelector=type", "'type'"],
  ])("%s is refused with the reason", async (path, message) => {
    const { status, body } = await askEvents(path);
    expect(status).toBe(400);
    expect(String(body)).toContain(message);
  });

  test("an unchanged list is 304", async () => {
    const { headers } = await askEvents("/api/v1/events");
    const again = await askEvents("/api/v1/events", { "If-None-Match": headers.ETag! });
    expect([again.status, again.body]).toEqual([304, ""]);
    const other = await askEvents("/api/v1/events?fieldSelector=type=Warning", { "If-None-Match": headers.ETag! });
    expect(other.status).toBe(200);
  });

  test.each(["/api", "/api/v1", "/api/v1/pods", "/api/v1/namespaces/default"])("%s is 404", async (path) => {
    expect((await askEvents(path)).status).toBe(404);
  });
});

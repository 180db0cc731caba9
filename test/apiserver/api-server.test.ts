import { describe, expect, test } from "bun:test";
import type { ApiObject } from "../../src/apiserver/api-object.ts";
import { aConfigMap, anApiServer, aPod, CONFIG_MAPS, DEPLOYMENT_PATH, PODS } from "./support.ts";

const merge = { "Content-Type": "application/merge-patch+json" };

describe("create", () => {
  test("fills in what the server knows", async () => {
    const { call, files } = anApiServer();
    const { status, json } = await call({ method: "POST", path: PODS, body: aPod("web") });
    expect(status).toBe(201);
    expect(json.metadata).toMatchObject({ name: "web", namespace: "default", uid: "uid-1", generation: 1 });
    expect(json.metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect(json.spec).toMatchObject({ restartPolicy: "Always", nodeName: "node1", dnsPolicy: "ClusterFirst" });
    expect(json.status).toEqual({ phase: "Pending" });
    expect([...files.keys()]).toEqual(["pods:default/web"]);
  });

  test("generateName appends five letters", async () => {
    const { call } = anApiServer();
    const body = { ...aPod(""), metadata: { generateName: "web-" } };
    expect((await call({ method: "POST", path: PODS, body })).json.metadata.name).toBe("web-bbbbb");
  });

  test.each([
    {
      when: "a name that is taken",
      path: CONFIG_MAPS,
      body: aConfigMap("taken"),
      want: [409, "AlreadyExists", 'configmaps "taken" already exists'],
    },
    {
      when: "a namespace that is not there",
      path: "/api/v1/namespaces/nowhere/pods",
      body: aPod("x"),
      want: [404, "NotFound", 'namespaces "nowhere" not found'],
    },
    {
      when: "a pod without containers",
      path: PODS,
      body: { ...aPod("x"), spec: {} },
      want: [422, "Invalid", 'Pod "x" is invalid: spec.containers: Required value: must have at least one container'],
    },
    {
      when: "another kind",
      path: PODS,
      body: aConfigMap("x"),
      want: [400, "BadRequest", "ConfigMap of v1 was sent to the path of Pod of v1"],
    },
    {
      when: "a bad name",
      path: CONFIG_MAPS,
      body: aConfigMap("Not_Good"),
      want: [422, "Invalid", expect.stringContaining('metadata.name: Invalid value: "Not_Good"')],
    },
    {
      when: "a path that is not served",
      path: "/api/v1/widgets",
      body: {},
      want: [404, "NotFound", "the server could not find the requested resource"],
    },
    {
      when: "a resourceVersion",
      path: CONFIG_MAPS,
      body: { ...aConfigMap("x"), metadata: { name: "x", resourceVersion: "5" } },
      want: [400, "BadRequest", "resourceVersion should not be set on objects to be created"],
    },
  ])("$when is refused as upstream refuses it", async ({ path, body, want }) => {
    const { call } = anApiServer();
    await call({ method: "POST", path: CONFIG_MAPS, body: aConfigMap("taken") });
    const { status, json } = await call({ method: "POST", path, body });
    expect([status, json.reason, json.message]).toEqual([...want]);
    expect(json).toMatchObject({ kind: "Status", apiVersion: "v1", status: "Failure", code: want[0] });
  });

  test("unknown fields: a warning by default, an error under Strict, nothing under Ignore", async () => {
    const { call } = anApiServer();
    const body = { ...aPod("x"), spec: { ...aPod("x").spec, contaniers: [] } };
    const warned = await call({ method: "POST", path: `${PODS}?dryRun=All`, body });
    expect(warned.headers.Warning).toBe('299 - "unknown field \\"spec.contaniers\\""');
    const strict = await call({ method: "POST", path: `${PODS}?fieldValidation=Strict`, body });
    expect([strict.status, strict.json.message]).toEqual([
      400,
      'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.contaniers"',
    ]);
    const ignored = await call({ method: "POST", path: `${PODS}?fieldValidation=Ignore`, body });
    expect([ignored.status, ignored.headers.Warning]).toEqual([201, undefined]);
  });

  test("dryRun=All answers as if, and keeps nothing", async () => {
    const { call, files } = anApiServer();
    expect((await call({ method: "POST", path: `${PODS}?dryRun=All`, body: aPod("x") })).status).toBe(201);
    expect(files.size).toBe(0);
    expect((await call({ path: `${PODS}/x` })).status).toBe(404);
  });

  test("a full disk is a 507 that changes nothing", async () => {
    const { call, fault } = anApiServer();
    fault.error = Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
    const { status, json } = await call({ method: "POST", path: PODS, body: aPod("x") });
    expect([status, json.reason]).toEqual([507, "InsufficientStorage"]);
    expect((await call({ path: `${PODS}/x` })).status).toBe(404);
  });

  test("data of a Secret is encoded, and the response to a wrong one does not repeat it", async () => {
    const { call } = anApiServer();
    const path = "/api/v1/namespaces/default/secrets";
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "s" }, stringData: { k: "hunter2" } };
    const made = await call({ method: "POST", path, body: secret });
    expect(made.json.data).toEqual({ k: Buffer.from("hunter2").toString("base64") });
    expect(made.json.type).toBe("Opaque");
    const bad = await call({
      method: "POST",
      path,
      body: { ...secret, metadata: { name: "t" }, data: { k: "hunter2!" } },
    });
    expect(bad.status).toBe(422);
    expect(bad.text).not.toContain("hunter2");
  });
});

describe("update and patch", () => {
  test("a stale resourceVersion is a conflict", async () => {
    const { call } = anApiServer();
    const { json: first } = await call({ method: "POST", path: CONFIG_MAPS, body: aConfigMap("c") });
    const edited = { ...first, data: { a: "2" } };
    const { status, json } = await call({ method: "PUT", path: `${CONFIG_MAPS}/c`, body: edited });
    expect([status, json.data]).toEqual([200, { a: "2" }]);
    const again = await call({ method: "PUT", path: `${CONFIG_MAPS}/c`, body: { ...first, data: { a: "3" } } });
    expect([again.status, again.json.reason, again.json.message]).toEqual([
      409,
      "Conflict",
      'Operation cannot be fulfilled on configmaps "c": the object has been modified; please apply your changes to the latest version and try again',
    ]);
  });

  test("an update that changes nothing keeps the resourceVersion", async () => {
    const { call } = anApiServer();
    const { json: first } = await call({ method: "POST", path: CONFIG_MAPS, body: aConfigMap("c") });
    const { json } = await call({ method: "PUT", path: `${CONFIG_MAPS}/c`, body: first });
    expect(json.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
  });

  test("the image of a pod can be changed, which grows its generation; uid and creation stay", async () => {
    const { call } = anApiServer();
    const { json: first } = await call({ method: "POST", path: PODS, body: aPod("web") });
    const patch = { metadata: { uid: undefined }, spec: { containers: [{ name: "app", image: "nginx:1.22" }] } };
    const headers = { "Content-Type": "application/strategic-merge-patch+json" };
    const { status, json } = await call({ method: "PATCH", path: `${PODS}/web`, body: patch, headers });
    expect(status).toBe(200);
    expect(json.spec.containers[0].image).toBe("nginx:1.22");
    expect(json.metadata).toMatchObject({
      uid: first.metadata.uid,
      creationTimestamp: first.metadata.creationTimestamp,
      generation: 2,
    });
  });

  test("status is written through its subresource alone", async () => {
    const { call } = anApiServer();
    const body = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web" }, spec: { replicas: 1 } };
    await call({ method: "POST", path: DEPLOYMENT_PATH, body: { ...body, status: { replicas: 9 } } });
    const patch = (path: string, change: object) => call({ method: "PATCH", path, body: change, headers: merge });
    const status = await patch(`${DEPLOYMENT_PATH}/web/status`, { spec: { replicas: 5 }, status: { replicas: 1 } });
    expect([status.json.spec.replicas, status.json.status, status.json.metadata.generation]).toEqual([
      1,
      { replicas: 1 },
      1,
    ]);
    const main = await patch(`${DEPLOYMENT_PATH}/web`, { spec: { replicas: 5 }, status: { replicas: 7 } });
    expect([main.json.spec.replicas, main.json.status, main.json.metadata.generation]).toEqual([5, { replicas: 1 }, 2]);
  });

  test("scale shows and sets the replicas", async () => {
    const { call } = anApiServer();
    const spec = { replicas: 1, selector: { matchLabels: { app: "web" } } };
    await call({ method: "POST", path: DEPLOYMENT_PATH, body: { metadata: { name: "web" }, spec } });
    const { json } = await call({ path: `${DEPLOYMENT_PATH}/web/scale` });
    expect(json).toMatchObject({
      kind: "Scale",
      apiVersion: "autoscaling/v1",
      spec: { replicas: 1 },
      status: { replicas: 0, selector: "app=web" },
    });
    const put = await call({
      method: "PUT",
      path: `${DEPLOYMENT_PATH}/web/scale`,
      body: { ...json, spec: { replicas: 3 } },
    });
    expect(put.json.spec.replicas).toBe(3);
    expect((await call({ path: `${DEPLOYMENT_PATH}/web` })).json.spec.replicas).toBe(3);
  });

  test("of a node only spec.unschedulable is written", async () => {
    const { call, store, files } = anApiServer();
    const taints = [{ key: "disk", effect: "NoSchedule" }];
    store.put("nodes", { apiVersion: "v1", kind: "Node", metadata: { name: "node1", uid: "n" }, spec: { taints } });
    const patch = (body: object) => call({ method: "PATCH", path: "/api/v1/nodes/node1", body, headers: merge });
    const causeOf = async (body: object) => {
      const { status, json } = await patch(body);
      return [status, json.reason, json.details?.causes?.[0]?.field];
    };
    expect(await causeOf({ metadata: { labels: { a: "b" } } })).toEqual([422, "Invalid", "metadata.labels"]);
    expect(await causeOf({ spec: { taints: [] } })).toEqual([422, "Invalid", "spec.taints"]);
    expect(await causeOf({ spec: { podCIDR: "10.0.0.0/24" } })).toEqual([422, "Invalid", "spec"]);
    expect(files.size).toBe(0);
    const { status, json } = await patch({ spec: { unschedulable: true } });
    expect([status, json.spec]).toEqual([200, { taints, unschedulable: true }]);
    expect(files.get("nodes:/node1")?.spec).toEqual({ taints, unschedulable: true });
    expect((await call({ method: "DELETE", path: "/api/v1/nodes/node1" })).status).toBe(405);
  });

  test("an object of a file is refused with its place", async () => {
    const { call, foreign } = anApiServer();
    await call({ method: "POST", path: CONFIG_MAPS, body: aConfigMap("c") });
    foreign.set("default/c", "it comes from /etc/x.yaml:3: edit that file");
    for (const method of ["PATCH", "DELETE"]) {
      const { status, json } = await call({ method, path: `${CONFIG_MAPS}/c`, body: { data: {} }, headers: merge });
      expect([status, json.message]).toEqual([
        403,
        'configmaps "c" is forbidden: it comes from /etc/x.yaml:3: edit that file',
      ]);
    }
  });

  test("a pod of a file that terminates may be deleted again", async () => {
    const { call, store, foreign } = anApiServer();
    const path = `${PODS}/p`;
    const metadata = { namespace: "default", name: "p", uid: "u", deletionTimestamp: "2026-01-01T00:00:00Z" };
    store.put("pods", { apiVersion: "v1", kind: "Pod", metadata } as ApiObject);
    foreign.set("default/p", "it comes from /etc/x.yaml:3: edit that file");
    const { status, json } = await call({ method: "DELETE", path });
    expect([status, json.metadata.name]).toEqual([200, "p"]);
    expect(store.get("pods", "default", "p")).toBeDefined();
    const options = { preconditions: { uid: "other" } };
    expect((await call({ method: "DELETE", path, body: options })).status).toBe(409);
  });

  test.each([
    { type: "text/plain", code: 415 },
    { type: "application/json-patch+json", code: 422 },
    { type: "application/merge-patch+json", code: 400 },
  ])("a patch of type $type that cannot be carried out is a $code", async ({ type, code }) => {
    const { call } = anApiServer();
    await call({ method: "POST", path: CONFIG_MAPS, body: aConfigMap("c") });
    const body = code === 422 ? [{ op: "remove", path: "/nothing" }] : "[";
    expect(
      (await call({ method: "PATCH", path: `${CONFIG_MAPS}/c`, body, headers: { "Content-Type": type } })).status,
    ).toBe(code);
  });
});

describe("delete", () => {
  test("answers with a Status, and the object is gone", async () => {
    const { call, files } = anApiServer();
    await call({ method: "POST", path: CONFIG_MAPS, body: aConfigMap("c") });
    const { status, json } = await call({ method: "DELETE", path: `${CONFIG_MAPS}/c` });
    expect(status).toBe(200);
    expect(json).toMatchObject({
      kind: "Status",
      status: "Success",
      details: { name: "c", kind: "configmaps", uid: "uid-1" },
    });
    expect(files.size).toBe(0);
    expect((await call({ path: `${CONFIG_MAPS}/c` })).json.message).toBe('configmaps "c" not found');
  });

  test("a pod stays Terminating until its containers are gone", async () => {
    const { call, store, deleter, registry, clock } = anApiServer();
    await call({ method: "POST", path: PODS, body: aPod("web") });
    const { json } = await call({ method: "DELETE", path: `${PODS}/web`, body: { gracePeriodSeconds: 5 } });
    expect(json.metadata.deletionGracePeriodSeconds).toBe(5);
    expect(Date.parse(json.metadata.deletionTimestamp)).toBe(Math.floor(clock.now().getTime() / 1000) * 1000 + 5000);
    expect(store.get("pods", "default", "web")?.metadata.deletionGracePeriodSeconds).toBe(5);
    // Asked again with more patience nothing changes, with less it does.
    await call({ method: "DELETE", path: `${PODS}/web`, body: { gracePeriodSeconds: 60 } });
    await call({ method: "DELETE", path: `${PODS}/web`, body: { gracePeriodSeconds: 0 } });
    expect(store.get("pods", "default", "web")?.metadata.deletionGracePeriodSeconds).toBe(0);
    deleter.finish(registry.get("pods")!, store.get("pods", "default", "web")!);
    expect((await call({ path: `${PODS}/web` })).status).toBe(404);
  });

  test.each([
    { preconditions: { uid: "other" }, status: 409 },
    { preconditions: { resourceVersion: "1" }, status: 409 },
    { preconditions: { uid: "uid-1" }, status: 200 },
  ])("preconditions $preconditions: $status", async ({ preconditions, status }) => {
    const { call } = anApiServer();
    await call({ method: "POST", path: CONFIG_MAPS, body: aConfigMap("c") });
    expect((await call({ method: "DELETE", path: `${CONFIG_MAPS}/c`, body: { preconditions } })).status).toBe(status);
  });

  test("finalizers keep an object until the last of them goes", async () => {
    const { call } = anApiServer();
    const body = { ...aConfigMap("c"), metadata: { name: "c", finalizers: ["example.com/x"] } };
    await call({ method: "POST", path: CONFIG_MAPS, body });
    const { json } = await call({ method: "DELETE", path: `${CONFIG_MAPS}/c` });
    expect([json.kind, typeof json.metadata.deletionTimestamp]).toEqual(["ConfigMap", "string"]);
    await call({ method: "PATCH", path: `${CONFIG_MAPS}/c`, body: { metadata: { finalizers: null } }, headers: merge });
    expect((await call({ path: `${CONFIG_MAPS}/c` })).status).toBe(404);
  });

  const owned = (name: string, uid: string) => ({
    ...aConfigMap(name),
    metadata: { name, ownerReferences: [{ apiVersion: "apps/v1", kind: "Deployment", name: "web", uid }] },
  });

  test.each([
    { propagationPolicy: "Background", children: 0, owner: 404 },
    { propagationPolicy: "Foreground", children: 0, owner: 404 },
    { propagationPolicy: "Orphan", children: 1, owner: 404 },
  ])("propagation $propagationPolicy", async ({ propagationPolicy, children, owner }) => {
    const { call } = anApiServer();
    const made = await call({ method: "POST", path: DEPLOYMENT_PATH, body: { metadata: { name: "web" }, spec: {} } });
    await call({ method: "POST", path: CONFIG_MAPS, body: owned("child", made.json.metadata.uid) });
    await call({ method: "DELETE", path: `${DEPLOYMENT_PATH}/web`, body: { propagationPolicy } });
    const { items } = (await call({ path: CONFIG_MAPS })).json;
    expect(items.length).toBe(children);
    expect(items[0]?.metadata.ownerReferences).toBeUndefined();
    expect((await call({ path: `${DEPLOYMENT_PATH}/web` })).status).toBe(owner);
  });

  test("in the foreground the owner waits for a pod that terminates", async () => {
    const { call, deleter, store, registry } = anApiServer();
    const made = await call({ method: "POST", path: DEPLOYMENT_PATH, body: { metadata: { name: "web" }, spec: {} } });
    const { ownerReferences } = owned("x", made.json.metadata.uid).metadata;
    await call({ method: "POST", path: PODS, body: { ...aPod("p"), metadata: { name: "p", ownerReferences } } });
    const { json } = await call({
      method: "DELETE",
      path: `${DEPLOYMENT_PATH}/web`,
      body: { propagationPolicy: "Foreground" },
    });
    expect(json.metadata.finalizers).toEqual(["foregroundDeletion"]);
    deleter.finish(registry.get("pods")!, store.get("pods", "default", "p")!);
    expect((await call({ path: `${DEPLOYMENT_PATH}/web` })).status).toBe(404);
  });

  test("a collection by selector", async () => {
    const { call } = anApiServer();
    for (const name of ["a", "b"]) {
      await call({
        method: "POST",
        path: CONFIG_MAPS,
        body: { ...aConfigMap(name), metadata: { name, labels: { is: name } } },
      });
    }
    const { json } = await call({ method: "DELETE", path: `${CONFIG_MAPS}?labelSelector=is%3Da` });
    expect(json.items.map((it: { metadata: { name: string } }) => it.metadata.name)).toEqual(["a"]);
    expect((await call({ path: CONFIG_MAPS })).json.items.length).toBe(1);
  });

  test("a namespace takes what is in it along, and default stays", async () => {
    const { call, store, deleter, registry } = anApiServer();
    await call({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name: "lab" } } });
    await call({ method: "POST", path: "/api/v1/namespaces/lab/configmaps", body: aConfigMap("c") });
    await call({ method: "POST", path: "/api/v1/namespaces/lab/pods", body: aPod("p") });
    const { json } = await call({ method: "DELETE", path: "/api/v1/namespaces/lab" });
    expect(json.status.phase).toBe("Terminating");
    const refused = await call({ method: "POST", path: "/api/v1/namespaces/lab/configmaps", body: aConfigMap("d") });
    expect(refused.status).toBe(403);
    deleter.finish(registry.get("pods")!, store.get("pods", "lab", "p")!);
    expect((await call({ path: "/api/v1/namespaces/lab" })).status).toBe(404);
    expect((await call({ method: "DELETE", path: "/api/v1/namespaces/default" })).status).toBe(403);
  });
});

describe("get and list", () => {
  test("selectors, and what is wrong with them", async () => {
    const { call } = anApiServer();
    await call({ method: "POST", path: PODS, body: aPod("a", { app: "web" }) });
    await call({ method: "POST", path: PODS, body: aPod("b", { app: "db" }) });
    const names = async (query: string) =>
      (await call({ path: `${PODS}?${query}` })).json.items.map(
        (it: { metadata: { name: string } }) => it.metadata.name,
      );
    expect(await names("labelSelector=app%3Dweb")).toEqual(["a"]);
    expect(await names("labelSelector=app+notin+(web)")).toEqual(["b"]);
    expect(await names("fieldSelector=metadata.name%3Db,status.phase%3DPending")).toEqual(["b"]);
    expect(await names("fieldSelector=spec.nodeName!%3Dnode1")).toEqual([]);
    const bad = await call({ path: `${PODS}?fieldSelector=spec.colour%3Dred` });
    expect([bad.status, bad.json.message]).toEqual([400, "field label not supported: spec.colour"]);
  });

  test("a field that occurs twice is refused, warned of or ignored", async () => {
    const { call } = anApiServer();
    const body = (text: string) => `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":${text}}`;
    const twice = body('{"a":"1","b":"\\":\\"","a":"2"}');
    const create = (validation: string, text: string, type = "application/json") =>
      call({
        method: "POST",
        path: `${CONFIG_MAPS}?dryRun=All&fieldValidation=${validation}`,
        body: text,
        headers: { "Content-Type": type },
      });
    const strict = await create("Strict", twice);
    expect([strict.status, strict.json.message]).toEqual([
      400,
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "data.a"',
    ]);
    const warned = await create("Warn", twice);
    expect([warned.status, warned.headers.Warning, warned.json.data.a]).toEqual([
      201,
      '299 - "duplicate field \\"data.a\\""',
      "2",
    ]);
    expect((await create("Ignore", twice)).headers.Warning).toBeUndefined();
    const yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: x, a: z}\n";
    expect((await create("Strict", yaml, "application/yaml")).status).toBe(400);
    expect((await create("Strict", body('{"a":"1","b":"\\":,\\""}'))).status).toBe(201);
  });

  test("the status of a pod is read and not written", async () => {
    const { call } = anApiServer();
    await call({ method: "POST", path: PODS, body: aPod("a") });
    const { status, json } = await call({ path: `${PODS}/a/status` });
    expect([status, json.kind, json.metadata.name]).toEqual([200, "Pod", "a"]);
    const body = { status: { phase: "Failed" } };
    const refused = await call({ method: "PATCH", path: `${PODS}/a/status`, body, headers: merge });
    expect([refused.status, refused.json.reason]).toEqual([405, "MethodNotAllowed"]);
    const { resources } = (await call({ path: "/api/v1" })).json;
    expect(resources.find((it: { name: string }) => it.name === "pods/status").verbs).toEqual(["get"]);
  });

  test("fields of Services, Jobs and ReplicationControllers select", async () => {
    const { call, store } = anApiServer({ alsoServed: "jobs" });
    const put = (plural: string, name: string, spec: object, status: object) =>
      store.put(plural, { apiVersion: "v1", kind: "Any", metadata: { name, namespace: "default" }, spec, status });
    put("services", "headless", { clusterIP: "None", type: "ClusterIP" }, {});
    put("services", "open", { type: "NodePort" }, {});
    put("replicationcontrollers", "two", {}, { replicas: 2 });
    put("replicationcontrollers", "none", {}, {});
    put("jobs.batch", "done", {}, { succeeded: 1 });
    put("jobs.batch", "fresh", {}, {});
    const names = async (path: string) =>
      (await call({ path })).json.items.map((it: { metadata: { name: string } }) => it.metadata.name);
    const core = "/api/v1/namespaces/default";
    expect(await names(`${core}/services?fieldSelector=spec.clusterIP%3DNone`)).toEqual(["headless"]);
    expect(await names(`${core}/services?fieldSelector=spec.type%3DNodePort`)).toEqual(["open"]);
    expect(await names(`${core}/replicationcontrollers?fieldSelector=status.replicas!%3D0`)).toEqual(["two"]);
    const jobs = "/apis/batch/v1/namespaces/default/jobs";
    expect(await names(`${jobs}?fieldSelector=status.successful%3D1`)).toEqual(["done"]);
  });

  test("pages", async () => {
    const { call } = anApiServer();
    for (const name of ["a", "b", "c"]) await call({ method: "POST", path: CONFIG_MAPS, body: aConfigMap(name) });
    const first = (await call({ path: `${CONFIG_MAPS}?limit=2` })).json;
    expect([first.items.length, first.metadata.remainingItemCount]).toEqual([2, 1]);
    const second = (await call({ path: `${CONFIG_MAPS}?limit=2&continue=${first.metadata.continue}` })).json;
    expect(second.items.map((it: { metadata: { name: string } }) => it.metadata.name)).toEqual(["c"]);
    expect([second.metadata.continue, second.metadata.resourceVersion]).toEqual([
      undefined,
      first.metadata.resourceVersion,
    ]);
    expect((await call({ path: `${CONFIG_MAPS}?continue=rubbish` })).status).toBe(400);
  });

  test("a table", async () => {
    const { call, clock } = anApiServer();
    await call({ method: "POST", path: PODS, body: aPod("web") });
    await clock.advance(65_000);
    const headers = { Accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" };
    const { json } = await call({ path: PODS, headers });
    expect(json.kind).toBe("Table");
    expect(json.columnDefinitions.map(({ name }: { name: string }) => name)).toEqual([
      "Name",
      "Ready",
      "Status",
      "Restarts",
      "Age",
      "IP",
      "Node",
      "Nominated Node",
      "Readiness Gates",
    ]);
    expect(json.rows[0].cells).toEqual(["web", "0/1", "Pending", "0", "65s", "<none>", "node1", "<none>", "<none>"]);
    expect(json.rows[0].object).toMatchObject({ kind: "PartialObjectMetadata", metadata: { name: "web" } });
  });

  test("only metadata", async () => {
    const { call } = anApiServer();
    await call({ method: "POST", path: CONFIG_MAPS, body: aConfigMap("c") });
    const headers = { Accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io" };
    const { json } = await call({ path: CONFIG_MAPS, headers });
    expect([json.kind, json.items[0].kind, json.items[0].data]).toEqual([
      "PartialObjectMetadataList",
      "PartialObjectMetadata",
      undefined,
    ]);
  });

  test("protobuf alone is not to be had", async () => {
    const { call } = anApiServer();
    expect((await call({ path: PODS, headers: { Accept: "application/vnd.kubernetes.protobuf" } })).status).toBe(406);
  });
});

describe("who only views", () => {
  const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "s" }, stringData: { key: "hunter2" } };
  const path = "/api/v1/namespaces/default/secrets";

  test("sees the keys of Secrets and not their values, in every form", async () => {
    const { call } = anApiServer();
    const applied = {
      ...secret,
      metadata: { name: "s", annotations: { "kubectl.kubernetes.io/last-applied-configuration": "hunter2" } },
    };
    await call({ method: "POST", path, body: applied });
    const forms = [
      "application/json",
      "application/json;as=Table;v=v1;g=meta.k8s.io",
      "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    ];
    for (const Accept of forms) {
      const { text, status } = await call({ path: `${path}?includeObject=Object`, role: "view", headers: { Accept } });
      expect(status).toBe(200);
      expect(text).not.toContain("hunter2");
      expect(text).not.toContain(Buffer.from("hunter2").toString("base64"));
    }
    expect((await call({ path: `${path}/s`, role: "view" })).json.data).toEqual({ key: "" });
    expect((await call({ path: `${path}/s` })).json.data).toEqual({ key: Buffer.from("hunter2").toString("base64") });
  });

  test("writes nothing", async () => {
    const { call } = anApiServer();
    const { status, json } = await call({ method: "POST", path: PODS, body: aPod("x"), role: "view" });
    expect([status, json.message]).toEqual([
      403,
      'pods is forbidden: User "view" cannot create resource "pods" in API group "" in the namespace "default"',
    ]);
  });
});

describe("discovery", () => {
  test("groups, resources and their short names", async () => {
    const { call } = anApiServer();
    expect((await call({ path: "/api" })).json.versions).toEqual(["v1"]);
    expect((await call({ path: "/apis" })).json.groups.map(({ name }: { name: string }) => name)).toEqual(["apps"]);
    const { resources } = (await call({ path: "/api/v1" })).json;
    expect(resources.find(({ name }: { name: string }) => name === "pods")).toMatchObject({
      kind: "Pod",
      namespaced: true,
      shortNames: ["po"],
      categories: ["all"],
    });
    const apps = (await call({ path: "/apis/apps/v1" })).json;
    expect(apps.groupVersion).toBe("apps/v1");
    expect(apps.resources.map(({ name }: { name: string }) => name)).toEqual([
      "deployments",
      "deployments/status",
      "deployments/scale",
    ]);
    expect((await call({ path: "/apis/nothing" })).status).toBe(404);
  });

  test("in one response where the client can read that", async () => {
    const { call } = anApiServer();
    const Accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    const { json, headers } = await call({ path: "/apis", headers: { Accept } });
    expect(headers["Content-Type"]).toContain("as=APIGroupDiscoveryList");
    expect(json.items[0].versions[0].resources[0]).toMatchObject({
      resource: "deployments",
      scope: "Namespaced",
      subresources: [{ subresource: "status" }, { subresource: "scale", responseKind: { kind: "Scale" } }],
    });
  });

  test("version and health", async () => {
    const { call } = anApiServer();
    expect((await call({ path: "/version" })).json.gitVersion).toBe("v1.34.0");
    expect((await call({ path: "/readyz" })).text).toBe("ok");
    expect((await call({ path: "/livez?verbose" })).text).toBe("[+]ping ok\nlivez check passed\n");
    expect((await call({ path: "/healthz/nothing" })).status).toBe(404);
  });
});

test("a namespace goes with its last object, also one that its controller deletes", async () => {
  const { call, store, foreign } = anApiServer();
  await call({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name: "lab" } } });
  foreign.set("lab/dep-1", "a controller made it");
  const metadata = { name: "dep-1", namespace: "lab", uid: "made" };
  store.put("configmaps", { apiVersion: "v1", kind: "ConfigMap", metadata });
  const deleted = await call({ method: "DELETE", path: "/api/v1/namespaces/lab" });
  expect(deleted.json.status.phase).toBe("Terminating");
  store.remove("configmaps", "lab", "dep-1");
  expect((await call({ path: "/api/v1/namespaces/lab" })).status).toBe(404);
});

describe("a kind in an older version", () => {
  const V1 = "/apis/batch/v1/namespaces/default/cronjobs";
  const V1BETA1 = "/apis/batch/v1beta1/namespaces/default/cronjobs";
  const aCronJob = (apiVersion: string) => ({
    apiVersion,
    kind: "CronJob",
    metadata: { name: "nightly" },
    spec: {
      schedule: "0 3 * * *",
      jobTemplate: {
        spec: { template: { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "busybox:1.35" }] } } },
      },
    },
  });

  test("is the same object, shown in the version that was asked for", async () => {
    const { call, files } = anApiServer({ alsoServed: "cronjobs" });
    const created = await call({ method: "POST", path: V1BETA1, body: aCronJob("batch/v1beta1") });
    expect([created.status, created.json.apiVersion]).toEqual([201, "batch/v1beta1"]);
    expect(files.get("cronjobs:default/nightly")?.apiVersion).toBe("batch/v1");
    expect((await call({ path: `${V1}/nightly` })).json.apiVersion).toBe("batch/v1");
    const list = await call({ path: V1BETA1 });
    expect([list.json.apiVersion, list.json.items[0].apiVersion]).toEqual(["batch/v1beta1", "batch/v1beta1"]);
    const { json } = await call({ path: `${V1BETA1}/nightly` });
    const updated = await call({
      method: "PUT",
      path: `${V1BETA1}/nightly`,
      body: { ...json, spec: { ...json.spec, suspend: true } },
    });
    expect([updated.status, updated.json.apiVersion, updated.json.spec.suspend]).toEqual([200, "batch/v1beta1", true]);
  });

  test("is patched and applied", async () => {
    const { call } = anApiServer({ alsoServed: "cronjobs" });
    const applied = await call({
      method: "PATCH",
      path: `${V1BETA1}/nightly?fieldManager=test`,
      body: aCronJob("batch/v1beta1"),
      headers: { "Content-Type": "application/apply-patch+yaml" },
    });
    expect([applied.status, applied.json.apiVersion]).toEqual([201, "batch/v1beta1"]);
    const patched = await call({
      method: "PATCH",
      path: `${V1BETA1}/nightly`,
      body: { apiVersion: "batch/v1beta1", spec: { suspend: true } },
      headers: { "Content-Type": "application/merge-patch+json" },
    });
    expect([patched.status, patched.json.spec.suspend]).toEqual([200, true]);
  });

  test("is in discovery behind the preferred version", async () => {
    const { call } = anApiServer({ alsoServed: "cronjobs" });
    const { json } = await call({ path: "/apis/batch" });
    expect([json.preferredVersion.version, json.versions.map(({ version }: { version: string }) => version)]).toEqual([
      "v1",
      ["v1", "v1beta1"],
    ]);
    expect((await call({ path: "/apis/batch/v1beta1" })).json.resources[0].name).toBe("cronjobs");
    expect((await call({ path: "/apis/batch/v2/namespaces/default/cronjobs" })).status).toBe(404);
  });
});

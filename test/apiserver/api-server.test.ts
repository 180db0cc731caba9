import { describe, expect, test } from "bun:test";
import { jsonText } from "../../src/apiserver/api-request.ts";
import type { ExtraRoute } from "../../src/apiserver/api-server.ts";
import { SERVED_KINDS } from "../../src/apiserver/kinds/served-kinds.ts";
import type { ApiObject } from "../../src/apiserver/object-store.ts";
import { aConfigMap, anApiServer, aPod, CONFIG_MAPS, DEPLOYMENT_PATH, PODS } from "./support.ts";

const CORE = "/api/v1/namespaces/default";
const SECRETS = `${CORE}/secrets`;
const NAMESPACES = "/api/v1/namespaces";
const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "s" }, stringData: { k: "hunter2" } };
const HUNTER2 = Buffer.from("hunter2").toString("base64");
const named = (name: string, metadata: object) => ({ ...aConfigMap(name), metadata: { name, ...metadata } });

describe("create", () => {
  test("fills in what the server knows", async () => {
    const { post, files } = anApiServer();
    const { status, json } = await post(PODS, aPod("web"));
    expect(status).toBe(201);
    expect(json.metadata).toMatchObject({ name: "web", namespace: "default", uid: "uid-1", generation: 1 });
    expect(json.metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect(json.spec).toMatchObject({ restartPolicy: "Always", nodeName: "node1", dnsPolicy: "ClusterFirst" });
    expect(json.status).toEqual({ phase: "Pending", qosClass: "BestEffort" });
    expect([...files.keys()]).toEqual(["pods:default/web"]);
  });

  test("generateName appends five letters", async () => {
    const { post } = anApiServer();
    const body = { ...aPod(""), metadata: { generateName: "web-" } };
    expect((await post(PODS, body)).json.metadata.name).toBe("web-bbbbb");
  });

  test.each([
    [CONFIG_MAPS, aConfigMap("taken"), 409, "AlreadyExists", 'configmaps "taken" already exists'],
    ["/api/v1/namespaces/nowhere/pods", aPod("x"), 404, "NotFound", 'namespaces "nowhere" not found'],
    [
      PODS,
      { ...aPod("x"), spec: {} },
      422,
      "Invalid",
      'Pod "x" is invalid: spec.containers: Required value: must have at least one container',
    ],
    [PODS, aConfigMap("x"), 400, "BadRequest", "ConfigMap of v1 was sent to the path of Pod of v1"],
    [CONFIG_MAPS, aConfigMap("Not_Good"), 422, "Invalid", 'metadata.name: Invalid value: "Not_Good"'],
    ["/api/v1/widgets", {}, 404, "NotFound", "the server could not find the requested resource"],
    [
      CONFIG_MAPS,
      named("x", { resourceVersion: "5" }),
      400,
      "BadRequest",
      "resourceVersion should not be set on objects to be created",
    ],
  ])("is refused with the status of upstream: %s %j: %i", async (path, body, code, reason, message) => {
    const { post } = anApiServer();
    await post(CONFIG_MAPS, aConfigMap("taken"));
    const { status, json } = await post(path, body);
    expect([status, json.reason, json.message]).toEqual([code, reason, expect.stringContaining(message)]);
    expect(json).toMatchObject({ kind: "Status", apiVersion: "v1", status: "Failure", code });
  });

  test.each([
    ["dryRun=All", 201, '299 - "unknown field \\"spec.contaniers\\""', undefined],
    ["fieldValidation=Strict", 400, undefined, "cannot be handled as a Pod: strict decoding error: unknown field"],
    ["fieldValidation=Ignore", 201, undefined, undefined],
  ])("unknown fields with %s", async (query, status, warning, message) => {
    const { post } = anApiServer();
    const found = await post(`${PODS}?${query}`, { ...aPod("x"), spec: { ...aPod("x").spec, contaniers: [] } });
    expect([found.status, found.headers.Warning]).toEqual([status, warning as string]);
    if (message !== undefined) expect(found.json.message).toContain(message);
  });

  test("a pod that runs from a manifest already: a warning names its file", async () => {
    const { post, foreign, store } = anApiServer();
    store.put("pods", { ...aPod("web-node1"), metadata: { name: "web-node1", namespace: "default", uid: "u" } });
    foreign.set("default/web-node1", 'pod "web-node1" comes from /m/web.yaml:1: edit that file');
    const second = await post(PODS, aPod("web"));
    expect(second.status).toBe(201);
    expect(second.headers.Warning).toContain("comes from /m/web.yaml:1: edit that file; this is a second pod");
  });

  test("dryRun=All answers as a creation does, and keeps nothing", async () => {
    const { post, get, files } = anApiServer();
    expect((await post(`${PODS}?dryRun=All`, aPod("x"))).status).toBe(201);
    expect(files.size).toBe(0);
    expect((await get(`${PODS}/x`)).status).toBe(404);
  });

  test("a full disk is a 507 that changes nothing", async () => {
    const { post, get, remove, fault, made } = anApiServer();
    await post(PODS, aPod("made"));
    made.add("made");
    fault.error = Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
    for (const { status, json } of [await post(PODS, aPod("x")), await remove(`${PODS}/made`), await remove(PODS)])
      expect([status, json.reason]).toEqual([507, "InsufficientStorage"]);
    expect((await get(`${PODS}/x`)).status).toBe(404);
    fault.error = undefined;
    expect((await remove(`${PODS}/made`)).status).toBe(200);
  });

  test("data of a Secret is encoded, and the response to a wrong one does not repeat it", async () => {
    const { post } = anApiServer();
    const { json } = await post(SECRETS, secret);
    expect([json.data, json.type]).toEqual([{ k: HUNTER2 }, "Opaque"]);
    const bad = await post(SECRETS, { ...secret, metadata: { name: "t" }, data: { k: "hunter2!" } });
    expect(bad.status).toBe(422);
    expect(bad.text).not.toContain("hunter2");
  });
});

describe("update and patch", () => {
  test("a stale resourceVersion is a conflict", async () => {
    const { post, put, patch } = anApiServer();
    const { json: first } = await post(CONFIG_MAPS, aConfigMap("c"));
    const { status, json } = await put(`${CONFIG_MAPS}/c`, { ...first, data: { a: "2" } });
    expect([status, json.data]).toEqual([200, { a: "2" }]);
    const { resourceVersion } = first.metadata;
    const stale = { ...aConfigMap("c"), metadata: { name: "c", resourceVersion }, data: { a: "3" } };
    for (const again of [
      await put(`${CONFIG_MAPS}/c`, { ...first, data: { a: "3" } }),
      await patch(`${CONFIG_MAPS}/c?fieldManager=m&force=true`, stale, "apply-patch+yaml"),
    ]) {
      expect([again.status, again.json.reason, again.json.message]).toEqual([
        409,
        "Conflict",
        'Operation cannot be fulfilled on configmaps "c": the object has been modified; please apply your changes to the latest version and try again',
      ]);
    }
  });

  test("the image of a pod can be changed, which grows its generation; uid and creation stay", async () => {
    const { post, patch } = anApiServer();
    const { uid, creationTimestamp } = (await post(PODS, aPod("web"))).json.metadata;
    const change = { metadata: { uid: undefined }, spec: { containers: [{ name: "app", image: "nginx:1.22" }] } };
    const { status, json } = await patch(`${PODS}/web`, change, "strategic-merge-patch+json");
    expect([status, json.spec.containers[0].image]).toEqual([200, "nginx:1.22"]);
    expect(json.metadata).toMatchObject({ uid, creationTimestamp, generation: 2 });
  });

  test("status is written through its subresource alone", async () => {
    const { post, patch } = anApiServer();
    const body = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web" }, spec: { replicas: 1 } };
    await post(DEPLOYMENT_PATH, { ...body, status: { replicas: 9 } });
    const replicasOf = async (path: string, change: object) => {
      const { spec, status, metadata } = (await patch(`${DEPLOYMENT_PATH}/${path}`, change)).json;
      return [spec.replicas, status, metadata.generation];
    };
    const change = { spec: { replicas: 5 }, status: { replicas: 1 } };
    expect(await replicasOf("web/status", change)).toEqual([1, { replicas: 1 }, 1]);
    expect(await replicasOf("web", { ...change, status: { replicas: 7 } })).toEqual([5, { replicas: 1 }, 2]);
    const noted = { annotations: { a: "b" }, labels: { c: "d" } };
    const { json } = await patch(`${DEPLOYMENT_PATH}/web/status`, { metadata: noted });
    expect([json.metadata.annotations, json.metadata.labels]).toEqual([{ a: "b" }, undefined]);
  });

  test("scale shows and sets the replicas", async () => {
    const { post, get, put } = anApiServer();
    const spec = { replicas: 1, selector: { matchLabels: { app: "web" } } };
    await post(DEPLOYMENT_PATH, { metadata: { name: "web" }, spec });
    const { json } = await get(`${DEPLOYMENT_PATH}/web/scale`);
    const status = { replicas: 0, selector: "app=web" };
    expect(json).toMatchObject({ kind: "Scale", apiVersion: "autoscaling/v1", spec: { replicas: 1 }, status });
    const scaled = await put(`${DEPLOYMENT_PATH}/web/scale`, { ...json, spec: { replicas: 3 } });
    expect(scaled.json.spec.replicas).toBe(3);
    expect((await get(`${DEPLOYMENT_PATH}/web`)).json.spec.replicas).toBe(3);
    const table = (await get(`${DEPLOYMENT_PATH}/web/scale`, { Accept: "application/json;as=Table" })).json;
    expect(table.columnDefinitions.map(({ name }: { name: string }) => name)).toEqual([
      "Name",
      "Desired",
      "Available",
      "Age",
    ]);
    expect(table.rows[0].cells).toEqual(["web", 3, 0, "0s"]);
  });

  test("the table of classes names the default one", async () => {
    const { post, get } = anApiServer({ alsoServed: "storageclasses" });
    const classes = "/apis/storage.k8s.io/v1/storageclasses";
    const annotations = { "storageclass.kubernetes.io/is-default-class": "true" };
    await post(classes, { metadata: { name: "a", annotations }, provisioner: "example.com/a" });
    await post(classes, { metadata: { name: "b" }, provisioner: "example.com/a" });
    const { rows } = (await get(classes, { Accept: "application/json;as=Table" })).json;
    expect(rows.map(({ cells }: { cells: string[] }) => cells[0])).toEqual(["a (default)", "b"]);
  });

  test("of a node spec.unschedulable, labels and annotations are written", async () => {
    const { patch, remove, store, files } = anApiServer();
    const taints = [{ key: "disk", effect: "NoSchedule" }];
    store.put("nodes", { apiVersion: "v1", kind: "Node", metadata: { name: "node1", uid: "n" }, spec: { taints } });
    const node = "/api/v1/nodes/node1";
    for (const [body, field] of [
      [{ metadata: { labels: { a: "b c" } } }, "metadata.labels"],
      [{ metadata: { annotations: { "a b": "" } } }, "metadata.annotations"],
      [{ metadata: { annotations: { a: 5 } } }, "metadata.annotations[a]"],
      [{ spec: { taints: [] } }, "spec"],
      [{ spec: { podCIDR: "10.0.0.0/24" } }, "spec"],
    ] as const) {
      const { status, json } = await patch(node, body);
      expect([status, json.reason, json.details?.causes?.[0]?.field]).toEqual([422, "Invalid", field]);
    }
    expect(files.size).toBe(0);
    const metadata = { labels: { a: "b" }, annotations: { c: "d e" } };
    const { status, json } = await patch(node, { metadata, spec: { unschedulable: true } });
    expect([status, json.spec]).toEqual([200, { taints, unschedulable: true }]);
    expect(files.get("nodes:/node1")).toMatchObject({ metadata, spec: { taints, unschedulable: true } });
    expect((await remove(node)).status).toBe(405);
  });

  test("an object of a file is refused with file and line", async () => {
    const { post, patch, remove, foreign } = anApiServer();
    await post(CONFIG_MAPS, aConfigMap("c"));
    foreign.set("default/c", "it comes from /etc/x.yaml:3: edit that file");
    const path = `${CONFIG_MAPS}/c`;
    for (const { status, json } of [await patch(path, { data: { a: "2" } }), await remove(path)]) {
      const message = 'configmaps "c" is forbidden: it comes from /etc/x.yaml:3: edit that file';
      expect([status, json.message]).toEqual([403, message]);
    }
  });

  test("a pod of a file that terminates may be deleted again", async () => {
    const { remove, store, foreign } = anApiServer();
    const metadata = { namespace: "default", name: "p", uid: "u", deletionTimestamp: "2026-01-01T00:00:00Z" };
    store.put("pods", { apiVersion: "v1", kind: "Pod", metadata } as ApiObject);
    foreign.set("default/p", "it comes from /etc/x.yaml:3: edit that file");
    const { status, json } = await remove(`${PODS}/p`);
    expect([status, json.metadata.name]).toEqual([200, "p"]);
    expect(store.get("pods", "default", "p")).toBeDefined();
    expect((await remove(`${PODS}/p`, { preconditions: { uid: "other" } })).status).toBe(409);
  });

  test.each([
    ["text/plain", "[", 415],
    ["application/json-patch+json", [{ op: "remove", path: "/nothing" }], 422],
    ["application/merge-patch+json", "[", 400],
  ])("a patch of type %s that cannot be applied: %j: %i", async (type, body, code) => {
    const { post, call } = anApiServer();
    await post(CONFIG_MAPS, aConfigMap("c"));
    const headers = { "Content-Type": type };
    expect((await call({ method: "PATCH", path: `${CONFIG_MAPS}/c`, body, headers })).status).toBe(code);
  });
});

describe("delete", () => {
  test("answers with a Status, and the object is gone", async () => {
    const { post, get, remove, files } = anApiServer();
    await post(CONFIG_MAPS, aConfigMap("c"));
    const { status, json } = await remove(`${CONFIG_MAPS}/c`);
    const details = { name: "c", kind: "configmaps", uid: "uid-1" };
    expect(status).toBe(200);
    expect(json).toMatchObject({ kind: "Status", status: "Success", details });
    expect(files.size).toBe(0);
    expect((await get(`${CONFIG_MAPS}/c`)).json.message).toBe('configmaps "c" not found');
  });

  test("a pod that is deleted without grace leaves its name: another one waits until its containers are gone", async () => {
    const { post, remove, endPod, clock } = anApiServer();
    await post(PODS, aPod("web"));
    await remove(`${PODS}/web`, { gracePeriodSeconds: 0 });
    const second = post(PODS, aPod("web"));
    await clock.advance(500);
    endPod("default", "web");
    await clock.advance(100);
    expect((await second).status).toBe(201);
    await remove(`${PODS}/web`, { gracePeriodSeconds: 0 });
    const third = post(PODS, aPod("web"));
    await clock.advance(10_000);
    expect((await third).json.message).toBe('object is being deleted: pods "web" already exists');
    await remove(`${PODS}/web`);
  });

  test("a pod stays Terminating until its containers are gone", async () => {
    const { post, get, remove, endPod, store, clock } = anApiServer();
    await post(PODS, aPod("web"));
    const graceOf = async (gracePeriodSeconds: number) => {
      const { json } = await remove(`${PODS}/web`, { gracePeriodSeconds });
      expect(store.get("pods", "default", "web")?.metadata).toEqual(json.metadata);
      return json.metadata;
    };
    const { deletionTimestamp, ...metadata } = await graceOf(5);
    expect(metadata.deletionGracePeriodSeconds).toBe(5);
    expect(Date.parse(deletionTimestamp)).toBe(Math.floor(clock.now().getTime() / 1000) * 1000 + 5000);
    // Asked again with more patience nothing changes, with less it does.
    expect((await graceOf(60)).deletionGracePeriodSeconds).toBe(5);
    expect((await graceOf(0)).deletionGracePeriodSeconds).toBe(0);
    endPod("default", "web");
    expect((await get(`${PODS}/web`)).status).toBe(404);
  });

  test.each([
    [{ uid: "other" }, 409],
    [{ resourceVersion: "1" }, 409],
    [{ uid: "uid-1" }, 200],
  ])("preconditions %j: %i", async (preconditions, status) => {
    const { post, remove } = anApiServer();
    await post(CONFIG_MAPS, aConfigMap("c"));
    expect((await remove(`${CONFIG_MAPS}/c`, { preconditions })).status).toBe(status);
  });

  test("a body that is nested deeply is refused", async () => {
    const { call, post } = anApiServer();
    const deep = (levels: number) => `{"a":${"[".repeat(levels)}${"]".repeat(levels)}}`;
    for (const [levels, refusal, why] of [
      [101, 400, "levels of nesting"],
      [400_000, 413, "values"],
    ] as const) {
      const { status, json } = await post(CONFIG_MAPS, deep(levels));
      expect([status, json.message]).toEqual([refusal, expect.stringContaining(why)]);
    }
    const headers = { "Content-Type": "application/merge-patch+json" };
    const patched = await call({ method: "PATCH", path: `${CONFIG_MAPS}/c`, body: deep(400_000), headers });
    expect(patched.status).toBe(413);
  });

  describe("more values than an object may have", () => {
    const many = (count: number, prefix = "k") =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`${prefix}${index}`, "v"]));
    const aBig = (data: object, more: object = {}) => ({ ...aConfigMap("c"), data, ...more });
    const repeated = `{"metadata":{"name":"c"},${'"d":1,'.repeat(60_000)}"e":1}`;

    test.each([
      ["keys", aBig(many(60_000))],
      ["keys whose owners would be too many", aBig(many(6_000))],
      ["unknown fields", aBig({}, many(150_000))],
      ["items", aBig({}, { list: Array(150_000).fill({}) })],
      ["repeated fields", repeated],
      ["keys, before the text is parsed,", `${JSON.stringify(many(31_000))}}`],
    ])("%s are refused", async (_, body) => {
      const { post, files } = anApiServer();
      const { status, json } = await post(CONFIG_MAPS, body);
      expect([status, json.reason, json.message]).toEqual([413, "RequestEntityTooLarge", expect.any(String)]);
      expect(files.size).toBe(0);
    });

    test("patches do not add up to them, and what was kept can be sent again", async () => {
      const { post, get, put, patch } = anApiServer();
      expect((await post(CONFIG_MAPS, aBig(many(4_500)))).status).toBe(201);
      expect((await patch(`${CONFIG_MAPS}/c`, { data: many(4_500, "more") })).status).toBe(413);
      expect((await put(`${CONFIG_MAPS}/c`, (await get(`${CONFIG_MAPS}/c`)).json)).status).toBe(200);
    });
  });

  test("finalizers keep an object until the last of them goes", async () => {
    const { post, get, patch, remove } = anApiServer();
    await post(CONFIG_MAPS, named("c", { finalizers: ["example.com/x"] }));
    const { json } = await remove(`${CONFIG_MAPS}/c`);
    expect([json.kind, typeof json.metadata.deletionTimestamp]).toEqual(["ConfigMap", "string"]);
    await patch(`${CONFIG_MAPS}/c`, { metadata: { finalizers: null } });
    expect((await get(`${CONFIG_MAPS}/c`)).status).toBe(404);
  });

  /** A Deployment, and the reference of what it owns. */
  async function anOwner() {
    const api = anApiServer();
    const { uid } = (await api.post(DEPLOYMENT_PATH, { metadata: { name: "web" }, spec: {} })).json.metadata;
    return { ...api, ownerReferences: [{ apiVersion: "apps/v1", kind: "Deployment", name: "web", uid }] };
  }

  test.each([
    ["Background", []],
    ["Foreground", []],
    ["Orphan", ["child"]],
  ])("propagation %s leaves %j", async (propagationPolicy, left) => {
    const { post, get, remove, names, ownerReferences } = await anOwner();
    await post(CONFIG_MAPS, named("child", { ownerReferences }));
    await remove(`${DEPLOYMENT_PATH}/web`, { propagationPolicy });
    expect(await names(CONFIG_MAPS)).toEqual(left);
    expect((await get(CONFIG_MAPS)).json.items[0]?.metadata.ownerReferences).toBeUndefined();
    expect((await get(`${DEPLOYMENT_PATH}/web`)).status).toBe(404);
  });

  test.each(["Background", "Foreground"])(
    "propagation %s: what another owner keeps loses the reference, also a pod that a controller made, and blocks nothing",
    async (propagationPolicy) => {
      const { post, get, remove, made, ownerReferences } = await anOwner();
      const other = (await post(CONFIG_MAPS, named("other", {}))).json.metadata;
      const kept = [{ apiVersion: "v1", kind: "ConfigMap", name: "other", uid: other.uid }];
      const both = { ownerReferences: [...ownerReferences, ...kept] };
      await post(CONFIG_MAPS, named("child", both));
      await post(PODS, { ...aPod("p"), metadata: { name: "p", ...both } });
      made.add("p");
      await remove(`${DEPLOYMENT_PATH}/web`, { propagationPolicy });
      expect((await get(`${DEPLOYMENT_PATH}/web`)).status).toBe(404);
      for (const path of [`${CONFIG_MAPS}/child`, `${PODS}/p`]) {
        const { metadata } = (await get(path)).json;
        expect([metadata.deletionTimestamp, metadata.ownerReferences]).toEqual([undefined, kept]);
      }
    },
  );

  test.each([
    ["apps/v1", "deployments", true],
    ["v1", "replicationcontrollers", false],
    ["batch/v1", "jobs", false],
    ["batch/v1", "cronjobs", true],
    ["batch/v1beta1", "cronjobs", false],
  ])("without a propagation policy, of %s %s: what it owns goes: %p", async (apiVersion, plural, goes) => {
    const api = anApiServer({ alsoServed: plural });
    const definition = api.registry.all().find((it) => it.plural === plural)!;
    const { group, version, kind } = definition;
    const owner = { apiVersion: group ? `${group}/${version}` : version, kind, name: "web", uid: "owner" };
    api.store.put(group ? `${plural}.${group}` : plural, { ...owner, metadata: { namespace: "default", ...owner } });
    for (const [name, body] of [
      ["default", undefined],
      ["asked", { orphanDependents: false }],
    ] as const) {
      api.store.put(group ? `${plural}.${group}` : plural, { ...owner, metadata: { namespace: "default", ...owner } });
      await api.post(CONFIG_MAPS, named(name, { ownerReferences: [owner] }));
      const root = apiVersion === "v1" ? "/api" : "/apis";
      await api.remove(`${root}/${apiVersion}/namespaces/default/${plural}/web`, body);
    }
    expect(await api.names(CONFIG_MAPS)).toEqual(goes ? [] : ["default"]);
  });

  test("a deletion that leaves what it owned is marked before the first of it is released: a crash leaves no part", async () => {
    const { post, remove, store, ownerReferences } = await anOwner();
    await post(CONFIG_MAPS, named("child", { ownerReferences }));
    const order: string[] = [];
    store.subscribe(({ type, object: { kind, metadata } }) =>
      order.push(`${type} ${kind} ${metadata.finalizers ?? ""}`),
    );
    await remove(`${DEPLOYMENT_PATH}/web`, { propagationPolicy: "Orphan" });
    expect(order.slice(0, 2)).toEqual(["MODIFIED Deployment orphan", "MODIFIED ConfigMap "]);
    expect(order.at(-1)).toStartWith("DELETED Deployment");
  });

  test("in the foreground the owner waits for a pod that terminates", async () => {
    const { post, get, remove, endPod, ownerReferences } = await anOwner();
    await post(PODS, { ...aPod("p"), metadata: { name: "p", ownerReferences } });
    const { json } = await remove(`${DEPLOYMENT_PATH}/web`, { propagationPolicy: "Foreground" });
    expect(json.metadata.finalizers).toEqual(["foregroundDeletion"]);
    endPod("default", "p");
    expect((await get(`${DEPLOYMENT_PATH}/web`)).status).toBe(404);
  });

  test("a pod that another owner keeps is released before the Job of a CronJob goes", async () => {
    const { post, remove, made, removals, store } = anApiServer({ alsoServed: "jobs" });
    const { uid } = (await post(CONFIG_MAPS, aConfigMap("own"))).json.metadata;
    const job = { apiVersion: "batch/v1", kind: "Job", metadata: { name: "j", namespace: "default", uid: "j" } };
    store.put("jobs.batch", job);
    const kept = { apiVersion: "v1", kind: "ConfigMap", name: "own", uid };
    const ownerReferences = [{ apiVersion: "batch/v1", kind: "Job", name: "j", uid: "j", controller: true }, kept];
    await post(PODS, { ...aPod("p"), metadata: { name: "p", ownerReferences } });
    made.add("p");
    const seen: unknown[] = [];
    removals.set("default/j", () => void seen.push(store.get("pods", "default", "p")?.metadata.ownerReferences));
    await remove("/apis/batch/v1/namespaces/default/jobs/j");
    expect(seen).toEqual([[kept]]);
  });

  test("in the foreground the owner waits for a pod that outlives what is between them", async () => {
    const { post, get, remove, made, store, ownerReferences } = await anOwner();
    const between = { apiVersion: "v1", kind: "ConfigMap" };
    const metadata = { name: "web-1", namespace: "default", uid: "of-web-1", ownerReferences };
    store.put("configmaps", { ...between, metadata });
    const owner = { ...between, name: "web-1", uid: "of-web-1" };
    await post(PODS, { ...aPod("p"), metadata: { name: "p", ownerReferences: [owner] } });
    made.add("p").add("web-1");
    await remove(`${DEPLOYMENT_PATH}/web`, { propagationPolicy: "Foreground" });
    store.remove("configmaps", "default", "web-1");
    expect((await get(`${DEPLOYMENT_PATH}/web`)).status).toBe(200);
    store.remove("pods", "default", "p");
    expect((await get(`${DEPLOYMENT_PATH}/web`)).status).toBe(404);
  });

  test.each(["Foreground", "Background"])(
    "%s leaves pods that a controller made to it, and ends with them",
    async (propagationPolicy) => {
      const { post, get, remove, made, deletedMade, store, ownerReferences } = await anOwner();
      await post(PODS, { ...aPod("p"), metadata: { name: "p", ownerReferences } });
      made.add("p");
      await remove(`${DEPLOYMENT_PATH}/web`, { propagationPolicy });
      expect(deletedMade).toEqual([]);
      store.remove("pods", "default", "p");
      expect((await get(`${DEPLOYMENT_PATH}/web`)).status).toBe(404);
    },
  );

  test("a collection by selector", async () => {
    const { post, remove, names } = anApiServer();
    for (const name of ["a", "b"]) await post(CONFIG_MAPS, named(name, { labels: { is: name } }));
    const { json } = await remove(`${CONFIG_MAPS}?labelSelector=is%3Da`);
    expect(json.items).toMatchObject([{ metadata: { name: "a" } }]);
    expect(await names(CONFIG_MAPS)).toEqual(["b"]);
  });

  test("a collection with an object of a file: the others go, and the refusal names it", async () => {
    const { post, remove, names, foreign } = anApiServer();
    for (const name of ["a", "b", "c"]) await post(CONFIG_MAPS, named(name, {}));
    foreign.set("default/b", "it comes from /etc/x.yaml:3: edit that file");
    const { status, json } = await remove(CONFIG_MAPS);
    expect([status, json.message]).toEqual([403, expect.stringContaining("edit that file")]);
    expect(await names(CONFIG_MAPS)).toEqual(["b"]);
  });

  test("a namespace takes what is in it along, and default stays", async () => {
    const { post, get, remove, endPod } = anApiServer();
    await post(NAMESPACES, { metadata: { name: "lab" } });
    await post(`${NAMESPACES}/lab/configmaps`, aConfigMap("c"));
    await post(`${NAMESPACES}/lab/pods`, aPod("p"));
    expect((await remove(`${NAMESPACES}/lab`)).json.status.phase).toBe("Terminating");
    expect((await post(`${NAMESPACES}/lab/configmaps`, aConfigMap("d"))).status).toBe(403);
    endPod("lab", "p");
    expect((await get(`${NAMESPACES}/lab`)).status).toBe(404);
    expect((await remove(`${NAMESPACES}/default`)).status).toBe(403);
  });

  test("a namespace goes with its last object, also one that its controller deletes", async () => {
    const { post, get, remove, store, foreign } = anApiServer();
    await post(NAMESPACES, { metadata: { name: "lab" } });
    foreign.set("lab/dep-1", "a controller made it");
    const metadata = { name: "dep-1", namespace: "lab", uid: "made" };
    store.put("configmaps", { apiVersion: "v1", kind: "ConfigMap", metadata });
    expect((await remove(`${NAMESPACES}/lab`)).json.status.phase).toBe("Terminating");
    store.remove("configmaps", "lab", "dep-1");
    expect((await get(`${NAMESPACES}/lab`)).status).toBe(404);
  });

  test.each([
    ["defaults of the spec", {}, 200],
    ["another spec", { terminationGracePeriodSeconds: 5 }, 403],
    ["another spec while it terminates", { terminationGracePeriodSeconds: 5 }, 403],
    ["its spec while it terminates", {}, 200],
  ])("labels of a pod that a controller made, sent with %s", async (what, other, expected) => {
    const isEnding = what.endsWith("while it terminates");
    const { post, put, made, foreign, store, files } = anApiServer();
    let { json } = await post(PODS, aPod("p"));
    const saved = files.get("pods:default/p");
    if (isEnding)
      json = store.put("pods", { ...json, metadata: { ...json.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } });
    else made.add("p");
    foreign.set("default/p", "a controller made it");
    const spec = { ...json.spec, hostNetwork: false, securityContext: undefined, ...other };
    const metadata = { ...json.metadata, labels: { app: "b" } };
    const written = await put(`${PODS}/p`, { ...json, metadata, spec });
    expect([written.status, written.json.metadata.labels?.app]).toEqual([expected, expected === 200 ? "b" : undefined]);
    expect(files.get("pods:default/p") === saved).toBe(isEnding || expected === 403);
  });

  test("the pods of a workload are left to it when their namespace goes", async () => {
    const { post, remove, made, deletedMade } = anApiServer();
    await post(NAMESPACES, { metadata: { name: "lab" } });
    await post(`${NAMESPACES}/lab/pods`, aPod("p"));
    made.add("p");
    await remove(`${NAMESPACES}/lab`);
    expect(deletedMade).toEqual([]);
  });

  describe("before it is known what controllers made", () => {
    /** A Deployment that was deleted then, and what brings its ReplicaSet into the store. */
    async function anEarlyDeletion(propagationPolicy: string) {
      const { store, node, deleter, post, get, remove } = anApiServer();
      node.isMadeKnown = false;
      const { uid } = (await post(DEPLOYMENT_PATH, { metadata: { name: "web" }, spec: {} })).json.metadata;
      const { json } = await remove(`${DEPLOYMENT_PATH}/web`, { propagationPolicy });
      const ownerReferences = [{ apiVersion: "apps/v1", kind: "Deployment", name: "web", uid }];
      const find = () =>
        store.put("configmaps", { ...named("web-1", { namespace: "default", uid: "web-1", ownerReferences }) });
      return { json, store, deleter, find, deployment: () => get(`${DEPLOYMENT_PATH}/web`) };
    }

    test("a deletion that leaves the pods waits, and then releases what it owned", async () => {
      const { json, store, deleter, find, deployment } = await anEarlyDeletion("Orphan");
      expect(json.metadata.finalizers).toEqual(["orphan"]);
      expect((await deployment()).status).toBe(200);
      deleter.settle(find);
      expect((await deployment()).status).toBe(404);
      expect(store.get("configmaps", "default", "web-1")?.metadata.ownerReferences).toBeUndefined();
    });

    test("one in the foreground waits for what is found later", async () => {
      const { json, store, deleter, find, deployment } = await anEarlyDeletion("Foreground");
      expect(json.metadata.finalizers).toEqual(["foregroundDeletion"]);
      find();
      deleter.settle(() => {});
      expect((await deployment()).status).toBe(200);
      store.remove("configmaps", "default", "web-1");
      expect((await deployment()).status).toBe(404);
    });

    test("one in the background does not wait", async () => {
      expect((await (await anEarlyDeletion("Background")).deployment()).status).toBe(404);
    });
  });

  describe("that an earlier process began", () => {
    const deletionTimestamp = "2026-01-01T00:00:00Z";

    test("a namespace goes once all pods are known, though nothing of it is left to go", async () => {
      const { store, deleter, get } = anApiServer();
      const metadata = { name: "lab", uid: "lab", deletionTimestamp, finalizers: ["kubernetes"] };
      store.put("namespaces", { apiVersion: "v1", kind: "Namespace", metadata });
      store.put("configmaps", { ...aConfigMap("c"), metadata: { name: "c", namespace: "lab" } });
      // A pod of it may end unseen.
      store.remove("configmaps", "lab", "c");
      expect((await get(`${NAMESPACES}/lab`)).status).toBe(200);
      deleter.settle(() => {});
      expect((await get(`${NAMESPACES}/lab`)).status).toBe(404);
    });

    test("an owner in foreground deletion waits for pods that are not known yet", async () => {
      const { store, deleter, get } = anApiServer();
      const metadata = {
        name: "web",
        namespace: "default",
        uid: "web",
        deletionTimestamp,
        finalizers: ["foregroundDeletion"],
      };
      store.put("configmaps", { apiVersion: "v1", kind: "ConfigMap", metadata });
      const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name: "web", uid: "web" }];
      store.put("configmaps", named("child", { namespace: "default", uid: "child", ownerReferences }));
      store.remove("configmaps", "default", "child");
      expect((await get(`${CONFIG_MAPS}/web`)).status).toBe(200);
      deleter.settle(() => {});
      expect((await get(`${CONFIG_MAPS}/web`)).status).toBe(404);
    });
  });
});

const TEMPLATE = { metadata: { labels: { app: "web" } }, spec: aPod("x").spec };
const ONCE = { ...TEMPLATE, spec: { ...TEMPLATE.spec, restartPolicy: "Never" } };
const OF_WEB = { selector: { matchLabels: { app: "web" } }, template: TEMPLATE };
const STORAGE = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
/** The fields of an object of each kind that clients write, besides its name. A new kind needs a row. */
const OBJECTS: Readonly<Record<string, object>> = {
  Namespace: {},
  Pod: { spec: TEMPLATE.spec },
  ConfigMap: { data: { a: "1" }, binaryData: { b: "AA==" } },
  Secret: { stringData: { a: "1" } },
  Deployment: { spec: { ...OF_WEB, minReadySeconds: 0, strategy: { type: "Recreate" } } },
  ReplicaSet: { spec: OF_WEB },
  StatefulSet: {
    spec: { ...OF_WEB, serviceName: "web", volumeClaimTemplates: [{ metadata: { name: "d" }, spec: STORAGE }] },
  },
  DaemonSet: { spec: OF_WEB },
  Job: { spec: { template: ONCE } },
  CronJob: { spec: { schedule: "@daily", jobTemplate: { spec: { template: ONCE } } } },
  ReplicationController: { spec: { selector: { app: "web" }, template: TEMPLATE } },
  Service: { spec: { type: "NodePort", selector: { app: "web" }, ports: [{ port: 80, nodePort: 30080 }] } },
  Ingress: { spec: { defaultBackend: { service: { name: "web", port: { number: 80 } } } } },
  IngressClass: { spec: { controller: "example.com/x" } },
  Endpoints: { subsets: [{ addresses: [{ ip: "10.0.0.1" }], ports: [{ port: 80 }] }] },
  EndpointSlice: { addressType: "IPv4", endpoints: [{ addresses: ["10.0.0.1"] }], ports: [{ port: 80 }] },
  Event: { involvedObject: { kind: "Pod", name: "web" }, reason: "Scaled" },
  PodTemplate: { template: TEMPLATE },
  StorageClass: { provisioner: "example.com/x", parameters: { a: "b" } },
  Lease: { spec: { holderIdentity: "a", renewTime: "2026-11-27T18:00:00.123456Z" } },
  PersistentVolumeClaim: { spec: STORAGE, status: { volume: { name: "web", isDockerVolume: true } } },
  PersistentVolume: {
    spec: { capacity: { storage: "1Gi" }, accessModes: STORAGE.accessModes, hostPath: { path: "/srv" } },
  },
};
const WRITTEN_KINDS = SERVED_KINDS.filter(({ verbs, kind }) => verbs.includes("update") && kind !== "Node");

test("OBJECTS has an object of each kind that clients write", () => {
  expect(WRITTEN_KINDS.flatMap(({ kind }) => (OBJECTS[kind] ? [] : [kind]))).toEqual([]);
});

test.each(WRITTEN_KINDS.flatMap((definition) => [false, true].map((isForeign) => ({ definition, isForeign }))))(
  "get and replace change nothing: $definition.kind, of a file or a controller: $isForeign",
  async ({ definition, isForeign }) => {
    const { kind, group, version, plural, namespaced } = definition;
    const { get, post, put, store, foreign } = anApiServer({ alsoServed: plural });
    const apiVersion = group === "" ? version : `${group}/${version}`;
    const path = `${group === "" ? "/api" : "/apis"}/${apiVersion}${namespaced ? "/namespaces/default" : ""}/${plural}`;
    const created = await post(path, { apiVersion, kind, metadata: { name: "web" }, ...OBJECTS[kind] });
    expect(created.json).toMatchObject({ kind, metadata: { name: "web" } });
    const id = group === "" ? plural : `${plural}.${group}`;
    const stored = store.get(id, namespaced ? "default" : undefined, "web")!;
    const { status } = OBJECTS[kind] as { status?: object };
    if (status) store.put(id, { ...stored, status });
    if (isForeign) foreign.set(`${namespaced ? "default" : ""}/web`, "it is of a file");
    const { managedFields: _fields, ...metadata } = (await get(`${path}/web`)).json.metadata;
    const shown = { ...(await get(`${path}/web`)).json, metadata };
    const replaced = await put(`${path}/web`, shown);
    expect([replaced.status, replaced.json.metadata?.resourceVersion]).toEqual([200, metadata.resourceVersion]);
    const edited = await put(`${path}/web`, { ...shown, metadata: { ...metadata, labels: { a: "b" } } });
    expect(edited.status).toBe(isForeign ? 403 : 200);
  },
);

/** Statuses that kube-apiserver 1.20 answers to a creation; of kinds without a row: empty. */
const FIRST_STATUSES: Readonly<Record<string, object>> = {
  Namespace: { phase: "Active" },
  Pod: { phase: "Pending", qosClass: "BestEffort" },
  ReplicaSet: { replicas: 0 },
  StatefulSet: { replicas: 0 },
  ReplicationController: { replicas: 0 },
  DaemonSet: { currentNumberScheduled: 0, desiredNumberScheduled: 0, numberMisscheduled: 0, numberReady: 0 },
  Service: { loadBalancer: {} },
  Ingress: { loadBalancer: {} },
  PersistentVolumeClaim: { phase: "Pending" },
  PersistentVolume: { phase: "Pending" },
};

test.each(WRITTEN_KINDS)(
  "a new $kind has its first status and its protection at once: clients read them",
  async (definition) => {
    const { kind, group, version, plural, namespaced, subresources, protection } = definition;
    const { post } = anApiServer({ alsoServed: plural });
    const apiVersion = group === "" ? version : `${group}/${version}`;
    const path = `${group === "" ? "/api" : "/apis"}/${apiVersion}${namespaced ? "/namespaces/default" : ""}/${plural}`;
    const status = { replicas: 7, phase: "Bound" };
    const { json } = await post(path, { apiVersion, kind, metadata: { name: "web" }, ...OBJECTS[kind], status });
    expect(json.status).toEqual(subresources?.includes("status") ? (FIRST_STATUSES[kind] ?? {}) : undefined);
    expect(json.metadata.finalizers).toEqual(protection && [protection]);
  },
);

test.each(["PersistentVolumeClaim", "PersistentVolume", "StorageClass", "PodTemplate", "ConfigMap", "Service"])(
  "the deletion of a %s answers as the registry of kube-apiserver does",
  async (kind) => {
    const { group, version, plural, namespaced } = WRITTEN_KINDS.find((it) => it.kind === kind)!;
    const { post, remove } = anApiServer({ alsoServed: plural });
    const apiVersion = group === "" ? version : `${group}/${version}`;
    const path = `${group === "" ? "/api" : "/apis"}/${apiVersion}${namespaced ? "/namespaces/default" : ""}/${plural}`;
    await post(path, { apiVersion, kind, metadata: { name: "web" }, ...OBJECTS[kind] });
    const { json } = await remove(`${path}/web`);
    expect(json.kind).toBe(["ConfigMap", "Service"].includes(kind) ? "Status" : kind);
  },
);

test.each([
  [{ leaseDurationSeconds: 0 }, "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
  [{ leaseTransitions: -1 }, "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"],
  [{ leaseDurationSeconds: 1, leaseTransitions: 0 }, undefined],
])("a Lease with %j: %s", async (spec, message) => {
  const { post, put } = anApiServer({ alsoServed: "leases" });
  const path = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
  const lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: "a" } };
  const code = message ? 422 : 201;
  expect(await post(path, { ...lease, spec })).toMatchObject({
    status: code,
    ...(message && { json: { message: expect.stringContaining(message) } }),
  });
  await post(path, { ...lease, spec: {} });
  expect((await put(`${path}/a`, { ...lease, spec })).status).toBe(message ? 422 : 200);
});

describe("get and list", () => {
  test("selectors, and what is wrong with them", async () => {
    const { post, get, names } = anApiServer();
    await post(PODS, aPod("a", { app: "web" }));
    await post(PODS, aPod("b", { app: "db" }));
    expect(await names(`${PODS}?labelSelector=app%3Dweb`)).toEqual(["a"]);
    expect(await names(`${PODS}?labelSelector=app+notin+(web)`)).toEqual(["b"]);
    expect(await names(`${PODS}?fieldSelector=metadata.name%3Db,status.phase%3DPending`)).toEqual(["b"]);
    expect(await names(`${PODS}?fieldSelector=spec.nodeName!%3Dnode1`)).toEqual([]);
    const bad = await get(`${PODS}?fieldSelector=spec.color%3Dred`);
    expect([bad.status, bad.json.message]).toEqual([400, "field label not supported: spec.color"]);
  });

  test.each(["application/json", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"])(
    "a long list as %s comes in pieces",
    async (accept) => {
      const { store, send } = anApiServer();
      const kind = { apiVersion: "v1", kind: "ConfigMap" };
      const data = { text: "🦊x".repeat(100_000) };
      for (const name of ["a", "b", "c", "d", "e"]) {
        const labels = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`label-${index}`, name]));
        store.put("configmaps", { ...kind, metadata: { name, namespace: "default", labels }, data });
      }
      const response = await send({ path: CONFIG_MAPS, headers: { accept } });
      if (!("chunks" in response)) throw new Error("the list is whole");
      const pieces: string[] = [];
      for await (const chunk of response.chunks) pieces.push(String(chunk));
      const { items, metadata } = JSON.parse(pieces.join(""));
      expect(items.map((item: ApiObject) => item.metadata.labels?.["label-9999"])).toEqual(["a", "b", "c", "d", "e"]);
      expect(metadata.resourceVersion).toBe(String(store.revision));
      expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(pieces.join("").length / 2);
    },
  );

  test("clients share the bytes of a long object, in lists and watches", async () => {
    const { store, send } = anApiServer();
    const metadata = { name: "long", namespace: "default" };
    store.put("configmaps", { apiVersion: "v1", kind: "ConfigMap", metadata, data: { text: "x".repeat(500_000) } });
    const longChunk = async (query: string) => {
      const response = await send({ path: `${CONFIG_MAPS}${query}` });
      if (!("chunks" in response)) throw new Error("the response is whole");
      for await (const chunk of response.chunks) if (chunk.length > 500_000) return chunk;
    };
    const first = await longChunk("");
    expect(first).toBeDefined();
    expect((await longChunk("")) === first).toBe(true);
    expect((await longChunk("?watch=true")) === first).toBe(true);
  });

  const aMap = (data: string) => `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":${data}}`;
  const twice = aMap('{"a":"1","b":"\\":\\"","a":"2"}');
  const refusal = 'as a ConfigMap: strict decoding error: duplicate field "data.a"';

  test.each([
    ["Strict", twice, 400, undefined, refusal],
    ["Warn", twice, 201, '299 - "duplicate field \\"data.a\\""', undefined],
    ["Ignore", twice, 201, undefined, undefined],
    ["Strict", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: x, a: z}\n", 400, undefined, refusal],
    ["Strict", `${twice.slice(0, -1)},"c":{}}`, 400, undefined, `${refusal}, unknown field "c"`],
    ["Strict", aMap('{"a":"1","b":"\\":,\\""}'), 201, undefined, undefined],
    ["Strict", aMap('{"a":"\\\\","b":"\\\\\\":" , "a" : "2"}'), 400, undefined, refusal],
    ["Strict", aMap('{"a":"1","d":"\\\\","b":"\\\\\\":" , "c" : "\\":"}'), 201, undefined, undefined],
  ])("a field that occurs twice under %s: %s: %i", async (validation, body, status, warning, message) => {
    const { call } = anApiServer();
    const path = `${CONFIG_MAPS}?dryRun=All&fieldValidation=${validation}`;
    const headers = { "Content-Type": body.startsWith("{") ? "application/json" : "application/yaml" };
    const found = await call({ method: "POST", path, body, headers });
    expect([found.status, found.headers.Warning]).toEqual([status, warning as string]);
    if (message !== undefined) expect(found.json.message).toContain(message);
    else expect(found.json.data.a).toBe(body === twice ? "2" : "1");
  });

  test("clients set conditions and the end in a pod's status, also of one that a file describes, and nothing else of it", async () => {
    const { post, get, put, patch, foreign, files, call } = anApiServer();
    const { json: made } = await post(PODS, aPod("a"));
    foreign.set("default/a", 'pod "a" comes from /m/a.yaml:1: edit that file');
    const saved = files.get("pods:default/a");
    const gate = { type: "x/up", status: "True" };
    const status = { phase: "Failed", podIP: "1.2.3.4", conditions: [gate, { type: "Ready", status: "True" }] };
    const { json } = await patch(`${PODS}/a/status`, { status, metadata: { labels: { a: "b" } } });
    // The kubelet overwrites the second one at once.
    const conditions = status.conditions.map((it) => expect.objectContaining(it));
    expect(json.status).toEqual({ ...made.status, phase: "Failed", conditions });
    expect(json.metadata.managedFields.at(-1)).toMatchObject({ operation: "Update", subresource: "status" });
    expect([json.metadata.labels, files.get("pods:default/a")]).toEqual([undefined, saved]);
    const apply = { apiVersion: "v1", kind: "Pod", status: { conditions: [{ type: "x/b", status: "False" }] } };
    const applied = await patch(`${PODS}/a/status?fieldManager=m`, apply, "apply-patch+yaml");
    expect(applied.json.status.conditions.map(({ type }: { type: string }) => type)).toEqual(["x/up", "Ready", "x/b"]);
    expect((await put(`${PODS}/a/status`, { ...made, status })).json.reason).toBe("Conflict");
    const none = { ...applied.json, status: {} };
    expect((await put(`${PODS}/a/status?dryRun=All`, none)).json.status.conditions).toEqual([]);
    expect((await put(`${PODS}/a/status`, none)).json.status.conditions).toEqual([]);
    const headers = { "Content-Type": "application/merge-patch+json" };
    const viewed = await call({ method: "PATCH", path: `${PODS}/a/status`, headers, body: { status }, role: "view" });
    expect([viewed.status, viewed.json.message]).toEqual([403, expect.stringContaining('resource "pods/status"')]);
    expect((await call({ method: "DELETE", path: `${PODS}/a/status` })).status).toBe(405);
    const { resources } = (await get("/api/v1")).json;
    const verbs = (name: string) => resources.find((it: { name: string }) => it.name === name).verbs;
    expect(verbs("pods/status")).toEqual(["get", "patch", "update"]);
    expect(verbs("namespaces/status")).toEqual(["get"]);
    expect((await patch("/api/v1/namespaces/default/status", { status: {} })).status).toBe(405);
  });

  test.each([
    ["a status that is none", { type: "x/up", status: "yes" }, "status.conditions: Invalid value"],
    ["no type", { status: "True" }, "status.conditions: Invalid value"],
    [
      "a time that is none",
      { type: "x/up", status: "True", lastProbeTime: "now" },
      "status.conditions[0].lastProbeTime",
    ],
    ["another type", 5, "status.conditions[0]: Invalid value"],
    ["a long message", { type: "x/up", status: "True", message: "m".repeat(40_000) }, "status.conditions: Too long"],
  ])("a condition of a client with %s is 422", async (_, condition, message) => {
    const { post, patch } = anApiServer();
    await post(PODS, aPod("a"));
    const { status, json } = await patch(`${PODS}/a/status`, { status: { conditions: [condition] } });
    expect([status, json.message]).toEqual([422, expect.stringContaining(message)]);
  });

  const JOBS = "/apis/batch/v1/namespaces/default/jobs";
  test.each([
    [`${CORE}/services`, "services", "spec.clusterIP%3DNone", { spec: { clusterIP: "None" } }],
    [`${CORE}/services`, "services", "spec.type%3DNodePort", { spec: { type: "NodePort" } }],
    [`${CORE}/replicationcontrollers`, "replicationcontrollers", "status.replicas!%3D0", { status: { replicas: 2 } }],
    [JOBS, "jobs.batch", "status.successful%3D1", { status: { succeeded: 1 } }],
  ])("fields of %s select", async (path, plural, selector, fields) => {
    const { names, store } = anApiServer({ alsoServed: "jobs" });
    const put = (name: string, more: object) =>
      store.put(plural, { apiVersion: "v1", kind: "Any", metadata: { name, namespace: "default" }, ...more });
    put("meant", fields);
    put("other", { spec: {}, status: {} });
    expect(await names(`${path}?fieldSelector=${selector}`)).toEqual(["meant"]);
  });

  test("pages", async () => {
    const { post, get } = anApiServer();
    for (const name of ["a", "b", "c"]) await post(CONFIG_MAPS, aConfigMap(name));
    const { items, metadata } = (await get(`${CONFIG_MAPS}?limit=2`)).json;
    expect([items.length, metadata.remainingItemCount]).toEqual([2, 1]);
    const second = (await get(`${CONFIG_MAPS}?limit=2&continue=${metadata.continue}`)).json;
    expect(second.items).toMatchObject([{ metadata: { name: "c" } }]);
    expect(second.metadata).toEqual({ resourceVersion: metadata.resourceVersion });
    expect((await get(`${CONFIG_MAPS}?continue=rubbish`)).status).toBe(400);
  });

  test("a table", async () => {
    const { post, get, clock } = anApiServer();
    await post(PODS, aPod("web"));
    await clock.advance(65_000);
    const { json } = await get(PODS, { Accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" });
    expect(json.kind).toBe("Table");
    expect(json.columnDefinitions.map(({ name }: { name: string }) => name).join()).toBe(
      "Name,Ready,Status,Restarts,Age,IP,Node,Nominated Node,Readiness Gates",
    );
    expect(json.rows[0].cells).toEqual(["web", "0/1", "Pending", "0", "65s", "<none>", "node1", "<none>", "<none>"]);
    expect(json.rows[0].object).toMatchObject({ kind: "PartialObjectMetadata", metadata: { name: "web" } });
  });

  test("only metadata", async () => {
    const { post, get } = anApiServer();
    await post(CONFIG_MAPS, aConfigMap("c"));
    const Accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    const { kind, items } = (await get(CONFIG_MAPS, { Accept })).json;
    expect([kind, items[0].kind, items[0].data]).toEqual([
      "PartialObjectMetadataList",
      "PartialObjectMetadata",
      undefined,
    ]);
  });

  test("protobuf alone is refused", async () => {
    expect((await anApiServer().get(PODS, { Accept: "application/vnd.kubernetes.protobuf" })).status).toBe(406);
  });
});

test("without an engine a pod that may run is not called gone, and a list says that it may be wrong", async () => {
  const { node, get, remove } = anApiServer();
  node.doubt = "No Docker engine at unix:///x.sock";
  for (const { status, headers, json } of [await get(`${PODS}/left`), await remove(`${PODS}/left`)]) {
    expect([status, headers["Retry-After"], json.reason]).toEqual([503, "1", "ServiceUnavailable"]);
    expect(json.message).toContain(node.doubt);
  }
  expect([await get(`${PODS}/never`), await get(`${CONFIG_MAPS}/left`)].map(({ status }) => status)).toEqual([
    404, 404,
  ]);
  expect((await get(PODS)).headers.Warning).toBe(`299 - "pods may not be as shown: ${node.doubt}"`);
});

describe("a user with read access only", () => {
  test("sees the keys of Secrets without their values, in every form", async () => {
    const { call, post, get } = anApiServer();
    const annotations = { "kubectl.kubernetes.io/last-applied-configuration": "hunter2" };
    await post(SECRETS, { ...secret, metadata: { name: "s", annotations } });
    for (const form of ["", ";as=Table;v=v1;g=meta.k8s.io", ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"]) {
      const headers = { Accept: `application/json${form}` };
      const { text, status } = await call({ path: `${SECRETS}?includeObject=Object`, role: "view", headers });
      expect(status).toBe(200);
      expect(text).not.toContain("hunter2");
      expect(text).not.toContain(HUNTER2);
    }
    expect((await call({ path: `${SECRETS}/s`, role: "view" })).json.data).toEqual({ k: "" });
    expect((await get(`${SECRETS}/s`)).json.data).toEqual({ k: HUNTER2 });
  });

  test("is refused every write", async () => {
    const { status, json } = await anApiServer().call({ method: "POST", path: PODS, body: aPod("x"), role: "view" });
    expect([status, json.message]).toEqual([
      403,
      'pods is forbidden: User "view" cannot create resource "pods" in API group "" in the namespace "default"',
    ]);
  });
});

describe("an anonymous client", () => {
  const healthChecks = [{ name: "manifests", ok: false, message: "/etc/manifests/bank.yaml: no such field" }];
  const role = "anonymous";

  test.each(["/healthz", "/livez", "/readyz", "/version", "/version/"])("%s is answered", async (path) => {
    expect((await anApiServer().call({ path, role })).status).toBe(200);
    expect((await anApiServer().call({ path, role, method: "POST" })).status).toBe(401);
  });

  test("sees which check fails, and not why", async () => {
    const api = anApiServer({ healthChecks });
    const seen = async (who: "anonymous" | "view") => (await api.call({ path: "/readyz?verbose", role: who })).text;
    expect(await seen("anonymous")).toContain("[-]manifests failed: reason withheld\n");
    expect(await seen("view")).toContain("[-]manifests failed: /etc/manifests/bank.yaml: no such field\n");
  });

  test.each([PODS, "/api/v1/nothing", "/api", "/openapi/v2", "/", "/healthz/ping", "/metrics"])(
    "%s is 401",
    async (path) => {
      const { status, json } = await anApiServer().call({ path, role });
      expect([status, json.message]).toEqual([401, "Unauthorized"]);
    },
  );
});

describe("a user with access to metrics only", () => {
  /** Answers with the path of the kubelet. */
  const proxy: ExtraRoute = {
    group: "",
    version: "v1",
    name: "nodes/proxy",
    kind: "NodeProxyOptions",
    namespaced: false,
    verbs: ["create", "get"],
    handle: (_, { rest }) => jsonText(200, JSON.stringify({ rest })),
  };
  const metrics: ExtraRoute = { ...proxy, group: "metrics.k8s.io", version: "v1beta1", name: "nodes", verbs: ["get"] };
  const api = anApiServer({ extras: [proxy, metrics] });
  const NODE = "/api/v1/nodes/node1/proxy";

  test.each([
    [`${NODE}/metrics`, "GET", 200],
    [`${NODE}/metrics/cadvisor`, "GET", 200],
    [`${NODE}/stats/summary`, "GET", 200],
    ["/apis/metrics.k8s.io/v1beta1/nodes", "GET", 200],
    ["/healthz", "GET", 200],
    ["/apis", "GET", 200],
    [`${NODE}/metrics`, "POST", 403],
    [`${NODE}/metrics/%2e%2e/pods`, "GET", 403],
    [`${NODE}/metrics%2f..%2fpods`, "GET", 403],
    [`${NODE}/pods`, "GET", 403],
    [`${NODE}/configz`, "GET", 403],
    [NODE, "GET", 403],
    [PODS, "GET", 403],
    [SECRETS, "GET", 403],
    [CONFIG_MAPS, "POST", 403],
  ])("%s %s: %d", async (path, method, want) => {
    expect((await api.call({ path, method, role: "metrics" })).status).toBe(want);
  });
});

test.each([
  ["Impersonate-User", "users"],
  ["Impersonate-Group", "groups"],
  ["Impersonate-Uid", "uids"],
])("%s is refused, also for admins", async (header, resource) => {
  const { status, json } = await anApiServer().get(PODS, { [header]: "bob" });
  const rule = `User "admin" cannot impersonate resource "${resource}" in API group "" at the cluster scope`;
  expect([status, json.message]).toEqual([
    403,
    `${resource} "bob" is forbidden: ${rule}: the API of a single node knows no impersonation`,
  ]);
});

describe("discovery", () => {
  const namesOf = (resources: { name: string }[]) => resources.map(({ name }) => name);

  test("groups, resources and their short names", async () => {
    const { get } = anApiServer();
    expect((await get("/api")).json.versions).toEqual(["v1"]);
    expect(namesOf((await get("/apis")).json.groups)).toEqual(["events.k8s.io", "apps"]);
    const { resources } = (await get("/api/v1")).json;
    const pods = { kind: "Pod", namespaced: true, shortNames: ["po"], categories: ["all"] };
    expect(resources.find(({ name }: { name: string }) => name === "pods")).toMatchObject(pods);
    const apps = (await get("/apis/apps/v1")).json;
    expect(apps.groupVersion).toBe("apps/v1");
    expect(namesOf(apps.resources)).toEqual(["deployments", "deployments/status", "deployments/scale"]);
    expect((await get("/apis/nothing")).status).toBe(404);
  });

  test("every listed version has kinds: over an empty one kubectl api-resources fails; the group of evictions has none", async () => {
    const eviction = { group: "", version: "v1", name: "pods/eviction", kind: "Eviction", kindGroup: "policy" };
    const handle = () => Promise.reject(new Error("not called"));
    const { get } = anApiServer({ extras: [{ ...eviction, namespaced: true, verbs: ["create"], handle }] });
    const { groups } = (await get("/apis")).json;
    expect(groups.at(-1)).toEqual({
      name: "policy",
      versions: [],
      preferredVersion: { groupVersion: "policy/v1", version: "v1" },
    });
    for (const { groupVersion } of groups.flatMap(({ versions }: { versions: object[] }) => versions)) {
      expect((await get(`/apis/${groupVersion}`)).json.resources).not.toBeEmpty();
    }
  });

  test("a client that can read all in one response gets the lists", async () => {
    const Accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    const { json, headers } = await anApiServer().get("/apis", { Accept });
    expect([headers["Content-Type"], json.kind]).toEqual(["application/json", "APIGroupList"]);
  });

  test.each([
    ["/version", 200, '"gitVersion":"v1.34.0"'],
    ["/readyz", 200, "ok"],
    ["/livez?verbose", 200, "[+]ping ok\nlivez check passed\n"],
    ["/healthz/nothing", 404, "the server could not find the requested resource"],
  ])("%s: %i", async (path, status, text) => {
    const found = await anApiServer().get(path);
    expect([found.status, found.text]).toEqual([status, expect.stringContaining(text)]);
  });
});

describe("a kind in an older version", () => {
  const V1 = "/apis/batch/v1/namespaces/default/cronjobs";
  const V1BETA1 = "/apis/batch/v1beta1/namespaces/default/cronjobs";
  const podSpec = { restartPolicy: "Never", containers: [{ name: "c", image: "busybox:1.35" }] };
  const cronJob = {
    apiVersion: "batch/v1beta1",
    kind: "CronJob",
    metadata: { name: "nightly" },
    spec: { schedule: "0 3 * * *", jobTemplate: { spec: { template: { spec: podSpec } } } },
  };
  const suspended = { suspend: true };

  test("is the same object, shown in the version that was asked for", async () => {
    const { get, post, put, files } = anApiServer({ alsoServed: "cronjobs" });
    const created = await post(V1BETA1, cronJob);
    expect([created.status, created.json.apiVersion]).toEqual([201, "batch/v1beta1"]);
    expect(files.get("cronjobs:default/nightly")?.apiVersion).toBe("batch/v1");
    expect((await get(`${V1}/nightly`)).json.apiVersion).toBe("batch/v1");
    const list = await get(V1BETA1);
    expect([list.json.apiVersion, list.json.items[0].apiVersion]).toEqual(["batch/v1beta1", "batch/v1beta1"]);
    const { json } = await get(`${V1BETA1}/nightly`);
    const updated = await put(`${V1BETA1}/nightly`, { ...json, spec: { ...json.spec, ...suspended } });
    expect([updated.status, updated.json.apiVersion, updated.json.spec.suspend]).toEqual([200, "batch/v1beta1", true]);
  });

  test("is patched and applied", async () => {
    const { patch } = anApiServer({ alsoServed: "cronjobs" });
    const applied = await patch(`${V1BETA1}/nightly?fieldManager=test`, cronJob, "apply-patch+yaml");
    expect([applied.status, applied.json.apiVersion]).toEqual([201, "batch/v1beta1"]);
    const patched = await patch(`${V1BETA1}/nightly`, { apiVersion: "batch/v1beta1", spec: suspended });
    expect([patched.status, patched.json.spec.suspend]).toEqual([200, true]);
  });

  test("is in discovery behind the preferred version", async () => {
    const { get } = anApiServer({ alsoServed: "cronjobs" });
    const { preferredVersion, versions } = (await get("/apis/batch")).json;
    expect(preferredVersion.version).toBe("v1");
    expect(versions).toMatchObject([{ version: "v1" }, { version: "v1beta1" }]);
    expect((await get("/apis/batch/v1beta1")).json.resources[0].name).toBe("cronjobs");
    expect((await get("/apis/batch/v2/namespaces/default/cronjobs")).status).toBe(404);
  });
});

describe("a kind in an older version with other fields", () => {
  const V1 = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
  const V1BETA1 = "/apis/networking.k8s.io/v1beta1/namespaces/default/ingresses";
  const oldSpec = (servicePort: number | string) => {
    const backend = { serviceName: "web", servicePort };
    return { backend, rules: [{ host: "a.test", http: { paths: [{ path: "/", pathType: "Prefix", backend }] } }] };
  };
  const ingress = (port: number | string) => ({
    apiVersion: "networking.k8s.io/v1beta1",
    kind: "Ingress",
    metadata: { name: "web" },
    spec: oldSpec(port),
  });
  const spec = (port: object) => {
    const backend = { service: { name: "web", port } };
    const paths = [{ path: "/", pathType: "Prefix", backend }];
    return { defaultBackend: backend, rules: [{ host: "a.test", http: { paths } }] };
  };
  const WARNING =
    '299 - "networking.k8s.io/v1beta1 Ingress is deprecated in v1.19+, unavailable in v1.22+; use networking.k8s.io/v1 Ingress"';

  test("is created, read, updated and patched with these fields, each time with a warning", async () => {
    const { get, post, put, patch, files } = anApiServer({ alsoServed: "ingresses" });
    const created = await post(V1BETA1, ingress(80));
    expect([created.status, created.headers.Warning]).toEqual([201, WARNING]);
    expect(created.json).toMatchObject({ apiVersion: "networking.k8s.io/v1beta1", spec: oldSpec(80) });
    expect(files.get("ingresses:default/web")?.spec).toEqual(spec({ number: 80 }));
    const first = await get(`${V1}/web`);
    expect([first.json.spec, first.headers.Warning]).toEqual([spec({ number: 80 }), undefined]);

    const updated = await put(`${V1BETA1}/web`, { ...created.json, spec: oldSpec("http") });
    expect([updated.status, updated.json.spec]).toEqual([200, oldSpec("http")]);
    const patched = await patch(`${V1BETA1}/web`, { spec: { backend: { servicePort: 81 } } });
    expect(patched.json.spec.backend).toEqual({ serviceName: "web", servicePort: 81 });
    const list = await get(V1BETA1);
    expect([list.json.items[0].spec.backend.servicePort, list.headers.Warning]).toEqual([81, WARNING]);
    expect((await get(`${V1}/web`)).json.spec.defaultBackend.service.port).toEqual({ number: 81 });
  });

  test("is applied on the server", async () => {
    const { get, patch } = anApiServer({ alsoServed: "ingresses" });
    const applied = await patch(`${V1BETA1}/web?fieldManager=test`, ingress(80), "apply-patch+yaml");
    expect([applied.status, applied.json.spec]).toEqual([201, oldSpec(80)]);
    expect((await get(`${V1}/web`)).json.spec).toEqual(spec({ number: 80 }));
  });
});

describe("an Event of a client", () => {
  const EVENTS = `${CORE}/events`;
  const NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events";
  const involvedObject = { kind: "Pod", namespace: "default", name: "web" };
  const event = { metadata: { name: "e" }, involvedObject, reason: "Scaled", message: "up", type: "Normal", count: 2 };

  test("is the same object in both groups, each with its own fields", async () => {
    const { get, post, patch, remove, watch, files } = anApiServer();
    const eventTime = "2026-11-27T18:00:00.123456Z";
    const created = await post(EVENTS, { ...event, eventTime });
    expect([created.status, created.json.eventTime, files.size]).toEqual([201, eventTime, 0]);
    const found = (await get(`${NEW_EVENTS}?fieldSelector=regarding.name=web`)).json;
    const shown = {
      apiVersion: "events.k8s.io/v1",
      regarding: involvedObject,
      note: "up",
      deprecatedCount: 2,
      eventTime,
    };
    expect([found.kind, found.items]).toEqual(["EventList", [expect.objectContaining(shown)]]);
    const series = { count: 3, lastObservedTime: eventTime };
    const patched = await patch(`${NEW_EVENTS}/e`, { series, note: "down" }, "strategic-merge-patch+json");
    expect(patched.json).toMatchObject({ series, note: "down", reportingController: "" });
    const table = { Accept: "application/json;as=Table;g=meta.k8s.io;v=v1" };
    expect((await get(NEW_EVENTS, table)).json.rows[0].cells.slice(1, 4)).toEqual(["Normal", "Scaled", "pod/web"]);
    const line = (await watch(NEW_EVENTS)).next();
    expect(await line).toMatchObject({ type: "ADDED", object: { regarding: involvedObject } });
    expect((await get(`${EVENTS}/e`)).json).toMatchObject({ series, message: "down", involvedObject, count: 2 });
    expect((await remove(`${NEW_EVENTS}/e`)).status).toBe(200);
    expect((await get(EVENTS)).json.items).toEqual([]);
  });

  test.each([
    [
      { involvedObject: { ...involvedObject, namespace: "lab" } },
      'involvedObject.namespace: Invalid value: "lab": does not',
    ],
    [{ message: "x".repeat(9_000) }, "message: Too long: the event may have at most 8192 bytes"],
  ])("is refused: %j", async (change, message) => {
    const { json } = await anApiServer().post(EVENTS, { ...event, ...change });
    expect([json.code, json.message]).toEqual([422, expect.stringContaining(message)]);
  });
});

import { describe, expect, test } from "bun:test";
import { keyOf } from "../../src/apiserver/api-object.ts";
import { StorageProtection } from "../../src/apiserver/object-deleter.ts";
import { anApiServer } from "./support.ts";

const CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims";
const VOLUMES = "/api/v1/persistentvolumes";
const TABLE = { Accept: "application/json;as=Table;g=meta.k8s.io;v=v1" };

const claim = (finalizers: string[] = []) => ({
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata: { name: "data", finalizers },
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
});
const volume = {
  apiVersion: "v1",
  kind: "PersistentVolume",
  metadata: { name: "data" },
  spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path: "/srv/data" } },
};

/** An API with one claim and one PersistentVolume, both named "data". */
async function aProtectedApi(finalizers?: string[]) {
  const api = anApiServer();
  const { call, inUse, store, registry, writer, clock } = api;
  await call({ method: "POST", path: CLAIMS, body: claim(finalizers) });
  await call({ method: "POST", path: VOLUMES, body: volume });
  const protection = new StorageProtection({
    store,
    registry,
    writer,
    disk: { wait: async () => {} },
    clock,
    isInUse: (_, object) => inUse.has(keyOf(object)),
  });
  const statusOf = async (path: string) => (await call({ path: `${path}/data` })).status;
  const check = async () => {
    protection.check();
    await clock.advance(0);
  };
  return { ...api, protection, statusOf, check };
}

describe.each([
  { kind: "claim", path: CLAIMS, key: "default/data", finalizer: "kubernetes.io/pvc-protection" },
  { kind: "PersistentVolume", path: VOLUMES, key: "/data", finalizer: "kubernetes.io/pv-protection" },
])("a $kind that is deleted", ({ path, key, finalizer }) => {
  test("goes at once when nothing uses it", async () => {
    const { call, statusOf } = await aProtectedApi();
    const { json } = await call({ method: "DELETE", path: `${path}/data` });
    expect(json).toMatchObject({ kind: "Status", status: "Success" });
    expect(await statusOf(path)).toBe(404);
  });

  test("is Terminating while it is used, then goes with its file", async () => {
    const { call, statusOf, check, inUse, files } = await aProtectedApi();
    inUse.add(key);
    const { status, json } = await call({ method: "DELETE", path: `${path}/data` });
    expect(status).toBe(200);
    expect(files.has(`${path.split("/").at(-1)}:${key}`)).toBe(true);
    expect(json.metadata).toMatchObject({ finalizers: [finalizer], deletionGracePeriodSeconds: 0 });
    expect(json.metadata.deletionTimestamp).toMatch(/Z$/);
    const table = (await call({ path, headers: TABLE })).json;
    const column = table.columnDefinitions.findIndex(({ name }: { name: string }) => name === "Status");
    expect(table.rows[0].cells[column]).toBe("Terminating");

    await check();
    const again = await call({ method: "DELETE", path: `${path}/data` });
    expect(again.json).toEqual(json);

    inUse.clear();
    await check();
    expect(await statusOf(path)).toBe(404);
    expect(files.has(`${path.split("/").at(-1)}:${key}`)).toBe(false);
  });

  test("goes with a second deletion when the use has ended", async () => {
    const { call, statusOf, inUse } = await aProtectedApi();
    inUse.add(key);
    await call({ method: "DELETE", path: `${path}/data` });
    inUse.clear();
    await call({ method: "DELETE", path: `${path}/data` });
    expect(await statusOf(path)).toBe(404);
  });
});

test("a claim that was exported with its protection is not kept by it", async () => {
  const { call, statusOf } = await aProtectedApi(["kubernetes.io/pvc-protection"]);
  await call({ method: "DELETE", path: `${CLAIMS}/data` });
  expect(await statusOf(CLAIMS)).toBe(404);
});

test("finalizers of others keep a claim that is no longer used", async () => {
  const { call, inUse, check } = await aProtectedApi(["example.com/x"]);
  inUse.add("default/data");
  await call({ method: "DELETE", path: `${CLAIMS}/data` });
  inUse.clear();
  await check();
  expect((await call({ path: `${CLAIMS}/data` })).json.metadata.finalizers).toEqual(["example.com/x"]);
});

test("a claim of the same name cannot be created before the deleted one is gone", async () => {
  const { call, inUse } = await aProtectedApi();
  inUse.add("default/data");
  await call({ method: "DELETE", path: `${CLAIMS}/data` });
  const { status, json } = await call({ method: "POST", path: CLAIMS, body: claim() });
  expect([status, json.message]).toEqual([
    409,
    'object is being deleted: persistentvolumeclaims "data" already exists',
  ]);
});

test("a full disk only delays the end of a deletion", async () => {
  const { call, statusOf, inUse, check, fault, clock } = await aProtectedApi();
  inUse.add("default/data");
  await call({ method: "DELETE", path: `${CLAIMS}/data` });
  inUse.clear();
  fault.error = Object.assign(new Error("no space"), { code: "ENOSPC" });
  await check();
  expect(await statusOf(CLAIMS)).toBe(200);
  fault.error = undefined;
  await clock.advance(10_000);
  expect(await statusOf(CLAIMS)).toBe(404);
});

test("nothing is released after the stop", async () => {
  const { call, statusOf, inUse, check, protection } = await aProtectedApi();
  inUse.add("default/data");
  await call({ method: "DELETE", path: `${CLAIMS}/data` });
  inUse.clear();
  protection.stop();
  await check();
  expect(await statusOf(CLAIMS)).toBe(200);
});

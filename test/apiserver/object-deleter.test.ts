import { describe, expect, test } from "bun:test";
import { StorageProtection } from "../../src/apiserver/object-deleter.ts";
import { type ApiObject, keyOf } from "../../src/apiserver/object-store.ts";
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
  const { post, get, inUse, store, registry, writer, clock } = api;
  await post(CLAIMS, claim(finalizers));
  await post(VOLUMES, volume);
  const isInUse = (_: unknown, object: ApiObject) => inUse.has(keyOf(object));
  const protection = new StorageProtection({ store, registry, writer, disk: { wait: async () => {} }, clock, isInUse });
  const statusOf = async (path: string) => (await get(`${path}/data`)).status;
  const check = async () => {
    protection.check();
    await clock.advance(0);
  };
  /** Deletes an object that is in use. */
  const removeUsed = (path = CLAIMS, key = "default/data") => {
    inUse.add(key);
    return api.remove(`${path}/data`);
  };
  return { ...api, protection, statusOf, check, removeUsed };
}

describe.each([
  { kind: "claim", path: CLAIMS, key: "default/data", finalizer: "kubernetes.io/pvc-protection" },
  { kind: "PersistentVolume", path: VOLUMES, key: "/data", finalizer: "kubernetes.io/pv-protection" },
])("a $kind that is deleted", ({ path, key, finalizer }) => {
  const file = `${path.split("/").at(-1)}:${key}`;

  test("goes at once when nothing uses it", async () => {
    const { remove, statusOf } = await aProtectedApi();
    expect((await remove(`${path}/data`)).json).toMatchObject({ metadata: { name: "data", finalizers: [finalizer] } });
    expect(await statusOf(path)).toBe(404);
  });

  test("is Terminating while it is used, then goes with its file", async () => {
    const { get, remove, removeUsed, statusOf, check, inUse, files } = await aProtectedApi();
    const { status, json } = await removeUsed(path, key);
    expect([status, files.has(file)]).toEqual([200, true]);
    expect(json.metadata).toMatchObject({ finalizers: [finalizer], deletionGracePeriodSeconds: 0 });
    expect(json.metadata.deletionTimestamp).toMatch(/Z$/);
    const { columnDefinitions, rows } = (await get(path, TABLE)).json;
    const column = columnDefinitions.findIndex(({ name }: { name: string }) => name === "Status");
    expect(rows[0].cells[column]).toBe("Terminating");

    await check();
    expect((await remove(`${path}/data`)).json).toEqual(json);

    inUse.clear();
    await check();
    expect([await statusOf(path), files.has(file)]).toEqual([404, false]);
  });

  test("goes with a second deletion when the use has ended", async () => {
    const { remove, removeUsed, statusOf, inUse } = await aProtectedApi();
    await removeUsed(path, key);
    inUse.clear();
    await remove(`${path}/data`);
    expect(await statusOf(path)).toBe(404);
  });
});

test("a claim that was exported with its protection is not kept by it", async () => {
  const { remove, statusOf } = await aProtectedApi(["kubernetes.io/pvc-protection"]);
  await remove(`${CLAIMS}/data`);
  expect(await statusOf(CLAIMS)).toBe(404);
});

test("Endpoints that a client wrote go with the Service of their name, and no others", async () => {
  const { post, get, remove } = anApiServer();
  const [services, endpoints] = ["services", "endpoints"].map((it) => `/api/v1/namespaces/default/${it}`);
  for (const name of ["db", "other"]) await post(endpoints!, { metadata: { name }, subsets: [] });
  await post(services!, { metadata: { name: "db" }, spec: { ports: [{ port: 80 }] } });
  await remove(`${services}/db`);
  expect([(await get(`${endpoints}/db`)).status, (await get(`${endpoints}/other`)).status]).toEqual([404, 200]);
});

test("finalizers of others keep a claim that is no longer used", async () => {
  const { get, removeUsed, inUse, check } = await aProtectedApi(["example.com/x"]);
  await removeUsed();
  inUse.clear();
  await check();
  expect((await get(`${CLAIMS}/data`)).json.metadata.finalizers).toEqual(["example.com/x"]);
});

test("a claim of the same name cannot be created before the deleted one is gone", async () => {
  const { post, removeUsed } = await aProtectedApi();
  await removeUsed();
  const { status, json } = await post(CLAIMS, claim());
  const message = 'object is being deleted: persistentvolumeclaims "data" already exists';
  expect([status, json.message]).toEqual([409, message]);
});

test("a full disk only delays the end of a deletion", async () => {
  const { removeUsed, statusOf, inUse, check, fault, clock } = await aProtectedApi();
  await removeUsed();
  inUse.clear();
  fault.error = Object.assign(new Error("no space"), { code: "ENOSPC" });
  await check();
  expect(await statusOf(CLAIMS)).toBe(200);
  fault.error = undefined;
  await clock.advance(10_000);
  expect(await statusOf(CLAIMS)).toBe(404);
});

test("nothing is released after the stop", async () => {
  const { removeUsed, statusOf, inUse, check, protection } = await aProtectedApi();
  await removeUsed();
  inUse.clear();
  protection.stop();
  await check();
  expect(await statusOf(CLAIMS)).toBe(200);
});

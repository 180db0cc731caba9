import { expect, test } from "bun:test";
import type { EphemeralContainer } from "../../../src/base/api/pod.ts";
import { anApiServer, aPod, PODS } from "../support.ts";

const strategic = { "Content-Type": "application/strategic-merge-patch+json" };
const PATH = `${PODS}/web/ephemeralcontainers`;

/** An API server with a pod, and the ephemeral containers that its kubelet received. */
async function aDebuggable() {
  const received: EphemeralContainer[][] = [];
  const api = anApiServer();
  await api.call({ method: "POST", path: PODS, body: aPod("web") });
  api.store.subscribe(({ object }) => {
    const { ephemeralContainers } = object.spec as { ephemeralContainers?: EphemeralContainer[] };
    if (ephemeralContainers) received.push(ephemeralContainers);
  });
  const add = (container: object, headers: Record<string, string> = strategic) =>
    api.call({ method: "PATCH", path: PATH, headers, body: { spec: { ephemeralContainers: [container] } } });
  return { ...api, received, add };
}

const DEBUG = { name: "debug", image: "busybox:1.35", targetContainerName: "app" };

test("a patch of the subresource hands the kubelet every ephemeral container, with defaults", async () => {
  const { add, received, call } = await aDebuggable();
  const { status, json } = await add(DEBUG);
  expect([status, json.kind, json.spec.ephemeralContainers.length]).toEqual([200, "Pod", 1]);
  await add({ ...DEBUG, name: "second" });
  expect(
    received
      .at(-1)
      ?.map(({ name }) => name)
      .sort(),
  ).toEqual(["debug", "second"]);
  expect(received[0]).toMatchObject([{ ...DEBUG, imagePullPolicy: "IfNotPresent" }]);
  expect((await call({ path: PATH })).json.spec.ephemeralContainers).toHaveLength(2);
});

test.each([
  [
    "a name that is taken",
    { ...DEBUG, name: "app" },
    'spec.ephemeralContainers[0].name: Duplicate value: "app": occurs twice',
  ],
  [
    "a target that is not there",
    { ...DEBUG, targetContainerName: "x" },
    "spec.ephemeralContainers[0].targetContainerName: Not found",
  ],
  ["ports", { ...DEBUG, ports: [{ containerPort: 1 }] }, "spec.ephemeralContainers[0].ports: Forbidden"],
  ["an unknown field", { ...DEBUG, imgae: "x" }, 'unknown field "spec.ephemeralContainers[0].imgae"'],
])("%s is 422, and the kubelet is reported nothing", async (_, container, message) => {
  const { add, received } = await aDebuggable();
  const { status, json } = await add(container);
  expect([status, json.reason]).toEqual([422, "Invalid"]);
  expect(json.message).toContain(message);
  expect(received).toEqual([]);
});

test("those that are there can be neither changed nor removed", async () => {
  const { add, call, received } = await aDebuggable();
  await add(DEBUG);
  const changed = await add({ ...DEBUG, image: "other:1" });
  expect(changed.json.message).toContain('existing ephemeral containers "debug" may not be changed');
  const headers = { "Content-Type": "application/merge-patch+json" };
  const removed = await call({ method: "PATCH", path: PATH, headers, body: { spec: { ephemeralContainers: [] } } });
  expect(removed.json.message).toContain('existing ephemeral containers "debug" may not be removed');
  expect(received).toHaveLength(1);
});

test("a write to the pod itself neither adds nor removes them", async () => {
  const { add, call, files } = await aDebuggable();
  const early = { ...aPod("early"), spec: { ...aPod("early").spec, ephemeralContainers: [DEBUG] } };
  expect((await call({ method: "POST", path: PODS, body: early })).json.message).toContain("cannot be set on create");
  await add(DEBUG);
  const replaced = await call({ method: "PUT", path: `${PODS}/web`, body: aPod("web", { tier: "front" }) });
  expect(replaced.json.spec.ephemeralContainers).toHaveLength(1);
  expect(files.get("pods:default/web")?.metadata.labels).toEqual({ tier: "front" });
  const second = { spec: { ephemeralContainers: [{ name: "more", image: "x:1" }] } };
  const { status, json } = await call({ method: "PATCH", path: `${PODS}/web`, headers: strategic, body: second });
  expect([status, json.message]).toEqual([422, expect.stringContaining("use the subresource ephemeralcontainers")]);
});

test("clients before 1.23 exchange the kind EphemeralContainers", async () => {
  const { call, received } = await aDebuggable();
  const headers = { "User-Agent": "kubectl/v1.20.2 (linux/amd64) kubernetes/faecb19" };
  const { json } = await call({ path: PATH, headers });
  expect(json).toMatchObject({ kind: "EphemeralContainers", metadata: { name: "web" }, ephemeralContainers: [] });
  const body = { ...json, ephemeralContainers: [DEBUG] };
  const put = await call({ method: "PUT", path: PATH, headers, body });
  expect([put.json.kind, put.json.ephemeralContainers.length, received.length]).toEqual(["EphemeralContainers", 1, 1]);
  const stale = await call({ method: "PUT", path: PATH, headers, body });
  expect([stale.status, stale.json.reason]).toEqual([409, "Conflict"]);
});

import { describe, expect, test } from "bun:test";
import { aConfigMap, anApiServer, CONFIG_MAPS, DEPLOYMENT_PATH } from "./support.ts";

const APPLY = "apply-patch+yaml";
const containersOf = (...containers: object[]) => ({ template: { spec: { containers } } });

/** An API with a Deployment that managers apply. */
function anApplied() {
  const api = anApiServer();
  const apply = (manager: string, spec: object, more = "") => {
    const body = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web" }, spec };
    return api.patch(`${DEPLOYMENT_PATH}/web?fieldManager=${manager}${more}`, body, APPLY);
  };
  return { ...api, apply };
}

describe("server-side apply", () => {
  test.each([
    [
      "reads YAML as Kubernetes does",
      "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: times\ndata:\n  at: 12:30\n  day: 2020-01-01\n",
      201,
      { data: { at: "12:30", day: "2020-01-01" } },
    ],
    [
      "names the place of a syntax error",
      "apiVersion: v1\nkind: [ConfigMap\n",
      400,
      { message: expect.stringContaining("error decoding YAML: body:") },
    ],
  ])("%s", async (_, text, status, want) => {
    const found = await anApiServer().patch(`${CONFIG_MAPS}/times?fieldManager=me`, text, APPLY);
    expect(found.status).toBe(status);
    expect(found.json).toMatchObject(want);
  });

  test("creates, and says who owns what", async () => {
    const { status, json } = await anApplied().apply("me", { replicas: 2, ...containersOf({ name: "a", image: "x" }) });
    const container = { 'k:{"name":"a"}': { ".": {}, "f:image": {}, "f:name": {} } };
    expect(status).toBe(201);
    expect(json.metadata.managedFields).toEqual([
      {
        manager: "me",
        operation: "Apply",
        apiVersion: "apps/v1",
        time: expect.any(String),
        fieldsType: "FieldsV1",
        fieldsV1: { "f:spec": { "f:replicas": {}, "f:template": { "f:spec": { "f:containers": container } } } },
      },
    ]);
  });

  test("an apply that names an older version is a conflict, and changes nothing", async () => {
    const { post, patch, get } = anApiServer();
    const kind = { apiVersion: "v1", kind: "ConfigMap" };
    const { json } = await post(CONFIG_MAPS, { ...kind, metadata: { name: "c" }, data: { a: "1" } });
    const { resourceVersion } = json.metadata;
    const apply = (data: object) =>
      patch(
        `${CONFIG_MAPS}/c?fieldManager=me&force=true`,
        JSON.stringify({ ...kind, metadata: { name: "c", resourceVersion }, data }),
        APPLY,
      );
    expect((await apply({ a: "2" })).status).toBe(200);
    expect((await apply({ a: "3" })).status).toBe(409);
    expect((await get(`${CONFIG_MAPS}/c`)).json.data).toEqual({ a: "2" });
  });

  test("two at a time lose nothing", async () => {
    const { apply } = anApplied();
    await apply("first", { minReadySeconds: 1 });
    const [, { json }] = await Promise.all([apply("me", { replicas: 2 }), apply("you", { paused: true })]);
    expect(json.spec).toMatchObject({ minReadySeconds: 1, replicas: 2, paused: true });
    expect(json.metadata.managedFields.map((it: { manager: string }) => it.manager)).toEqual(["first", "me", "you"]);
  });

  test("the same again changes nothing", async () => {
    const { apply } = anApplied();
    const first = await apply("me", { replicas: 2 });
    const second = await apply("me", { replicas: 2 });
    expect([second.status, second.json.metadata.resourceVersion]).toEqual([200, first.json.metadata.resourceVersion]);
  });

  test("a field that is no longer named goes, and what another manager owns stays", async () => {
    const { apply } = anApplied();
    await apply("me", { replicas: 2, paused: true, ...containersOf({ name: "a", image: "x" }) });
    await apply("you", containersOf({ name: "b", image: "y" }));
    const { json } = await apply("me", { replicas: 2 });
    expect(json.spec).toEqual({ replicas: 2, ...containersOf({ name: "b", image: "y" }) });
  });

  test("another value of a field of another manager is a conflict, and force takes the field", async () => {
    const { apply } = anApplied();
    await apply("me", { replicas: 2 });
    const refused = await apply("you", { replicas: 3 });
    const cause = { reason: "FieldManagerConflict", message: 'conflict with "me"', field: ".spec.replicas" };
    expect([refused.status, refused.json.message, refused.json.details.causes]).toEqual([
      409,
      'Apply failed with 1 conflict: conflict with "me": .spec.replicas',
      [cause],
    ]);
    const forced = await apply("you", { replicas: 3 }, "&force=true");
    expect([forced.status, forced.json.spec.replicas]).toEqual([200, 3]);
    expect(forced.json.metadata.managedFields).toMatchObject([{ manager: "you" }]);
  });

  test("the same value is shared without a conflict", async () => {
    const { apply } = anApplied();
    await apply("me", { replicas: 2 });
    expect((await apply("you", { replicas: 2 })).status).toBe(200);
    // One of the two lets go: the field stays.
    expect((await apply("me", {})).json.spec.replicas).toBe(2);
  });

  test("a plain update takes its fields from the applier", async () => {
    const { patch } = anApiServer();
    await patch(`${CONFIG_MAPS}/c?fieldManager=me`, aConfigMap("c", { a: "1", b: "2" }), APPLY);
    const editor = { "User-Agent": "editor/1" };
    const { json } = await patch(`${CONFIG_MAPS}/c`, { data: { a: "9" } }, "merge-patch+json", editor);
    expect(json.metadata.managedFields).toMatchObject([
      { manager: "me", fieldsV1: { "f:data": { "f:b": {} } } },
      { manager: "editor", fieldsV1: { "f:data": { "f:a": {} } } },
    ]);
    const [me, you] = json.metadata.managedFields;
    expect([Object.keys(me.fieldsV1["f:data"]), Object.keys(you.fieldsV1["f:data"])]).toEqual([["f:b"], ["f:a"]]);
  });

  test("without a fieldManager it is refused", async () => {
    const { status, json } = await anApiServer().patch(`${DEPLOYMENT_PATH}/web`, {}, APPLY);
    expect([status, json.reason]).toEqual([400, "BadRequest"]);
  });
});

test.each([
  ["kubectl", "2", 200, undefined],
  ["other", "2", 409, 'conflict with "unknown" using v1: .data.a'],
  ["kubectl", "3", 409, 'conflict with "unknown" using v1: .data.a'],
])("%s applies on the server what client-side apply has set, data is %s: %i", async (manager, now, status, message) => {
  const { post, patch } = anApiServer();
  const applied = { ...aConfigMap("c"), data: { a: "2" } };
  const annotations = { "kubectl.kubernetes.io/last-applied-configuration": JSON.stringify(applied) };
  await post(CONFIG_MAPS, { ...applied, metadata: { name: "c", annotations }, data: { a: now } });
  const { json, ...found } = await patch(
    `${CONFIG_MAPS}/c?fieldManager=${manager}`,
    aConfigMap("c", { a: "4" }),
    APPLY,
  );
  expect(found.status).toBe(status);
  if (message === undefined) expect(json.data).toEqual({ a: "4" });
  else expect(json.message).toContain(message);
});

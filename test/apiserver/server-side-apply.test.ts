import { describe, expect, test } from "bun:test";
import { aConfigMap, anApiServer, CONFIG_MAPS, DEPLOYMENT_PATH } from "./support.ts";

const deployment = (spec: object) => ({ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web" }, spec });
const apply = (manager: string, body: unknown, force = false) => ({
  method: "PATCH",
  path: `${DEPLOYMENT_PATH}/web?fieldManager=${manager}${force ? "&force=true" : ""}`,
  body: JSON.stringify(body),
  headers: { "Content-Type": "application/apply-patch+yaml" },
});

const template = (containers: object[]) => ({ template: { spec: { containers } } });

describe("server-side apply", () => {
  test("reads YAML as Kubernetes does", async () => {
    const { call } = anApiServer();
    const { status, json } = await call({
      method: "PATCH",
      path: `${CONFIG_MAPS}/times?fieldManager=me`,
      body: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: times\ndata:\n  at: 12:30\n  day: 2020-01-01\n",
      headers: { "Content-Type": "application/apply-patch+yaml" },
    });
    expect([status, json.data]).toEqual([201, { at: "12:30", day: "2020-01-01" }]);
  });

  test("names the place of a syntax error", async () => {
    const { call } = anApiServer();
    const { status, json } = await call({
      method: "PATCH",
      path: `${CONFIG_MAPS}/times?fieldManager=me`,
      body: "apiVersion: v1\nkind: [ConfigMap\n",
      headers: { "Content-Type": "application/apply-patch+yaml" },
    });
    expect([status, json.message]).toEqual([400, expect.stringContaining("error decoding YAML: body:")]);
  });

  test("creates, and says who owns what", async () => {
    const { call } = anApiServer();
    const { status, json } = await call(
      apply("me", deployment({ replicas: 2, ...template([{ name: "a", image: "x" }]) })),
    );
    expect(status).toBe(201);
    expect(json.metadata.managedFields).toEqual([
      {
        manager: "me",
        operation: "Apply",
        apiVersion: "apps/v1",
        time: expect.any(String),
        fieldsType: "FieldsV1",
        fieldsV1: {
          "f:spec": {
            "f:replicas": {},
            "f:template": {
              "f:spec": { "f:containers": { 'k:{"name":"a"}': { ".": {}, "f:image": {}, "f:name": {} } } },
            },
          },
        },
      },
    ]);
  });

  test("the same again changes nothing", async () => {
    const { call } = anApiServer();
    const body = deployment({ replicas: 2 });
    const first = await call(apply("me", body));
    const second = await call(apply("me", body));
    expect(second.status).toBe(200);
    expect(second.json.metadata.resourceVersion).toBe(first.json.metadata.resourceVersion);
  });

  test("a field that is no longer named goes, and what another manager owns stays", async () => {
    const { call } = anApiServer();
    await call(apply("me", deployment({ replicas: 2, paused: true, ...template([{ name: "a", image: "x" }]) })));
    await call(apply("you", deployment(template([{ name: "b", image: "y" }]))));
    const { json } = await call(apply("me", deployment({ replicas: 2 })));
    expect(json.spec).toEqual({ replicas: 2, template: { spec: { containers: [{ name: "b", image: "y" }] } } });
  });

  test("another value of a field of another manager is a conflict, and force takes the field", async () => {
    const { call } = anApiServer();
    await call(apply("me", deployment({ replicas: 2 })));
    const refused = await call(apply("you", deployment({ replicas: 3 })));
    expect(refused.status).toBe(409);
    expect(refused.json.message).toBe('Apply failed with 1 conflict: conflict with "me": .spec.replicas');
    expect(refused.json.details.causes).toEqual([
      { reason: "FieldManagerConflict", message: 'conflict with "me"', field: ".spec.replicas" },
    ]);
    const forced = await call(apply("you", deployment({ replicas: 3 }), true));
    expect(forced.status).toBe(200);
    expect(forced.json.spec.replicas).toBe(3);
    expect(forced.json.metadata.managedFields.map(({ manager }: { manager: string }) => manager)).toEqual(["you"]);
  });

  test("the same value is shared without a conflict", async () => {
    const { call } = anApiServer();
    await call(apply("me", deployment({ replicas: 2 })));
    expect((await call(apply("you", deployment({ replicas: 2 })))).status).toBe(200);
    // One of the two lets go: the field stays.
    const { json } = await call(apply("me", deployment({})));
    expect(json.spec.replicas).toBe(2);
  });

  test("a plain update takes its fields from the applier", async () => {
    const { call } = anApiServer();
    await call({
      method: "PATCH",
      path: `${CONFIG_MAPS}/c?fieldManager=me`,
      body: JSON.stringify(aConfigMap("c", { a: "1", b: "2" })),
      headers: { "Content-Type": "application/apply-patch+yaml" },
    });
    const { json } = await call({
      method: "PATCH",
      path: `${CONFIG_MAPS}/c`,
      body: { data: { a: "9" } },
      headers: { "Content-Type": "application/merge-patch+json", "User-Agent": "editor/1" },
    });
    const owned = json.metadata.managedFields.map(({ manager, fieldsV1 }: { manager: string; fieldsV1: object }) => [
      manager,
      fieldsV1,
    ]);
    expect(owned).toEqual([
      ["me", { "f:data": { "f:b": {} } }],
      ["editor", { "f:data": { "f:a": {} } }],
    ]);
  });

  test("without a fieldManager it is refused", async () => {
    const { call } = anApiServer();
    const { status, json } = await call({ ...apply("", {}), path: `${DEPLOYMENT_PATH}/web` });
    expect([status, json.reason]).toEqual([400, "BadRequest"]);
  });

  test("YAML is taken", async () => {
    const { call } = anApiServer();
    const { json } = await call({
      ...apply("me", ""),
      body: "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 4\n",
    });
    expect(json.spec.replicas).toBe(4);
  });
});

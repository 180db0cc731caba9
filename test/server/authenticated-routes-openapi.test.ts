import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { CADVISOR_RESOURCES, routeCadvisor } from "../../src/server/cadvisor-routes.ts";
import { CONTAINER_PATHS } from "../../src/server/container-routes.ts";
import { READ_ONLY_PATHS, routeReadOnly } from "../../src/server/read-only-routes.ts";
import type { HttpResponse } from "../../src/server/request-handler.ts";
import { layTree } from "../stats/lay-tree.ts";
import { aPod } from "../support/builders.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { anAuthenticatedWorld, aRequest, aServerWorld, localLogDirectory } from "./a-context.ts";

interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  required?: string[];
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  items?: Schema;
}
interface Response {
  $ref?: string;
  content?: Record<string, { schema?: Schema }>;
}
interface Parameter {
  $ref?: string;
  name: string;
  in: string;
  example?: string;
}
interface Operation {
  operationId: string;
  parameters?: Parameter[];
  responses: Record<string, Response>;
}
interface PathItem {
  servers?: { url: string }[];
  get?: Operation;
  post?: Operation;
}

const text = readFileSync(join(import.meta.dir, "..", "..", "docs", "openapi.yaml"), "utf8");
const document = parse(text) as { paths: Record<string, PathItem> };
const temp = tempDirs();
const tree = layTree("cgroup-v2", temp());

function resolve<T extends { $ref?: string }>(it: T): T {
  if (!it.$ref) return it;
  let found: unknown = document;
  for (const part of it.$ref.slice(2).split("/")) found = (found as Record<string, unknown>)[part];
  if (!found) throw new Error(`${it.$ref} leads nowhere`);
  return found as T;
}

/** Where a value is not as its schema says. */
function faults(value: unknown, reference: Schema, path = ""): string[] {
  const schema = resolve(reference);
  const types = schema.type === undefined ? [] : [schema.type].flat();
  if (types.length > 0 && !types.some((type) => isOfType(value, type))) return [`${path} is no ${types.join(" or ")}`];
  if (schema.enum && !schema.enum.includes(value)) return [`${path} is none of ${schema.enum}`];
  if (Array.isArray(value))
    return value.flatMap((element, i) => (schema.items ? faults(element, schema.items, `${path}[${i}]`) : []));
  if (value === null || typeof value !== "object") return [];
  const missing = (schema.required ?? [])
    .filter((name) => !(name in value))
    .map((name) => `${path}.${name} is missing`);
  const members = Object.entries(value).flatMap(([name, member]) => {
    const known = schema.properties?.[name];
    if (known) return faults(member, known, `${path}.${name}`);
    if (schema.additionalProperties === false) return [`${path}.${name} is not in the document`];
    return typeof schema.additionalProperties === "object"
      ? faults(member, schema.additionalProperties, `${path}.${name}`)
      : [];
  });
  return [...missing, ...members];
}

function isOfType(value: unknown, type: string): boolean {
  if (type === "array") return Array.isArray(value);
  if (type === "null") return value === null;
  if (type === "integer") return Number.isInteger(value);
  if (type === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  return typeof value === type;
}

const isAuthenticated = (item: PathItem) => item.servers?.[0]?.url.endsWith(":10250") ?? false;
const isCadvisors = (item: PathItem) => item.servers?.[0]?.url.endsWith(":4194") ?? false;

/** The path with its parameters' examples. */
function fill(path: string, { parameters = [] }: Operation): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const parameter = parameters.map(resolve).find((candidate) => candidate.name === name);
    if (parameter?.example === undefined) throw new Error(`${path}: {${name}} has no example`);
    return parameter.example;
  });
}

async function ask(path: string, item: PathItem, options: Parameters<typeof aRequest>[1] = {}): Promise<HttpResponse> {
  const world = aServerWorld(tree);
  world.view.show(aPod());
  const route = isCadvisors(item) ? routeCadvisor : routeReadOnly;
  const answer = route(aRequest(path, options), world.context);
  await world.clock.advance(300);
  return await answer;
}

const bodyOf = ({ body }: HttpResponse) => new globalThis.Response(body).text();

const entries = Object.entries(document.paths);

/** A request with the examples of its query, as a client with a certificate sends it. */
async function askAuthenticated(path: string, operation: Operation, method: string, upgrade = "") {
  const query = (operation.parameters ?? []).map(resolve).filter((it) => it.in === "query" && it.example !== undefined);
  const filled = `${fill(path, operation)}?${query.map(({ name, example }) => `${name}=${example}`).join("&")}`;
  const directory = temp();
  writeFileSync(join(directory, "syslog"), "a line\n");
  const { view, ask: send } = anAuthenticatedWorld(tree, { logDirectory: localLogDirectory(directory) });
  const pod = aPod();
  const state = { name: "app", state: { running: {} }, lastState: {}, containerID: "docker://id-app" };
  view.show({ ...pod, status: { podIP: "192.0.2.9", containerStatuses: [state] } } as unknown as typeof pod);
  view.facts = view.facts.map((facts) => ({ ...facts, uid: pod.metadata.uid ?? "" }));
  const answer = await send(filled, { method, upgrade });
  if ("takeOver" in answer) throw new Error("an upgrade to SPDY");
  if ("chunks" in answer) for await (const _ of answer.chunks);
  return answer;
}

describe("docs/openapi.yaml", () => {
  test.each(entries.filter(([, item]) => isAuthenticated(item)))("%s answers as it says", async (path, item) => {
    const method = item.post ? "POST" : "GET";
    const operation = (item.post ?? item.get)!;
    const isUpgrade = "101" in operation.responses;
    const answer = await askAuthenticated(path, operation, method, isUpgrade ? "websocket" : "");
    if ("run" in answer) expect(isUpgrade).toBe(true);
    else {
      const content = resolve(operation.responses[answer.status]!).content!;
      expect(Object.keys(content)).toContain(answer.headers["Content-Type"]!.split(";", 1)[0]!);
      expect(answer.status).toBe(200);
    }
    const refused = await askAuthenticated(path, operation, "DELETE");
    expect("run" in refused ? 101 : refused.status).toBe(405);
  });

  test.each(entries.filter(([, item]) => !isAuthenticated(item)))("%s answers as it says", async (path, item) => {
    const get = item.get!;
    const filled = fill(path, get);
    const answer = await ask(filled, item);
    expect(answer.status).toBe(200);
    const content = resolve(get.responses["200"]!).content!;
    const mediaType = answer.headers["Content-Type"]!.split(";", 1)[0]!;
    expect(Object.keys(content)).toContain(mediaType);
    if (mediaType === "application/json") {
      expect(faults(JSON.parse(await bodyOf(answer)), content[mediaType]!.schema!)).toEqual([]);
    }
    expect((await ask(filled, item, { method: "HEAD" })).status).toBe(200);
    expect((await ask(filled, item, { method: "DELETE" })).status).toBe(405);
    if (item.post) expect((await ask(filled, item, { method: "POST", body: "{}" })).status).toBe(200);
    const json = "406" in get.responses;
    expect((await ask(filled, item, { headers: { Accept: "text/css" } })).status).toBe(json ? 406 : 200);
  });

  test("knows every route of all ports", () => {
    const routes = [...READ_ONLY_PATHS, ...CONTAINER_PATHS];
    const ofCadvisor = CADVISOR_RESOURCES["v1.3"]!.map((resource) => `/api/v1.3/${resource}`);
    const documented = Object.keys(document.paths);
    expect(documented).toEqual(expect.arrayContaining(routes));
    expect(documented.map((path) => path.split("/{")[0])).toEqual(expect.arrayContaining(ofCadvisor));
    for (const path of [...CONTAINER_PATHS, "/logs/{path}"]) expect(isAuthenticated(document.paths[path]!)).toBe(true);
  });

  test("names each operation once", () => {
    const names = Object.values(document.paths).flatMap(({ get, post }) =>
      [get, post].flatMap((it) => it?.operationId ?? []),
    );
    expect(new Set(names).size).toBe(names.length);
  });

  test("has what its references name", () => {
    for (const [, reference] of text.matchAll(/\$ref: "([^"]+)"/g)) expect(resolve({ $ref: reference! })).toBeDefined();
  });

  test("is what docs/endpoints.md lists too", () => {
    const page = readFileSync(join(import.meta.dir, "..", "..", "docs", "endpoints.md"), "utf8");
    for (const path of Object.keys(document.paths)) expect(page).toContain(`\`${path}\``);
  });
});

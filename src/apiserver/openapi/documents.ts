import { hex32, isRecord } from "../../base/text/json.ts";
import { protobufMessage, protobufText } from "../../base/text/protobuf.ts";
import { type ApiRequest, type ApiResponse, json } from "../api-request.ts";
import type { ServedResources } from "../discovery.ts";
import { apiVersionOf, type ResourceDefinition } from "../resource-definition.ts";
import { type Descriptions, definitionName, openApiDefinitions, type Schema } from "./definitions.ts";
import descriptions from "./descriptions.json" with { type: "json" };
import observed from "./observed.json" with { type: "json" };

/** The fields of an operation that clients read. */
interface Operation {
  operationId: string;
  description: string;
  /** Names of the query parameters, all of them strings. */
  parameters: readonly string[];
  action: string;
  groupVersionKind: { group: string; version: string; kind: string };
}

type Method = "get" | "put" | "post" | "delete" | "patch";

interface ApiPath {
  path: string;
  operations: Readonly<Partial<Record<Method, Operation>>>;
}

const WRITE_PARAMETERS = ["dryRun", "fieldManager", "fieldValidation"];
const LIST_PARAMETERS = [
  "allowWatchBookmarks",
  "continue",
  "fieldSelector",
  "labelSelector",
  "limit",
  "resourceVersion",
  "timeoutSeconds",
  "watch",
];

/** Paths of a kind: its collection and one object. */
function pathsOf(definition: ResourceDefinition): ApiPath[] {
  const { group, version, kind, plural, namespaced, verbs } = definition;
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  const collection = `${root}/${namespaced ? "namespaces/{namespace}/" : ""}${plural}`;
  const operation = (action: string, parameters: readonly string[]): Operation => ({
    operationId: `${action}${group.replace(/\W.*/, "")}${version}${kind}`,
    description: `${action} ${kind}`,
    parameters,
    action,
    groupVersionKind: { group, version, kind },
  });
  const may = (verb: string) => (verbs as readonly string[]).includes(verb);
  return [
    {
      path: collection,
      operations: {
        ...(may("list") && { get: operation("list", LIST_PARAMETERS) }),
        ...(may("create") && { post: operation("create", WRITE_PARAMETERS) }),
      },
    },
    {
      path: `${collection}/{name}`,
      operations: {
        ...(may("get") && { get: operation("get", []) }),
        ...(may("update") && { put: operation("update", WRITE_PARAMETERS) }),
        ...(may("patch") && { patch: operation("patch", [...WRITE_PARAMETERS, "force"]) }),
        ...(may("delete") && { delete: operation("delete", ["dryRun", "gracePeriodSeconds", "propagationPolicy"]) }),
      },
    },
  ];
}

const INFO = { title: "Kubernetes", version: "v1.34.0" };

/** @param stringType how a version of OpenAPI writes the type of a parameter */
const pathsObject = (paths: readonly ApiPath[], stringType: object): object =>
  Object.fromEntries(
    paths.map(({ path, operations }) => [
      path,
      Object.fromEntries(
        Object.entries(operations).map(([method, { parameters, action, groupVersionKind, ...operation }]) => [
          method,
          {
            ...operation,
            parameters: parameters.map((name) => ({ name, in: "query", ...stringType })),
            responses: { "200": { description: "OK" } },
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": groupVersionKind,
          },
        ]),
      ),
    ]),
  );

/** `/openapi/v3/<group version>`. */
export function openApiV3(
  group: string,
  version: string,
  kinds: readonly ResourceDefinition[],
  descriptions: Descriptions,
): object | undefined {
  const own = kinds.filter((kind) => kind.group === group && kind.version === version);
  if (own.length === 0) return undefined;
  // Only here: clients that read version 2 refuse fields of a status that are newer than these types.
  const all = openApiDefinitions(own, descriptions, observed);
  const used = reachable(
    own.flatMap((kind) => [definitionName(kind), `${definitionName(kind)}List`]),
    all,
  );
  const schemas = Object.fromEntries(used.map((name) => [name, withRefs(all[name]!, "#/components/schemas/", true)]));
  const paths = pathsObject(own.flatMap(pathsOf), { schema: { type: "string", uniqueItems: true } });
  return { openapi: "3.0.0", info: INFO, paths, components: { schemas } };
}

/** `/openapi/v3`: where the documents of each group are. @param hash of the program: clients keep documents by it */
function openApiV3Index(kinds: readonly ResourceDefinition[], hash: string): object {
  const groupVersions = new Set(
    kinds.map((kind) => (kind.group === "" ? `api/${kind.version}` : `apis/${apiVersionOf(kind)}`)),
  );
  const paths = [...groupVersions].map((path) => [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }]);
  return { paths: Object.fromEntries(paths) };
}

/** Everything `/openapi/v2` says; references begin with `#/definitions/`. */
interface OpenApiV2 {
  info: typeof INFO;
  paths: readonly ApiPath[];
  definitions: Readonly<Record<string, Schema>>;
}

export function openApiV2(kinds: readonly ResourceDefinition[], descriptions: Descriptions): OpenApiV2 {
  const all = openApiDefinitions(kinds, descriptions);
  const definitions = Object.entries(all).map(([name, schema]) => [name, withRefs(schema, "#/definitions/", false)]);
  return { info: INFO, paths: kinds.flatMap(pathsOf), definitions: Object.fromEntries(definitions) };
}

/** `/openapi/v2` as JSON. */
const openApiV2Json = ({ info, paths, definitions }: OpenApiV2): object => ({
  swagger: "2.0",
  info,
  paths: pathsObject(paths, { type: "string", uniqueItems: true }),
  definitions,
});

/** @param wraps whether to wrap references: OpenAPI 3.0 ignores the siblings of a reference */
function withRefs(schema: Schema, prefix: string, wraps: boolean): Schema {
  const visit = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(visit);
    if (typeof value !== "object" || value === null) return value;
    const { $ref, ...rest } = value as Schema;
    if (typeof $ref === "string") {
      const reference = { $ref: `${prefix}${$ref}` };
      return wraps ? { allOf: [reference], ...rest } : { ...rest, ...reference };
    }
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, visit(member)]));
  };
  return visit(schema) as Schema;
}

function reachable(roots: readonly string[], all: Readonly<Record<string, Schema>>): string[] {
  const found = new Set<string>();
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    const { $ref } = value as Schema;
    if (typeof $ref === "string") add($ref);
    for (const member of Object.values(value)) visit(member);
  };
  const add = (name: string): void => {
    if (found.has(name) || !all[name]) return;
    found.add(name);
    visit(all[name]);
  };
  for (const root of roots) add(root);
  return [...found].sort();
}

/** With a dot: Go cannot parse the `@` that clients ask with. */
const PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/** `/openapi/v2` and `/openapi/v3`. @returns undefined for other paths */
export function openApiResponse(request: ApiRequest, { definitions }: ServedResources): ApiResponse | undefined {
  const path = request.path.replace(/\/$/, "");
  if (path === "/openapi/v2") {
    const document = openApiV2(definitions, descriptions);
    if (request.header("Accept")?.includes("protobuf")) {
      return { status: 200, headers: { "Content-Type": PROTOBUF }, body: encodeOpenApiV2(document) };
    }
    return json(200, openApiV2Json(document));
  }
  if (path === "/openapi/v3") return json(200, openApiV3Index(definitions, hashOf(definitions)));
  const [, group = "", version] = /^\/openapi\/v3\/(?:api|apis\/([^/]+))\/([^/]+)$/.exec(path) ?? [];
  const found = version === undefined ? undefined : openApiV3(group, version, definitions, descriptions);
  return found && json(200, found);
}

const hashOf = (definitions: ServedResources["definitions"]) =>
  hex32(JSON.stringify([definitions, descriptions, observed, Bun.version])).toUpperCase();

/**
 * `/openapi/v2` in protobuf, which is all that kubectl before 1.27 reads. Field numbers: gnostic's OpenAPIv2.proto.
 */
export function encodeOpenApiV2({ info, paths, definitions }: OpenApiV2): Uint8Array {
  return Buffer.concat([
    protobufText(1, "2.0"),
    protobufMessage(2, [protobufText(1, info.title), protobufText(2, info.version)]),
    protobufMessage(
      8,
      paths.map(({ path, operations }) =>
        named(
          2,
          path,
          Object.entries(operations).map(([method, operation]) =>
            protobufMessage(METHODS[method as Method], encodeOperation(operation)),
          ),
        ),
      ),
    ),
    protobufMessage(
      9,
      Object.entries(definitions).map(([name, schema]) => named(1, name, encodeSchema(schema))),
    ),
  ]);
}

const METHODS: Readonly<Record<Method, number>> = { get: 2, put: 3, post: 4, delete: 5, patch: 8 };

function encodeOperation({ operationId, description, parameters, action, groupVersionKind }: Operation): Buffer[] {
  return [
    protobufText(3, description),
    protobufText(5, operationId),
    ...parameters.map((name) =>
      protobufMessage(8, [
        protobufMessage(1, [
          protobufMessage(2, [
            protobufMessage(3, [protobufText(2, "query"), protobufText(4, name), protobufText(6, "string")]),
          ]),
        ]),
      ]),
    ),
    protobufMessage(9, [
      protobufMessage(1, [protobufText(1, "200"), protobufMessage(2, [protobufMessage(1, [protobufText(1, "OK")])])]),
    ]),
    extension(13, "x-kubernetes-action", action),
    extension(13, "x-kubernetes-group-version-kind", groupVersionKind),
  ];
}

function encodeSchema(schema: Schema): Buffer[] {
  const { $ref, format, description, required, enum: values, additionalProperties, type, items, properties } = schema;
  const extensions = Object.entries(schema)
    .filter(([name]) => name.startsWith("x-"))
    .map(([name, value]) => extension(31, name, value));
  if (typeof $ref === "string") {
    return [
      protobufText(1, $ref),
      ...(typeof description === "string" ? [protobufText(4, description)] : []),
      ...extensions,
    ];
  }
  const parts: Buffer[] = [];
  if (typeof format === "string") parts.push(protobufText(2, format));
  if (typeof description === "string") parts.push(protobufText(4, description));
  if (Array.isArray(required)) parts.push(...required.map((name) => protobufText(19, String(name))));
  if (Array.isArray(values))
    parts.push(...values.map((value) => protobufMessage(20, [protobufText(2, JSON.stringify(value))])));
  if (isRecord(additionalProperties))
    parts.push(protobufMessage(21, [protobufMessage(1, encodeSchema(additionalProperties))]));
  if (typeof type === "string") parts.push(protobufMessage(22, [protobufText(1, type)]));
  if (isRecord(items)) parts.push(protobufMessage(23, [protobufMessage(1, encodeSchema(items))]));
  if (isRecord(properties)) {
    const members = Object.entries(properties).map(([name, member]) => named(1, name, encodeSchema(member as Schema)));
    parts.push(protobufMessage(25, members));
  }
  return [...parts, ...extensions];
}

/** A NamedAny; JSON is YAML. */
const extension = (field: number, name: string, value: unknown) =>
  named(field, name, [protobufText(2, JSON.stringify(value))]);

/** A pair of name and value, as gnostic writes maps. */
const named = (field: number, name: string, value: readonly Buffer[]) =>
  protobufMessage(field, [protobufText(1, name), protobufMessage(2, value)]);

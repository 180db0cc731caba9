import { apiVersionOf, type ResourceDefinition } from "../resource-definition.ts";
import { type Descriptions, definitionName, openApiDefinitions, type Schema } from "./definitions.ts";

/** One operation of a path, with the fields that clients read. */
export interface Operation {
  operationId: string;
  description: string;
  /** Names of the query parameters, all of them strings. */
  parameters: readonly string[];
  action: string;
  groupVersionKind: { group: string; version: string; kind: string };
}

interface ApiPath {
  path: string;
  operations: Readonly<Partial<Record<"get" | "post" | "put" | "patch" | "delete", Operation>>>;
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

const v3Operation = ({ operationId, description, parameters, action, groupVersionKind }: Operation) => ({
  operationId,
  description,
  parameters: parameters.map((name) => ({ name, in: "query", schema: { type: "string", uniqueItems: true } })),
  responses: { "200": { description: "OK" } },
  "x-kubernetes-action": action,
  "x-kubernetes-group-version-kind": groupVersionKind,
});

/** `/openapi/v3/<group version>`. */
export function openApiV3(
  group: string,
  version: string,
  kinds: readonly ResourceDefinition[],
  descriptions: Descriptions,
): object | undefined {
  const own = kinds.filter((kind) => kind.group === group && kind.version === version);
  if (own.length === 0) return undefined;
  const all = openApiDefinitions(own, descriptions);
  const used = reachable(
    own.flatMap((kind) => [definitionName(kind), `${definitionName(kind)}List`]),
    all,
  );
  const schemas = Object.fromEntries(used.map((name) => [name, withRefs(all[name]!, "#/components/schemas/", true)]));
  const paths = own
    .flatMap(pathsOf)
    .map(({ path, operations }) => [
      path,
      Object.fromEntries(Object.entries(operations).map(([method, operation]) => [method, v3Operation(operation)])),
    ]);
  return { openapi: "3.0.0", info: INFO, paths: Object.fromEntries(paths), components: { schemas } };
}

/** `/openapi/v3`: where the documents of each group are. @param hash of the program: clients keep documents by it */
export function openApiV3Index(kinds: readonly ResourceDefinition[], hash: string): object {
  const groupVersions = new Set(
    kinds.map((kind) => (kind.group === "" ? `api/${kind.version}` : `apis/${apiVersionOf(kind)}`)),
  );
  const paths = [...groupVersions].map((path) => [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }]);
  return { paths: Object.fromEntries(paths) };
}

/** Everything `/openapi/v2` says; references begin with `#/definitions/`. */
export interface OpenApiV2 {
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
export function openApiV2Json({ info, paths, definitions }: OpenApiV2): object {
  const operationOf = ({ operationId, description, parameters, action, groupVersionKind }: Operation) => ({
    operationId,
    description,
    parameters: parameters.map((name) => ({ name, in: "query", type: "string", uniqueItems: true })),
    responses: { "200": { description: "OK" } },
    "x-kubernetes-action": action,
    "x-kubernetes-group-version-kind": groupVersionKind,
  });
  return {
    swagger: "2.0",
    info,
    paths: Object.fromEntries(
      paths.map(({ path, operations }) => [
        path,
        Object.fromEntries(Object.entries(operations).map(([method, operation]) => [method, operationOf(operation)])),
      ]),
    ),
    definitions,
  };
}

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

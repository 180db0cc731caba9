import { type ConversionConfig, toJsonSchema } from "@valibot/to-json-schema";
import * as configObjects from "../../base/api/config-objects.ts";
import * as container from "../../base/api/container.ts";
import { EndpointSliceSchema, EndpointsSchema } from "../../base/api/endpoints.ts";
import * as ingress from "../../base/api/ingress.ts";
import * as job from "../../base/api/job.ts";
import * as meta from "../../base/api/meta.ts";
import * as persistentVolume from "../../base/api/persistent-volume.ts";
import * as pod from "../../base/api/pod.ts";
import * as service from "../../base/api/service.ts";
import * as volume from "../../base/api/volume.ts";
import * as workload from "../../base/api/workload.ts";
import { isRecord } from "../../base/text/json.ts";
import { isRetainingMap, listMergeAt } from "../managed-fields.ts";
import type { Schema as KindSchema, ResourceDefinition } from "../resource-definition.ts";

/** A JSON schema as OpenAPI has it; `$ref` names a definition, without its prefix. */
export type Schema = { [keyword: string]: unknown };

const META = "io.k8s.apimachinery.pkg.apis.meta.v1";
const CORE = {
  ...service,
  ...persistentVolume,
  ...configObjects,
  ...container,
  ...pod,
  ...volume,
  EndpointsSchema,
};
const PACKAGES: readonly (readonly [prefix: string, module: Readonly<Record<string, unknown>>])[] = [
  [META, meta],
  ["io.k8s.api.apps.v1", workload],
  ["io.k8s.api.batch.v1", job],
  ["io.k8s.api.discovery.v1", { EndpointSliceSchema }],
  ["io.k8s.api.networking.v1", ingress],
  ["io.k8s.api.core.v1", CORE],
];

/** Schemas whose upstream package is not that of their module here. */
const CORE_IN_OTHERS =
  /^(LocalObjectReference|Typed.*Reference|PodTemplateSpec|ReplicationController|PersistentVolumeClaim)/;

/** Schemas of the manifests by their upstream names: those that base/api exports, so that `kubectl explain` names each type. */
function namedSchemas(): Map<string, KindSchema> {
  const named = new Map<string, KindSchema>();
  for (const [prefix, module] of PACKAGES) {
    for (const [exported, schema] of Object.entries(module)) {
      const [, name = ""] = /^(\w+)Schema$/.exec(exported) ?? [];
      if (name === "" || !isRecord(schema) || schema.type !== "object") continue;
      const own = CORE_IN_OTHERS.test(name) ? "io.k8s.api.core.v1" : prefix;
      named.set(`${own}.${name}`, schema as unknown as KindSchema);
    }
  }
  return named;
}

/** Name of a kind's definition: `io.k8s.api.core.v1.Pod`. */
export const definitionName = ({
  group,
  version,
  kind,
}: Pick<ResourceDefinition, "group" | "version" | "kind">): string =>
  `io.k8s.api.${group === "" ? "core" : group.split(".")[0]}.${version}.${kind}`;

/** Texts by definition, then by field; those of the definition itself by "". */
export type Descriptions = Readonly<Record<string, Readonly<Record<string, string>>>>;

/**
 * Every definition: the schemas manifests are read with, and the kinds that are served.
 * @param observed types of statuses, and of kinds that no client writes. Absent: they may have any field
 */
export function openApiDefinitions(
  kinds: readonly ResourceDefinition[],
  descriptions: Descriptions,
  observed: Readonly<Record<string, Schema>> = {},
): Record<string, Schema> {
  const named = namedSchemas();
  for (const kind of kinds) if (kind.schema) named.set(definitionName(kind), kind.schema);
  const config = {
    errorMode: "ignore",
    typeMode: "input",
    definitions: Object.fromEntries(named),
  } as unknown as ConversionConfig;
  const definitions: Record<string, Schema> = { ...observed };
  for (const [name, schema] of named) {
    const converted = toJsonSchema(schema as never, config) as Schema & {
      $defs?: Record<string, Schema>;
      $ref?: string;
    };
    // A named schema is a reference to itself.
    definitions[name] = toOpenApi(converted.$defs?.[name] ?? converted, []);
  }
  for (const kind of kinds) {
    const name = definitionName(kind);
    // Versions of older clients without a schema of their own have the same fields.
    const schema = definitions[name] ?? definitions[definitionName({ ...kind, version: "v1" })] ?? BARE_KIND;
    const status = observed[`${name}Status`] && { status: { $ref: `${name}Status` } };
    definitions[name] = withTypeFields(
      { ...schema, properties: { ...(schema.properties as object), ...status } },
      kind,
    );
    definitions[`${name}List`] = listOf(name, kind);
  }
  definitions[`${META}.ListMeta`] ??= {
    type: "object",
    properties: { resourceVersion: { type: "string" }, continue: { type: "string" } },
  };
  for (const [name, texts] of Object.entries(descriptions)) describe(definitions[name], texts);
  return definitions;
}

/** @param texts by field; those of parts of a field have its path: `spec.schedule` */
function describe(schema: Schema | undefined, texts: Readonly<Record<string, string>>): void {
  if (!schema) return;
  for (const [path, description] of Object.entries(texts)) {
    if (path === "") schema.description = description;
    const [field = "", ...parents] = path.split(".").reverse();
    let part: Schema | undefined = schema;
    for (const parent of parents.reverse()) {
      const member: Schema | undefined = (part?.properties as Record<string, Schema> | undefined)?.[parent];
      part = (member?.items as Schema | undefined) ?? member;
    }
    const properties = (part?.properties ?? {}) as Record<string, Schema>;
    // A reference has no siblings in version 2.
    if (properties[field]) properties[field] = { ...properties[field], description };
  }
}

/** Kinds without a schema here: any object. */
const BARE_KIND: Schema = {
  type: "object",
  properties: {
    metadata: { $ref: `${META}.ObjectMeta` },
    spec: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
    status: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
  },
};

const TYPE_FIELDS = { apiVersion: { type: "string" }, kind: { type: "string" } };

function withTypeFields(schema: Schema, kind: ResourceDefinition): Schema {
  return {
    ...schema,
    properties: { ...TYPE_FIELDS, ...(schema.properties as object) },
    "x-kubernetes-group-version-kind": [{ group: kind.group, kind: kind.kind, version: kind.version }],
  };
}

const listOf = (name: string, { group, kind, version }: ResourceDefinition): Schema => ({
  type: "object",
  required: ["items"],
  properties: {
    ...TYPE_FIELDS,
    items: { type: "array", items: { $ref: name } },
    metadata: { $ref: `${META}.ListMeta` },
  },
  "x-kubernetes-group-version-kind": [{ group, kind: `${kind}List`, version }],
});

/** Structs with a zero value in Go: required by the schemas here, optional upstream. */
const DEFAULTED = new Set(["resources", "metadata", "spec", "state", "strategy"]);

const KEPT_KEYWORDS = ["description", "enum", "required"];

/** Rewrites the converter's output in the form of Kubernetes' API server. */
function toOpenApi(schema: Schema, path: readonly string[]): Schema {
  const { $ref, scalar, type, properties, items, additionalProperties, anyOf, oneOf } = schema;
  if (typeof $ref === "string") return { $ref: $ref.replace("#/$defs/", "") };
  if (scalar === "intOrString") return { type: "string", format: "int-or-string" };
  if (scalar === "time") return { type: "string", format: "date-time" };
  if (scalar === "bytes") return { type: "string", format: "byte" };
  if (scalar === "int32" || scalar === "int64") return { type: "integer", format: scalar };
  if (scalar === "raw") return { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  const choices = (anyOf ?? oneOf) as Schema[] | undefined;
  if (choices) {
    const real = choices.filter((choice) => choice.type !== "null");
    return real.length === 1 ? toOpenApi(real[0]!, path) : {};
  }
  const result: Schema = type === undefined ? { type: "object" } : { type };
  for (const keyword of KEPT_KEYWORDS) if (schema[keyword] !== undefined) result[keyword] = schema[keyword];
  if (Array.isArray(result.required)) {
    result.required = result.required.filter((name) => !DEFAULTED.has(String(name)));
    if ((result.required as string[]).length === 0) delete result.required;
  }
  if (isRecord(properties)) {
    result.properties = Object.fromEntries(
      Object.entries(properties).map(([name, member]) => {
        const at = [...path, name];
        const found = toOpenApi(member as Schema, at);
        return [name, isRetainingMap(at) ? { ...found, "x-kubernetes-patch-strategy": "retainKeys" } : found];
      }),
    );
  }
  if (isRecord(items)) {
    result.items = toOpenApi(items, path);
    const merge = listMergeAt(["containers", ...path]);
    if (merge) {
      Object.assign(result, {
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": merge.mapKeys,
        "x-kubernetes-patch-merge-key": merge.patchKey,
        "x-kubernetes-patch-strategy": merge.retainsKeys ? "merge,retainKeys" : "merge",
      });
    }
  }
  if (isRecord(additionalProperties)) result.additionalProperties = toOpenApi(additionalProperties, path);
  return result;
}

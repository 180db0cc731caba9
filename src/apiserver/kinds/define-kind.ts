import type * as v from "valibot";
import type { ObjectMeta } from "../../base/api/meta.ts";
import type { Finding } from "../../base/model/finding.ts";
import { isRecord } from "../../base/text/json.ts";
import { type DecodeIssue, decodeObject, isTypeIssue } from "../../manifest/decode/decode.ts";
import { objectShapeOf } from "../../manifest/decode/shape.ts";
import { Field, FieldPath } from "../../manifest/field.ts";
import { readManifestValue } from "../../manifest/read-manifest.ts";
import { validateAnnotations, validateLabels } from "../../manifest/validate/names.ts";
import { toSourceNode } from "../../manifest/yaml/source-node.ts";
import type { StatusCause } from "../api-error.ts";
import type { ApiMetadata, ApiObject } from "../object-store.ts";
import type { PrintedColumn } from "../printers/rows.ts";
import {
  ALL_VERBS,
  type Column,
  type Decoded,
  type ReadOptions,
  type ResourceDefinition,
  type Schema,
} from "../resource-definition.ts";

/** Absent: group "", version v1, namespaced, every verb, and the names that follow from the kind. */
type KindRow = Pick<ResourceDefinition, "kind" | "columns"> & Partial<ResourceDefinition>;

const defineKind = (row: KindRow & Pick<ResourceDefinition, "fate">): ResourceDefinition => ({
  group: "",
  version: "v1",
  plural: `${row.kind.toLowerCase()}s`,
  singular: row.kind.toLowerCase(),
  namespaced: true,
  verbs: ALL_VERBS,
  ...row,
});

/** A kind whose objects manifests have too. Its schema and rules are those of src/manifest. */
export const manifestKind = (row: KindRow): ResourceDefinition =>
  defineKind({ fate: "objects", decode: row.namespaced === false ? readClusterObject : readObject, ...row });

/** A kind whose controller makes pods. */
export const workloadKind = (row: KindRow): ResourceDefinition =>
  manifestKind({
    group: "apps",
    categories: ["all"],
    subresources: ["status", "scale"],
    validateUpdate: fixedSpec("selector"),
    ...row,
  });

/** A kind that only the API has: its objects are kept, and nothing runs by them. */
export const apiKind = (row: KindRow & { schema: Schema }): ResourceDefinition =>
  defineKind({ fate: "kept", decode: bySchema(row.schema), ...row });

export type Fields = Readonly<Record<string, unknown>>;

export const specOf = (object: ApiObject) => (object.spec ?? {}) as Fields;
export const statusOf = (object: ApiObject) => (object.status ?? {}) as Fields;
export const numberOf = (value: unknown) => (typeof value === "number" ? value : 0);

/** A column with a number; 0 when absent. */
export const count = (name: string, read: (object: ApiObject) => unknown): Column => ({
  name,
  type: "integer",
  value: (object) => numberOf(read(object)),
});
/** A column with a text; empty when absent. @param priority 1: only in wide output */
export const text = (name: string, read: (object: ApiObject, now: Date) => unknown, priority = 0): Column => ({
  name,
  type: "string",
  priority,
  value: (object, now) => String(read(object, now) ?? ""),
});

/** The columns of the table that commands print too; a table names its objects itself. */
export const printed = <T>(columns: readonly PrintedColumn<T>[]): Column[] =>
  columns
    .filter(({ name, isWide }) => name !== "Name" || isWide)
    .map(({ name, cell, isWide }) => text(name, (object, now) => cell(object as unknown as T, now), isWide ? 1 : 0));

/** Labels or a selector of equality as one cell. Source: apimachinery's `FormatLabels`. */
export function formatLabels(labels: unknown): string {
  const entries = isRecord(labels) ? Object.entries(labels) : [];
  const sorted = entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return sorted.length === 0 ? "<none>" : sorted.map(([key, value]) => `${key}=${String(value)}`).join(",");
}

const ACCESS_MODES: Readonly<Record<string, string>> = {
  ReadWriteOnce: "RWO",
  ReadOnlyMany: "ROX",
  ReadWriteMany: "RWX",
  ReadWriteOncePod: "RWOP",
};

/** Source: core `GetAccessModesAsString`. */
export const formatAccessModes = (modes: unknown): string =>
  (Array.isArray(modes) ? modes : []).map((mode) => ACCESS_MODES[String(mode)] ?? String(mode)).join(",");

/** Refuses changes of some fields; the causes have upstream's paths. */
export type RefuseChange = (next: ApiObject, previous: ApiObject) => StatusCause[];

export const fixed = (field: string): StatusCause => ({
  reason: "FieldValueInvalid",
  field,
  message: "Invalid value: field is immutable: delete the object and create it again",
});

export const forbidden = (field: string, message: string): StatusCause => ({
  reason: "FieldValueForbidden",
  field,
  message: `Forbidden: ${message}`,
});

export const isOther = (a: unknown, b: unknown): boolean => !Bun.deepEquals(a ?? {}, b ?? {});

/** Refuses other values of fields of the spec. */
export const fixedSpec =
  (...names: string[]): RefuseChange =>
  (next, previous) =>
    names.filter((name) => isOther(specOf(next)[name], specOf(previous)[name])).map((name) => fixed(`spec.${name}`));

export const without = (spec: Fields, names: ReadonlySet<string>): Fields =>
  Object.fromEntries(Object.entries(spec).filter(([name]) => !names.has(name)));

/** Words of `field.Error` in upstream's messages. */
const TYPE_WORDS: Readonly<Record<string, string>> = {
  FieldValueRequired: "Required value",
  FieldValueInvalid: "Invalid value",
  FieldValueNotSupported: "Unsupported value",
  FieldValueForbidden: "Forbidden",
  FieldValueNotFound: "Not found",
  FieldValueDuplicate: "Duplicate value",
  FieldValueTooLong: "Too long",
  DecodeError: "Invalid value",
};

/**
 * Reads what clients send by the rules of manifest files, but as the API does: unknown fields are warnings, names keep
 * their form.
 * @param allowEphemeralContainers as running pods may have them
 */
export function readObject(object: ApiObject, options: ReadOptions, allowEphemeralContainers = false): Decoded {
  const { status, metadata, ...rest } = object;
  const { managedFields, ...written } = metadata;
  const { findings, results, configMaps, secrets, objects } = readManifestValue(
    { ...rest, metadata: written },
    { ...options, file: "request", source: "api", strictness: "warn", allowEphemeralContainers },
  );
  const known = findings.filter(({ code }) => code !== "unknown");
  const causes = known.filter(({ severity }) => severity === "error").map(toCause);
  const unknown = findings.filter(({ code }) => code === "unknown").map(({ field }) => `unknown field "${field}"`);
  const warnings = known
    .filter(({ severity }) => severity === "warning")
    .map(({ field, message }) => (field === "" ? message : `${field}: ${message}`));
  const found = results[0]?.pod ?? configMaps[0] ?? secrets[0] ?? objects[0]?.object;
  if (!found) {
    const nothing = { reason: "FieldValueInvalid", message: "the object could not be read" };
    return { object, causes: causes.length > 0 ? causes : [nothing], unknown, warnings };
  }
  return { object: withType(object, found, status, managedFields), causes, unknown, warnings };
}

/** {@link readObject} for a kind that is in no namespace. */
function readClusterObject(object: ApiObject, options: ReadOptions): Decoded {
  const decoded = readObject(object, options);
  const { namespace: _namespace, ...metadata } = decoded.object.metadata;
  return { ...decoded, object: { ...decoded.object, metadata } };
}

/** Kinds that only the API has. */
export const bySchema = (schema: v.GenericSchema<unknown, unknown>) => {
  const shape = objectShapeOf(schema as v.GenericSchema);
  return ({ apiVersion, kind, metadata: { managedFields, ...metadata }, status, ...rest }: ApiObject): Decoded => {
    const issues: DecodeIssue[] = [];
    const found = decodeObject(toSourceNode({ ...rest, metadata }), shape, FieldPath.root, issues) as {
      metadata: ApiMetadata;
    };
    const [wrong, unknown] = [issues.filter(isTypeIssue), issues.filter((issue) => !isTypeIssue(issue))];
    const written = new Field(found.metadata as ObjectMeta, FieldPath.root.child("metadata"));
    validateLabels(written.field("labels"));
    validateAnnotations(written.field("annotations"));
    const causes = [...wrong, ...written.errors];
    return {
      object: withType({ apiVersion, kind, metadata }, found, status, managedFields),
      causes: causes.map(({ path, message }) => toCause({ field: path.toString(), message })),
      unknown: unknown.map(({ path }) => `unknown field "${path.toString()}"`),
      warnings: [],
    };
  };
};

/** The object as the API has it; maps of the reader have no prototype, which JSON does not show. */
function withType(
  { apiVersion, kind }: Pick<ApiObject, "apiVersion" | "kind" | "metadata">,
  found: object,
  status: unknown,
  managedFields: ApiMetadata["managedFields"],
): ApiObject {
  const plain = JSON.parse(JSON.stringify(found)) as { metadata: ApiMetadata; status?: unknown };
  const { metadata, status: initial, ...fields } = plain;
  const shown = status ?? initial;
  return {
    apiVersion,
    kind,
    metadata: { ...metadata, ...(managedFields && { managedFields }) },
    ...fields,
    ...(shown !== undefined && { status: shown }),
  };
}

type FieldError = Pick<Finding, "type" | "field" | "message">;

/** As upstream, the value comes before what is wrong with it; findings of manifests have it behind. Source: `field.Error`. */
function toCause({ type = "FieldValueInvalid", field, message }: FieldError): StatusCause {
  const text = message.replace(/^(.*?) \(found (["[{\d-].*|true|false)\)([^)]*)$/s, "$2: $1$3");
  return { reason: type, field, message: `${TYPE_WORDS[type] ?? "Invalid value"}: ${text}` };
}

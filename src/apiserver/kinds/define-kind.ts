import { isRecord } from "../../base/text/json.ts";
import type { StatusCause } from "../api-error.ts";
import type { ApiObject } from "../api-object.ts";
import type { PrintedColumn } from "../printers/age.ts";
import { ALL_VERBS, type Column, type ResourceDefinition, type Schema } from "../resource-definition.ts";
import { byManifest, bySchema } from "./object-reader.ts";

/** Absent: group "", version v1, namespaced, every verb, and the names that follow from the kind. */
type KindRow = Pick<ResourceDefinition, "kind" | "columns" | "description"> & Partial<ResourceDefinition>;

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
  defineKind({ fate: "objects", decode: byManifest, ...row });

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

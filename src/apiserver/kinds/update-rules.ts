import type { StatusCause } from "../api-error.ts";
import type { ApiObject } from "../api-object.ts";
import { type Fields, specOf } from "./columns.ts";

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

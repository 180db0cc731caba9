import type { StatusCause } from "../api-error.ts";
import type { ApiObject } from "../object-store.ts";
import { count, fixed, forbidden, manifestKind, text } from "./define-kind.ts";

export const CONFIG_MAP = manifestKind({
  kind: "ConfigMap",
  shortNames: ["cm"],
  columns: [count("Data", ({ data, binaryData }) => countKeys(data) + countKeys(binaryData))],
  fate: "configMaps",
  validateUpdate: refuseImmutable,
});

export const SECRET = manifestKind({
  kind: "Secret",
  columns: [text("Type", ({ type }) => String(type ?? "Opaque")), count("Data", ({ data }) => countKeys(data))],
  fields: { type: ({ type }) => String(type ?? "") },
  fate: "secrets",
  validateUpdate: (next, previous) => {
    const isSameType = (next.type ?? "Opaque") === (previous.type ?? "Opaque");
    return [...refuseImmutable(next, previous), ...(isSameType ? [] : [fixed("type")])];
  },
  isSecret: true,
});

const countKeys = (map: unknown) => Object.keys((map as Record<string, unknown> | undefined) ?? {}).length;

/** Causes for refusing a change of an object that was declared immutable. Source: core validation. */
function refuseImmutable(next: ApiObject, previous: ApiObject): StatusCause[] {
  if (previous.immutable !== true) return [];
  const fields = ["data", "binaryData", "immutable", "type"].filter(
    (name) => !Bun.deepEquals(next[name], previous[name]),
  );
  return fields.map((field) => forbidden(field, "field is immutable when `immutable` is set"));
}

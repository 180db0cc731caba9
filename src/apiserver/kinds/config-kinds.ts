import type { StatusCause } from "../api-error.ts";
import type { ApiObject } from "../api-object.ts";
import { ALL_VERBS, type ResourceDefinition } from "../resource-definition.ts";
import { text } from "./columns.ts";
import { byManifest } from "./object-reader.ts";
import { fixed, forbidden, type RefuseChange } from "./update-rules.ts";

export const CONFIG_MAP: ResourceDefinition = {
  group: "",
  version: "v1",
  kind: "ConfigMap",
  plural: "configmaps",
  singular: "configmap",
  shortNames: ["cm"],
  namespaced: true,
  verbs: ALL_VERBS,
  columns: [
    { name: "Data", type: "integer", value: ({ data, binaryData }) => countKeys(data) + countKeys(binaryData) },
  ],
  fate: "configMaps",
  decode: byManifest,
  validateUpdate: refuseImmutable,
  description: "ConfigMap holds configuration data for pods to consume.",
};

export const SECRET: ResourceDefinition = {
  group: "",
  version: "v1",
  kind: "Secret",
  plural: "secrets",
  singular: "secret",
  namespaced: true,
  verbs: ALL_VERBS,
  columns: [
    text("Type", ({ type }) => String(type ?? "Opaque")),
    { name: "Data", type: "integer", value: ({ data }) => countKeys(data) },
  ],
  fields: { type: ({ type }) => String(type ?? "") },
  fate: "secrets",
  decode: byManifest,
  validateUpdate: (next, previous) => [...refuseImmutable(next, previous), ...refuseOtherType(next, previous)],
  isSecret: true,
  description: "Secret holds secret data of a certain type.",
};

const countKeys = (map: unknown) => Object.keys((map as Record<string, unknown> | undefined) ?? {}).length;

/** Causes for refusing a change of an object that was declared immutable. Source: core validation. */
function refuseImmutable(next: ApiObject, previous: ApiObject): StatusCause[] {
  if (previous.immutable !== true) return [];
  const fields = ["data", "binaryData", "immutable", "type"].filter(
    (name) => !Bun.deepEquals(next[name], previous[name]),
  );
  return fields.map((field) => forbidden(field, "field is immutable when `immutable` is set"));
}

const refuseOtherType: RefuseChange = (next, previous) =>
  (next.type ?? "Opaque") === (previous.type ?? "Opaque") ? [] : [fixed("type")];

import type { ResourceDefinition, Schema } from "../resource-definition.ts";
import { ALL_VERBS } from "../resource-definition.ts";
import { byManifest, bySchema } from "./object-reader.ts";

type Given = "group" | "kind" | "plural" | "columns" | "description";
type KindRow = Pick<ResourceDefinition, Given> & Partial<ResourceDefinition>;

const defineKind = (row: KindRow & Pick<ResourceDefinition, "fate">): ResourceDefinition => ({
  version: "v1",
  singular: row.kind.toLowerCase(),
  namespaced: true,
  verbs: ALL_VERBS,
  ...row,
});

/** A kind whose objects manifests have too. Its schema and rules are those of src/manifest. */
export const manifestKind = (row: KindRow): ResourceDefinition =>
  defineKind({ fate: "objects", decode: byManifest, ...row });

/** A kind that only the API has: its objects are kept, and nothing runs by them. */
export const apiKind = (row: KindRow & { schema: Schema }): ResourceDefinition =>
  defineKind({ fate: "kept", decode: bySchema(row.schema), ...row });

import type { ApiObject } from "../api-object.ts";
import {
  ALL_VERBS,
  type Column,
  type Decoded,
  type PlainSubresource,
  READ_VERBS,
  type ResourceDefinition,
} from "../resource-definition.ts";
import { decodeByManifest, type ReadSubmitted } from "./decode-manifest.ts";

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

/** A kind whose manifests the sources read too. */
export interface KindRow {
  group: string;
  otherVersions?: readonly string[];
  kind: string;
  plural: string;
  shortNames?: readonly string[];
  categories?: readonly string[];
  columns: readonly Column[];
  fields?: Readonly<Record<string, (object: ApiObject) => string>>;
  subresources?: readonly PlainSubresource[];
  namespaced?: false;
  /** Made by controllers only. */
  isReadOnly?: true;
  description: string;
  /** Converts the object before it is decoded. */
  beforeDecode?: (object: ApiObject) => ApiObject;
  /** Adds what the API shows beyond the manifest. */
  complete?: NonNullable<ResourceDefinition["complete"]>;
  deletionWarning?: NonNullable<ResourceDefinition["deletionWarning"]>;
  protection?: NonNullable<ResourceDefinition["protection"]>;
  validateUpdate?: NonNullable<ResourceDefinition["validateUpdate"]>;
}

export const toDefinition = (read: ReadSubmitted, kindRow: KindRow): ResourceDefinition => {
  const { namespaced = true, isReadOnly, beforeDecode = (object) => object, ...row } = kindRow;
  return {
    ...row,
    version: "v1",
    singular: row.kind.toLowerCase(),
    namespaced,
    verbs: isReadOnly ? READ_VERBS : ALL_VERBS,
    storage: "file",
    ...(!isReadOnly && { decode: (object: ApiObject) => decode(read, beforeDecode(object), namespaced) }),
  };
};

function decode(read: ReadSubmitted, object: ApiObject, namespaced: boolean): Decoded {
  const decoded = decodeByManifest(read, object);
  if (namespaced) return decoded;
  const { namespace: _namespace, ...metadata } = decoded.object.metadata;
  return { ...decoded, object: { ...decoded.object, metadata } };
}

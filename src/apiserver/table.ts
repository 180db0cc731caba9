import { type ApiObject, jsonOf } from "./api-object.ts";
import { formatSince } from "./printers/age.ts";
import type { Column, ResourceDefinition } from "./resource-definition.ts";

/** The object that each row carries in addition to its cells. Source: meta/v1 `IncludeObjectPolicy`. */
export type IncludeObject = "None" | "Metadata" | "Object";

interface TableOptions {
  metaVersion: "v1" | "v1beta1";
  includeObject: IncludeObject;
  now: Date;
}

const NAME: Column = {
  name: "Name",
  type: "string",
  format: "name",
  description: "Name must be unique within a namespace.",
  value: ({ metadata }) => metadata.name,
};

const AGE: Column = {
  name: "Age",
  type: "string",
  description: "CreationTimestamp is a timestamp representing the server time when this object was created.",
  value: ({ metadata }, now) => formatSince(metadata.creationTimestamp, now),
};

const columnsOf = ({ columns }: Pick<ResourceDefinition, "columns">): Column[] => {
  // Columns that have an age of their own stay as declared.
  if (columns.some(({ name }) => name === "Last Seen")) return [...columns];
  const wide = columns.filter(({ priority = 0 }) => priority > 0);
  const narrow = columns.filter(({ priority = 0 }) => priority === 0);
  const names = columns.map(({ name }) => name);
  return [...(names.includes("Name") ? [] : [NAME]), ...narrow, ...(names.includes("Age") ? [] : [AGE]), ...wide];
};

/**
 * Objects as rows for `kubectl get`, as JSON. Source: meta/v1 `Table`.
 * @param metadata of the list
 * @param isFirst false leaves the definitions out, as later events of a watch do
 */
export function tableText(
  objects: readonly ApiObject[],
  definition: Pick<ResourceDefinition, "columns">,
  metadata: object,
  { metaVersion, includeObject, now }: TableOptions,
  isFirst = true,
): string {
  const columns = columnsOf(definition);
  const definitions = isFirst
    ? columns.map(({ name, type, format = "", description = "", priority = 0 }) => ({
        name,
        type,
        format,
        description,
        priority,
      }))
    : [];
  const rows = objects.map((object) => {
    const cells = JSON.stringify(columns.map(({ value }) => value(object, now)));
    if (includeObject === "None") return `{"cells":${cells}}`;
    const shown = includeObject === "Object" ? jsonOf(object) : metadataText(object, metaVersion);
    return `{"cells":${cells},"object":${shown}}`;
  });
  const head = JSON.stringify({ kind: "Table", apiVersion: `meta.k8s.io/${metaVersion}`, metadata });
  return `${head.slice(0, -1)},"columnDefinitions":${JSON.stringify(definitions)},"rows":[${rows.join(",")}]}`;
}

const metadataTexts = new WeakMap<ApiObject, string>();

/** A PartialObjectMetadata as JSON. */
export function metadataText(object: ApiObject, metaVersion: "v1" | "v1beta1"): string {
  let text = metadataTexts.get(object);
  if (text === undefined) {
    text = JSON.stringify(object.metadata);
    metadataTexts.set(object, text);
  }
  return `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/${metaVersion}","metadata":${text}}`;
}

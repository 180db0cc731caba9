import type { ApiObject } from "./api-object.ts";
import type { ResourceDefinition } from "./resource-definition.ts";

export type ObjectFilter = (object: ApiObject) => boolean;

type ReadField = (object: ApiObject) => string;

const COMMON: Readonly<Record<string, ReadField>> = {
  "metadata.name": ({ metadata }) => metadata.name,
  "metadata.namespace": ({ metadata }) => metadata.namespace ?? "",
};

/**
 * A field selector, `status.phase!=Running,spec.nodeName=node1`, as a filter. Source: apimachinery's `fields`.
 * @returns what is wrong with it as `problem`, in upstream's words
 */
export function parseFieldSelector(
  selector: string,
  definition: Pick<ResourceDefinition, "fields">,
): ObjectFilter | { problem: string } {
  const filters: ObjectFilter[] = [];
  for (const term of splitTerms(selector)) {
    const [, field = "", operator = "", value = ""] = /^([^=!]*)(==|=|!=)(.*)$/s.exec(term) ?? [];
    if (operator === "") return { problem: `invalid selector: '${selector}'; can't understand '${term}'` };
    const read = fieldReader(field, definition);
    if (!read) return { problem: `field label not supported: ${field}` };
    const wanted = value.replace(/\\(.)/g, "$1");
    filters.push((object) => (read(object) === wanted) === (operator !== "!="));
  }
  return (object) => filters.every((matches) => matches(object));
}

function fieldReader(field: string, { fields }: Pick<ResourceDefinition, "fields">): ReadField | undefined {
  if (Object.hasOwn(COMMON, field)) return COMMON[field];
  return fields && Object.hasOwn(fields, field) ? fields[field] : undefined;
}

/** Parts at commas that no backslash escapes. */
function splitTerms(selector: string): string[] {
  return (selector.match(/(?:\\.|[^,\\])+/gs) ?? []).filter((term) => term.trim() !== "");
}

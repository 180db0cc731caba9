import { parseLabelSelector } from "../base/api/label-selector.ts";
import { badRequest } from "./api-error.ts";
import type { ApiObject } from "./api-object.ts";
import { type ObjectFilter, parseFieldSelector } from "./field-selector.ts";
import type { ResourceDefinition } from "./resource-definition.ts";

/** Which objects of a resource a request means. */
export interface Selection {
  namespace: string | undefined;
  matches: ObjectFilter;
}

/**
 * Label and field selectors of a request.
 * @param name selects one object by name, as a watch of one object does; "" for all
 * @throws ApiError 400
 */
export function parseSelection(
  definition: ResourceDefinition,
  namespace: string | undefined,
  name: string,
  query: URLSearchParams,
): Selection {
  const labels = parseLabelSelector(query.get("labelSelector") ?? "");
  if ("problem" in labels) throw badRequest(`unable to parse requirement: ${labels.problem}`);
  const fields = parseFieldSelector(query.get("fieldSelector") ?? "", definition);
  if ("problem" in fields) throw badRequest(fields.problem);
  const matches = (object: ApiObject) =>
    (namespace === undefined || object.metadata.namespace === namespace) &&
    (name === "" || object.metadata.name === name) &&
    labels(object.metadata.labels ?? {}) &&
    fields(object);
  return { namespace, matches };
}

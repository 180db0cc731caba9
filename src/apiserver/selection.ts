import { parseFieldSelector, type SelectableFields } from "../base/api/field-selector.ts";
import { parseLabelSelector } from "../base/api/label-selector.ts";
import { badRequest } from "./api-error.ts";
import type { ApiObject } from "./api-object.ts";
import type { Target } from "./resource-definition.ts";

const COMMON_FIELDS: SelectableFields<ApiObject> = {
  "metadata.name": ({ metadata }) => metadata.name,
  "metadata.namespace": ({ metadata }) => metadata.namespace,
};

/** Which objects of a resource a request means. */
export interface Selection {
  namespace: string | undefined;
  matches: (object: ApiObject) => boolean;
}

/**
 * Label and field selectors of a request; its name selects one object, as in a watch of one object.
 * @throws ApiError 400
 */
export function parseSelection({ definition, namespace, name }: Target, query: URLSearchParams): Selection {
  const labels = parseLabelSelector(query.get("labelSelector") ?? "");
  if ("problem" in labels) throw badRequest(`unable to parse requirement: ${labels.problem}`);
  const fields = parseFieldSelector(query.get("fieldSelector") ?? "", { ...COMMON_FIELDS, ...definition.fields });
  if ("problem" in fields) throw badRequest(fields.problem);
  const matches = (object: ApiObject) =>
    (namespace === undefined || object.metadata.namespace === namespace) &&
    (name === "" || object.metadata.name === name) &&
    labels(object.metadata.labels ?? {}) &&
    fields(object);
  return { namespace, matches };
}

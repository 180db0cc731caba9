import type { CoreEvent, CoreEventList } from "../base/api/event.ts";
import { parseFieldSelector, type SelectableFields } from "../base/api/field-selector.ts";
import { type HttpResponse, jsonResponse, matchesEtag, type RouteRequest, textResponse } from "./http-response.ts";
import type { KubeletView } from "./view.ts";

/** Fields that `fieldSelector` may name. Source: core/v1 `Event`'s selectable fields. */
const SELECTABLE: SelectableFields<CoreEvent> = {
  "metadata.name": ({ metadata }) => metadata.name,
  "metadata.namespace": ({ metadata }) => metadata.namespace,
  "involvedObject.kind": ({ involvedObject }) => involvedObject.kind,
  "involvedObject.name": ({ involvedObject }) => involvedObject.name,
  "involvedObject.namespace": ({ involvedObject }) => involvedObject.namespace,
  "involvedObject.uid": ({ involvedObject }) => involvedObject.uid,
  "involvedObject.fieldPath": ({ involvedObject }) => involvedObject.fieldPath ?? "",
  reason: ({ reason }) => reason,
  source: ({ source }) => source.component,
  type: ({ type }) => type,
};

/**
 * `/api/v1/events` and `/api/v1/namespaces/<namespace>/events`: an EventList, the oldest last occurrence first, with an
 * ETag.
 * @param namespace undefined: of all
 */
export function eventListResponse(
  request: RouteRequest,
  view: KubeletView,
  namespace: string | undefined,
): HttpResponse {
  const filter = parseFieldSelector(request.query.get("fieldSelector") ?? "", SELECTABLE);
  if ("problem" in filter) {
    return textResponse(400, `${filter.problem}; known: ${Object.keys(SELECTABLE).join(", ")}\n`);
  }
  const { revision, items } = view.events();
  const list: CoreEventList = {
    kind: "EventList",
    apiVersion: "v1",
    metadata: { resourceVersion: String(revision) },
    items: items.filter(
      (event) => (namespace ?? event.metadata.namespace) === event.metadata.namespace && filter(event),
    ),
  };
  const body = JSON.stringify(list);
  const etag = `"${Bun.hash(body).toString(16)}"`;
  if (matchesEtag(request.header("If-None-Match"), etag)) return { status: 304, headers: { ETag: etag }, body: "" };
  return jsonResponse(body, { ETag: etag });
}

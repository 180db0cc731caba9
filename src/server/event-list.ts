import type { CoreEvent, CoreEventList } from "../base/api/event.ts";
import { type HttpResponse, jsonResponse, matchesEtag, type RouteRequest, textResponse } from "./http-response.ts";
import type { KubeletView } from "./view.ts";

/** Fields that `fieldSelector` may name. Source: core/v1 `Event`'s selectable fields. */
const SELECTABLE: Readonly<Record<string, (event: CoreEvent) => string>> = {
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

type EventFilter = (event: CoreEvent) => boolean;

/**
 * A field selector of the Kubernetes API, `involvedObject.name=web,type!=Normal`, as a filter.
 * @returns what is wrong with it as `problem`
 */
function parseEventSelector(selector: string): EventFilter | { problem: string } {
  const filters: EventFilter[] = [];
  for (const term of selector.split(",").filter((part) => part !== "")) {
    const [, field = "", operator = "", value = ""] = /^([^=!]*)(==|=|!=)(.*)$/.exec(term) ?? [];
    if (operator === "") return { problem: `invalid selector: '${term}'; can't understand it` };
    if (!Object.hasOwn(SELECTABLE, field)) {
      return { problem: `field label not supported: ${field}; known: ${Object.keys(SELECTABLE).join(", ")}` };
    }
    const read = SELECTABLE[field]!;
    filters.push((event) => (read(event) === value) === (operator !== "!="));
  }
  return (event) => filters.every((matches) => matches(event));
}

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
  const filter = parseEventSelector(request.query.get("fieldSelector") ?? "");
  if ("problem" in filter) return textResponse(400, `${filter.problem}\n`);
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

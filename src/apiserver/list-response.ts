import { isRecord } from "../base/text/json.ts";
import { badRequest, expired } from "./api-error.ts";
import { type ApiObject, jsonOf } from "./api-object.ts";
import { jsonText, type PlainResponse } from "./api-request.ts";
import type { WantedForm } from "./media-type.ts";
import type { ObjectStore } from "./object-store.ts";
import { apiVersionOf, type ResourceDefinition, resourceId } from "./resource-definition.ts";
import type { Selection } from "./selection.ts";
import { type IncludeObject, metadataText, tableText } from "./table.ts";

/** How objects are shown to this user: Secrets without their data, for instance. */
export type ShowObject = (object: ApiObject) => ApiObject;

/** Where a list continues. Opaque to clients. */
interface ContinueToken {
  /** Revision of the first page. */
  rv: number;
  /** Last object of the page before. */
  ns: string;
  name: string;
}

/**
 * A list, whole or one page of it. Pages show each object as it is when the page is asked for: the revision of the list
 * is that of the first page, so that a watch from there misses nothing.
 * @throws ApiError 400, 410
 */
export function listResponse(
  store: ObjectStore,
  definition: ResourceDefinition,
  { namespace, matches }: Selection,
  query: URLSearchParams,
  form: WantedForm,
  show: ShowObject,
  now: Date,
): PlainResponse {
  const limit = parseLimit(query.get("limit"));
  const token = parseToken(query.get("continue"), store.revision);
  let objects = store.list(resourceId(definition), namespace).filter(matches);
  if (token) {
    objects = objects.filter(({ metadata }) => {
      const ns = metadata.namespace ?? "";
      return ns > token.ns || (ns === token.ns && metadata.name > token.name);
    });
  }
  const revision = token?.rv ?? store.revision;
  const page = limit > 0 ? objects.slice(0, limit) : objects;
  const last = page.at(-1)?.metadata;
  const isPartial = page.length < objects.length && last !== undefined;
  const metadata = {
    resourceVersion: String(revision),
    ...(isPartial && {
      continue: encodeToken({ rv: revision, ns: last.namespace ?? "", name: last.name }),
      remainingItemCount: objects.length - page.length,
    }),
  };
  const items = page.map(show);
  return jsonText(200, listText(items, definition, metadata, query, form, now));
}

function listText(
  items: readonly ApiObject[],
  definition: ResourceDefinition,
  metadata: object,
  query: URLSearchParams,
  { shape, metaVersion }: WantedForm,
  now: Date,
): string {
  if (shape === "table") {
    return tableText(items, definition, metadata, { metaVersion, includeObject: parseIncludeObject(query), now });
  }
  const isMetadata = shape === "metadata";
  const kind = isMetadata ? "PartialObjectMetadataList" : `${definition.kind}List`;
  const apiVersion = isMetadata ? `meta.k8s.io/${metaVersion}` : apiVersionOf(definition);
  const texts = items.map((item) => (isMetadata ? metadataText(item, metaVersion) : jsonOf(item)));
  const head = JSON.stringify({ kind, apiVersion, metadata });
  return `${head.slice(0, -1)},"items":[${texts.join(",")}]}`;
}

/** @throws ApiError 400 */
export function parseIncludeObject(query: URLSearchParams): IncludeObject {
  const value = query.get("includeObject") || "Metadata";
  if (value === "None" || value === "Metadata" || value === "Object") return value;
  throw badRequest(`includeObject: Unsupported value: "${value}"`);
}

function parseLimit(text: string | null): number {
  if (text === null || text === "") return 0;
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 0) throw badRequest(`limit: Invalid value: "${text}"`);
  return limit;
}

const encodeToken = (token: ContinueToken) => Buffer.from(JSON.stringify(token)).toString("base64url");

function parseToken(text: string | null, current: number): ContinueToken | undefined {
  if (!text) return undefined;
  let token: unknown;
  try {
    token = JSON.parse(Buffer.from(text, "base64url").toString());
  } catch {
    token = undefined;
  }
  if (
    !isRecord(token) ||
    typeof token.rv !== "number" ||
    typeof token.ns !== "string" ||
    typeof token.name !== "string"
  ) {
    throw badRequest("continue key is not valid");
  }
  // The token is from before the root directory was emptied.
  if (token.rv > current)
    throw expired("The provided continue parameter is too old to display a consistent list result.");
  return { rv: token.rv, ns: token.ns, name: token.name };
}

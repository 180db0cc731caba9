import * as v from "valibot";
import type { HttpResponse } from "../server/http-response.ts";
import { badRequest, expired } from "./api-error.ts";
import { jsonText } from "./api-request.ts";
import type { ObjectStore } from "./object-store.ts";
import type { Presentation } from "./presentation.ts";
import { resourceId } from "./resource-definition.ts";
import type { Selection } from "./selection.ts";

/** Where a list continues: the revision of the first page, and the last object of the page before. Opaque to clients. */
const TokenSchema = v.object({ rv: v.number(), ns: v.string(), name: v.string() });
type ContinueToken = v.InferOutput<typeof TokenSchema>;

/**
 * A list, whole or one page of it. Pages show each object as it is when the page is asked for: the revision of the list
 * is that of the first page, so that a watch from there misses nothing.
 * @throws ApiError 400, 410
 */
export function listResponse(
  store: ObjectStore,
  { namespace, matches }: Selection,
  query: URLSearchParams,
  presentation: Presentation,
): HttpResponse {
  const limit = parseLimit(query.get("limit"));
  const token = parseToken(query.get("continue"), store.revision);
  let objects = store.list(resourceId(presentation.kind), namespace).filter(matches);
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
  return jsonText(200, presentation.list(page, metadata));
}

function parseLimit(text: string | null): number {
  const limit = Number(text ?? "");
  if (!Number.isInteger(limit) || limit < 0) throw badRequest(`limit: Invalid value: "${text}"`);
  return limit;
}

const encodeToken = (token: ContinueToken) => Buffer.from(JSON.stringify(token)).toString("base64url");

function parseToken(text: string | null, current: number): ContinueToken | undefined {
  if (!text) return undefined;
  const token = v.safeParse(v.pipe(v.string(), v.parseJson(), TokenSchema), Buffer.from(text, "base64url").toString());
  if (!token.success) throw badRequest("continue key is not valid");
  // The token is from before the root directory was emptied.
  if (token.output.rv > current)
    throw expired("The provided continue parameter is too old to display a consistent list result.");
  return token.output;
}

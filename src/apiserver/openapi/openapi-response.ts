import { createHash } from "node:crypto";
import { type ApiRequest, type ApiResponse, json } from "../api-request.ts";
import type { ServedResources } from "../discovery.ts";
import descriptions from "./descriptions.json" with { type: "json" };
import { openApiV2, openApiV2Json, openApiV3, openApiV3Index } from "./documents.ts";
import { encodeOpenApiV2 } from "./protobuf-document.ts";

/** With a dot: Go cannot parse the `@` that clients ask with. */
const PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/** `/openapi/v2` and `/openapi/v3`. @returns undefined for other paths */
export function openApiResponse(request: ApiRequest, { definitions }: ServedResources): ApiResponse | undefined {
  const path = request.path.replace(/\/$/, "");
  if (path === "/openapi/v2") {
    const document = openApiV2(definitions, descriptions);
    if (request.header("Accept")?.includes("protobuf")) {
      return { status: 200, headers: { "Content-Type": PROTOBUF }, body: encodeOpenApiV2(document) };
    }
    return json(200, openApiV2Json(document));
  }
  if (path === "/openapi/v3") return json(200, openApiV3Index(definitions, hashOf(definitions)));
  const [, group = "", version] = /^\/openapi\/v3\/(?:api|apis\/([^/]+))\/([^/]+)$/.exec(path) ?? [];
  const found = version === undefined ? undefined : openApiV3(group, version, definitions, descriptions);
  return found && json(200, found);
}

const hashOf = (definitions: ServedResources["definitions"]) =>
  createHash("sha256")
    .update(JSON.stringify([definitions, descriptions]))
    .update(Bun.version)
    .digest("hex")
    .slice(0, 32)
    .toUpperCase();

import { createHash } from "node:crypto";
import { type ApiRequest, type ApiResponse, json } from "../api-request.ts";
import type { ServedResources } from "../discovery.ts";
import type { Schema } from "./definitions.ts";
import descriptions from "./descriptions.json" with { type: "json" };
import { type OpenApiV2, type Operation, openApiV2, openApiV2Json, openApiV3, openApiV3Index } from "./documents.ts";

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

/**
 * `/openapi/v2` in protobuf, which is all that kubectl before 1.27 reads. Field numbers: gnostic's OpenAPIv2.proto.
 */
export function encodeOpenApiV2({ info, paths, definitions }: OpenApiV2): Uint8Array {
  return Buffer.concat([
    text(1, "2.0"),
    message(2, [text(1, info.title), text(2, info.version)]),
    message(
      8,
      paths.map(({ path, operations }) =>
        named(2, path, [
          ...(["get", "put", "post", "delete", "patch"] as const).flatMap((method) => {
            const operation = operations[method];
            return operation ? [message(METHODS[method], encodeOperation(operation))] : [];
          }),
        ]),
      ),
    ),
    message(
      9,
      Object.entries(definitions).map(([name, schema]) => named(1, name, encodeSchema(schema))),
    ),
  ]);
}

const METHODS = { get: 2, put: 3, post: 4, delete: 5, patch: 8 } as const;

function encodeOperation({ operationId, description, parameters, action, groupVersionKind }: Operation): Buffer[] {
  return [
    text(3, description),
    text(5, operationId),
    ...parameters.map((name) =>
      message(8, [message(1, [message(2, [message(3, [text(2, "query"), text(4, name), text(6, "string")])])])]),
    ),
    message(9, [message(1, [text(1, "200"), message(2, [message(1, [text(1, "OK")])])])]),
    extension(13, "x-kubernetes-action", action),
    extension(13, "x-kubernetes-group-version-kind", groupVersionKind),
  ];
}

function encodeSchema(schema: Schema): Buffer[] {
  const { $ref, format, description, required, enum: values, additionalProperties, type, items, properties } = schema;
  if (typeof $ref === "string") {
    return [text(1, $ref), ...(typeof description === "string" ? [text(4, description)] : [])];
  }
  const parts: Buffer[] = [];
  if (typeof format === "string") parts.push(text(2, format));
  if (typeof description === "string") parts.push(text(4, description));
  if (Array.isArray(required)) parts.push(...required.map((name) => text(19, String(name))));
  if (Array.isArray(values)) parts.push(...values.map((value) => message(20, [text(2, JSON.stringify(value))])));
  if (typeof additionalProperties === "object" && additionalProperties !== null) {
    parts.push(message(21, [message(1, encodeSchema(additionalProperties as Schema))]));
  }
  if (typeof type === "string") parts.push(message(22, [text(1, type)]));
  if (typeof items === "object" && items !== null) parts.push(message(23, [message(1, encodeSchema(items as Schema))]));
  if (typeof properties === "object" && properties !== null) {
    const members = Object.entries(properties as Record<string, Schema>);
    parts.push(
      message(
        25,
        members.map(([name, member]) => named(1, name, encodeSchema(member))),
      ),
    );
  }
  for (const [name, value] of Object.entries(schema)) if (name.startsWith("x-")) parts.push(extension(31, name, value));
  return parts;
}

/** A NamedAny; JSON is YAML. */
const extension = (field: number, name: string, value: unknown) => named(field, name, [text(2, JSON.stringify(value))]);

/** A pair of name and value, as gnostic writes maps. */
const named = (field: number, name: string, value: readonly Buffer[]) =>
  message(field, [text(1, name), message(2, value)]);

const text = (field: number, value: string) => lengthDelimited(field, Buffer.from(value));

const message = (field: number, parts: readonly Buffer[]) => lengthDelimited(field, Buffer.concat(parts));

const lengthDelimited = (field: number, value: Buffer) =>
  Buffer.concat([varint((field << 3) | 2), varint(value.length), value]);

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...bytes, rest]);
    bytes.push((rest % 128) | 0x80);
  }
}

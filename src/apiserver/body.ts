import { readDocument } from "../yaml/read-document.ts";
import { badRequest, unsupportedMediaType } from "./api-error.ts";
import type { ApiRequest } from "./api-request.ts";
import { parseMediaTypes } from "./media-type.ts";

/** Size limit of a request body. Source: apiserver's `--max-resource-write-bytes` (3 MiB). */
export const MAX_BODY_BYTES = 3 * 1024 * 1024;

export const PATCH_TYPES = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  applyYaml: "application/apply-patch+yaml",
} as const;

const typeOf = (request: ApiRequest) => parseMediaTypes(request.header("Content-Type") ?? "")[0]?.type ?? "";

/**
 * The object in the body, JSON or YAML.
 * @throws ApiError 400, 413, 415
 */
export async function readObjectBody(request: ApiRequest): Promise<unknown> {
  const type = typeOf(request);
  const bytes = await request.body();
  if (type === "application/yaml") return readYaml(bytes);
  if (type === PROTOBUF) return readProtobuf(bytes);
  // Clients that send no type mean JSON.
  if (type !== "" && type !== "application/json" && type !== "*/*") {
    throw unsupportedMediaType(["application/json", "application/yaml"]);
  }
  return readJson(bytes);
}

/** As {@link readObjectBody}; undefined when there is no body, as a DELETE may have none. */
export async function readOptionalBody(request: ApiRequest): Promise<unknown> {
  const bytes = await request.body();
  if (bytes.length === 0) return undefined;
  if (typeOf(request) === PROTOBUF) return readProtobuf(bytes);
  return typeOf(request) === "application/yaml" ? readYaml(bytes) : readJson(bytes);
}

const PROTOBUF = "application/vnd.kubernetes.protobuf";

async function readProtobuf(bytes: Uint8Array): Promise<unknown> {
  const { decodeProtobufObject, ProtobufError } = await import("./protobuf-object.ts");
  try {
    return decodeProtobufObject(bytes);
  } catch (error) {
    if (!(error instanceof ProtobufError)) throw error;
    // client-go sends JSON after this answer.
    throw unsupportedMediaType(["application/json", "application/yaml"], error.message);
  }
}

export type PatchBody = { type: (typeof PATCH_TYPES)[keyof typeof PATCH_TYPES]; patch: unknown };

/** @throws ApiError 400, 413, 415 */
export async function readPatchBody(request: ApiRequest): Promise<PatchBody> {
  const found = typeOf(request);
  const type = Object.values(PATCH_TYPES).find((it) => it === found);
  if (type === undefined) throw unsupportedMediaType(Object.values(PATCH_TYPES));
  const bytes = await request.body();
  return { type, patch: type === PATCH_TYPES.applyYaml ? readYaml(bytes) : readJson(bytes) };
}

function readJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
  } catch (error) {
    throw badRequest(`the object provided is unrecognized: ${(error as Error).message}`);
  }
}

function readYaml(bytes: Uint8Array): unknown {
  try {
    return readDocument(bytes, "body") ?? null;
  } catch (error) {
    throw badRequest(`error decoding YAML: ${(error as Error).message}`);
  }
}

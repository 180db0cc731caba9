import { ApiError, badRequest, insufficientStorage, internalError, invalid, type StatusCause } from "./api-error.ts";
import type { ApiObject } from "./api-object.ts";
import type { ObjectReader } from "./kinds/object-reader.ts";
import type { Manager } from "./managed-fields.ts";
import { apiVersionOf, type ResourceDefinition } from "./resource-definition.ts";

/** Options of a write. */
export interface WriteRequest {
  /** Manager that owns the written fields. */
  manager: string;
  dryRun: boolean;
  /** Handling of fields that the schema does not know. */
  fieldValidation: "Strict" | "Warn" | "Ignore";
  /** Gets the text of each `Warning` header. */
  warn: (message: string) => void;
}

/** For writes of the process itself, e.g. of controllers. */
export const internalWrite = (manager: string): WriteRequest => ({
  manager,
  dryRun: false,
  fieldValidation: "Ignore",
  warn: () => {},
});

/** Keeps objects beyond the life of the process. */
export interface ObjectStorage {
  /** A new object is about to be saved. @param sent by the client, without defaults */
  create(object: ApiObject, sent: unknown): void;
  /** Returns when the object is kept whole, or throws with the old one still whole. @throws Error of the file system */
  save(definition: ResourceDefinition, object: ApiObject): void;
  /** Removing what is not there is no error. @throws Error of the file system */
  remove(definition: ResourceDefinition, object: ApiObject): void;
}

/** Runs a change of the storage. @throws ApiError 507 when the disk is full, else 500 */
export function store(change: () => void): void {
  try {
    change();
  } catch (error) {
    if (error instanceof ApiError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOSPC" || code === "EDQUOT") {
      throw insufficientStorage("the disk of the root directory is full: nothing was changed, and pods keep running");
    }
    throw internalError(`cannot keep the object: ${message}`);
  }
}

/**
 * Query parameters of a write.
 * @throws ApiError 400
 */
export function parseWriteRequest(
  query: URLSearchParams,
  userAgent: string | null,
  warn: (message: string) => void,
): WriteRequest {
  const dryRun = query.getAll("dryRun").filter((value) => value !== "");
  if (dryRun.some((value) => value !== "All")) {
    throw badRequest(`dryRun: Unsupported value: ${JSON.stringify(dryRun)}: supported values: "All"`);
  }
  const fieldValidation = query.get("fieldValidation") || "Warn";
  if (fieldValidation !== "Strict" && fieldValidation !== "Warn" && fieldValidation !== "Ignore") {
    throw badRequest(
      `fieldValidation: Unsupported value: "${fieldValidation}": supported values: "Ignore", "Strict", "Warn"`,
    );
  }
  const manager = query.get("fieldManager") || (userAgent ?? "").split("/", 1)[0]!.trim() || "unknown";
  if (manager.length > 128) throw badRequest("fieldManager: Too long: may not be more than 128 bytes");
  return { manager, dryRun: dryRun.length > 0, fieldValidation, warn };
}

/** Updates of a manager. @param subresource "" for the object itself */
export const updateManager = (definition: ResourceDefinition, manager: string, subresource: string): Manager => ({
  name: manager,
  operation: "Update",
  apiVersion: apiVersionOf(definition),
  ...(subresource !== "" && { subresource }),
});

/**
 * Reads an object through its schema: defaults, validation, unknown fields.
 * @throws ApiError 400 for unknown fields under `Strict`, 422 for what is wrong
 */
export function decodeObject(
  definition: ResourceDefinition,
  object: ApiObject,
  request: WriteRequest,
  reader: ObjectReader,
  known: readonly StatusCause[] = [],
): ApiObject {
  const { name } = object.metadata;
  if (!definition.decode) {
    refuseInvalid(definition, name, known);
    return object;
  }
  const { object: decoded, causes, unknown, warnings } = definition.decode(object, reader);
  reportBadFields(definition, unknown, request);
  for (const message of warnings) request.warn(message);
  const more = causes.filter(({ field }) => !known.some((cause) => cause.field === field));
  refuseInvalid(definition, name, [...known, ...more]);
  return decoded;
}

/**
 * Handles fields that the schema does not know or that occur twice as the request wants it.
 * @throws ApiError 400 under `Strict`
 */
export function reportBadFields(
  { kind, version }: Pick<ResourceDefinition, "kind" | "version">,
  findings: readonly string[],
  { fieldValidation, warn }: Pick<WriteRequest, "fieldValidation" | "warn">,
): void {
  if (findings.length > 0 && fieldValidation === "Strict") {
    throw badRequest(
      `${kind} in version "${version}" cannot be handled as a ${kind}: strict decoding error: ${findings.join(", ")}`,
    );
  }
  if (fieldValidation === "Warn") for (const finding of findings) warn(finding);
}

/** @throws ApiError 422 when there is any cause */
export function refuseInvalid(definition: ResourceDefinition, name: string, causes: readonly StatusCause[]): void {
  if (causes.length > 0) throw invalid(definition.group, definition.kind, name, causes);
}

import type * as v from "valibot";
import type { Finding } from "../../base/model/finding.ts";
import { type DecodeIssue, decodeObject, isTypeIssue } from "../../manifest/decode/decode.ts";
import { objectShapeOf } from "../../manifest/decode/shape.ts";
import { FieldPath } from "../../manifest/field.ts";
import { readManifestValue } from "../../manifest/read-manifest.ts";
import { toSourceNode } from "../../manifest/yaml/source-node.ts";
import type { StatusCause } from "../api-error.ts";
import type { ApiMetadata, ApiObject } from "../api-object.ts";

/** A decoded object, its errors, and its fields outside the schema. */
export interface Decoded {
  /** Defaults filled in; fields outside the schema are omitted. */
  object: ApiObject;
  /** Each becomes a cause of a 422. */
  causes: readonly StatusCause[];
  /** e.g. `unknown field "spec.foo"`: refused, returned as a warning, or ignored, depending on `fieldValidation`. */
  unknown: readonly string[];
  /** Returned as warnings regardless of `fieldValidation`. */
  warnings: readonly string[];
}

interface ObjectReaderOptions {
  nodeName: string;
  allowPrivileged: boolean;
}

/** Words of `field.Error` in upstream's messages. */
const TYPE_WORDS: Readonly<Record<string, string>> = {
  FieldValueRequired: "Required value",
  FieldValueInvalid: "Invalid value",
  FieldValueNotSupported: "Unsupported value",
  FieldValueForbidden: "Forbidden",
  FieldValueNotFound: "Not found",
  FieldValueDuplicate: "Duplicate value",
  FieldValueTooLong: "Too long",
  DecodeError: "Invalid value",
};

/**
 * Reads what clients send by the rules of manifest files, but as the API does: unknown fields are warnings, names keep
 * their form.
 */
export class ObjectReader {
  readonly #options: ObjectReaderOptions;

  constructor(options: ObjectReaderOptions) {
    this.#options = options;
  }

  /** @param allowEphemeralContainers as running pods may have them */
  read(object: ApiObject, allowEphemeralContainers = false): Decoded {
    const { status, metadata, ...rest } = object;
    const { managedFields, ...written } = metadata;
    const { findings, results, configMaps, secrets, objects } = readManifestValue(
      { ...rest, metadata: written },
      { ...this.#options, file: "request", source: "api", strictness: "warn", allowEphemeralContainers },
    );
    const known = findings.filter(({ code }) => code !== "unknown");
    const causes = known.filter(({ severity }) => severity === "error").map(toCause);
    const unknown = findings.filter(({ code }) => code === "unknown").map(({ field }) => `unknown field "${field}"`);
    const warnings = known
      .filter(({ severity }) => severity === "warning")
      .map(({ field, message }) => (field === "" ? message : `${field}: ${message}`));
    const found = results[0]?.pod ?? configMaps[0] ?? secrets[0] ?? objects[0]?.object;
    if (!found) {
      const nothing = { reason: "FieldValueInvalid", message: "the object could not be read" };
      return { object, causes: causes.length > 0 ? causes : [nothing], unknown, warnings };
    }
    return { object: withType(object, found, status, managedFields), causes, unknown, warnings };
  }
}

/** Kinds that manifests have too: one set of rules for every source. */
export const byManifest = (object: ApiObject, reader: ObjectReader): Decoded => reader.read(object);

/** Kinds that only the API has. */
export const bySchema = (schema: v.GenericSchema<unknown, unknown>) => {
  const shape = objectShapeOf(schema as v.GenericSchema);
  return ({ apiVersion, kind, metadata: { managedFields, ...metadata }, status, ...rest }: ApiObject): Decoded => {
    const issues: DecodeIssue[] = [];
    const found = decodeObject(toSourceNode({ ...rest, metadata }), shape, FieldPath.root, issues) as {
      metadata: ApiMetadata;
    };
    const [wrong, unknown] = [issues.filter(isTypeIssue), issues.filter((issue) => !isTypeIssue(issue))];
    return {
      object: withType({ apiVersion, kind, metadata }, found, status, managedFields),
      causes: wrong.map(({ path, message }) => ({
        reason: "FieldValueInvalid",
        field: path.toString(),
        message: `Invalid value: ${message}`,
      })),
      unknown: unknown.map(({ path }) => `unknown field "${path.toString()}"`),
      warnings: [],
    };
  };
};

/** The object as the API has it; maps of the reader have no prototype, which JSON does not show. */
function withType(
  { apiVersion, kind }: Pick<ApiObject, "apiVersion" | "kind" | "metadata">,
  found: object,
  status: unknown,
  managedFields: ApiMetadata["managedFields"],
): ApiObject {
  const plain = JSON.parse(JSON.stringify(found)) as { metadata: ApiMetadata; status?: unknown };
  const { metadata, status: initial, ...fields } = plain;
  const shown = status ?? initial;
  return {
    apiVersion,
    kind,
    metadata: { ...metadata, ...(managedFields && { managedFields }) },
    ...fields,
    ...(shown !== undefined && { status: shown }),
  };
}

function toCause({ type = "FieldValueInvalid", field, message }: Finding): StatusCause {
  return { reason: type, field, message: `${TYPE_WORDS[type] ?? "Invalid value"}: ${message}` };
}

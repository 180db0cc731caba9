import type { Finding } from "../../base/model/finding.ts";
import type { ManifestResult } from "../../manifest/manifest-result.ts";
import type { StatusCause } from "../api-error.ts";
import type { ApiMetadata, ApiObject } from "../api-object.ts";
import type { Decoded } from "../resource-definition.ts";

/** Reads the bytes of one manifest as those of an API client: unknown fields are warnings, names keep their form. */
export type ReadSubmitted = (bytes: Uint8Array) => ManifestResult;

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

/** Decodes Pods, ConfigMaps and Secrets with the reader of manifest files: one set of rules for every source. */
export function decodeByManifest(read: ReadSubmitted, object: ApiObject): Decoded {
  const { status, metadata, ...rest } = object;
  const { managedFields, ...written } = metadata;
  const result = read(Buffer.from(JSON.stringify({ ...rest, metadata: written })));
  const causes = result.findings
    .filter(({ code, severity }) => severity === "error" && code !== "unknown")
    .map(toCause);
  const unknown = result.findings.filter(({ code }) => code === "unknown").map(describeUnknown);
  const warnings = result.findings
    .filter(({ code, severity }) => severity === "warning" && code !== "unknown")
    .map(({ field, message }) => (field === "" ? message : `${field}: ${message}`));
  const found = result.results[0]?.pod ?? result.configMaps[0] ?? result.secrets[0] ?? result.objects[0]?.object;
  if (!found) {
    const nothing = { reason: "FieldValueInvalid", message: "the object could not be read" };
    return { object, causes: causes.length > 0 ? causes : [nothing], unknown, warnings };
  }
  const decoded = JSON.parse(JSON.stringify(found)) as { metadata: ApiMetadata; status?: unknown };
  const { metadata: read_, status: initial, ...fields } = decoded;
  const whole = {
    apiVersion: object.apiVersion,
    kind: object.kind,
    metadata: { ...read_, ...(managedFields && { managedFields }) },
    ...fields,
    ...((status ?? initial) !== undefined && { status: status ?? initial }),
  } as ApiObject;
  return { object: whole, causes, unknown, warnings };
}

function toCause({ type = "FieldValueInvalid", field, message }: Finding): StatusCause {
  return { reason: type, field, message: `${TYPE_WORDS[type] ?? "Invalid value"}: ${message}` };
}

const describeUnknown = ({ field }: Finding) => `unknown field "${field}"`;

/** Causes for refusing a change of an object that was declared immutable. Source: core validation. */
export function refuseImmutable(next: ApiObject, previous: ApiObject): StatusCause[] {
  if (previous.immutable !== true) return [];
  const fields = ["data", "binaryData", "immutable", "type"].filter(
    (name) => !Bun.deepEquals(next[name], previous[name]),
  );
  return fields.map((field) => ({
    reason: "FieldValueForbidden",
    field,
    message: "Forbidden: field is immutable when `immutable` is set",
  }));
}

import { parseSecretFrom, SECRET_FROM_ANNOTATION } from "../../base/api/annotations.ts";
import type { ConfigMap, Secret } from "../../base/api/config-objects.ts";
import { isRecord, jsonIfValid } from "../../base/text/json.ts";
import type { Field } from "../field.ts";
import { byteLength, checkConfigKey, validateMetadata } from "./names.ts";

/** Limit of all values of one object together. */
const MAX_DATA_BYTES = 1024 * 1024;

/** Source: core validation `ValidateConfigMap`. */
export function validateConfigMap(configMap: Field<ConfigMap>): void {
  validateMetadata(configMap.field("metadata"));
  const data = configMap.field("data");
  const size = validateData(data, byteLength) + validateData(configMap.field("binaryData"), decodedLength);
  for (const [key, value] of data.entries()) {
    if (configMap.value.binaryData?.[key] !== undefined) value.key(key).invalid("is also in binaryData");
  }
  if (size > MAX_DATA_BYTES) data.tooLong(`${MAX_DATA_BYTES} bytes in all its values`);
}

/** @returns the size of all values. Unit: bytes. */
function validateData(data: Field<Record<string, string> | undefined>, sizeOf: (value: string) => number): number {
  let size = 0;
  for (const [key, value] of data.entries()) {
    value.key(key).format(checkConfigKey);
    size += sizeOf(value.value);
  }
  return size;
}

/** Required keys by type of Secret; `kubernetes.io/basic-auth` requires one of two and is checked separately. */
const REQUIRED_KEYS: ReadonlyMap<string, readonly string[]> = new Map([
  ["kubernetes.io/dockercfg", [".dockercfg"]],
  ["kubernetes.io/dockerconfigjson", [".dockerconfigjson"]],
  ["kubernetes.io/ssh-auth", ["ssh-privatekey"]],
  ["kubernetes.io/tls", ["tls.crt", "tls.key"]],
]);

/**
 * Validates a Secret; messages never contain values. Source: core validation `ValidateSecret`.
 * @param secret with `stringData` already in `data`
 */
export function validateSecret(secret: Field<Secret>): void {
  validateMetadata(secret.field("metadata"));
  const data = secret.field("data");
  const size = validateData(data, decodedLength);
  if (size > MAX_DATA_BYTES) data.tooLong(`${MAX_DATA_BYTES} bytes in all its values`);
  if (validateSecretFrom(secret)) validateSecretType(secret);
}

/** @returns whether all values are in the manifest: those of files are checked where they are used */
function validateSecretFrom(secret: Field<Secret>): boolean {
  const { metadata, data = {} } = secret.value;
  const from = metadata.annotations?.[SECRET_FROM_ANNOTATION];
  if (from === undefined) return true;
  const parsed = parseSecretFrom(from);
  if ("problem" in parsed) {
    secret.field("metadata").field("annotations").entry(SECRET_FROM_ANNOTATION).invalid(parsed.problem);
    return true;
  }
  for (const { key } of parsed.filter((source) => Object.hasOwn(data, source.key))) {
    secret.field("data").entry(key).with("***").invalid(`is set here and by ${SECRET_FROM_ANNOTATION}`);
  }
  return false;
}

function validateSecretType(secret: Field<Secret>): void {
  const { type, data = {}, metadata } = secret.value;
  const fields = secret.field("data").with(data);
  for (const key of REQUIRED_KEYS.get(type) ?? []) {
    const isMissing = !Object.hasOwn(data, key) || (type === "kubernetes.io/ssh-auth" && data[key] === "");
    if (isMissing) fields.entry(key).required(`is required in a Secret of type ${type}`);
    else if (type.startsWith("kubernetes.io/dockerc") && !isJsonObject(data[key]!)) {
      fields.entry(key).with("***").invalid("must be a JSON object (contents not shown)");
    }
  }
  if (type === "kubernetes.io/basic-auth" && !Object.hasOwn(data, "username") && !Object.hasOwn(data, "password")) {
    for (const key of ["username", "password"]) fields.entry(key).required(`is required in a Secret of type ${type}`);
  }
  const account = "kubernetes.io/service-account.name";
  const { annotations = {} } = metadata;
  if (type === "kubernetes.io/service-account-token" && !annotations[account]) {
    secret.field("metadata").field("annotations").with(annotations).entry(account).required();
  }
}

/** Decoded length of padded base64. Unit: bytes. */
function decodedLength(base64: string): number {
  return (base64.length / 4) * 3 - (base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0);
}

const isJsonObject = (base64: string): boolean => isRecord(jsonIfValid(Buffer.from(base64, "base64").toString("utf8")));

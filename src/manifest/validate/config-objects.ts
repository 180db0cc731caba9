import { SECRET_FROM_ANNOTATION } from "../../base/api/annotations.ts";
import type { ConfigMap } from "../../base/api/config-map.ts";
import type { Secret } from "../../base/api/secret.ts";
import { parseSecretFrom } from "../../base/api/secret-from.ts";
import { isRecord } from "../../base/text/json.ts";
import type { FieldPath } from "../field-path.ts";
import { FieldErrors } from "./field-errors.ts";
import { validateMetadata } from "./metadata.ts";
import { byteLength, checkConfigKey } from "./names.ts";

/** Limit of all values of one object together. */
const MAX_DATA_BYTES = 1024 * 1024;

/** Source: core validation `ValidateConfigMap`. */
export function validateConfigMap(configMap: ConfigMap, path: FieldPath): FieldErrors {
  const errors = new FieldErrors();
  validateMetadata(configMap.metadata, path.child("metadata"), errors);
  let size = 0;
  for (const name of ["data", "binaryData"] as const) {
    for (const [key, value] of Object.entries(configMap[name] ?? {})) {
      const keyPath = path.child(name).key(key);
      errors.invalidAll(keyPath, key, checkConfigKey(key), { at: keyPath, atKey: true });
      size += name === "data" ? byteLength(value) : decodedLength(value);
    }
  }
  for (const key of Object.keys(configMap.data ?? {})) {
    if (configMap.binaryData?.[key] === undefined) continue;
    const keyPath = path.child("data").key(key);
    errors.invalid(keyPath, key, "is also in binaryData", { at: keyPath, atKey: true });
  }
  if (size > MAX_DATA_BYTES) errors.tooLong(path.child("data"), `${MAX_DATA_BYTES} bytes in all its values`);
  return errors;
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
export function validateSecret(secret: Secret, path: FieldPath): FieldErrors {
  const errors = new FieldErrors();
  validateMetadata(secret.metadata, path.child("metadata"), errors);
  const data = secret.data ?? {};
  const dataPath = path.child("data");
  let size = 0;
  for (const [key, value] of Object.entries(data)) {
    const keyPath = dataPath.key(key);
    errors.invalidAll(keyPath, key, checkConfigKey(key), { at: keyPath, atKey: true });
    size += decodedLength(value);
  }
  if (size > MAX_DATA_BYTES) errors.tooLong(dataPath, `${MAX_DATA_BYTES} bytes in all its values`);
  if (validateSecretFrom(secret, path, errors)) validateSecretType(secret, path, errors);
  return errors;
}

/** @returns whether all values are in the manifest: those of files are checked where they are used */
function validateSecretFrom({ metadata, data = {} }: Secret, path: FieldPath, errors: FieldErrors): boolean {
  const from = metadata.annotations?.[SECRET_FROM_ANNOTATION];
  if (from === undefined) return true;
  const parsed = parseSecretFrom(from);
  if ("problem" in parsed) {
    errors.invalid(path.child("metadata").child("annotations").key(SECRET_FROM_ANNOTATION), from, parsed.problem);
    return true;
  }
  for (const { key } of parsed.filter((source) => Object.hasOwn(data, source.key))) {
    errors.invalid(path.child("data").key(key), "***", `is set here and by ${SECRET_FROM_ANNOTATION}`);
  }
  return false;
}

function validateSecretType({ type, data = {}, metadata }: Secret, path: FieldPath, errors: FieldErrors): void {
  const dataPath = path.child("data");
  for (const key of REQUIRED_KEYS.get(type) ?? []) {
    const isMissing = !Object.hasOwn(data, key) || (type === "kubernetes.io/ssh-auth" && data[key] === "");
    if (isMissing) errors.required(dataPath.key(key), `is required in a Secret of type ${type}`);
    else if (type.startsWith("kubernetes.io/dockerc") && !isJsonObject(data[key]!)) {
      errors.invalid(dataPath.key(key), "***", "must be a JSON object (contents not shown)");
    }
  }
  if (type === "kubernetes.io/basic-auth" && !Object.hasOwn(data, "username") && !Object.hasOwn(data, "password")) {
    for (const key of ["username", "password"])
      errors.required(dataPath.key(key), `is required in a Secret of type ${type}`);
  }
  const account = "kubernetes.io/service-account.name";
  if (type === "kubernetes.io/service-account-token" && !metadata.annotations?.[account]) {
    errors.required(path.child("metadata").child("annotations").key(account));
  }
}

/** Decoded length of padded base64. Unit: bytes. */
function decodedLength(base64: string): number {
  return (base64.length / 4) * 3 - (base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0);
}

function isJsonObject(base64: string): boolean {
  try {
    return isRecord(JSON.parse(Buffer.from(base64, "base64").toString("utf8")));
  } catch {
    return false;
  }
}

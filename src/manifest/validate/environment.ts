import type {
  EnvFromSource,
  EnvVar,
  FileKeySelector,
  KeySelector,
  ObjectFieldSelector,
  ResourceFieldSelector,
} from "../../base/api/pod.ts";
import type { FieldPath } from "../field-path.ts";
import type { FieldErrors, Position } from "./field-errors.ts";
import {
  checkConfigKey,
  checkDnsSubdomain,
  checkDnsSubdomainPrefix,
  checkEnvName,
  checkQualifiedName,
  validateUnreservedPath,
} from "./names.ts";

export function validateEnv(env: readonly EnvVar[], path: FieldPath, errors: FieldErrors): void {
  for (const [index, variable] of env.entries()) {
    const itemPath = path.index(index);
    if (variable.name === "") errors.required(itemPath.child("name"));
    else errors.invalidAll(itemPath.child("name"), withoutValue(variable.name), checkEnvName(variable.name));
    if (variable.valueFrom) validateValueFrom(variable, itemPath.child("valueFrom"), errors);
  }
}

/** A name that was written as `NAME=VALUE`, without the value, which may be a password. */
const withoutValue = (name: string) => name.replace(/=.+/s, "=…");

const ENV_FIELDS = [
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.serviceAccountName",
  "status.hostIP",
  "status.hostIPs",
  "status.podIP",
  "status.podIPs",
];

function validateValueFrom(variable: EnvVar, path: FieldPath, errors: FieldErrors): void {
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef } = variable.valueFrom!;
  const sources = [fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef].filter(Boolean).length;
  if (fieldRef) validateFieldSelector(fieldRef, ENV_FIELDS, path.child("fieldRef"), errors);
  if (resourceFieldRef) validateResourceSelector(resourceFieldRef, path.child("resourceFieldRef"), errors, false);
  if (configMapKeyRef) validateKeySelector(configMapKeyRef, path.child("configMapKeyRef"), errors);
  if (secretKeyRef) validateKeySelector(secretKeyRef, path.child("secretKeyRef"), errors);
  if (fileKeyRef) validateFileKey(fileKeyRef, path.child("fileKeyRef"), errors);
  if (sources === 0) {
    const names = "fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef or fileKeyRef";
    errors.invalid(path, "", `must have one of ${names}`);
  } else if (variable.value !== undefined) errors.invalid(path, "", "must be absent when value is set");
  else if (sources > 1) errors.invalid(path, "", "must have only one source");
}

function validateKeySelector(selector: KeySelector, path: FieldPath, errors: FieldErrors): void {
  const name = selector.name ?? "";
  errors.invalidAll(path.child("name"), name, checkDnsSubdomain(name));
  if (selector.key === "") errors.required(path.child("key"));
  else errors.invalidAll(path.child("key"), selector.key, checkConfigKey(selector.key));
}

function validateFileKey(selector: FileKeySelector, path: FieldPath, errors: FieldErrors): void {
  if (selector.volumeName === "") errors.required(path.child("volumeName"));
  if (selector.path === "") errors.required(path.child("path"));
  else validateUnreservedPath(selector.path, path.child("path"), errors);
  if (selector.key === "") errors.required(path.child("key"));
  else errors.invalidAll(path.child("key"), selector.key, checkEnvName(selector.key));
}

export function validateEnvFrom(sources: readonly EnvFromSource[], path: FieldPath, errors: FieldErrors): void {
  for (const [index, source] of sources.entries()) {
    const itemPath = path.index(index);
    if (source.prefix !== undefined) {
      errors.invalidAll(itemPath.child("prefix"), source.prefix, checkEnvName(source.prefix));
    }
    for (const kind of ["configMapRef", "secretRef"] as const) {
      const reference = source[kind];
      if (!reference) continue;
      const namePath = itemPath.child(kind).child("name");
      if (reference.name === undefined) errors.required(namePath);
      else errors.invalidAll(namePath, reference.name, checkDnsSubdomainPrefix(reference.name));
    }
    const position = { at: itemPath };
    if (!source.configMapRef && !source.secretRef)
      errors.invalid(path, "", "must have configMapRef or secretRef", position);
    if (source.configMapRef && source.secretRef) {
      errors.invalid(path, "", "must have only one of configMapRef and secretRef", position);
    }
  }
}

/** Fields of a pod that the downward API knows; each use allows some of them. */
const KNOWN_FIELDS = [
  ...ENV_FIELDS,
  "metadata.annotations",
  "metadata.labels",
  "spec.restartPolicy",
  "spec.schedulerName",
  "spec.host",
  "status.phase",
];

export function validateFieldSelector(
  selector: ObjectFieldSelector,
  allowed: readonly string[],
  path: FieldPath,
  errors: FieldErrors,
  position?: Position,
): void {
  const { fieldPath } = selector;
  const fieldPathPath = path.child("fieldPath");
  if (fieldPath === "") return errors.required(fieldPathPath, "", position);
  if (selector.apiVersion !== "v1") {
    return errors.invalid(fieldPathPath, fieldPath, `there is no version ${selector.apiVersion} of a pod`, position);
  }
  const subscript = splitSubscript(fieldPath);
  if (subscript) {
    const [field, key] = subscript;
    if (field === "metadata.annotations")
      return errors.invalidAll(path, key, checkQualifiedName(key.toLowerCase()), position);
    if (field === "metadata.labels") return errors.invalidAll(path, key, checkQualifiedName(key), position);
    return errors.invalid(
      fieldPathPath,
      fieldPath,
      "only metadata.labels and metadata.annotations take a ['key']",
      position,
    );
  }
  if (!KNOWN_FIELDS.includes(fieldPath)) {
    const names = [...allowed, "metadata.labels['key']", "metadata.annotations['key']"].join(", ");
    return errors.invalid(fieldPathPath, fieldPath, `must be one of ${names}`, position);
  }
  const canonical = fieldPath === "spec.host" ? "spec.nodeName" : fieldPath;
  if (!allowed.includes(canonical)) errors.notSupported(fieldPathPath, fieldPath, allowed, position);
}

/** Splits `metadata.labels['key']`. */
function splitSubscript(fieldPath: string): [field: string, key: string] | undefined {
  const open = fieldPath.indexOf("['");
  if (!fieldPath.endsWith("']") || open < 1 || open + 2 > fieldPath.length - 2) return undefined;
  return [fieldPath.slice(0, open), fieldPath.slice(open + 2, -2)];
}

const RESOURCE_FIELDS = [
  "limits.cpu",
  "limits.memory",
  "limits.ephemeral-storage",
  "requests.cpu",
  "requests.memory",
  "requests.ephemeral-storage",
];
const CPU_DIVISORS = ["1m", "1"];
const BYTE_DIVISORS = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

export function validateResourceSelector(
  selector: ResourceFieldSelector,
  path: FieldPath,
  errors: FieldErrors,
  inVolume: boolean,
  position?: Position,
): void {
  const { resource, divisor } = selector;
  const isHugePages = /^(?:limits|requests)\.hugepages-/.test(resource);
  if (inVolume && selector.containerName === undefined) errors.required(path.child("containerName"), "", position);
  else if (resource === "") errors.required(path.child("resource"), "", position);
  else if (!RESOURCE_FIELDS.includes(resource) && !isHugePages) {
    errors.notSupported(path.child("resource"), resource, RESOURCE_FIELDS, position);
  }
  if (divisor === "0") return;
  const divisors = /^(?:limits|requests)\.cpu$/.test(resource) ? CPU_DIVISORS : BYTE_DIVISORS;
  const checked = RESOURCE_FIELDS.includes(resource) || isHugePages;
  if (checked && !divisors.includes(divisor)) {
    errors.invalid(path.child("divisor"), divisor, `must be one of ${divisors.join(", ")}`, position);
  }
}

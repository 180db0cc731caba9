import type { ObjectMeta } from "../../base/api/meta.ts";
import type { FieldPath } from "../field-path.ts";
import type { FieldErrors } from "./field-errors.ts";
import {
  byteLength,
  checkDnsLabel,
  checkDnsSubdomain,
  checkDnsSubdomainPrefix,
  checkQualifiedName,
  validateLabels,
} from "./names.ts";

const MAX_ANNOTATION_BYTES = 256 * 1024;
const STANDARD_FINALIZERS = ["kubernetes", "orphan", "foregroundDeletion"];
const MAX_FIELD_MANAGER_BYTES = 128;

const NAME_REQUIRED = 'is required: write "name: NAME" under metadata';

/** The name as the author wrote it. */
const withoutSuffix = (name: string, suffix = ""): string =>
  suffix !== "" && name.endsWith(suffix) ? name.slice(0, -suffix.length) : name;

/**
 * Validates metadata of a namespaced object whose name is a DNS subdomain. The name of a pod already has its node suffix.
 * Source: apimachinery `pkg/api/validation`.
 * @param nameless the name that results from a manifest without one: the suffix alone
 */
export function validateMetadata(metadata: ObjectMeta, path: FieldPath, errors: FieldErrors, nameless?: string): void {
  if (metadata.generateName !== undefined) {
    const prefix = metadata.generateName;
    errors.invalidAll(path.child("generateName"), prefix, checkDnsSubdomainPrefix(prefix));
  }
  const { name } = metadata;
  const namePath = path.child("name");
  if (name === undefined) errors.required(namePath, NAME_REQUIRED);
  // Upstream reports the bare suffix as a malformed name; the message says that the name is missing.
  else if (name === nameless) errors.absent(namePath, NAME_REQUIRED);
  else errors.invalidAll(namePath, withoutSuffix(name, nameless), checkDnsSubdomain(name));
  const namespace = metadata.namespace ?? "";
  errors.invalidAll(path.child("namespace"), namespace, checkDnsLabel(namespace));
  const generation = metadata.generation ?? 0;
  if (generation < 0) errors.invalid(path.child("generation"), generation, "must be 0 or more");
  validateLabels(metadata.labels ?? {}, path.child("labels"), errors);
  validateAnnotations(metadata.annotations ?? {}, path.child("annotations"), errors);
  validateOwnerReferences(metadata.ownerReferences ?? [], path.child("ownerReferences"), errors);
  validateFinalizers(metadata.finalizers ?? [], path.child("finalizers"), errors);
  for (const [index, entry] of (metadata.managedFields ?? []).entries()) {
    const entryPath = path.child("managedFields").index(index);
    if (entry.operation !== "Apply" && entry.operation !== "Update") {
      errors.invalid(entryPath.child("operation"), entry.operation, "must be Apply or Update");
    }
    if (entry.fieldsType !== "FieldsV1") {
      errors.invalid(entryPath.child("fieldsType"), entry.fieldsType, "must be FieldsV1");
    }
    if (byteLength(entry.manager ?? "") > MAX_FIELD_MANAGER_BYTES) {
      errors.tooLong(entryPath.child("manager"), `${MAX_FIELD_MANAGER_BYTES} characters`);
    }
  }
}

export function validateAnnotations(
  annotations: Readonly<Record<string, string>>,
  path: FieldPath,
  errors: FieldErrors,
): void {
  let size = 0;
  for (const [key, value] of Object.entries(annotations)) {
    errors.invalidAll(path, key, checkQualifiedName(key.toLowerCase()), { at: path.key(key), atKey: true });
    size += byteLength(key) + byteLength(value);
  }
  if (size > MAX_ANNOTATION_BYTES) errors.tooLong(path, `${MAX_ANNOTATION_BYTES} bytes`);
}

function validateOwnerReferences(
  references: NonNullable<ObjectMeta["ownerReferences"]>,
  path: FieldPath,
  errors: FieldErrors,
): void {
  let controllers = 0;
  for (const [index, reference] of references.entries()) {
    const at = path.index(index);
    const version = versionOf(reference.apiVersion);
    if (version === "") {
      const position = { at: at.child("apiVersion") };
      errors.invalid(path.child("apiVersion"), reference.apiVersion, "version must not be empty", position);
    }
    for (const name of ["kind", "name", "uid"] as const) {
      if (reference[name] === "") errors.invalid(path.child(name), "", "must not be empty", { at: at.child(name) });
    }
    if (reference.apiVersion === "v1" && reference.kind === "Event") {
      errors.invalid(path, "v1 Event", "an Event cannot be an owner", { at });
    }
    if (reference.controller && ++controllers === 2) {
      errors.invalid(path, reference.name, "only one reference can have controller set to true", { at });
    }
  }
}

/** Version of `group/version` or `version`; "" when missing or malformed. */
function versionOf(apiVersion: string): string {
  const parts = apiVersion.split("/");
  return parts.length > 2 ? "" : parts.at(-1)!;
}

function validateFinalizers(finalizers: readonly string[], path: FieldPath, errors: FieldErrors): void {
  for (const [index, finalizer] of finalizers.entries()) {
    errors.invalidAll(path, finalizer, checkQualifiedName(finalizer), { at: path.index(index) });
    if (!finalizer.includes("/") && !STANDARD_FINALIZERS.includes(finalizer)) {
      errors.invalid(path.index(index), finalizer, "must be a standard finalizer or have a domain, '/' and a name");
    }
  }
  if (finalizers.includes("orphan") && finalizers.includes("foregroundDeletion")) {
    errors.invalid(path, finalizers, "orphan and foregroundDeletion exclude each other");
  }
}

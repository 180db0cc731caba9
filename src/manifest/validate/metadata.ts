import type { ObjectMeta } from "../../base/api/meta.ts";
import type { Field } from "../field.ts";
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

/**
 * Validates metadata of a namespaced object whose name is a DNS subdomain. The name of a pod already has its node suffix.
 * Source: apimachinery `pkg/api/validation`.
 * @param suffix of the name, which is the whole name when the manifest has none
 */
export function validateMetadata(metadata: Field<ObjectMeta>, suffix = ""): void {
  metadata.field("generateName").format(checkDnsSubdomainPrefix);
  const name = metadata.field("name");
  if (name.value === undefined) name.required(NAME_REQUIRED);
  // Upstream reports the bare suffix as a malformed name; the message says that the name is missing.
  else if (suffix !== "" && name.value === suffix) name.absent(NAME_REQUIRED);
  else {
    // Shown as the author wrote it.
    const written = name.value.endsWith(suffix) ? name.value.slice(0, name.value.length - suffix.length) : name.value;
    name.with(written).format(() => checkDnsSubdomain(name.value!));
  }
  metadata
    .field("namespace")
    .with(metadata.value.namespace ?? "")
    .format(checkDnsLabel);
  metadata.field("generation").nonNegative();
  validateLabels(metadata.field("labels"));
  validateAnnotations(metadata.field("annotations"));
  validateOwnerReferences(metadata.field("ownerReferences"));
  validateFinalizers(metadata.field("finalizers"));
  for (const entry of metadata.field("managedFields").items()) {
    const { operation, fieldsType, manager = "" } = entry.value;
    if (operation !== "Apply" && operation !== "Update") entry.field("operation").invalid("must be Apply or Update");
    if (fieldsType !== "FieldsV1") entry.field("fieldsType").invalid("must be FieldsV1");
    if (byteLength(manager) > MAX_FIELD_MANAGER_BYTES)
      entry.field("manager").tooLong(`${MAX_FIELD_MANAGER_BYTES} characters`);
  }
}

export function validateAnnotations(annotations: Field<Readonly<Record<string, string>> | undefined>): void {
  let size = 0;
  for (const [key, value] of annotations.entries()) {
    value
      .key(key)
      .as(annotations.path)
      .format((name) => checkQualifiedName(name.toLowerCase()));
    size += byteLength(key) + byteLength(value.value);
  }
  if (size > MAX_ANNOTATION_BYTES) annotations.tooLong(`${MAX_ANNOTATION_BYTES} bytes`);
}

/** Upstream reports the references without their index. */
function validateOwnerReferences(references: Field<ObjectMeta["ownerReferences"]>): void {
  const { path } = references;
  let controllers = 0;
  for (const reference of references.items()) {
    const { apiVersion, kind, name, controller } = reference.value;
    if (versionOf(apiVersion) === "")
      reference.field("apiVersion").as(path.child("apiVersion")).invalid("version must not be empty");
    for (const field of ["kind", "name", "uid"] as const) {
      if (reference.value[field] === "") reference.field(field).as(path.child(field)).invalid("must not be empty");
    }
    if (apiVersion === "v1" && kind === "Event") {
      reference.with("v1 Event").as(path).invalid("an Event cannot be an owner");
    }
    if (controller && ++controllers === 2) {
      reference.with(name).as(path).invalid("only one reference can have controller set to true");
    }
  }
}

/** Version of `group/version` or `version`; "" when missing or malformed. */
function versionOf(apiVersion: string): string {
  const parts = apiVersion.split("/");
  return parts.length > 2 ? "" : parts.at(-1)!;
}

function validateFinalizers(finalizers: Field<readonly string[] | undefined>): void {
  for (const finalizer of finalizers.items()) {
    const { value } = finalizer;
    finalizer.as(finalizers.path).format(checkQualifiedName);
    if (!value.includes("/") && !STANDARD_FINALIZERS.includes(value))
      finalizer.invalid("must be a standard finalizer or have a domain, '/' and a name");
  }
  if (finalizers.value?.includes("orphan") && finalizers.value.includes("foregroundDeletion")) {
    finalizers.invalid("orphan and foregroundDeletion exclude each other");
  }
}

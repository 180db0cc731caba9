import { isIPv4, isIPv6 } from "node:net";
import type { ObjectMeta } from "../../base/api/meta.ts";
import type { Field } from "../field.ts";

// Formats of names. Each check returns one message per violated rule.
// Source: apimachinery `pkg/util/validation`.

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const SEARCH_DOMAIN = /^_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*$/;
const QUALIFIED = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const LABEL_VALUE = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/;

/** Length in UTF-8 bytes, as Go counts. */
export const byteLength = (text: string): number => Buffer.byteLength(text, "utf8");

const SPACE_AROUND = /^(?!\ufeff)[\s\x85]|(?!\ufeff)[\s\x85]$/;

/** White space by Go's `strings.TrimSpace`: excludes the byte order mark, includes U+0085. */
export const hasSpaceAround = (text: string): boolean => SPACE_AROUND.test(text);

function tooLong(value: string, limit: number): string[] {
  return byteLength(value) > limit ? [`must be no more than ${limit} characters`] : [];
}

const LABEL_MESSAGE =
  "must consist of lower case letters, digits or '-', and begin and end with a letter or digit (a DNS label)";
const SUBDOMAIN_MESSAGE =
  "must consist of lower case letters, digits, '-' or '.', and begin and end with a letter or digit (a DNS subdomain)";

const formatOf = (limit: number, pattern: RegExp, message: string) => (value: string) => [
  ...tooLong(value, limit),
  ...(pattern.test(value) ? [] : [message]),
];

export const checkDnsLabel = formatOf(63, LABEL, LABEL_MESSAGE);

export const checkDnsSubdomain = formatOf(253, SUBDOMAIN, SUBDOMAIN_MESSAGE);

/** A search domain: a subdomain whose parts may contain underscores. */
export const checkSearchDomain = formatOf(253, SEARCH_DOMAIN, SUBDOMAIN_MESSAGE);

/** {@link checkDnsSubdomain} for a prefix of names, which may end with a dash. */
export function checkDnsSubdomainPrefix(value: string): string[] {
  return checkDnsSubdomain(value.length > 1 && value.endsWith("-") ? `${value.slice(0, -2)}a` : value);
}

/** `name` or `prefix/name`: keys of labels and annotations. */
export function checkQualifiedName(value: string): string[] {
  const parts = value.split("/");
  if (parts.length > 2) return ["must be a name, or a DNS subdomain, '/' and a name"];
  const messages: string[] = [];
  const name = parts.at(-1)!;
  if (parts.length === 2) {
    if (parts[0] === "") messages.push("the part before '/' must not be empty");
    else messages.push(...checkDnsSubdomain(parts[0]!).map((message) => `the part before '/' ${message}`));
  }
  if (name === "") messages.push("the name must not be empty");
  else messages.push(...tooLong(name, 63).map((message) => `the name ${message}`));
  if (!QUALIFIED.test(name)) {
    messages.push(
      "the name must consist of letters, digits, '-', '_' or '.', and begin and end with a letter or digit",
    );
  }
  return messages;
}

export const checkLabelValue = formatOf(
  63,
  LABEL_VALUE,
  "must be empty, or consist of letters, digits, '-', '_' or '.', and begin and end with a letter or digit",
);

/** Since Kubernetes 1.34: printable ASCII characters except `=`. */
export function checkEnvName(value: string): string[] {
  return /^[ -<>-~]+$/.test(value) ? [] : ["must consist of printable ASCII characters other than '='"];
}

/** Keys of ConfigMaps and Secrets become file names. */
export function checkConfigKey(value: string): string[] {
  const messages = tooLong(value, 253);
  if (!/^[-._a-zA-Z0-9]+$/.test(value)) messages.push("must consist of letters, digits, '-', '_' or '.'");
  if (value === ".") messages.push("must not be '.'");
  else if (value === "..") messages.push("must not be '..'");
  else if (value.startsWith("..")) messages.push("must not start with '..'");
  return messages;
}

export function checkPortNumber(value: number): string[] {
  return value >= 1 && value <= 65535 ? [] : ["must be between 1 and 65535"];
}

export function checkPortName(value: string): string[] {
  const messages: string[] = [];
  if (byteLength(value) > 15) messages.push("must be no more than 15 characters");
  if (!/^[-a-z0-9]+$/.test(value)) messages.push("must consist of lower case letters, digits and '-'");
  if (!/[a-z]/.test(value)) messages.push("must contain at least one letter (a port number is written without quotes)");
  if (value.includes("--")) messages.push("must not contain '--'");
  if (value.startsWith("-") || value.endsWith("-")) messages.push("must not begin or end with '-'");
  return messages;
}

/** The number or the name of a port. */
export const checkPort = (port: number | string): string[] =>
  typeof port === "number" ? checkPortNumber(port) : checkPortName(port);

/** User and group ids. */
export function checkId(value: number): string[] {
  return value >= 0 && value <= 2147483647 ? [] : ["must be between 0 and 2147483647"];
}

export function checkHttpHeaderName(value: string): string[] {
  return /^[-A-Za-z0-9]+$/.test(value) ? [] : ["must consist of letters, digits and '-'"];
}

/** IPv4 without leading zeros, or IPv6 other than IPv4-mapped. */
export function checkIp(value: string): string[] {
  const isMapped = /^::ffff:/i.test(value) && value.includes(".");
  const isIp = isIPv4(value) || (isIPv6(value) && !isMapped && !value.includes("%"));
  return isIp ? [] : ["must be an IP address such as 10.9.8.7 or 2001:db8::ffff"];
}

/** Keys and values of labels; upstream reports both on the map itself. */
export function validateLabels(labels: Field<Readonly<Record<string, string>> | undefined>): void {
  for (const [key, value] of labels.entries()) {
    value.key(key).as(labels.path).format(checkQualifiedName);
    value.as(labels.path).format(checkLabelValue);
  }
}

export const hasBacksteps = (value: string): boolean => value.split("/").includes("..");

export function checkNoBacksteps(value: string): string[] {
  return hasBacksteps(value) ? ["must not contain '..'"] : [];
}

/** A path below a directory: relative, and without `..` elements. */
export function checkDescendingPath(value: string): string[] {
  return [...(value.startsWith("/") ? ["must be a relative path"] : []), ...checkNoBacksteps(value)];
}

/** {@link checkDescendingPath} for paths that must not begin with `..`, which the atomic writer reserves. */
export function checkUnreservedPath(value: string): string[] {
  const isReserved = value.startsWith("..") && !value.startsWith("../");
  return [...checkDescendingPath(value), ...(isReserved ? ["must not start with '..'"] : [])];
}

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

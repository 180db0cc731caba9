import { isIPv4, isIPv6 } from "node:net";
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

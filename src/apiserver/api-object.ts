import type { OwnerReference } from "../base/api/meta.ts";
import { memoized } from "../base/model/memoized.ts";
import { checkDnsSubdomain } from "../manifest/validate/names.ts";
import { badRequest, type StatusCause, tooManyValues } from "./api-error.ts";

/** As for manifests. */
const MAX_DEPTH = 100;

/** A set of fields as nested maps: `f:<name>`, `k:<keys as JSON>`, `v:<value as JSON>`, `.` for the field itself. */
export type FieldsV1 = { [step: string]: FieldsV1 };

/** Source: meta/v1 `ManagedFieldsEntry`. */
export interface ManagedFieldsEntry {
  manager?: string | undefined;
  operation?: string | undefined;
  apiVersion?: string | undefined;
  time?: string | undefined;
  fieldsType?: string | undefined;
  fieldsV1?: FieldsV1 | undefined;
  subresource?: string | undefined;
}

/** Metadata as far as the API server itself reads and writes it. Times are RFC 3339 in whole seconds. */
export interface ApiMetadata {
  name: string;
  /** Absent for kinds without a namespace. */
  namespace?: string | undefined;
  generateName?: string | undefined;
  uid?: string | undefined;
  resourceVersion?: string | undefined;
  generation?: number | undefined;
  creationTimestamp?: string | null | undefined;
  deletionTimestamp?: string | undefined;
  deletionGracePeriodSeconds?: number | undefined;
  labels?: Record<string, string> | undefined;
  annotations?: Record<string, string> | undefined;
  ownerReferences?: OwnerReference[] | undefined;
  finalizers?: string[] | undefined;
  managedFields?: ManagedFieldsEntry[] | undefined;
  [field: string]: unknown;
}

/** One object of the API, of any kind. Objects in the store are never changed in place. */
export interface ApiObject {
  apiVersion: string;
  kind: string;
  metadata: ApiMetadata;
  [field: string]: unknown;
}

/** `namespace/name`, or `/name` for kinds without a namespace. */
export type NamespacedName = `${string}/${string}`;

export const namespacedName = (namespace: string | undefined, name: string): NamespacedName =>
  `${namespace ?? ""}/${name}`;

export const keyOf = ({ metadata }: ApiObject): NamespacedName => namespacedName(metadata.namespace, metadata.name);

/** An object's JSON, made once for each version of the object. */
export const jsonOf = memoized((object: object) => JSON.stringify(object));

/** An object without what a dry run does not set. */
export function writtenPart({ metadata, ...object }: Readonly<Record<"metadata", object>>): unknown {
  const { resourceVersion: _version, managedFields: _fields, ...kept } = metadata as Partial<ApiMetadata>;
  return { ...object, metadata: kept };
}

/** No vowels, and no digits that look like letters: no names that mean something. Source: apimachinery's `rand.String`. */
const ALPHABET = "bcdfghjklmnpqrstvwxz2456789";
const RANDOM_LENGTH = 5;
const MAX_GENERATED_LENGTH = 63;

/** @param random in [0, 1) */
export function generateName(prefix: string, random: () => number): string {
  const letters = Array.from({ length: RANDOM_LENGTH }, () => ALPHABET[Math.floor(random() * ALPHABET.length)]);
  return prefix.slice(0, MAX_GENERATED_LENGTH - RANDOM_LENGTH) + letters.join("");
}

/** Causes for refusing a name. @param check the rule of all kinds; kinds with stricter rules check those too */
export function checkObjectName(name: string, check = checkDnsSubdomain): StatusCause[] {
  return check(name).map((message) => ({
    reason: "FieldValueInvalid",
    field: "metadata.name",
    message: `Invalid value: ${JSON.stringify(name)}: ${message}`,
  }));
}

/**
 * Values of one object, fields and items at every level, those of managedFields included: each takes time on the way to
 * the file. etcd's limit of 1.5 MiB refuses objects of some 100,000.
 */
export const MAX_VALUES = 30_000;

/** @throws ApiError 413 when a value has more than {@link MAX_VALUES}; 400 when it is nested more deeply than a manifest may be */
export function checkSize(value: unknown): void {
  let count = 0;
  let level = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) throw badRequest(`the object provided has more than ${MAX_DEPTH} levels of nesting`);
    const next: unknown[] = [];
    for (const one of level) {
      if (typeof one !== "object" || one === null) continue;
      const members = Object.values(one);
      count += members.length;
      if (count > MAX_VALUES) throw tooManyValues(MAX_VALUES);
      for (const member of members) next.push(member);
    }
    level = next;
  }
}

import { isRecord } from "../base/text/json.ts";
import type { FieldsV1, ManagedFieldsEntry } from "./api-object.ts";
import { define } from "./json-patch.ts";
import { isAtomicMap, isScalarSet, listMergeAt } from "./list-keys.ts";

/** Places of an object, as steps joined by a newline, with the value at each. */
type FieldValues = ReadonlyMap<string, unknown>;

const SEPARATOR = "\n";
/** Never owned: they name the object, or the server alone writes them. */
const SYSTEM_FIELDS = new Set([
  "name",
  "namespace",
  "generateName",
  "uid",
  "resourceVersion",
  "generation",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
  "managedFields",
  "selfLink",
]);

/** Every field of an object that a manager can own: leaves, items of keyed lists and members of sets. */
export function fieldsOf(object: unknown): FieldValues {
  const found = new Map<string, unknown>();
  if (!isRecord(object)) return found;
  for (const [name, value] of Object.entries(object)) {
    if (name === "apiVersion" || name === "kind") continue;
    if (name !== "metadata") collect(value, [`f:${name}`], [name], found);
    else if (isRecord(value)) {
      for (const [field, member] of Object.entries(value)) {
        if (!SYSTEM_FIELDS.has(field)) collect(member, ["f:metadata", `f:${field}`], ["metadata", field], found);
      }
    }
  }
  return found;
}

function collect(value: unknown, steps: readonly string[], path: readonly string[], found: Map<string, unknown>): void {
  if (value === undefined || value === null) return;
  if (isRecord(value) && Object.keys(value).length > 0 && !isAtomicMap(path)) {
    for (const [name, member] of Object.entries(value))
      collect(member, [...steps, `f:${name}`], [...path, name], found);
    return;
  }
  if (Array.isArray(value)) {
    const merge = listMergeAt(path);
    if (merge && value.length > 0 && value.every(isRecord)) {
      for (const item of value) {
        const step = [...steps, `k:${JSON.stringify(keysOf(item, merge))}`];
        found.set([...step, "."].join(SEPARATOR), true);
        for (const [name, member] of Object.entries(item))
          collect(member, [...step, `f:${name}`], [...path, name], found);
      }
      return;
    }
    if (isScalarSet(path)) {
      for (const item of value) found.set([...steps, `v:${JSON.stringify(item)}`].join(SEPARATOR), item);
      return;
    }
  }
  found.set(steps.join(SEPARATOR), value);
}

function keysOf(
  item: Record<string, unknown>,
  merge: { mapKeys: readonly string[]; defaults?: Readonly<Record<string, unknown>> },
) {
  return Object.fromEntries(
    [...merge.mapKeys]
      .sort()
      .map((key) => [key, item[key] ?? merge.defaults?.[key]])
      .filter(([, value]) => value !== undefined),
  );
}

export function toFieldsV1(paths: Iterable<string>): FieldsV1 {
  const root: FieldsV1 = {};
  for (const path of paths) {
    let at = root;
    for (const step of path.split(SEPARATOR)) {
      if (!Object.hasOwn(at, step)) define(at, step, {});
      at = at[step]!;
    }
  }
  return root;
}

export function fromFieldsV1(fields: unknown): Set<string> {
  const paths = new Set<string>();
  const visit = (node: unknown, steps: readonly string[]) => {
    if (!isRecord(node)) return;
    const entries = Object.entries(node);
    if (entries.length === 0 && steps.length > 0) paths.add(steps.join(SEPARATOR));
    for (const [step, member] of entries) visit(member, [...steps, step]);
  };
  visit(fields, []);
  return paths;
}

/** `.spec.containers[name="app"].image`, as messages name a field. */
export function describePath(path: string): string {
  return path
    .split(SEPARATOR)
    .map((step) => {
      if (step === ".") return "";
      if (step.startsWith("f:")) return `.${step.slice(2)}`;
      if (step.startsWith("v:")) return `[=${step.slice(2)}]`;
      const keys = Object.entries(JSON.parse(step.slice(2)) as Record<string, unknown>);
      return `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(",")}]`;
    })
    .join("");
}

export interface Manager {
  name: string;
  operation: "Apply" | "Update";
  apiVersion: string;
  subresource?: string | undefined;
}

const isEntryOf = (entry: ManagedFieldsEntry, manager: Manager) =>
  entry.manager === manager.name &&
  entry.operation === manager.operation &&
  (entry.subresource ?? "") === (manager.subresource ?? "");

/** The entries with `paths` owned by the manager; without any its entry goes. */
export function withManager(
  entries: readonly ManagedFieldsEntry[],
  manager: Manager,
  paths: ReadonlySet<string>,
  time: string,
): ManagedFieldsEntry[] {
  const index = entries.findIndex((entry) => isEntryOf(entry, manager));
  if (paths.size === 0) return entries.filter((_, at) => at !== index);
  const before = entries[index];
  const fieldsV1 = toFieldsV1([...paths].sort());
  if (before && Bun.deepEquals(before.fieldsV1, fieldsV1)) return [...entries];
  const entry: ManagedFieldsEntry = {
    manager: manager.name,
    operation: manager.operation,
    apiVersion: manager.apiVersion,
    time,
    fieldsType: "FieldsV1",
    fieldsV1,
    ...(manager.subresource !== undefined && { subresource: manager.subresource }),
  };
  return index < 0 ? [...entries, entry] : entries.map((it, at) => (at === index ? entry : it));
}

/**
 * Computes the owners of fields after an update that is not an apply: a changed field belongs to its manager alone, a
 * removed field has no owner. Source: structured-merge-diff's `Updater.Update`.
 */
export function trackUpdate(
  previous: unknown,
  next: unknown,
  entries: readonly ManagedFieldsEntry[],
  manager: Manager,
  time: string,
): ManagedFieldsEntry[] {
  const before = fieldsOf(previous);
  const after = fieldsOf(next);
  const changed = new Set<string>();
  for (const [path, value] of after) {
    if (!before.has(path) || !Bun.deepEquals(before.get(path), value)) changed.add(path);
  }
  const isGone = (path: string) => !after.has(path);
  const others = entries.flatMap((entry) => {
    const own = fromFieldsV1(entry.fieldsV1);
    const isSame = isEntryOf(entry, manager);
    const kept = [...own].filter((path) => !isGone(path) && (isSame || !changed.has(path)));
    if (kept.length === own.size) return [entry];
    return kept.length === 0 ? [] : [{ ...entry, fieldsV1: toFieldsV1(kept) }];
  });
  if (changed.size === 0) return others;
  const own = others.find((entry) => isEntryOf(entry, manager));
  return withManager(others, manager, new Set([...fromFieldsV1(own?.fieldsV1), ...changed]), time);
}

import { isRecord } from "../base/text/json.ts";
import type { StatusCause } from "./api-error.ts";
import type { ApiObject, FieldsV1, ManagedFieldsEntry } from "./api-object.ts";
import { define } from "./json-patch.ts";
import { isAtomicMap, isScalarSet, type ListMerge, listMergeAt } from "./list-keys.ts";
import { describePath, fieldsOf, fromFieldsV1, type Manager, toFieldsV1, withManager } from "./managed-fields.ts";

type ApplyResult =
  | { object: ApiObject }
  /** Fields that other managers own with other values. */
  | { conflicts: StatusCause[] };

/**
 * Merges what a manager wants into an object: its fields are set, those it owned alone and no longer names are removed.
 * A field that another manager owns with another value is a conflict, unless `force` takes it over.
 * Source: structured-merge-diff's `Updater.Apply`.
 */
export function applyConfiguration(
  live: ApiObject,
  wanted: ApiObject,
  manager: Manager,
  { force, time }: { force: boolean; time: string },
): ApplyResult {
  const entries = live.metadata.managedFields ?? [];
  const wantedFields = fieldsOf(wanted);
  const liveFields = fieldsOf(live);
  const isMine = (entry: ManagedFieldsEntry) => entry.manager === manager.name && entry.operation === "Apply";
  const isChange = (path: string) => !Bun.deepEquals(liveFields.get(path), wantedFields.get(path));
  const conflicts: StatusCause[] = [];
  const others = entries.filter((entry) => !isMine(entry));
  const kept = others.flatMap((entry) => {
    const own = fromFieldsV1(entry.fieldsV1);
    const disputed = [...own].filter((path) => wantedFields.has(path) && isChange(path));
    if (disputed.length === 0) return [entry];
    for (const path of disputed) conflicts.push(toCause(entry, path));
    const rest = [...own].filter((path) => !disputed.includes(path));
    return rest.length === 0 ? [] : [{ ...entry, fieldsV1: toFieldsV1(rest) }];
  });
  if (conflicts.length > 0 && !force) return { conflicts };

  const ownedByOthers = new Set(kept.flatMap((entry) => [...fromFieldsV1(entry.fieldsV1)]));
  const before = entries.filter(isMine).flatMap((entry) => [...fromFieldsV1(entry.fieldsV1)]);
  const gone = before.filter((path) => !wantedFields.has(path) && !ownedByOthers.has(path));
  const without = removeFields(live, toFieldsV1(gone), []) as ApiObject;
  const object = mergeWanted(without, wanted, []) as ApiObject;
  const mine = entries.find(isMine);
  const managedFields = withManager(mine ? [mine, ...kept] : kept, manager, new Set(wantedFields.keys()), time);
  return { object: { ...object, metadata: { ...object.metadata, managedFields } } };
}

function toCause(
  { manager = "", apiVersion = "", operation, subresource }: ManagedFieldsEntry,
  path: string,
): StatusCause {
  const through = subresource ? ` with subresource "${subresource}"` : "";
  const how = operation === "Apply" ? "" : ` using ${apiVersion}`;
  return {
    reason: "FieldManagerConflict",
    message: `conflict with "${manager}"${through}${how}`,
    field: describePath(path),
  };
}

/** The text of the 409. Source: structured-merge-diff's `NewConflictError`. */
export function conflictMessage(conflicts: readonly StatusCause[]): string {
  const [first] = conflicts;
  if (conflicts.length === 1 && first) return `Apply failed with 1 conflict: ${first.message}: ${first.field}`;
  const byManager = Map.groupBy(conflicts, ({ message }) => message ?? "");
  const parts = [...byManager].map(
    ([message, causes]) => `${message}:\n${causes.map((it) => `- ${it.field}`).join("\n")}`,
  );
  return `Apply failed with ${conflicts.length} conflicts: ${parts.join("\n")}`;
}

/** Server-written metadata of `wanted` counts for nothing. */
function mergeWanted(live: unknown, wanted: unknown, path: readonly string[]): unknown {
  if (isRecord(wanted) && !isAtomicMap(path)) {
    const result: Record<string, unknown> = isRecord(live) ? { ...live } : {};
    for (const [name, value] of Object.entries(wanted)) {
      if (value === null || value === undefined) continue;
      if (path.length === 1 && path[0] === "metadata" && name === "managedFields") continue;
      define(result, name, mergeWanted(Object.hasOwn(result, name) ? result[name] : undefined, value, [...path, name]));
    }
    return result;
  }
  if (Array.isArray(wanted) && Array.isArray(live)) {
    const merge = listMergeAt(path);
    if (merge && wanted.every(isRecord) && live.every(isRecord)) return mergeItems(live, wanted, merge, path);
    if (isScalarSet(path)) return [...live, ...wanted.filter((item) => !live.includes(item))];
  }
  return structuredClone(wanted);
}

function mergeItems(
  live: readonly Record<string, unknown>[],
  wanted: readonly Record<string, unknown>[],
  merge: ListMerge,
  path: readonly string[],
): unknown[] {
  const result: unknown[] = [...live];
  for (const item of wanted) {
    const index = result.findIndex((it) => isRecord(it) && hasKeys(it, item, merge));
    if (index < 0) result.push(structuredClone(item));
    else result[index] = mergeWanted(result[index], item, path);
  }
  return result;
}

const hasKeys = (a: Record<string, unknown>, b: Record<string, unknown>, { mapKeys, defaults }: ListMerge) =>
  mapKeys.every((key) => (a[key] ?? defaults?.[key]) === (b[key] ?? defaults?.[key]));

/** A copy without the fields; what becomes empty by that goes too, lists and maps alike. */
function removeFields(value: unknown, gone: FieldsV1, path: readonly string[]): unknown {
  const steps = Object.entries(gone);
  if (steps.length === 0) return value;
  if (Array.isArray(value)) {
    const merge = listMergeAt(path);
    const left = value.flatMap((item) => {
      const [, rest] =
        steps.find(([step]) => {
          if (step.startsWith("v:")) return step === `v:${JSON.stringify(item)}`;
          if (!merge || !step.startsWith("k:") || !isRecord(item)) return false;
          return hasKeys(item, JSON.parse(step.slice(2)) as Record<string, unknown>, merge);
        }) ?? [];
      if (!rest) return [item];
      if (Object.keys(rest).length === 0 || Object.hasOwn(rest, ".")) return [];
      const kept = removeFields(item, rest, path);
      return kept === undefined ? [] : [kept];
    });
    return left.length === 0 ? undefined : left;
  }
  if (!isRecord(value)) return value;
  const result: Record<string, unknown> = { ...value };
  for (const [step, rest] of steps) {
    const name = step.slice(2);
    if (!Object.hasOwn(result, name)) continue;
    const kept = Object.keys(rest).length === 0 ? undefined : removeFields(result[name], rest, [...path, name]);
    if (kept === undefined) delete result[name];
    else result[name] = kept;
  }
  return Object.keys(result).length === 0 ? undefined : result;
}

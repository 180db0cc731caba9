import { define, isRecord } from "../base/text/json.ts";
import type { StatusCause } from "./api-error.ts";
import type { ApiObject, FieldsV1, ManagedFieldsEntry } from "./object-store.ts";

/** How a list of a Kubernetes type is merged. */
export interface ListMerge {
  /** Key of the strategic merge patch. */
  patchKey: string;
  /** Keys of server-side apply. */
  mapKeys: readonly string[];
  /** Values of keys that are absent. */
  defaults?: Readonly<Record<string, unknown>>;
  /** A strategic patch removes fields of an item that it does not name (volumes: the old source goes). */
  retainsKeys?: boolean;
}

const byName: ListMerge = { patchKey: "name", mapKeys: ["name"] };
const byType: ListMerge = { patchKey: "type", mapKeys: ["type"] };

/**
 * Lists of objects that are merged item by item; all other lists of objects are replaced as a whole. Source: the
 * patchStrategy, patchMergeKey, listType and listMapKey tags of core/v1, apps/v1 and batch/v1, whose field names are
 * unambiguous but for `ports`.
 */
const LISTS: Readonly<Record<string, ListMerge>> = {
  containers: byName,
  initContainers: byName,
  ephemeralContainers: byName,
  env: byName,
  imagePullSecrets: byName,
  schedulingGates: byName,
  resourceClaims: byName,
  secrets: byName,
  volumes: { ...byName, retainsKeys: true },
  volumeMounts: { patchKey: "mountPath", mapKeys: ["mountPath"] },
  volumeDevices: { patchKey: "devicePath", mapKeys: ["devicePath"] },
  hostAliases: { patchKey: "ip", mapKeys: ["ip"] },
  topologySpreadConstraints: { patchKey: "topologyKey", mapKeys: ["topologyKey", "whenUnsatisfiable"] },
  conditions: byType,
  addresses: byType,
  ownerReferences: { patchKey: "uid", mapKeys: ["uid"] },
  podIPs: { patchKey: "ip", mapKeys: ["ip"] },
  hostIPs: { patchKey: "ip", mapKeys: ["ip"] },
};

const CONTAINER_PORTS: ListMerge = {
  patchKey: "containerPort",
  mapKeys: ["containerPort", "protocol"],
  defaults: { protocol: "TCP" },
};
const SERVICE_PORTS: ListMerge = { patchKey: "port", mapKeys: ["port", "protocol"], defaults: { protocol: "TCP" } };

/** @param path names of the fields down to the list, without indices: `["spec", "containers", "ports"]` */
export function listMergeAt(path: readonly string[]): ListMerge | undefined {
  const field = path.at(-1) ?? "";
  if (field === "ports") return /[cC]ontainers$/.test(path.at(-2) ?? "") ? CONTAINER_PORTS : SERVICE_PORTS;
  return Object.hasOwn(LISTS, field) ? LISTS[field] : undefined;
}

/** Lists of scalars that are sets: a strategic patch adds to them. */
export const isScalarSet = (path: readonly string[]): boolean => path.at(-1) === "finalizers";

/** Maps of which a strategic patch removes the fields that it does not name. Source: patchStrategy=retainKeys. */
export const isRetainingMap = (path: readonly string[]): boolean => path.at(-1) === "strategy";

/** Maps that are replaced as a whole by server-side apply. Source: structType=atomic. */
const isAtomicMap = (path: readonly string[]): boolean =>
  ["selector", "nodeSelector", "secretKeyRef", "configMapKeyRef", "fieldRef", "resourceFieldRef"].includes(
    path.at(-1) ?? "",
  );

/** Field paths of an object, their steps joined by a newline, with the value at each. */
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
function fieldsOf(object: unknown): FieldValues {
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

function toFieldsV1(paths: Iterable<string>): FieldsV1 {
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

function fromFieldsV1(fields: unknown): Set<string> {
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
function describePath(path: string): string {
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
function withManager(
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

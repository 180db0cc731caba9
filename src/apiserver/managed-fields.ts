import { define, isRecord, jsonIfValid } from "../base/text/json.ts";
import type { StatusCause } from "./api-error.ts";
import type { ApiObject, FieldsV1, ManagedFieldsEntry } from "./object-store.ts";

export const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

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

/** A field that is owned as a whole, with its value where that is known. */
class Leaf {
  constructor(readonly value?: unknown) {}
}
const OWNED = new Leaf();

/** A set of fields by their steps. */
type Fields = Map<string, Fields | Leaf>;

/** A client may have sent anything: what is no field is left out. */
function fromFieldsV1(fields: unknown): Fields {
  const found: Fields = new Map();
  if (!isRecord(fields)) return found;
  for (const [step, member] of Object.entries(fields)) {
    if (isRecord(member)) found.set(step, isEmpty(member) ? OWNED : fromFieldsV1(member));
  }
  return found;
}

function isEmpty(record: object): boolean {
  for (const _name in record) return false;
  return true;
}

/** In the order in which upstream writes them. */
function toFieldsV1(fields: Fields | Leaf): FieldsV1 {
  if (fields instanceof Leaf) return {};
  const members = [...fields].sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([step, member]) => [step, toFieldsV1(member)]));
}

/** Every field of an object that a manager can own: leaves, items of keyed lists and members of sets. */
class OwnableFields {
  readonly fields: Fields = new Map();

  constructor(object: unknown) {
    if (!isRecord(object)) return;
    const { apiVersion: _version, kind: _kind, metadata, ...rest } = object;
    this.#addParts(this.fields, rest, []);
    if (!isRecord(metadata)) return;
    const written = Object.entries(metadata).filter(([name]) => !SYSTEM_FIELDS.has(name));
    if (written.length > 0) this.#add(this.fields, "f:metadata", Object.fromEntries(written), ["metadata"]);
  }

  /** The leaves with another value than before, or none. */
  changesOf(before: OwnableFields): Fields {
    return filterFields(this.fields, before.fields, (leaf, was) => !isSame(valueAt(was), leaf.value));
  }

  #add(parent: Fields, step: string, value: unknown, path: readonly string[]): void {
    if (value === undefined || value === null) return;
    if (typeof value !== "object") return void parent.set(step, new Leaf(value));
    const node = partsAt(parent, step) ?? new Map();
    if (!this.#addParts(node, value, path)) parent.set(step, new Leaf(value));
    else if (node.size > 0) parent.set(step, node);
  }

  /** @returns false: the value is owned as a whole */
  #addParts(node: Fields, value: object, path: readonly string[]): boolean {
    if (isRecord(value)) {
      const members = Object.entries(value);
      if (members.length === 0 || isAtomicMap(path)) return false;
      for (const [name, member] of members) this.#add(node, `f:${name}`, member, [...path, name]);
      return true;
    }
    if (!Array.isArray(value)) return false;
    const merge = listMergeAt(path);
    if (merge && value.length > 0 && value.every(isRecord)) {
      for (const item of value) {
        const step = itemStep(item, merge);
        const own = partsAt(node, step) ?? new Map();
        own.set(".", new Leaf(true));
        this.#addParts(own, item, path);
        node.set(step, own);
      }
      return true;
    }
    if (!isScalarSet(path)) return false;
    for (const item of value) this.#add(node, memberStep(item), item, path);
    return true;
  }
}

/** The step to an item of a keyed list. */
const itemStep = (item: Record<string, unknown>, { mapKeys, defaults }: ListMerge): string => {
  const keys = [...mapKeys].sort().map((key) => [key, item[key] ?? defaults?.[key]]);
  return `k:${JSON.stringify(Object.fromEntries(keys.filter(([, value]) => value !== undefined)))}`;
};

/** The step to a member of a set. */
const memberStep = (item: unknown): string => `v:${JSON.stringify(item)}`;

const partsAt = (fields: Fields | Leaf | undefined, step: string): Fields | undefined => {
  const found = fields instanceof Map ? fields.get(step) : undefined;
  return found instanceof Map ? found : undefined;
};

const valueAt = (found: Fields | Leaf | undefined): unknown => (found instanceof Leaf ? found.value : undefined);

const isSame = (one: unknown, other: unknown) => one === other || Bun.deepEquals(one, other);

/**
 * The part of a set of fields whose leaves are kept.
 * @param other a further set: `isKept` gets what it has at the place of the leaf
 * @returns the set itself when all of it is kept
 */
function filterFields(
  fields: Fields,
  other: Fields | undefined,
  isKept: (leaf: Leaf, found: Fields | Leaf | undefined) => boolean,
): Fields {
  const kept: Fields = new Map();
  let isWhole = true;
  for (const [step, member] of fields) {
    if (member instanceof Leaf) {
      if (isKept(member, other?.get(step))) kept.set(step, member);
      else isWhole = false;
    } else {
      const part = filterFields(member, partsAt(other, step), isKept);
      if (part.size > 0) kept.set(step, part);
      isWhole &&= part === member;
    }
  }
  return isWhole ? fields : kept;
}

const intersection = (one: Fields, other: Fields): Fields =>
  filterFields(one, other, (_leaf, found) => found instanceof Leaf);

const difference = (one: Fields, other: Fields): Fields =>
  other.size === 0 ? one : filterFields(one, other, (_leaf, found) => !(found instanceof Leaf));

function union(one: Fields, other: Fields): Fields {
  const result: Fields = new Map(one);
  for (const [step, member] of other) {
    const own = partsAt(result, step);
    result.set(step, own && member instanceof Map ? union(own, member) : member);
  }
  return result;
}

/** The leaves as messages name a field: `.spec.containers[name="app"].image`. */
function describeLeaves(fields: Fields, before = ""): string[] {
  return [...fields].flatMap(([step, member]) => {
    const path = `${before}${describeStep(step)}`;
    return member instanceof Leaf ? [path] : describeLeaves(member, path);
  });
}

function describeStep(step: string): string {
  if (step === ".") return "";
  if (step.startsWith("f:")) return `.${step.slice(2)}`;
  if (step.startsWith("v:")) return `[=${step.slice(2)}]`;
  const keys = Object.entries(JSON.parse(step.slice(2)) as Record<string, unknown>);
  return `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(",")}]`;
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

/** The entries with `fields` owned by the manager; without any its entry goes. */
function withManager(
  entries: readonly ManagedFieldsEntry[],
  manager: Manager,
  fields: Fields,
  time: string,
): ManagedFieldsEntry[] {
  const index = entries.findIndex((entry) => isEntryOf(entry, manager));
  if (fields.size === 0) return entries.filter((_, at) => at !== index);
  const before = entries[index];
  const fieldsV1 = toFieldsV1(fields);
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

/** The entries with a part of their fields; without any an entry goes. @param partOf gets the fields of an entry */
const withParts = (
  entries: readonly ManagedFieldsEntry[],
  partOf: (fields: Fields, entry: ManagedFieldsEntry) => Fields,
): ManagedFieldsEntry[] =>
  entries.flatMap((entry) => {
    const own = fromFieldsV1(entry.fieldsV1);
    const part = partOf(own, entry);
    if (part === own) return [entry];
    return part.size === 0 ? [] : [{ ...entry, fieldsV1: toFieldsV1(part) }];
  });

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
  const before = new OwnableFields(previous);
  const after = new OwnableFields(next);
  const changed = after.changesOf(before);
  const others = withParts(entries, (own, entry) =>
    intersection(isEntryOf(entry, manager) ? own : difference(own, changed), after.fields),
  );
  if (changed.size === 0) return others;
  const own = others.find((entry) => isEntryOf(entry, manager));
  return withManager(others, manager, union(fromFieldsV1(own?.fieldsV1), changed), time);
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
  const wantedFields = new OwnableFields(wanted);
  const liveFields = new OwnableFields(live);
  const isMine = (entry: ManagedFieldsEntry) => entry.manager === manager.name && entry.operation === "Apply";
  const changed = wantedFields.changesOf(liveFields);
  const conflicts: StatusCause[] = [];
  const others = entries.filter((entry) => !isMine(entry));
  const free: Fields = manager.name === "kubectl" ? lastApplied(live, liveFields) : new Map();
  const takeFrom = (own: Fields, entry: ManagedFieldsEntry) => {
    const disputed = intersection(changed, own);
    for (const field of describeLeaves(difference(disputed, free))) conflicts.push(toCause(entry, field));
    return difference(own, disputed);
  };
  const kept = changed.size === 0 ? others : withParts(others, takeFrom);
  if (conflicts.length > 0 && !force) return { conflicts };

  let without: unknown = live;
  for (const entry of entries.filter(isMine)) {
    let gone = difference(fromFieldsV1(entry.fieldsV1), wantedFields.fields);
    for (const { fieldsV1 } of kept) if (gone.size > 0) gone = difference(gone, fromFieldsV1(fieldsV1));
    without = removeFields(without, gone, []);
  }
  const object = mergeWanted(without, wanted, []) as ApiObject;
  const mine = entries.find(isMine);
  const managedFields = withManager(mine ? [mine, ...kept] : kept, manager, wantedFields.fields, time);
  return { object: { ...object, metadata: { ...object.metadata, managedFields } } };
}

/** Fields of client-side apply that have the same value still: kubectl takes them over. Source: `lastAppliedManager`. */
function lastApplied({ metadata }: ApiObject, live: OwnableFields): Fields {
  const last = new OwnableFields(jsonIfValid(metadata.annotations?.[LAST_APPLIED] ?? ""));
  return difference(last.fields, last.changesOf(live));
}

function toCause(
  { manager = "", apiVersion = "", operation, subresource }: ManagedFieldsEntry,
  field: string,
): StatusCause {
  const through = subresource ? ` with subresource "${subresource}"` : "";
  const how = operation === "Apply" ? "" : ` using ${apiVersion}`;
  return {
    reason: "FieldManagerConflict",
    message: `conflict with "${manager}"${through}${how}`,
    field,
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
    if (merge && wanted.every(isRecord) && live.every(isRecord)) {
      const result: unknown[] = [...live];
      const places = new Map(live.map((item, index) => [itemStep(item, merge), index] as const).reverse());
      for (const item of wanted) {
        const step = itemStep(item, merge);
        const index = places.get(step);
        if (index === undefined) places.set(step, result.push(structuredClone(item)) - 1);
        else result[index] = mergeWanted(result[index], item, path);
      }
      return result;
    }
    if (isScalarSet(path)) return [...live, ...wanted.filter((item) => !live.includes(item))];
  }
  return structuredClone(wanted);
}

/** A copy without the fields; what becomes empty by that goes too, lists and maps alike. */
function removeFields(value: unknown, gone: Fields, path: readonly string[]): unknown {
  if (gone.size === 0) return value;
  if (Array.isArray(value)) {
    const merge = listMergeAt(path);
    const left = value.flatMap((item) => {
      const rest = gone.get(merge && isRecord(item) ? itemStep(item, merge) : memberStep(item));
      if (!rest) return [item];
      if (rest instanceof Leaf || rest.has(".")) return [];
      const kept = removeFields(item, rest, path);
      return kept === undefined ? [] : [kept];
    });
    return left.length === 0 ? undefined : left;
  }
  if (!isRecord(value)) return value;
  const result: Record<string, unknown> = { ...value };
  for (const [step, rest] of gone) {
    const name = step.slice(2);
    if (!Object.hasOwn(result, name)) continue;
    const kept = rest instanceof Leaf ? undefined : removeFields(result[name], rest, [...path, name]);
    if (kept === undefined) delete result[name];
    else result[name] = kept;
  }
  return isEmpty(result) ? undefined : result;
}

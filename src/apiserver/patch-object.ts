import { define, isRecord } from "../base/text/json.ts";
import { ApiError, badRequest } from "./api-error.ts";
import { PATCH_TYPES } from "./api-request.ts";
import { isScalarSet, type ListMerge, listMergeAt } from "./managed-fields.ts";

/**
 * The object after a patch that is not server-side apply.
 * @throws ApiError 400, 422
 */
export function patchObject(before: unknown, type: string, patch: unknown): unknown {
  try {
    if (type === PATCH_TYPES.json) return applyJsonPatch(before, patch);
    return type === PATCH_TYPES.merge ? applyMergePatch(before, patch) : applyStrategicPatch(before, patch);
  } catch (error) {
    if (!(error instanceof PatchError)) throw error;
    // An operation that does not fit the object is 422, a patch that is not valid 400. Source: apiserver's patch handler.
    const isUnfit = type === PATCH_TYPES.json && Array.isArray(patch);
    if (!isUnfit) throw badRequest(error.message);
    const message = `the server rejected our request due to an error in our request: ${error.message}`;
    throw new ApiError(422, "Invalid", message, {});
  }
}

/** A copy of the document with the patch merged in: null removes, lists are replaced. Source: RFC 7386. */
export function applyMergePatch(document: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return structuredClone(patch);
  const result: Record<string, unknown> = isRecord(document) ? { ...document } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else define(result, name, applyMergePatch(Object.hasOwn(result, name) ? result[name] : undefined, value));
  }
  return result;
}

type Fields = Record<string, unknown>;

const ORDER = "$setElementOrder/";
const DELETE_FROM = "$deleteFromPrimitiveList/";

/**
 * A copy of the object with a strategic merge patch applied: maps are merged, null removes, lists with a merge key are
 * merged item by item, all others are replaced. Knows `$patch: delete|replace|merge`, `$retainKeys`,
 * `$setElementOrder/…` and `$deleteFromPrimitiveList/…`. Source: apimachinery's `strategicpatch`.
 * @throws PatchError
 */
export function applyStrategicPatch(object: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) throw new PatchError("a strategic merge patch must be an object");
  return mergeMap(isRecord(object) ? object : {}, patch, []);
}

function mergeMap(original: Fields, patch: Fields, path: readonly string[]): Fields {
  const directive = patch.$patch;
  if (directive === "replace") return withoutDirectives(patch);
  if (directive === "delete") return {};
  if (directive !== undefined && directive !== "merge") throw unknownDirective(directive, path);
  let result: Fields = { ...original };
  if (Array.isArray(patch.$retainKeys)) {
    const kept = new Set(patch.$retainKeys);
    result = Object.fromEntries(Object.entries(result).filter(([name]) => kept.has(name)));
  }
  for (const [name, value] of Object.entries(patch)) {
    if (name === "$patch" || name === "$retainKeys" || name.startsWith(ORDER)) continue;
    if (name.startsWith(DELETE_FROM)) {
      const field = name.slice(DELETE_FROM.length);
      const gone = listOf(value, name);
      result[field] = listOf(result[field] ?? [], field).filter((item) => !gone.includes(item));
      continue;
    }
    if (value === null) delete result[name];
    else {
      const before = Object.hasOwn(result, name) ? result[name] : undefined;
      define(result, name, mergeValue(before, value, [...path, name], patch[`${ORDER}${name}`]));
    }
  }
  for (const [name, order] of Object.entries(patch)) {
    if (!name.startsWith(ORDER)) continue;
    const field = name.slice(ORDER.length);
    if (Array.isArray(result[field])) {
      result[field] = inOrder(result[field], listOf(order, name), listMergeAt([...path, field]));
    }
  }
  return result;
}

/** @param order of a list: all items that are wanted, by their merge key alone */
function mergeValue(original: unknown, patch: unknown, path: readonly string[], order?: unknown): unknown {
  if (isRecord(patch)) return mergeMap(isRecord(original) ? original : {}, patch, path);
  if (!Array.isArray(patch)) return patch;
  const before = Array.isArray(original) ? original : [];
  const merge = listMergeAt(path);
  if (merge && patch.every(isRecord)) return mergeList(before as Fields[], patch as Fields[], merge, path, order);
  if (isScalarSet(path)) return [...before, ...patch.filter((item) => !before.includes(item))];
  return structuredClone(patch);
}

function mergeList(
  original: readonly Fields[],
  patch: readonly Fields[],
  merge: ListMerge,
  path: readonly string[],
  order: unknown,
): Fields[] {
  if (patch.some((item) => item.$patch === "replace")) {
    return patch.filter((item) => item.$patch !== "replace").map(withoutDirectives);
  }
  const keyOf = (item: unknown) => (isRecord(item) ? item[merge.patchKey] : undefined);
  const result: (Fields | undefined)[] = [...original];
  const places = Map.groupBy(result.keys(), (index) => keyOf(result[index]));
  const wanted = Array.isArray(order) ? Map.groupBy(order, keyOf) : undefined;
  const placeOf = (item: Fields, key: unknown): number | undefined => {
    const found = places.get(key) ?? [];
    const place = found.find((index) => isSameItem(result[index]!, item, merge));
    // One port of this number is there and one is wanted: its protocol changes.
    const isChange = found.length === 1 && wanted?.get(key)?.length === 1;
    return place ?? (isChange ? found[0] : undefined);
  };
  for (const item of patch) {
    const key = keyOf(item);
    if (key === undefined) {
      throw new PatchError(
        `map: ${JSON.stringify(Object.keys(item))} does not contain declared merge key: ${merge.patchKey}`,
      );
    }
    const place = placeOf(item, key);
    if (item.$patch === "delete") {
      if (place === undefined) continue;
      result[place] = undefined;
      const others = places.get(key)!.filter((index) => index !== place);
      places.set(key, others);
    } else if (place !== undefined) result[place] = mergeMap(result[place]!, item, path);
    else {
      places.set(key, [...(places.get(key) ?? []), result.length]);
      result.push(mergeMap({}, item, path));
    }
  }
  return result.filter((item) => item !== undefined);
}

/** Items of one port number may differ in their protocol. */
function isSameItem(candidate: Fields, item: Fields, { patchKey, mapKeys, defaults }: ListMerge): boolean {
  if (candidate[patchKey] !== item[patchKey]) return false;
  return mapKeys.every((key) => {
    if (key === patchKey || item[key] === undefined) return true;
    return (candidate[key] ?? defaults?.[key]) === item[key];
  });
}

/** Items that `order` names come in its order; the others stay behind the one they followed. */
function inOrder(list: readonly unknown[], order: readonly unknown[], merge: ListMerge | undefined): unknown[] {
  const keyOf = (item: unknown) => (merge && isRecord(item) ? item[merge.patchKey] : item);
  const wanted = Map.groupBy(order.keys(), (index) => keyOf(order[index]));
  const rankOf = (item: unknown) =>
    wanted.get(keyOf(item))?.find((index) => {
      const other = order[index];
      return !merge || !isRecord(item) || !isRecord(other) || isSameItem(item, other, merge);
    });
  const ranks = list.map(rankOf);
  const named = [...list.keys()].filter((index) => ranks[index] !== undefined).sort((a, b) => ranks[a]! - ranks[b]!);
  const result: unknown[] = [];
  for (const [index, item] of list.entries()) result.push(ranks[index] !== undefined ? list[named.shift()!] : item);
  return result;
}

function withoutDirectives(patch: Fields): Fields {
  const result: Fields = {};
  for (const [name, value] of Object.entries(patch)) {
    if (name.startsWith("$") || value === null) continue;
    define(result, name, isRecord(value) ? withoutDirectives(value) : structuredClone(value));
  }
  return result;
}

function listOf(value: unknown, name: string): unknown[] {
  if (!Array.isArray(value)) throw new PatchError(`"${name}" must be a list`);
  return value;
}

const unknownDirective = (directive: unknown, path: readonly string[]) =>
  new PatchError(`Unknown patch type: ${String(directive)} at "${path.join(".")}"`);

/** A patch that cannot be carried out; the message is for the client. */
export class PatchError extends Error {}

/** The operations of one patch; more than this is refused. Source: apiserver's `maxJSONPatchOperations`. */
const MAX_OPERATIONS = 10_000;

/** Limit of all `copy` operations of one patch together. Source: apiserver's `JSONPatchMaxCopyBytes`. */
const MAX_COPIED_BYTES = 3 * 1024 * 1024;
/** Memory of one value without its characters, roughly. */
const VALUE_BYTES = 32;

/** Elements that all operations of one patch may move within lists together: some 10 ms on the loop. */
const MAX_MOVED_ELEMENTS = 20_000_000;

/** Use that one patch has made of its limits. */
interface Work {
  copiedBytes: number;
  movedElements: number;
}

/**
 * A copy of the document with the patch applied. Source: RFC 6902.
 * @throws PatchError also for a patch that copies or moves more than one patch may
 */
export function applyJsonPatch(document: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch)) throw new PatchError("a JSON patch must be a list of operations");
  if (patch.length > MAX_OPERATIONS) {
    throw new PatchError(`The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${patch.length}`);
  }
  const work: Work = { copiedBytes: 0, movedElements: 0 };
  let result = structuredClone(document);
  for (const operation of patch) result = applyOperation(result, operation, work);
  return result;
}

function applyOperation(document: unknown, operation: unknown, work: Work): unknown {
  if (!isRecord(operation)) throw new PatchError("an operation of a JSON patch must be an object");
  const path = parsePointer(operation.path);
  switch (operation.op) {
    case "add":
      return add(document, path, readValue(operation), work);
    case "remove":
      return remove(document, path, work).document;
    case "replace": {
      read(document, path);
      if (path.length === 0) return readValue(operation);
      return add(remove(document, path, work).document, path, readValue(operation), work);
    }
    case "move": {
      const from = parsePointer(operation.from);
      if (path.length > from.length && from.every((step, index) => step === path[index]))
        throw new PatchError(`cannot move "${String(operation.from)}" into itself`);
      const { document: rest, removed } = remove(document, from, work);
      return add(rest, path, removed, work);
    }
    case "copy":
      return add(document, path, copyValue(read(document, parsePointer(operation.from)), work), work);
    case "test":
      if (!Bun.deepEquals(read(document, path), operation.value)) {
        throw new PatchError(`testing value ${String(operation.path)} failed`);
      }
      return document;
    default:
      throw new PatchError(`Unexpected kind: ${String(operation.op)}`);
  }
}

function readValue(operation: Record<string, unknown>): unknown {
  if (!("value" in operation)) throw new PatchError(`the operation "${String(operation.op)}" has no value`);
  return structuredClone(operation.value);
}

/** A copy of a JSON value, counted while it is made: `structuredClone` takes ten times as long. */
function copyValue(value: unknown, work: Work): unknown {
  work.copiedBytes += VALUE_BYTES + (typeof value === "string" ? value.length : 0);
  if (work.copiedBytes > MAX_COPIED_BYTES) {
    throw new PatchError(`The copy operations of a JSON patch may copy ${MAX_COPIED_BYTES} bytes together`);
  }
  if (Array.isArray(value)) return value.map((item) => copyValue(item, work));
  if (!isRecord(value)) return value;
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    work.copiedBytes += name.length;
    define(copy, name, copyValue(value[name], work));
  }
  return copy;
}

function splice(list: unknown[], index: number, removed: number, values: readonly unknown[], work: Work): void {
  work.movedElements += list.length - index;
  if (work.movedElements > MAX_MOVED_ELEMENTS) {
    throw new PatchError(`a JSON patch may move ${MAX_MOVED_ELEMENTS} elements within lists together`);
  }
  list.splice(index, removed, ...values);
}

function parsePointer(pointer: unknown): string[] {
  if (typeof pointer !== "string" || (pointer !== "" && !pointer.startsWith("/"))) {
    throw new PatchError(`"${String(pointer)}" is not a JSON pointer: a pointer begins with a slash`);
  }
  return pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

const missing = (path: readonly string[]) =>
  new PatchError(`Unable to find a value at path "/${path.join("/")}": missing value`);

function child(parent: unknown, step: string, path: readonly string[]): unknown {
  if (Array.isArray(parent)) return parent[toIndex(step, parent.length - 1, path)];
  if (isRecord(parent) && Object.hasOwn(parent, step)) return parent[step];
  throw missing(path);
}

function toIndex(step: string, most: number, path: readonly string[]): number {
  const index = /^(0|[1-9]\d*)$/.test(step) ? Number(step) : Number.NaN;
  if (!(index <= most)) throw missing(path);
  return index;
}

const read = (document: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((value, step) => child(value, step, path), document);

function add(document: unknown, path: readonly string[], value: unknown, work: Work): unknown {
  const last = path.at(-1);
  if (last === undefined) return value;
  const parent = read(document, path.slice(0, -1));
  if (Array.isArray(parent)) {
    splice(parent, last === "-" ? parent.length : toIndex(last, parent.length, path), 0, [value], work);
  } else if (isRecord(parent)) define(parent, last, value);
  else throw missing(path);
  return document;
}

function remove(document: unknown, path: readonly string[], work: Work): { document: unknown; removed: unknown } {
  const last = path.at(-1);
  if (last === undefined) throw new PatchError("the whole document cannot be removed");
  const parent = read(document, path.slice(0, -1));
  const removed = child(parent, last, path);
  if (Array.isArray(parent)) splice(parent, Number(last), 1, [], work);
  else delete (parent as Record<string, unknown>)[last];
  return { document, removed };
}

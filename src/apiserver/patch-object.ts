import { isRecord } from "../base/text/json.ts";
import { ApiError, badRequest } from "./api-error.ts";
import { PATCH_TYPES } from "./api-request.ts";
import { applyJsonPatch, define, PatchError } from "./json-patch.ts";
import { isScalarSet, type ListMerge, listMergeAt } from "./list-keys.ts";

/**
 * The object after a patch that is not server-side apply.
 * @throws ApiError 400, 422
 */
export function patchObject(before: unknown, type: string, patch: unknown): unknown {
  try {
    if (type === PATCH_TYPES.json) return withoutEmptyAnnotations(applyJsonPatch(withAnnotations(before), patch));
    return type === PATCH_TYPES.merge ? applyMergePatch(before, patch) : applyStrategicPatch(before, patch);
  } catch (error) {
    if (!(error instanceof PatchError)) throw error;
    // An operation that does not fit the object is 422, a patch that is none 400. Source: apiserver's patch handler.
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

/**
 * `kubectl rollout undo` replaces `/metadata/annotations`, which every Deployment of a cluster has: its controller notes
 * the revision there.
 */
function withAnnotations(object: unknown): unknown {
  if (!isRecord(object) || !isRecord(object.metadata) || "annotations" in object.metadata) return object;
  return { ...object, metadata: { ...object.metadata, annotations: {} } };
}

function withoutEmptyAnnotations(object: unknown): unknown {
  if (!isRecord(object) || !isRecord(object.metadata)) return object;
  const { annotations, ...metadata } = object.metadata;
  return isRecord(annotations) && Object.keys(annotations).length === 0 ? { ...object, metadata } : object;
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
  if (!isRecord(patch)) throw new PatchError("a strategic merge patch is an object");
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
      define(result, name, mergeValue(before, value, [...path, name]));
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

function mergeValue(original: unknown, patch: unknown, path: readonly string[]): unknown {
  if (isRecord(patch)) return mergeMap(isRecord(original) ? original : {}, patch, path);
  if (!Array.isArray(patch)) return patch;
  const before = Array.isArray(original) ? original : [];
  const merge = listMergeAt(path);
  if (merge && patch.every(isRecord)) return mergeList(before as Fields[], patch as Fields[], merge, path);
  if (isScalarSet(path)) return [...before, ...patch.filter((item) => !before.includes(item))];
  return structuredClone(patch);
}

function mergeList(original: readonly Fields[], patch: readonly Fields[], merge: ListMerge, path: readonly string[]) {
  if (patch.some((item) => item.$patch === "replace")) {
    return patch.filter((item) => item.$patch !== "replace").map(withoutDirectives);
  }
  const result = [...original];
  const indexOf = (item: Fields) => result.findIndex((candidate) => isSameItem(candidate, item, merge));
  for (const item of patch) {
    const key = item[merge.patchKey];
    if (key === undefined) {
      throw new PatchError(
        `map: ${JSON.stringify(Object.keys(item))} does not contain declared merge key: ${merge.patchKey}`,
      );
    }
    const index = indexOf(item);
    if (item.$patch === "delete") {
      if (index >= 0) result.splice(index, 1);
    } else if (index >= 0) result[index] = mergeMap(result[index]!, item, path);
    else result.push(mergeMap({}, item, path));
  }
  return result;
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
  const rankOf = (item: unknown) =>
    order.findIndex((wanted) =>
      merge && isRecord(item) && isRecord(wanted) ? isSameItem(item, wanted, merge) : wanted === item,
    );
  const named = list.filter((item) => rankOf(item) >= 0).sort((a, b) => rankOf(a) - rankOf(b));
  const result: unknown[] = [];
  for (const item of list) result.push(rankOf(item) >= 0 ? named.shift() : item);
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
  if (!Array.isArray(value)) throw new PatchError(`"${name}" is a list`);
  return value;
}

const unknownDirective = (directive: unknown, path: readonly string[]) =>
  new PatchError(`Unknown patch type: ${String(directive)} at "${path.join(".")}"`);

import { isRecord } from "../base/text/json.ts";

/** A patch that cannot be carried out; the message is for the client. */
export class PatchError extends Error {
  override readonly name = "PatchError";
}

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
  if (!Array.isArray(patch)) throw new PatchError("a JSON patch is a list of operations");
  if (patch.length > MAX_OPERATIONS) {
    throw new PatchError(`The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${patch.length}`);
  }
  const work: Work = { copiedBytes: 0, movedElements: 0 };
  let result = structuredClone(document);
  for (const operation of patch) result = applyOperation(result, operation, work);
  return result;
}

function applyOperation(document: unknown, operation: unknown, work: Work): unknown {
  if (!isRecord(operation)) throw new PatchError("an operation of a JSON patch is an object");
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
    throw new PatchError(`"${String(pointer)}" is no JSON pointer: it begins with a slash`);
  }
  return pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

const missing = (path: readonly string[]) =>
  new PatchError(`Unable to find a value at path "/${path.join("/")}": missing value`);

function child(parent: unknown, step: string, path: readonly string[]): unknown {
  if (Array.isArray(parent)) {
    const index = toIndex(step, parent.length - 1, path);
    return parent[index];
  }
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

/** Sets a member also when it is called `__proto__`. */
export function define(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, writable: true, enumerable: true, configurable: true });
}

import { isRecord } from "../base/text/json.ts";
import { parseStream } from "./yaml/parse-stream.ts";
import { isDeeperThan, toPlainValue } from "./yaml/source-node.ts";

const MAX_DEPTH = 200;

/** An object as its text has it: not decoded, without defaults. */
export interface PlainObject {
  apiVersion?: string;
  kind: string;
  metadata: Record<string, unknown> & { name?: string | undefined; namespace?: string | undefined };
  [field: string]: unknown;
}

/**
 * Every object of a text, YAML or JSON, in its order; a List counts as its items. Pure.
 * @returns the problem of a text that holds something else; without a line it is one of the text as a whole
 */
export function readPlainObjects(
  bytes: Uint8Array,
): { objects: PlainObject[] } | { problem: { message: string; line?: number; column?: number } } {
  const { documents, lines } = parseStream(bytes);
  const objects: PlainObject[] = [];
  for (const document of documents) {
    if (document.kind === "empty") continue;
    if (document.kind === "error") {
      return { problem: { message: document.error.message, ...lines.locate(document.error.offset) } };
    }
    if (isDeeperThan(document.root, MAX_DEPTH)) return { problem: { message: "a document is nested too deeply" } };
    const value = toPlainValue(document.root);
    if (value === null) continue;
    // Maps of the reader have no prototype, which JSON does not show.
    const object: unknown = JSON.parse(JSON.stringify(value));
    if (!isRecord(object) || typeof object.kind !== "string") {
      return { problem: { message: "a document is not an object with apiVersion and kind" } };
    }
    const items = object.kind.endsWith("List") && Array.isArray(object.items) ? object.items : [object];
    for (const item of items) objects.push({ ...item, metadata: isRecord(item.metadata) ? item.metadata : {} });
  }
  return { objects };
}

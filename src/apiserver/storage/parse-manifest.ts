import { isRecord } from "../../text/json.ts";
import { parseStream } from "../../yaml/parse-stream.ts";
import { toPlainValue } from "../../yaml/source-node.ts";
import type { ApiObject } from "../api-object.ts";

/**
 * The one object of a manifest file, YAML or JSON.
 * @returns what is wrong with the text as `problem`, with line and column
 */
export function parseManifestObject(bytes: Uint8Array): { object: ApiObject } | { problem: string } {
  const { documents, lines } = parseStream(bytes);
  const failed = documents.find((document) => document.kind === "error");
  if (failed?.kind === "error") {
    const { line, column } = lines.locate(failed.error.offset);
    return { problem: `${line}:${column}: ${failed.error.message}` };
  }
  const values = documents.flatMap((document) => (document.kind === "value" ? [toPlainValue(document.root)] : []));
  if (values.length !== 1) return { problem: `1:1: the file must hold one object (found ${values.length})` };
  const [object] = values;
  if (!isRecord(object) || typeof object.apiVersion !== "string" || typeof object.kind !== "string") {
    return { problem: "1:1: an object has apiVersion and kind" };
  }
  if (!isRecord(object.metadata) || typeof object.metadata.name !== "string") {
    return { problem: "1:1: metadata.name is required" };
  }
  return { object: object as ApiObject };
}

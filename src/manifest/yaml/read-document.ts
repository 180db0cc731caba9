import { parseStream } from "./parse-stream.ts";
import { isDeeperThan, toPlainValue } from "./source-node.ts";

const MAX_DEPTH = 100;

/**
 * The first document of a configuration file, YAML or JSON; undefined when it is empty.
 * @param file named in messages
 * @throws Error `file:line:column: message`
 */
export function readDocument(bytes: Uint8Array, file: string): unknown {
  const { documents, lines } = parseStream(bytes);
  const fail = (offset: number, message: string) => {
    const { line, column } = lines.locate(offset);
    return new Error(`${file}:${line}:${column}: ${message}`);
  };
  const document = documents.find(({ kind }) => kind !== "empty");
  if (!document || document.kind === "empty") return undefined;
  if (document.kind === "error") throw fail(document.error.offset, document.error.message);
  if (isDeeperThan(document.root, MAX_DEPTH)) {
    throw fail(document.root.offset, `more than ${MAX_DEPTH} levels of nesting`);
  }
  return toPlainValue(document.root);
}

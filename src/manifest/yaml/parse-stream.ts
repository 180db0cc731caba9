import { parseJson } from "./json-parser.ts";
import { type ParsedDocument, TextError } from "./source-node.ts";
import { decodeText, LineTable, MAX_MANIFEST_BYTES, type SourceText, stopAtIllegalCharacter } from "./source-text.ts";
import { AliasBudget, composeDocument } from "./yaml-compose.ts";
import { YamlParser } from "./yaml-parser.ts";

/** Documents read from one file. A node runs hundreds of pods; each further document takes time and memory. */
export const MAX_DOCUMENTS = 10_000;

export interface ParsedStream {
  documents: ParsedDocument[];
  lines: LineTable;
}

/** Leading white space by Go's `unicode.IsSpace`, then `{`. */
const JSON_START = /^[\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*\{/;

/** Reads every document of a text: strict JSON when it begins with `{`, otherwise a YAML stream. Never throws. */
export function parseStream(bytes: Uint8Array): ParsedStream {
  if (bytes.length >= MAX_MANIFEST_BYTES) {
    const message = `the manifest has ${bytes.length} bytes: it must be smaller than ${MAX_MANIFEST_BYTES} (10 MiB)`;
    return { documents: [{ kind: "error", error: new TextError(message, 0) }], lines: new LineTable("") };
  }
  const source = decodeText(bytes);
  if (JSON_START.test(source.text)) {
    // Go's JSON decoder replaces invalid UTF-8 instead of refusing it.
    const text = source.broken ? new TextDecoder("utf-8").decode(bytes) : source.text;
    return { documents: [attempt(() => parseJson(text), 0)], lines: new LineTable(text) };
  }
  const legal = stopAtIllegalCharacter(source);
  return { documents: parseYamlStream(legal), lines: new LineTable(legal.text) };
}

function attempt(parse: () => ReturnType<typeof parseJson>, offset: number): ParsedDocument {
  try {
    return { kind: "value", root: parse(), offset };
  } catch (error) {
    return { kind: "error", error: asTextError(error) };
  }
}

/** Deep nesting can exhaust the stack before the depth limits apply: an error of the text, not a bug. */
function asTextError(error: unknown): TextError {
  if (error instanceof TextError) return error;
  if (error instanceof RangeError) return new TextError("the document is nested too deeply", 0);
  throw error;
}

function parseYamlStream(source: SourceText): ParsedDocument[] {
  const documents: ParsedDocument[] = [];
  const budget = new AliasBudget();
  let base = 0;
  for (;;) {
    const failedAt = parseFrom(source, base, documents, budget);
    if (failedAt === undefined) return documents;
    if (documents.length > MAX_DOCUMENTS) return documents;
    // A broken document does not hide the others: continue at the next "---" line.
    const next = /\n---(?=[ \t\r\n]|$)/.exec(source.text.slice(failedAt));
    if (!next) return documents;
    base = failedAt + next.index + 1;
  }
}

/** @returns the offset of the first error, or undefined at the end of the text. */
function parseFrom(
  source: SourceText,
  base: number,
  documents: ParsedDocument[],
  budget: AliasBudget,
): number | undefined {
  const parser = new YamlParser(source.text, base);
  for (;;) {
    try {
      const next = parser.nextDocument();
      if (!next) {
        // The text was cut off: the last document is incomplete even if its first part parses.
        if (source.broken) documents.splice(-1, 1, brokenDocument(source));
        return undefined;
      }
      if (documents.length >= MAX_DOCUMENTS) {
        const message = `the file has more than ${MAX_DOCUMENTS} documents: split it`;
        documents.push({ kind: "error", error: new TextError(message, next.start) });
        return undefined;
      }
      const { root } = next;
      const empty = root.kind === "scalar" && root.implicit && root.value === "";
      if (empty) documents.push({ kind: "empty", offset: next.start });
      else documents.push(attempt(() => composeDocument(root, budget), next.start));
    } catch (error) {
      const textError = asTextError(error);
      // An error at the end of a text that was cut off is caused by the cut.
      if (source.broken !== undefined && parser.position >= source.text.length) {
        documents.push(brokenDocument(source));
        return undefined;
      }
      documents.push({ kind: "error", error: textError });
      return Math.max(textError.offset, parser.position);
    }
  }
}

const brokenDocument = (source: SourceText): ParsedDocument => ({
  kind: "error",
  error: new TextError(source.broken ?? "", source.text.length),
});

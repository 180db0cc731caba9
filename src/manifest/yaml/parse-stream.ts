import { parseJson } from "./json-parser.ts";
import {
  isDeeperThan,
  LineTable,
  type ParsedDocument,
  type SourceNode,
  TextError,
  toPlainValue,
} from "./source-node.ts";
import { AliasBudget, YamlParser } from "./yaml-parser.ts";

/** Limit of a manifest, exclusive. Unit: bytes. Source: kubelet `maxConfigLength`. */
export const MAX_MANIFEST_BYTES = 10 * 1024 * 1024;

/** Documents read from one file. A node runs hundreds of pods; each further document takes time and memory. */
export const MAX_DOCUMENTS = 10_000;

/** Levels of a configuration file that are read. */
const MAX_CONFIGURATION_DEPTH = 100;

/** Leading white space by Go's `unicode.IsSpace`, then `{`. */
const JSON_START = /^[\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*\{/;

/** Reads every document of a text: strict JSON when it begins with `{`, otherwise a YAML stream. Never throws. */
export function parseStream(bytes: Uint8Array): { documents: ParsedDocument[]; lines: LineTable } {
  if (bytes.length >= MAX_MANIFEST_BYTES) {
    const message = `the manifest has ${bytes.length} bytes: it must be smaller than ${MAX_MANIFEST_BYTES} (10 MiB)`;
    return { documents: [{ kind: "error", error: new TextError(message, 0) }], lines: new LineTable("") };
  }
  const source = decodeText(bytes);
  if (JSON_START.test(source.text)) {
    // Go's JSON decoder replaces invalid UTF-8 instead of refusing it.
    const text = source.broken ? new TextDecoder("utf-8").decode(bytes) : source.text;
    return { documents: [parseJsonDocument(text)], lines: new LineTable(text) };
  }
  const legal = stopAtIllegalCharacter(source);
  return { documents: parseYamlStream(legal), lines: new LineTable(legal.text) };
}

function parseJsonDocument(text: string): ParsedDocument {
  try {
    return { kind: "value", root: parseJson(text), offset: 0 };
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
    if (failedAt === undefined || documents.length > MAX_DOCUMENTS) return documents;
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
  const parser = new YamlParser(source.text, budget, base);
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
      const { root, start: offset, isEmpty, error } = next;
      if (isEmpty) documents.push({ kind: "empty", offset });
      else documents.push(error ? { kind: "error", error } : { kind: "value", root, offset });
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

/**
 * The first document of a configuration file, YAML or JSON; undefined when it is empty.
 * @param file named in messages
 * @param onRoot gets the document with what its value does not show
 * @throws Error `file:line:column: message`
 */
export function readDocument(bytes: Uint8Array, file: string, onRoot?: (root: SourceNode) => void): unknown {
  const { documents, lines } = parseStream(bytes);
  const fail = (offset: number, message: string) => {
    const { line, column } = lines.locate(offset);
    return new Error(`${file}:${line}:${column}: ${message}`);
  };
  const document = documents.find(({ kind }) => kind !== "empty");
  if (!document || document.kind === "empty") return undefined;
  if (document.kind === "error") throw fail(document.error.offset, document.error.message);
  if (isDeeperThan(document.root, MAX_CONFIGURATION_DEPTH)) {
    throw fail(document.root.offset, `more than ${MAX_CONFIGURATION_DEPTH} levels of nesting`);
  }
  onRoot?.(document.root);
  return toPlainValue(document.root);
}

/** Decoded text, cut off at the first byte or character that is not allowed. */
interface SourceText {
  text: string;
  /** Why the text was cut off; absent when it is complete. */
  broken?: string;
}

/** Characters that go-yaml's reader refuses, also in comments. A byte order mark is allowed. */
const ILLEGAL = /[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u;

/** Decodes UTF-8, or UTF-16 with a byte order mark. Stops at the first invalid byte. */
function decodeText(bytes: Uint8Array): SourceText {
  const mark = Buffer.from(bytes.subarray(0, 2)).toString("hex");
  if (mark !== "fffe" && mark !== "feff") return decodeUtf8(bytes);
  const whole = Buffer.from(bytes.subarray(0, bytes.length - (bytes.length % 2)));
  const text = (mark === "feff" ? whole.swap16() : whole).toString("utf16le");
  // Only halves of surrogate pairs match.
  const end = text.search(/[\ud800-\udfff]/u);
  if (end !== -1) return { text: text.slice(0, end), broken: "invalid UTF-16" };
  return bytes.length % 2 === 0 ? { text } : { text, broken: "the text ends in the middle of a UTF-16 character" };
}

function decodeUtf8(bytes: Uint8Array): SourceText {
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  let byteOffset = 0;
  let from = 0;
  // The decoder writes U+FFFD for what is not UTF-8; the text may also hold that character.
  for (let at = text.indexOf("\ufffd"); at !== -1; at = text.indexOf("\ufffd", from)) {
    byteOffset += Buffer.byteLength(text.slice(from, at));
    const isWritten = bytes[byteOffset] === 0xef && bytes[byteOffset + 1] === 0xbf && bytes[byteOffset + 2] === 0xbd;
    if (!isWritten) return { text: text.slice(0, at), broken: "invalid UTF-8" };
    byteOffset += 3;
    from = at + 1;
  }
  return { text };
}

/** Cuts the text before the first character that YAML does not allow. */
function stopAtIllegalCharacter(source: SourceText): SourceText {
  const at = source.text.search(ILLEGAL);
  if (at === -1) return source;
  const code = source.text.codePointAt(at)!.toString(16).toUpperCase().padStart(4, "0");
  return { text: source.text.slice(0, at), broken: `the character U+${code} is not allowed in YAML` };
}

import { encryptionOf } from "../base/text/age-text.ts";
import { FieldPath } from "./field.ts";
import { describeForeignText, describeTemplate } from "./foreign-formats.ts";
import {
  MAX_FINDINGS_PER_FILE,
  MAX_OBJECTS,
  type ManifestResult,
  ObjectReading,
  type ReadContext,
  type ReadManifestOptions,
} from "./object-reading.ts";
import { readObject } from "./read-object.ts";
import { parseStream } from "./yaml/parse-stream.ts";
import { LineTable, TextError, toSourceNode } from "./yaml/source-node.ts";

/**
 * Reads one manifest: every document of a YAML stream, or one JSON value. Errors become findings; nothing is thrown, and
 * time and memory are bounded by the size of the text.
 */
export function readManifest(bytes: Uint8Array, options: ReadManifestOptions): ManifestResult {
  if (encryptionOf(bytes)) return refuseManifest(options, ENCRYPTED);
  const stream = parseStream(bytes);
  const matches = (pattern: RegExp) => stream.lines.matches(pattern);
  const first = stream.documents.find(({ kind }) => kind !== "empty");
  const isObject = first?.kind === "value" && first.root.kind === "map";
  const foreign = first && !isObject ? describeForeignText(matches) : undefined;
  if (foreign !== undefined) return refuseManifest(options, foreign);
  const whole = contextOf(options, stream.lines);
  const { result } = whole;
  const several = stream.documents.filter((document) => document.kind !== "empty").length > 1;
  let template: string | undefined;
  for (const [index, document] of stream.documents.entries()) {
    if (document.kind === "empty") continue;
    const origin = several ? `${options.file} (document ${index + 1})` : options.file;
    const context = { ...whole, origin, document: index + 1 };
    if (result.results.length >= MAX_OBJECTS && document.kind === "value") {
      const message = `the file has more than ${MAX_OBJECTS} objects: split it`;
      failDocument(context, document.offset, message);
      break;
    }
    if (document.kind === "error") {
      template ??= describeTemplate(matches);
      failDocument(context, document.error.offset, template ?? document.error.message);
      if (template !== undefined) break;
      continue;
    }
    try {
      readObject(document.root, document.root, FieldPath.root, context);
    } catch (error) {
      // A bug costs this document only: a source that throws would not read again.
      const message = `cannot be read because of a bug in kubelet-ts: ${(error as Error).message}`;
      failDocument(context, document.offset, message);
    }
  }
  if (result.results.length === 0) failDocument(whole, 0, EMPTY);
  collectFindings(result);
  return result;
}

function collectFindings({ results, findings: all }: ManifestResult): void {
  for (const { findings } of results) {
    findings.sort((a, b) => a.line - b.line || a.column - b.column);
    all.push(...findings);
  }
}

/** Order of values in place of positions in a text. */
class ValueOrder extends LineTable {
  override locate(offset: number): { line: number; column: number } {
    return { line: 1, column: offset + 1 };
  }
}

/** Reads the value of one object, as a client of the API sent it. Findings name fields; they are in the order of the value. */
export function readManifestValue(value: object, options: ReadManifestOptions): ManifestResult {
  const context = contextOf(options, new ValueOrder(""));
  const { result } = context;
  try {
    const root = toSourceNode(value);
    readObject(root, root, FieldPath.root, context);
  } catch (error) {
    if (!(error instanceof TextError)) throw error;
    failDocument(context, error.offset, error.message);
  }
  collectFindings(result);
  return result;
}

const ENCRYPTED =
  "the file is encrypted with age: name the file with the identity that decrypts it in --manifest-identity-file";

/** The result of a text that cannot be read at all. */
export function refuseManifest(options: ReadManifestOptions, message: string): ManifestResult {
  const context = contextOf(options, new LineTable(""));
  failDocument(context, 0, message);
  collectFindings(context.result);
  return context.result;
}

const contextOf = (options: ReadManifestOptions, lines: LineTable): ReadContext => ({
  options,
  origin: options.file,
  document: 1,
  lines,
  budget: { findings: MAX_FINDINGS_PER_FILE },
  result: { pods: [], configMaps: [], secrets: [], objects: [], locations: {}, findings: [], results: [] },
});

const EMPTY =
  "the text is empty, or has only comments: a manifest is an object with apiVersion, kind, metadata and spec";

/** Adds the result of a text that is no object. */
function failDocument(context: ReadContext, offset: number, message: string): void {
  const reading = new ObjectReading({ kind: "null", offset }, FieldPath.root, context);
  reading.addAt("syntax", "error", offset, FieldPath.root, message);
  reading.finish();
}

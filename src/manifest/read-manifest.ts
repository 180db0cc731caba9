import type { Finding } from "../base/model/finding.ts";
import { encryptionOf } from "../base/text/age-text.ts";
import { FieldPath } from "./field.ts";
import { describeForeignText, describeTemplate } from "./foreign-formats.ts";
import {
  MAX_FINDINGS_PER_FILE,
  MAX_OBJECTS,
  type ManifestResult,
  mayShowLines,
  type ObjectResult,
  type ReadManifestOptions,
} from "./object-reading.ts";
import { readObject } from "./read-object.ts";
import { LineTable, type ParsedStream, parseStream } from "./yaml/parse-stream.ts";
import { TextError, toSourceNode } from "./yaml/source-node.ts";

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
  const result = emptyResult();
  const several = stream.documents.filter((document) => document.kind !== "empty").length > 1;
  const budget = { findings: MAX_FINDINGS_PER_FILE };
  let template: string | undefined;
  for (const [index, document] of stream.documents.entries()) {
    if (document.kind === "empty") continue;
    const origin = several ? `${options.file} (document ${index + 1})` : options.file;
    const context = { options, origin, document: index + 1, lines: stream.lines, budget, result };
    if (result.results.length >= MAX_OBJECTS && document.kind === "value") {
      const message = `the file has more than ${MAX_OBJECTS} objects: split it`;
      result.results.push(failedDocument(context, document.offset, message));
      break;
    }
    if (document.kind === "error") {
      template ??= describeTemplate(matches);
      if (template !== undefined) {
        result.results.push(failedDocument(context, document.error.offset, template));
        break;
      }
      result.results.push(failedDocument(context, document.error.offset, document.error.message));
      continue;
    }
    try {
      readObject(document.root, document.root, FieldPath.root, context);
    } catch (error) {
      // A bug costs this document only: a source that throws would not read again.
      const message = `cannot be read because of a bug in kubelet-ts: ${(error as Error).message}`;
      result.results.push(failedDocument(context, document.offset, message));
    }
  }
  if (result.results.length === 0)
    result.results.push(failedDocument({ options, document: 1, lines: stream.lines }, 0));
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
  const result = emptyResult();
  const lines = new ValueOrder("");
  const context = {
    options,
    origin: options.file,
    document: 1,
    lines,
    budget: { findings: MAX_FINDINGS_PER_FILE },
    result,
  };
  try {
    const root = toSourceNode(value);
    readObject(root, root, FieldPath.root, context);
  } catch (error) {
    if (!(error instanceof TextError)) throw error;
    result.results.push(failedDocument(context, error.offset, error.message));
  }
  collectFindings(result);
  return result;
}

const ENCRYPTED =
  "the file is encrypted with age: name the file with the identity that decrypts it in --manifest-identity-file";

/** The result of a text that cannot be read at all. */
export function refuseManifest(options: ReadManifestOptions, message: string): ManifestResult {
  const failed = failedDocument({ options, document: 1, lines: parseStream(new Uint8Array()).lines }, 0, message);
  return { ...emptyResult(), results: [failed], findings: failed.findings };
}

const emptyResult = (): ManifestResult => ({
  pods: [],
  configMaps: [],
  secrets: [],
  objects: [],
  locations: {},
  findings: [],
  results: [],
});

function failedDocument(
  context: { options: ReadManifestOptions; document: number; lines: ParsedStream["lines"] },
  offset: number,
  message = "the text is empty, or has only comments: a manifest is an object with apiVersion, kind, metadata and spec",
): ObjectResult {
  const { options, document, lines } = context;
  const position = { file: options.file, document, ...lines.locate(offset) };
  const finding: Finding = { code: "syntax", severity: "error", ...position, field: "", message };
  const result: ObjectResult = {
    file: options.file,
    document,
    kind: "",
    name: "",
    namespace: "",
    valid: false,
    ok: false,
    findings: [finding],
  };
  if (options.keepPositions) {
    const locate = () => lines.locate(offset);
    result.positions = {
      path: FieldPath.root,
      locate,
      lineText: (line) => (mayShowLines("", lines) ? lines.lineText(line) : ""),
    };
  }
  return result;
}

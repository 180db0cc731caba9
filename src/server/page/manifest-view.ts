import type { Finding } from "../../base/model/finding.ts";
import type { ManifestView } from "../../page/wire.ts";

/** A longer manifest is shown as the decoded pod. */
export const MAX_SHOWN_MANIFEST_BYTES = 1024 * 1024;

/** Input of {@link toManifestView}. */
interface ManifestFacts {
  file: string;
  /** 1-based line at which the document of the pod begins; undefined when it is not known. */
  line: number | undefined;
  /** Contents of the file; undefined for a reader that may not see them, and where there is no file. */
  text: string | undefined;
  /** Findings of all files. */
  findings: readonly Finding[];
  /** The pod as YAML, shown instead of a text that cannot be shown. */
  rendered: string;
}

/** The document of a pod with what is wrong in it. Pure. */
export function toManifestView({ file, line, text, findings, rendered }: ManifestFacts): ManifestView {
  const part = text === undefined ? undefined : documentAt(text, line ?? 1);
  const isSource = part !== undefined && !HIDDEN_KINDS.test(part.text);
  const first = isSource ? part.firstLine : 1;
  const last = isSource ? first + part.text.split("\n").length : Number.POSITIVE_INFINITY;
  return {
    text: isSource ? part.text : rendered,
    isSource,
    firstLine: first,
    findings: findings
      .filter((finding) => finding.file === file && (!isSource || (finding.line >= first && finding.line <= last)))
      .map(({ line: at, column, severity, field, message }) => ({
        line: at,
        column,
        isError: severity === "error",
        message: field === "" ? message : `${field}: ${message}`,
      })),
  };
}

/** Values of Secrets are shown to no one. */
const HIDDEN_KINDS = /\bkind["']?\s*:\s*["']?(?:Secret|SecretList|List)\b/;

/** The YAML document around a line, without its separators. A file that is not YAML is one document. */
function documentAt(text: string, line: number): { text: string; firstLine: number } {
  const lines = text.split("\n");
  const isSeparator = (index: number) => /^---(\s|$)/.test(lines[index] ?? "");
  let first = Math.min(Math.max(line - 1, 0), lines.length - 1);
  if (isSeparator(first)) first++;
  while (first > 0 && !isSeparator(first - 1)) first--;
  let end = first;
  while (end < lines.length && !isSeparator(end)) end++;
  return { text: lines.slice(first, end).join("\n").trimEnd(), firstLine: first + 1 };
}

import type { Finding } from "../base/model/finding.ts";
import { escapeControl } from "../daemon/logging.ts";
import type { ObjectResult } from "../manifest/manifest-result.ts";

/** One object of `validate -o json`; docs/validate.md documents the fields. */
export function toJsonResult(result: ObjectResult): object {
  const ofSeverity = (severity: Finding["severity"]) =>
    result.findings.filter((finding) => finding.severity === severity).map(toJsonFinding);
  return {
    file: result.file,
    document: result.document,
    kind: result.kind,
    name: result.name,
    namespace: result.namespace,
    valid: result.valid,
    ok: result.ok,
    errors: ofSeverity("error"),
    warnings: ofSeverity("warning"),
    ...(result.pod && { object: result.pod }),
  };
}

function toJsonFinding({ code, type, field, message, line, column }: Finding): object {
  return { code, ...(type !== undefined && { type }), field, message, line, column };
}

/**
 * Renders `file:line:col: field: message` for each finding; on a terminal followed by the source line and a caret. Lines
 * of Secrets are never shown.
 */
export function renderText(results: readonly ObjectResult[], isTerminal: boolean): string {
  let text = "";
  for (const result of results) {
    for (const finding of result.findings) {
      text += `${renderFinding(finding)}\n`;
      const line = isTerminal ? result.places?.lineText(finding.line) : undefined;
      if (line !== undefined && line.trim() !== "") text += renderCaret(line, finding);
    }
  }
  const failed = results.filter((result) => !result.ok).length;
  const objects = `${results.length} ${results.length === 1 ? "object" : "objects"}`;
  const isUnknown = ({ code, severity }: Finding) => code === "unknown" && severity === "error";
  if (results.some(({ findings }) => findings.some(isUnknown))) {
    text +=
      "Unknown fields have no effect: correct or remove them, or take the manifest as it is with --validate=warn.\n";
  }
  return `${text}${objects}: ${results.length - failed} ok, ${failed} with errors\n`;
}

function renderFinding({ file, line, column, field, message, severity }: Finding): string {
  const parts = [`${file}:${line}:${column}`, severity === "warning" ? "warning" : "", field, message];
  return escapeControl(parts.filter((part) => part !== "").join(": "));
}

const WIDTH = 100;

function renderCaret(line: string, { column }: Finding): string {
  const characters = [...line.replaceAll("\t", " ")];
  const start = column > WIDTH ? column - WIDTH / 2 : 0;
  const shown = characters.slice(start, start + WIDTH).join("");
  return `    ${shown}\n    ${" ".repeat(Math.max(0, column - 1 - start))}^\n`;
}

import { linesOf, StreamTooLongError } from "../../base/files/bounded-stream.ts";
import { findRulesProblem } from "../../base/host/iptables.ts";
import { readNodeName } from "../../base/host/node-info.ts";
import { programOnPort } from "../../base/host/port-holder.ts";
import { readInstance } from "../../base/host/root-directory.ts";
import type { Finding } from "../../base/model/finding.ts";
import { resolveOptions } from "../../config/resolve-options.ts";
import { escapeControl } from "../../daemon/logging.ts";
import type { ObjectResult, Strictness } from "../../manifest/object-reading.ts";
import { readManifest } from "../../manifest/read-manifest.ts";
import { hasClusterIp, type PortHolder } from "../../plan/service-addresses.ts";
import { readInputs } from "../client/manifest-inputs.ts";
import { CommandError, type CommandIo, type CommandRequest, UsageError } from "../sub-command.ts";
import { checkInputs, type NodeRules } from "../validate-inputs.ts";

interface ValidateOptions {
  strictness: Strictness;
  nodeName: string;
  /** false only when set: Kubernetes' own validation allows privileged containers. */
  allowPrivileged: boolean;
}

/** `kubelet-ts validate`. Returns the exit code. */
export async function runValidate(request: CommandRequest, io: CommandIo): Promise<number> {
  const { positionals: files, isOn } = request;
  const batch = isOn("batch");
  if (!batch && files.length === 0)
    throw new UsageError("name at least one file, directory or URL, or - for standard input");
  if (batch && files.length > 0) throw new UsageError("--batch takes its manifests from standard input only");
  const { options, rules, warnings } = await resolve(request);
  if (batch) return runBatch(options, io);
  for (const warning of warnings) io.stderr(`kubelet-ts validate: warning: ${warning}\n`);
  const inputs = await readInputs(files, io.input);
  for (const input of inputs) if ("skipped" in input) io.stderr(`${input.file}: skipped: ${input.skipped}\n`);
  const results = checkInputs(inputs, options, rules);
  const problem = results.some(needsServiceRules) && (await findRulesProblem());
  if (problem) {
    const text = `Services have no addresses where ${problem}: their names lead to pods, at the ports of containers`;
    io.stderr(`kubelet-ts validate: warning: ${text}\n`);
  }
  if (request.value("output") === "json") io.stdout(`${JSON.stringify({ results: results.map(toJsonResult) })}\n`);
  else io.stdout(renderText(results, io.isTerminal));
  return results.every((result) => result.ok) ? 0 : 2;
}

/** A Service that does something else where its name leads to pods. */
function needsServiceRules({ ok, desired }: ObjectResult): boolean {
  if (!ok || desired?.kind !== "Service" || !hasClusterIp(desired.object)) return false;
  const { type, ports = [], sessionAffinity } = desired.object.spec;
  const isOther = ports.some(({ port, targetPort }) => Boolean(targetPort) && targetPort !== port);
  return type !== "ClusterIP" || sessionAffinity === "ClientIP" || isOther;
}

/** Flags that the kubelet has, too. */
const NODE_FLAGS = [
  "config",
  "config-dir",
  "allow-privileged",
  "allowed-unsafe-sysctls",
  "ingress-ports",
  "max-pods",
  "node-labels",
] as const;

/** @throws UsageError */
async function resolve({
  value,
  values,
  isOn,
}: CommandRequest): Promise<{ options: ValidateOptions; rules: NodeRules; warnings: readonly string[] }> {
  const nodeFlags = NODE_FLAGS.flatMap((flag) => values(flag).map((text) => `--${flag}=${text}`));
  const resolved = await resolveOptions(nodeFlags, process.cwd(), "show");
  if (resolved.errors.length > 0) throw new UsageError(resolved.errors.join("; "));
  const { options: node, origins, warnings } = resolved;
  const nodeName = readNodeName(value("node-name") ?? node.hostnameOverride);
  // A batch is checked by Kubernetes' own rules.
  const fallback = isOn("batch") && origins.validate === "default" ? "strict" : node.validate;
  const strictness = (value("validate") ?? fallback) as Strictness;
  const allowPrivileged = node.allowPrivileged || origins.allowPrivileged === "default";
  // A named node may be another machine. A running kubelet tells itself who has the ports of its ingress server.
  const isRunning = readInstance(node.rootDir) !== undefined;
  const portHolder: PortHolder = (protocol, port, isOwn) =>
    value("node-name") !== undefined || (isOwn && isRunning) ? undefined : programOnPort(protocol, port);
  const rules = { ...node, nodeName, portHolder, comparesAllLabels: strictness === "strict" };
  return { options: { strictness, nodeName, allowPrivileged }, rules, warnings };
}

/** A manifest of 10 MiB of which JSON escapes each byte. */
const MAX_LINE_CHARACTERS = 64 * 1024 * 1024;

/** Checks one manifest per JSON line of standard input; only `\n` ends a line, as in JSON. */
async function runBatch(options: ValidateOptions, io: CommandIo): Promise<number> {
  let allOk = true;
  try {
    for await (const line of linesOf(io.input(), MAX_LINE_CHARACTERS)) {
      if (line.trim() === "") continue;
      const { id, results, ok } = checkLine(line, options);
      allOk &&= ok;
      io.stdout(`${JSON.stringify({ id, results })}\n`);
    }
  } catch (error) {
    if (!(error instanceof StreamTooLongError)) throw error;
    throw new CommandError(`standard input: ${error.message}`);
  }
  return allOk ? 0 : 2;
}

function checkLine(line: string, options: ValidateOptions): { id: unknown; results: object[]; ok: boolean } {
  let request: { id?: unknown; manifest?: unknown; manifest_b64?: unknown };
  try {
    request = JSON.parse(line) as typeof request;
  } catch {
    return failedLine(null, "the line is not JSON");
  }
  const { id = null, manifest, manifest_b64: base64 } = request ?? {};
  if (typeof manifest !== "string" && typeof base64 !== "string") return failedLine(id, "the line has no manifest");
  const bytes = typeof manifest === "string" ? Buffer.from(manifest, "utf8") : Buffer.from(base64 as string, "base64");
  const { results } = readManifest(bytes, { ...options, file: "-", source: "file" });
  return { id, results: results.map(toJsonResult), ok: results.every((result) => result.ok) };
}

function failedLine(id: unknown, message: string): { id: unknown; results: object[]; ok: boolean } {
  const error = { code: "syntax", field: "", message, line: 1, column: 1 };
  const result = { file: "-", document: 1, kind: "", name: "", namespace: "", valid: false, ok: false };
  return { id, results: [{ ...result, errors: [error], warnings: [] }], ok: false };
}

/** One object of `validate -o json`; docs/validate.md documents the fields. */
function toJsonResult(result: ObjectResult): object {
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
function renderText(results: readonly ObjectResult[], isTerminal: boolean): string {
  let text = "";
  for (const result of results) {
    for (const finding of result.findings) {
      text += `${renderFinding(finding)}\n`;
      const line = isTerminal ? result.positions?.lineText(finding.line) : undefined;
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

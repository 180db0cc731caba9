import { parseArgs } from "node:util";
import { defineCommand } from "citty";
import { readNodeName } from "../host/node-info.ts";
import type { Strictness } from "../manifest/manifest-result.ts";
import { readManifest } from "../manifest/read-manifest.ts";
import { checkInputs, readInputs } from "./validate-inputs.ts";
import { renderText, toJsonResult } from "./validate-report.ts";
import { READER_GONE_EXIT, ReaderGone, writeAll } from "./write-all.ts";

const USAGE = `Usage: kubelet-ts validate [flags] FILE|DIR|URL|-…

Checks manifests as Kubernetes would, and whether they can run here; needs no Docker engine.
Exit codes: 0 all are fine, 2 some are not (or bad usage).

  -o, --output text|json
      what to print (default: text)
  --validate strict|warn|ignore
      what unknown fields are (default: strict, an error)
  --node-name name
      suffix of the pods' names (default: this host's name)
  --allow-privileged
      whether containers may be privileged (default: true)
  --batch
      read JSON lines {"id", "manifest"} or {"id", "manifest_b64"} from standard
      input and answer each with one line {"id", "results"}
`;

export interface ValidateIo {
  stdout: (text: string) => void;
  stderr: (text: string) => void;
  isTerminal: boolean;
  /** Standard input, for `--batch`. */
  input: () => AsyncIterable<Uint8Array>;
}

interface ValidateOptions {
  strictness: Strictness;
  nodeName: string;
  allowPrivileged: boolean;
}

/** `kubelet-ts validate`. Returns the exit code. */
export async function runValidate(argv: readonly string[], io: ValidateIo): Promise<number> {
  const parsed = parse(argv);
  if ("problem" in parsed) {
    io.stderr(`kubelet-ts validate: ${parsed.problem}\n\n${USAGE}`);
    return 2;
  }
  if (parsed.help) {
    io.stdout(USAGE);
    return 0;
  }
  if (parsed.batch) return runBatch(parsed.options, io);
  const inputs = await readInputs(parsed.files);
  const results = checkInputs(inputs, { ...parsed.options, source: "file" });
  if (parsed.output === "json") io.stdout(`${JSON.stringify({ results: results.map(toJsonResult) })}\n`);
  else io.stdout(renderText(results, io.isTerminal));
  return results.every((result) => result.ok) ? 0 : 2;
}

type Parsed =
  | { problem: string }
  | { help: boolean; batch: boolean; output: "text" | "json"; files: string[]; options: ValidateOptions };

function parse(argv: readonly string[]): Parsed {
  let args: ReturnType<typeof parseFlags>;
  try {
    args = parseFlags(argv);
  } catch (error) {
    return { problem: (error as Error).message };
  }
  const { output, validate, batch, help } = args.values;
  const files = args.positionals;
  if (output !== "text" && output !== "json") return { problem: `--output must be text or json (found "${output}")` };
  if (validate !== "strict" && validate !== "warn" && validate !== "ignore") {
    return { problem: `--validate must be strict, warn or ignore (found "${validate}")` };
  }
  if (!help && !batch && files.length === 0)
    return { problem: "name at least one file, directory or URL, or - for standard input" };
  if (batch && files.length > 0) return { problem: "--batch takes its manifests from standard input only" };
  const nodeName = readNodeName(args.values["node-name"]);
  const allowPrivileged = args.values["allow-privileged"];
  return { help, batch, output, files, options: { strictness: validate, nodeName, allowPrivileged } };
}

function parseFlags(argv: readonly string[]) {
  return parseArgs({
    args: argv.map((arg) =>
      arg
        .replace(/^--allow-privileged=false$/, "--no-allow-privileged")
        .replace(/^--allow-privileged=true$/, "--allow-privileged"),
    ),
    allowPositionals: true,
    allowNegative: true,
    options: {
      output: { type: "string", short: "o", default: "text" },
      validate: { type: "string", default: "strict" },
      "node-name": { type: "string", default: "" },
      "allow-privileged": { type: "boolean", default: true },
      batch: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
}

/** Thousands of manifests in one process: one JSON line in, one out. */
async function runBatch(options: ValidateOptions, io: ValidateIo): Promise<number> {
  let allOk = true;
  for await (const line of linesOf(io.input())) {
    if (line.trim() === "") continue;
    const { id, results, ok } = checkLine(line, options);
    allOk &&= ok;
    io.stdout(`${JSON.stringify({ id, results })}\n`);
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

/** Lines end with `\n` only: manifests may hold other line separators. */
async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks) {
    const [first = "", ...others] = decoder.decode(chunk, { stream: true }).split("\n");
    rest += first;
    for (const line of others) {
      yield rest;
      rest = line;
    }
  }
  if (rest !== "") yield rest;
}

export const validateCommand = defineCommand({
  meta: { name: "validate", description: "check manifests, with the line and column of each mistake" },
  run: async ({ rawArgs }) => {
    try {
      process.exitCode = await runValidate(rawArgs, {
        stdout: (text) => writeAll(1, text),
        stderr: (text) => process.stderr.write(text),
        isTerminal: process.stdout.isTTY,
        input: () => Bun.stdin.stream(),
      });
    } catch (error) {
      if (!(error instanceof ReaderGone)) throw error;
      process.exitCode = READER_GONE_EXIT;
    }
  },
});

import { existsSync } from "node:fs";
import { buildFacts } from "../../app/version.ts";
import { resolveOptions } from "../../config/resolve-options.ts";
import { type CheckResult, isFailure, runChecks } from "../../doctor/checks.ts";
import { gatherFacts } from "../../doctor/gather-facts.ts";
import { installPaths } from "../../install/install-files.ts";
import type { CommandIo } from "../command-io.ts";
import { UsageError } from "../sub-command.ts";

const MARKS = { ok: "ok  ", warn: "warn", fail: "FAIL" } as const;

/**
 * `kubelet-ts doctor [flags of the kubelet] [-o json]`. Takes the settings of the installed service unless others are
 * given. Returns the exit code: 0 no check failed, 1 one did, 2 bad usage.
 */
export async function runDoctor(rawArgs: readonly string[], io: CommandIo): Promise<number> {
  const { isJson, flags } = takeOutput(rawArgs);
  const { config } = installPaths("systemd", "");
  const isNamed = flags.some((word) => word.startsWith("--config") || word.startsWith("--pod-manifest-path"));
  const resolved = await resolveOptions(
    isNamed || !existsSync(config) ? flags : [`--config=${config}`, ...flags],
    process.cwd(),
    "show",
  );
  if (resolved.errors.length > 0) throw new UsageError(resolved.errors.join("\n"));
  const facts = await gatherFacts({
    options: { ...resolved.options, podManifestPaths: [...resolved.options.podManifestPaths, ...resolved.positionals] },
    environment: process.env,
    ...buildFacts(),
  });
  const results = runChecks(facts);
  io.stdout(isJson ? `${JSON.stringify({ checks: results }, null, 2)}\n` : renderChecks(results));
  return results.some(isFailure) ? 1 : 0;
}

/** One line for each check; below it, indented, how to fix what is not ok. */
export function renderChecks(results: readonly CheckResult[]): string {
  const lines = results.map(({ status, name, message, fix }) => {
    const line = `${MARKS[status]}  ${name}: ${message}`;
    return fix && status !== "ok" ? `${line}\n      → ${fix}` : line;
  });
  const count = (status: CheckResult["status"]) => results.filter((result) => result.status === status).length;
  return `${lines.join("\n")}\n${count("ok")} ok, ${count("warn")} warnings, ${count("fail")} failed\n`;
}

/** `-o json` is the command's own; everything else is the kubelet's. */
function takeOutput(rawArgs: readonly string[]): { isJson: boolean; flags: string[] } {
  const flags: string[] = [];
  let output = "text";
  for (let index = 0; index < rawArgs.length; index++) {
    const word = rawArgs[index]!;
    const attached = /^(?:-o=?|--output=)(.+)$/.exec(word)?.[1];
    if (attached !== undefined) output = attached;
    else if (word === "-o" || word === "--output") output = rawArgs[++index] ?? "";
    else flags.push(word);
  }
  if (output !== "text" && output !== "json") throw new UsageError(`--output must be text or json (found "${output}")`);
  return { isJson: output === "json", flags };
}

import { existsSync } from "node:fs";
import { openConfigurationStore } from "../../app/choose-configuration.ts";
import { buildFacts } from "../../app/version.ts";
import { type ResolvedOptions, resolveOptions } from "../../config/resolve-options.ts";
import { type CheckResult, isFailure } from "../../doctor/check-result.ts";
import { runChecks } from "../../doctor/checks.ts";
import { gatherFacts } from "../../doctor/gather-facts.ts";
import type { CredentialLookUp } from "../../doctor/gather-images.ts";
import type { ConfigurationFacts } from "../../doctor/machine-facts.ts";
import { SystemClock } from "../../host/system-clock.ts";
import { installPaths } from "../../install/install-files.ts";
import type { KubeletOptions } from "../../model/kubelet-options.ts";
import { CredentialProviders } from "../../runtime/credential-provider.ts";
import { ImageCredentials } from "../../runtime/image-credentials.ts";
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
  const argv = isNamed || !existsSync(config) ? flags : [`--config=${config}`, ...flags];
  const { resolved, configuration } = await resolve(argv);
  const { options } = resolved;
  const facts = await gatherFacts({
    options: { ...options, podManifestPaths: [...options.podManifestPaths, ...resolved.positionals] },
    environment: process.env,
    ...buildFacts(),
    configuration,
    credentials: credentialsOf(options),
  });
  const results = runChecks(facts);
  io.stdout(isJson ? `${JSON.stringify({ checks: results }, null, 2)}\n` : renderChecks(results));
  return results.some(isFailure) ? 1 : 0;
}

/** Without the files when they are invalid: what is wrong with them is a check that fails. */
async function resolve(
  argv: readonly string[],
): Promise<{ resolved: ResolvedOptions; configuration: ConfigurationFacts | undefined }> {
  const cwd = process.cwd();
  const resolved = await resolveOptions(argv, cwd, "show");
  const { configuration: files, options, errors } = resolved;
  if (errors.length === 0) {
    const tried = files && openConfigurationStore(options.dynamicConfigDir, new SystemClock(), () => {}).tried.read();
    const rejected = tried && tried.id === files.id ? tried.rejected : undefined;
    return { resolved, configuration: files && { errors, rejected } };
  }
  const without = await resolveOptions(argv, cwd, "show", process.env, { id: "", files: [] });
  if (!files || without.errors.length > 0) throw new UsageError(errors.join("\n"));
  return { resolved: without, configuration: { errors, rejected: undefined } };
}

/** As the kubelet looks for them. */
function credentialsOf(options: KubeletOptions): CredentialLookUp {
  const { imageCredentialProviderConfig: file, imageCredentialProviderBinDir: binDir, rootDir } = options;
  const ignore = () => {};
  const logger = { error: ignore, warn: ignore, info: ignore, debug: ignore, trace: ignore };
  const providers = file ? CredentialProviders.fromFile(file, binDir, new SystemClock(), logger) : undefined;
  const credentials = new ImageCredentials({ rootDir, homeDir: process.env.HOME ?? "", logger, providers });
  return (reference, pullSecrets, signal) => credentials.lookUp(reference, pullSecrets, signal);
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

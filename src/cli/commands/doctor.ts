import { existsSync } from "node:fs";
import { LOCAL_TEXT_FILES } from "../../base/files/whole-file.ts";
import { SystemClock } from "../../base/host/system-clock.ts";
import type { KubeletOptions } from "../../config/option-table.ts";
import { resolveOptions } from "../../config/resolve-options.ts";
import { openConfigurationStore } from "../../daemon/choose-configuration.ts";
import { type CheckResult, isFailure, runChecks } from "../../daemon/doctor/checks.ts";
import { type CredentialLookUp, gatherFacts, type ReadEncrypted } from "../../daemon/doctor/gather-facts.ts";
import { findService, serviceEnvironment } from "../../daemon/install/run-install.ts";
import { buildFacts } from "../../daemon/version.ts";
import { CredentialProviders, ImageCredentials } from "../../docker/image-credentials.ts";
import { type CommandIo, UsageError } from "../sub-command.ts";

const MARKS = { ok: "ok  ", warn: "warn", fail: "FAIL" } as const;

/**
 * `kubelet-ts doctor [flags of the kubelet] [-o json]`. Takes the settings of the installed service unless others are
 * given. Returns the exit code: 0 no check failed, 1 one did, 2 bad usage.
 */
export async function runDoctor(rawArgs: readonly string[], io: CommandIo): Promise<number> {
  const given = await resolveOptions(rawArgs, process.cwd(), "show");
  const namesManifests = given.positionals.length > 0 || given.origins.podManifestPaths.startsWith("--");
  const isNamed = given.configPaths.length > 0 || namesManifests;
  const service = isNamed ? undefined : findService();
  const config = service?.paths.config;
  const argv = config !== undefined && existsSync(config) ? [`--config=${config}`, ...rawArgs] : rawArgs;
  const { resolved, configuration } = await resolve(argv);
  const { options } = resolved;
  if (options.output === "yaml") throw new UsageError('--output must be text or json (found "yaml")');
  const facts = await gatherFacts({
    options: { ...options, podManifestPaths: [...options.podManifestPaths, ...resolved.positionals] },
    environment: service?.manager === "systemd-user" ? serviceEnvironment(service.manager, process.env) : process.env,
    ...buildFacts(),
    configuration,
    decrypt: decryptOf(options),
    credentials: credentialsOf(options),
  });
  const results = runChecks(facts);
  io.stdout(options.output === "json" ? `${JSON.stringify({ checks: results }, null, 2)}\n` : renderChecks(results));
  return results.some(isFailure) ? 1 : 0;
}

/** Without the files when they are invalid: what is wrong with them is a check that fails. */
async function resolve(argv: readonly string[]) {
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

/** undefined without `--manifest-identity-file`. */
function decryptOf({ manifestIdentityFile }: KubeletOptions): ReadEncrypted | undefined {
  if (manifestIdentityFile === "") return undefined;
  return async (bytes, how) => {
    const [{ readEncryptedManifest }, { readManifest }] = await Promise.all([
      import("../../daemon/decrypt-manifest.ts"),
      import("../../manifest/read-manifest.ts"),
    ]);
    return readEncryptedManifest(bytes, how, manifestIdentityFile, readManifest);
  };
}

/** As the kubelet looks for them. */
function credentialsOf(options: KubeletOptions): CredentialLookUp {
  const { imageCredentialProviderConfig: file, imageCredentialProviderBinDir: binDir, rootDir } = options;
  const ignore = () => {};
  const logger = { error: ignore, warn: ignore, info: ignore, debug: ignore };
  const providers = file ? CredentialProviders.fromFile(file, binDir, new SystemClock(), logger) : undefined;
  const credentials = new ImageCredentials({
    rootDir,
    homeDir: process.env.HOME ?? "",
    logger,
    providers,
    files: LOCAL_TEXT_FILES,
  });
  return (reference, pullSecrets, signal) => credentials.lookUp(reference, pullSecrets, signal);
}

/** One line for each check; below it, indented, how to fix what is not ok. */
function renderChecks(results: readonly CheckResult[]): string {
  const count = (status: CheckResult["status"]) => results.filter((result) => result.status === status).length;
  return `${renderLines(results).join("\n")}\n${count("ok")} ok, ${count("warn")} warnings, ${count("fail")} failed\n`;
}

export const renderLines = (results: readonly CheckResult[]): string[] =>
  results.map(({ status, name, message, fix }) => {
    const line = `${MARKS[status]}  ${name}: ${message}`;
    return fix && status !== "ok" ? `${line}\n      → ${fix}` : line;
  });

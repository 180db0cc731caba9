import { createHash } from "node:crypto";
import { readdirSync, readSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { readBoundedStream } from "../base/files/bounded-stream.ts";
import { isPipe, openPipe } from "../base/files/pipe.ts";
import { openFile } from "../base/files/whole-file.ts";
import type { Configuration, ConfigurationFile } from "../base/model/configuration.ts";
import type { EvictionThreshold } from "../base/model/option-values.ts";
import { isManifestUrl } from "../base/text/url.ts";
import { type CommandLine, environmentSettings, parseCommandLine, type Setting } from "./flags.ts";
import {
  DEFAULT_KUBELET_OPTIONS,
  type KubeletOptions,
  type OptionRow,
  type Origins,
  ROW_BY_FIELD,
} from "./option-table.ts";
import { checkOptions, featureGateWarnings, type Purpose } from "./validate-options.ts";

/** Nothing is thrown: `errors` non-empty means exit code 2, and `options` must not be used. */
export interface ResolvedOptions extends Pick<CommandLine, "positionals" | "request" | "warnings" | "errors"> {
  options: KubeletOptions;
  origins: Origins;
  /** Absolute paths of `--config` and `--config-dir`, or of their variables. */
  configPaths: string[];
  /** Files of settings that were read; absent without --config and --config-dir. */
  configuration?: Configuration;
}

const UNSET = "default";

/**
 * Resolves options in this order of precedence: defaults, configuration file, drop-ins by name, environment
 * (`KUBELET_TS_MAX_PODS`), flags. Reads the files of
 * `--config` and `--config-dir`; a `--config` that names a directory or a manifest adds a manifest path instead.
 * @param purpose `show`: options are only displayed, so options for --runonce alone are not an error.
 * @param cwd base of relative paths in flags; paths in a file are relative to its directory, as upstream.
 * @param configuration replaces the content of the files of `--config` and `--config-dir`
 */
export async function resolveOptions(
  argv: readonly string[],
  cwd: string = process.cwd(),
  purpose: Purpose = "run",
  environment: Readonly<Record<string, string | undefined>> = process.env,
  configuration?: Configuration,
): Promise<ResolvedOptions> {
  const line = parseCommandLine(argv);
  const variables = environmentSettings(environment);
  const warnings = [...line.warnings, ...variables.warnings];
  const errors = [...line.errors, ...variables.errors];
  const configPaths = (line.configPaths.length > 0 ? line : variables).configPaths;
  const configDir = line.configDir ?? variables.configDir;
  const files = await readConfiguration({ configPaths, configDir }, cwd, { warnings, errors }, configuration);
  const given = new Set(line.settings.map(({ row }) => row.option));
  const flags = [...variables.settings.filter(({ row }) => !given.has(row.option)), ...line.settings].map((setting) =>
    absolutePaths(setting, cwd),
  );
  if (files.manifestPaths.length > 0) addManifestPaths(flags, files.manifestPaths);

  const { options, origins } = layOver(files.settings, flags, files.found);
  if (options.validate === "strict" || options.validate === "standard") errors.push(...files.unknown);
  else if (options.validate === "warn") warnings.push(...files.unknown);
  warnings.push(...featureGateWarnings(options.featureGates));
  const positionals = line.positionals.map((name) => (isManifestUrl(name) || name === "-" ? name : resolve(cwd, name)));
  const checked = checkOptions(options, origins, positionals, purpose);
  return {
    options,
    origins,
    positionals,
    ...(line.request ? { request: line.request } : {}),
    warnings: [...warnings, ...checked.warnings],
    errors: [...errors, ...checked.errors],
    configPaths: [...configPaths, configDir ?? []].flat().map((path) => resolve(cwd, path)),
    ...(files.configuration && { configuration: files.configuration }),
  };
}

/** The limit of manifests, because `--config` may name one. */
const MAX_CONFIG_BYTES = 10 * 1024 * 1024;

const MANIFEST_PATH_ROW = ROW_BY_FIELD.get("staticPodPath") as OptionRow;

interface ReadSettings {
  /** In the order of the files; not yet combined. */
  settings: Setting[];
  /** `--config` in its meaning of Kubernetes 1.4. */
  manifestPaths: Setting[];
  /** Unknown fields of the files. */
  unknown: string[];
  /** A KubeletConfiguration was read: upstream's other defaults apply. */
  found: boolean;
  configuration?: Configuration;
}

async function readConfiguration(
  line: { configPaths: readonly string[]; configDir: string | undefined },
  cwd: string,
  { warnings, errors }: Pick<ResolvedOptions, "warnings" | "errors">,
  replacement: Configuration | undefined,
): Promise<ReadSettings> {
  const result: ReadSettings = { settings: [], manifestPaths: [], unknown: [], found: false };
  const read: ConfigurationFile[] = [];
  const readErrors: string[] = [];
  // The YAML reader is loaded only when there is a file to read.
  if (line.configPaths.length === 0 && !line.configDir) return result;
  const { detectKind, parseConfigFile } = await import("./config-file.ts");

  for (const given of line.configPaths) {
    const path = resolve(cwd, given);
    try {
      const isDirectory = statSync(path).isDirectory();
      const text = isDirectory ? "" : isPipe(path) ? await readPipe(path) : readText(path);
      const kind = isDirectory ? "manifest" : detectKind(text);
      if (kind === "configuration") read.push({ path, text });
      else if (kind === "unknown") {
        readErrors.push(`--config: "${path}" has no kind: neither a KubeletConfiguration nor a manifest`);
      } else {
        warnings.push(
          `--config ${given} holds manifests, not a KubeletConfiguration: write --pod-manifest-path=${given}`,
        );
        result.manifestPaths.push({ row: MANIFEST_PATH_ROW, value: [path], origin: "--config" });
      }
    } catch (error) {
      readErrors.push(`--config: ${readProblem(path, error)}`);
    }
  }
  if (read.length > 1) readErrors.push("--config: only one KubeletConfiguration can be given; use --config-dir");
  if (line.configDir) {
    const directory = resolve(cwd, line.configDir);
    try {
      for (const path of listDropIns(directory)) read.push({ path, text: readText(path) });
    } catch (error) {
      readErrors.push(`--config-dir: ${readProblem(directory, error)}`);
    }
  }
  if (!replacement) errors.push(...readErrors);
  const configFiles = replacement?.files ?? read;
  result.configuration = replacement ?? { id: hashOf(read), files: read };
  for (const { path, text } of configFiles) {
    const parsed = parseConfigFile(text, path);
    warnings.push(...parsed.warnings);
    errors.push(...parsed.errors);
    result.unknown.push(...parsed.unknown);
    result.settings.push(...parsed.settings.map((setting) => absolutePaths(setting, dirname(path))));
    result.found = true;
  }
  return result;
}

/** The same for the same paths and texts. */
const hashOf = (files: readonly ConfigurationFile[]): string =>
  createHash("sha256")
    .update(JSON.stringify(files.map(({ path, text }) => [path, text])))
    .digest("hex")
    .slice(0, 16);

/** @throws Error also at more than {@link MAX_CONFIG_BYTES} */
const readPipe = async (path: string): Promise<string> => readBoundedStream(await openPipe(path), MAX_CONFIG_BYTES);

/**
 * Reads a file, or a device such as `/dev/null`.
 * @throws Error also for a pipe, and at more than {@link MAX_CONFIG_BYTES}
 */
function readText(path: string): string {
  if (isPipe(path)) throw new Error("it is a pipe");
  using file = openFile(path, "r");
  const chunks: Uint8Array[] = [];
  for (let length = 0; length < MAX_CONFIG_BYTES; ) {
    const chunk = new Uint8Array(65_536);
    const read = readSync(file.descriptor, chunk);
    if (read === 0) return Buffer.concat(chunks).toString("utf8");
    chunks.push(chunk.subarray(0, read));
    length += read;
  }
  throw new Error(`it has ${MAX_CONFIG_BYTES} bytes or more`);
}

/** `*.conf` in the directory and below, in the order of their paths. Source: KEP-3983. */
function listDropIns(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.name.endsWith(".conf") && !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

function readProblem(path: string, error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === "ENOENT") return `"${path}" does not exist`;
  if (code === "EACCES") return `"${path}" may not be read (permission denied)`;
  return `"${path}" cannot be read: ${(error as Error).message}`;
}

function absolutePaths(setting: Setting, base: string): Setting {
  if (!setting.row.kind.completes) return setting;
  const absolute = (path: unknown) => (typeof path === "string" && path !== "" ? resolve(base, path) : path);
  return { ...setting, value: Array.isArray(setting.value) ? setting.value.map(absolute) : absolute(setting.value) };
}

function addManifestPaths(flags: Setting[], added: readonly Setting[]): void {
  const paths = added.flatMap((setting) => setting.value as string[]);
  const given = flags.find((setting) => setting.row.option === "podManifestPaths");
  if (given) given.value = [...(given.value as string[]), ...paths];
  else flags.push({ ...added[0]!, value: paths });
}

function layOver(fromFiles: readonly Setting[], fromFlags: readonly Setting[], hasFile: boolean) {
  const options: Record<string, unknown> = { ...DEFAULT_KUBELET_OPTIONS };
  const origins: Record<string, string> = Object.fromEntries(
    Object.keys(DEFAULT_KUBELET_OPTIONS).map((name) => [name, UNSET]),
  );
  // With a configuration file the read-only port defaults to off, as upstream.
  if (hasFile) options.readOnlyPort = 0;
  for (const { row, value, origin } of fromFiles) {
    const merges = row.kind.isMap && origins[row.option] !== UNSET;
    options[row.option] = merges ? row.kind.combine!(options[row.option], value) : value;
    origins[row.option] = origin;
  }
  deriveFromFiles(options as unknown as KubeletOptions, origins);
  for (const { row, value, origin } of fromFlags) {
    // Flags add to feature gates; other maps are replaced.
    const merges = row.option === "featureGates";
    options[row.option] = merges ? row.kind.combine!(options[row.option], value) : value;
    origins[row.option] = origin;
  }
  derive(options as unknown as KubeletOptions, origins, hasFile);
  return { options: options as unknown as KubeletOptions, origins: origins as Origins };
}

/** Fills in defaults that depend on other fields of the files, flags aside. Source: `SetDefaults_KubeletConfiguration`. */
function deriveFromFiles(options: KubeletOptions, origins: Record<string, string>): void {
  if (origins.nodeStatusReportFrequencyMs !== UNSET || origins.nodeStatusUpdateFrequencyMs === UNSET) return;
  options.nodeStatusReportFrequencyMs = options.nodeStatusUpdateFrequencyMs;
  origins.nodeStatusReportFrequencyMs = origins.nodeStatusUpdateFrequencyMs!;
}

/** Fills in defaults that depend on other options. */
function derive(options: KubeletOptions, origins: Record<string, string>, hasFile: boolean): void {
  // An API server has a flag of its own that decides about privileged pods.
  if (options.kubeconfig !== "" && origins.allowPrivileged === UNSET) options.allowPrivileged = true;
  // Defaults of a KubeletConfiguration, where there is an API server to ask.
  if (hasFile && options.kubeconfig !== "") {
    if (origins.authorizationMode === UNSET) options.authorizationMode = "Webhook";
    if (origins.authenticationTokenWebhook === UNSET) options.authenticationTokenWebhook = true;
  }
  if (origins.readOnlyAddress === UNSET && origins.address !== UNSET) {
    options.readOnlyAddress = options.address;
    origins.readOnlyAddress = origins.address!;
  }
  // Anonymous requests may do everything: from this machine only, unless an address is given.
  const isOpen = options.anonymousAuth && options.authorizationMode === "AlwaysAllow";
  if (origins.address === UNSET && isOpen) options.address = "127.0.0.1";
  // Without any way to authenticate the port would refuse every request.
  if (origins.port === UNSET && !acceptsClients(options)) options.port = 0;
  if (!options.enableServer) Object.assign(options, { readOnlyPort: 0, cadvisorPort: 0, port: 0 });
  if (origins.cniCacheDir === UNSET) options.cniCacheDir = join(options.rootDir, "cni");
  if (origins.dynamicConfigDir === UNSET) options.dynamicConfigDir = join(options.rootDir, "config");
  if (origins.certDir === UNSET) options.certDir = join(options.rootDir, "pki");
  options.hostnameOverride = options.hostnameOverride.trim().toLowerCase();
  if (options.mergeDefaultEvictionSettings && origins.evictionHard !== UNSET) {
    const given = new Set(options.evictionHard.map((threshold) => threshold.signal));
    const kept = DEFAULT_KUBELET_OPTIONS.evictionHard.filter((threshold) => !given.has(threshold.signal));
    options.evictionHard = [...options.evictionHard, ...kept];
  }
  options.evictionHard = options.evictionHard.filter(isOn);
  options.evictionSoft = options.evictionSoft.filter(isOn);
}

const acceptsClients = ({ clientCaFile, anonymousAuth, authenticationTokenWebhook, kubeconfig }: KubeletOptions) =>
  clientCaFile !== "" || anonymousAuth || (authenticationTokenWebhook && kubeconfig !== "");

/** 0% and 100% disable a signal, as upstream. */
function isOn(threshold: EvictionThreshold): boolean {
  return !("percentage" in threshold) || (threshold.percentage > 0 && threshold.percentage < 100);
}

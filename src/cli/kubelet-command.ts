import { statSync } from "node:fs";
import { readNodeName } from "../base/host/node-info.ts";
import { keepNodeName } from "../base/host/node-name.ts";
import { lockRootDir, prepareRootDirectory, type RootLock, readInstance } from "../base/host/root-directory.ts";
import { SystemClock } from "../base/host/system-clock.ts";
import { BROKEN_PIPE_EXIT, BrokenPipeError, writeAll, writeStderr } from "../base/host/write-all.ts";
import { type Configuration, SettingsError } from "../base/model/configuration.ts";
import type { Logger } from "../base/model/logger.ts";
import { DEFAULT_KUBELET_OPTIONS, type KubeletOptions } from "../config/option-table.ts";
import { type ResolvedOptions, resolveOptions } from "../config/resolve-options.ts";
import { chooseConfiguration, openConfigurationStore } from "../daemon/choose-configuration.ts";
import { instanceInfo } from "../daemon/instance-info.ts";
import { openJournal } from "../daemon/journal.ts";
import { type Environment, EXIT, type KubeletRun } from "../daemon/kubelet-run.ts";
import { type AppLogger, createLogger, wantsColor } from "../daemon/logging.ts";
import { replaceProcess } from "../daemon/private-arguments.ts";
import { logUnexpectedErrors } from "../daemon/unexpected-errors.ts";
import { buildFacts, versionLine } from "../daemon/version.ts";
import { isLoopback } from "../server/request-handler.ts";
import { describeFinding } from "../sources/source-set.ts";
import { removeProxies } from "./client/find-kubelet.ts";
import { type CommandManual, renderHelp } from "./help.ts";

const NO_MANIFESTS = "no manifests: name a file, a directory or a URL, or use --pod-manifest-path or --manifest-url";

/** `kubelet-ts [flags] [manifest…]`: parses the command line and runs the kubelet. @returns the exit code */
export async function runKubelet(argv: readonly string[], commands: readonly CommandManual[]): Promise<number> {
  const cwd = process.cwd();
  const variables = { ...process.env };
  const resolve = async (configuration?: Configuration): Promise<ResolvedOptions> => {
    const found = await resolveOptions(argv, cwd, "run", variables, configuration);
    return found.request ? found : { ...found, errors: [...findErrors(found)] };
  };
  const asFiled = await resolve();
  if (asFiled.request === "help") {
    writeAll(1, renderHelp(commands));
    return EXIT.done;
  }
  if (asFiled.request === "version") {
    writeAll(1, `${versionLine()}\n`);
    return EXIT.done;
  }
  const early: string[] = [];
  let warn = (message: string): void => void early.push(message);
  const openStore = (directory: string) =>
    openConfigurationStore(directory, new SystemClock(), (message) => warn(message));
  const { resolved, start } = asFiled.configuration
    ? await chooseConfiguration(asFiled, resolve, openStore)
    : { resolved: asFiled, start: undefined };
  if (resolved.errors.length > 0) {
    for (const message of resolved.errors) writeStderr(`kubelet-ts: ${message}\n`);
    writeStderr("Try 'kubelet-ts --help'.\n");
    return EXIT.badInput;
  }
  const logger = await buildLogger(resolved.options);
  logUnexpectedErrors(logger);
  warn = (message) => logger.warn(message);
  early.forEach(warn);
  logStart(resolved, logger);
  const exitCode = await runLocked(resolved, logger, { resolve, configuration: start });
  return exitCode === "restart" ? restart(argv, variables, logger) : exitCode;
}

/** Replaces the process with a new one, which reads the configuration again. */
function restart(argv: readonly string[], variables: Environment, logger: Logger): number {
  try {
    return replaceProcess(argv, variables);
  } catch (error) {
    logger.error("kubelet-ts ends so that a service manager starts it again", { error: (error as Error).message });
    return EXIT.failed;
  }
}

/** Without any manifest the desired state would be empty, which removes every pod of the node. */
function findErrors({ options, origins, positionals, errors }: ResolvedOptions): readonly string[] {
  const places = [...positionals, ...options.podManifestPaths, ...options.manifestUrls];
  // A misspelled flag may be the one that names the manifests: its error is enough.
  // Pods may also be submitted to the local API, where that was asked for.
  const hasApi = origins.localApiPort !== "default" && options.localApiPort !== 0 && !options.runOnce;
  const hasSource = hasApi || options.kubeconfig !== "";
  return places.length > 0 || hasSource || errors.length > 0 ? errors : [NO_MANIFESTS];
}

const buildLogger = async (options: KubeletOptions): Promise<AppLogger> =>
  createLogger({
    verbosity: options.verbosity,
    format: options.logFormat,
    journal: options.logFormat === "journald" ? await openJournal() : undefined,
    logDir: options.logDir,
    logToStderr: options.logToStderr,
    writeStderr,
    color: wantsColor(process.env, process.stderr.isTTY === true),
    now: () => new Date(),
  });

function logStart({ options, origins, warnings }: ResolvedOptions, logger: Logger): void {
  for (const message of warnings) logger.warn(message);
  if (!options.runOnce && options.port === 0 && origins.port === "default" && options.enableServer) {
    logger.debug("The authenticated port is closed: it needs --client-ca-file or --anonymous-auth");
  }
  if (!options.runOnce && options.port !== 0 && options.anonymousAuth && options.authorizationMode === "AlwaysAllow") {
    const reach = isLoopback(options.address)
      ? "Every user of this machine"
      : `Everyone who reaches ${options.address}:${options.port}`;
    logger.warn(
      `${reach} may run commands in every container, as root on this machine: --anonymous-auth is set. Use --client-ca-file instead`,
    );
  }
}

/** Runs while this process holds the lock of the root directory. */
async function runLocked(
  { options, positionals, configPaths }: ResolvedOptions,
  logger: AppLogger,
  given: Pick<KubeletRun, "resolve" | "configuration">,
): Promise<number | "restart"> {
  const environment = removeProxies();
  let lock: RootLock | undefined;
  try {
    const warning = prepareRootDirectory(options.rootDir);
    if (warning !== undefined) logger.warn(warning);
    lock = await lockRootDir(options.rootDir);
    if (!lock) return await reportBusyRoot(options, positionals, logger);
    const { publish } = lock;
    const kept = keepNodeName(options.rootDir, options.hostnameOverride);
    for (const notice of kept.notices) logger.warn(notice);
    const resolveWithName: KubeletRun["resolve"] = async (configuration) => {
      const resolved = await given.resolve(configuration);
      resolved.options.hostnameOverride ||= kept.name;
      return resolved;
    };
    options.hostnameOverride = kept.name;
    publish(instanceInfo(options, environment, undefined));
    const run: KubeletRun = {
      options,
      manifests: positionals,
      environment,
      logger,
      configuration: given.configuration,
      resolve: resolveWithName,
      configPaths,
      stop: stopOnSignals(logger, !options.runOnce),
      onServers: (servers) => publish(instanceInfo(options, environment, servers)),
    };
    if (options.runOnce) return await (await import("../daemon/run-once.ts")).runOnce(run);
    const { runForever } = await import("../daemon/run-forever.ts");
    return (await runForever(run)) === "restart" ? "restart" : EXIT.done;
  } catch (error) {
    if (error instanceof BrokenPipeError) return BROKEN_PIPE_EXIT;
    if (error instanceof SettingsError) {
      writeStderr(`kubelet-ts: ${error.message}\nTry 'kubelet-ts --help'.\n`);
      return EXIT.badInput;
    }
    logger.error((error as Error).message);
    await logFailedCheck(options, environment, logger);
    return EXIT.failed;
  } finally {
    lock?.release();
  }
}

/** Mistakes of the manifests come first: the kubelet that has the root directory would refuse them as well. */
async function reportBusyRoot(options: KubeletOptions, given: readonly string[], logger: Logger): Promise<number> {
  const [{ checkInputs }, { readInputs }] = await Promise.all([
    import("./validate-inputs.ts"),
    import("./client/manifest-inputs.ts"),
  ]);
  const rules = { ...options, nodeName: readNodeName(options.hostnameOverride), comparesAllLabels: false };
  const manifest = { strictness: options.validate, nodeName: rules.nodeName, allowPrivileged: true } as const;
  const inputs = await readInputs(given, () => process.stdin);
  const results = checkInputs(inputs, manifest, rules);
  const errors = results.flatMap(({ findings }) => findings).filter(({ severity }) => severity === "error");
  for (const finding of errors) logger.error(describeFinding(finding));
  logger.error(describeBusyRoot(options.rootDir, readInstance(options.rootDir), given, isDirectory));
  return errors.length > 0 ? EXIT.badInput : EXIT.failed;
}

const isDirectory = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/** Why the root directory cannot be used, and the way to give these manifests to the kubelet that has it. */
export function describeBusyRoot(
  rootDir: string,
  holder: ReturnType<typeof readInstance>,
  manifests: readonly string[],
  isDirectory: (path: string) => boolean,
): string {
  const another = "set another root directory with --root-dir and node name with --hostname-override";
  if (holder === undefined || holder === "unreadable")
    return `Another kubelet-ts uses the root directory "${rootDir}"; ${another}`;
  const { pid, nodeName, mode, manifestPaths = [] } = holder;
  if (mode === "run-once")
    return `A kubelet-ts that ends soon uses the root directory "${rootDir}" (pid ${pid}): try again then`;
  const here = `A kubelet-ts already runs on the root directory "${rootDir}" (pid ${pid}, node "${nodeName}")`;
  if (manifests.length === 0) return `${here}; for a second kubelet ${another}`;
  const flag = rootDir === DEFAULT_KUBELET_OPTIONS.rootDir ? "" : ` --root-dir=${quoteWord(rootDir)}`;
  const command = `kubelet-ts apply${flag} -f ${manifests.map(quoteWord).join(" -f ")}`;
  const directory = manifestPaths.find(isDirectory);
  const [them, copy] = manifests.length === 1 ? ["the manifest", "it"] : ["the manifests", "them"];
  const place = directory === undefined ? "" : `, or copy ${copy} into its manifest directory "${directory}"`;
  return `${here}: give it ${them} with "${command}"${place}`;
}

/** As a shell takes it. */
const quoteWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** Logs the first failed check of the machine: it often explains why the kubelet cannot run. */
async function logFailedCheck(options: KubeletOptions, environment: Environment, logger: Logger): Promise<void> {
  try {
    const [{ isReasonNotToStart, runChecks }, { gatherFacts }] = await Promise.all([
      import("../daemon/doctor/checks.ts"),
      import("../daemon/doctor/gather-facts.ts"),
    ]);
    const found = runChecks(await gatherFacts({ options, environment, ...buildFacts() })).find(isReasonNotToStart);
    if (found) logger.error(`kubelet-ts doctor: ${found.name}: ${found.message}${found.fix ? ` → ${found.fix}` : ""}`);
  } catch {
    // The first error has been reported.
  }
}

/** SIGTERM and SIGINT end this process, not the pods; a SIGHUP of the terminal too, one that asks for a reload never. */
function stopOnSignals(logger: Logger, isService: boolean): AbortSignal {
  // The configuration is read at the start in any case.
  if (isService) process.on("SIGHUP", () => {});
  const stop = new AbortController();
  for (const name of ["SIGTERM", "SIGINT"] as const) {
    process.on(name, () => {
      logger.debug(`${name}: stopping`);
      stop.abort(new Error(`stopped by ${name}`));
    });
  }
  return stop.signal;
}

import type { Pod } from "../api/pod.ts";
import { type CommandSummary, renderHelp } from "../cli/help.ts";
import { toKubeletConfiguration } from "../config/effective-config.ts";
import { resolveOptions } from "../config/resolve-options.ts";
import { HostLogDirectory } from "../host/log-directory.ts";
import { Logind } from "../host/logind.ts";
import { MemoryReclaimer } from "../host/memory-reclaimer.ts";
import { readNodeName } from "../host/node-info.ts";
import { dialPod } from "../host/pod-dialer.ts";
import { isOfContainer, sampleProcesses } from "../host/process-sample.ts";
import { lockRootDir } from "../host/root-lock.ts";
import { SystemClock } from "../host/system-clock.ts";
import { READER_GONE_EXIT, ReaderGone, writeAll } from "../host/write-all.ts";
import { writeStderr } from "../host/write-stderr.ts";
import { PodEventRecorder } from "../kubelet/event-recorder.ts";
import type { EvictionManager } from "../kubelet/eviction/eviction-manager.ts";
import { ShutdownManager } from "../kubelet/shutdown/shutdown-manager.ts";
import { ProcessMetrics } from "../metrics/process-metrics.ts";
import type { DesiredState } from "../model/desired-pod.ts";
import type { KubeletOptions } from "../model/kubelet-options.ts";
import type { Logger } from "../model/logger.ts";
import type { ContainerId } from "../model/pod-snapshot.ts";
import { computeShutdownPeriods } from "../plan/node-shutdown.ts";
import { DockerContainerAccess } from "../runtime/docker-container-access.ts";
import { computeRootHash } from "../runtime/labels.ts";
import { type RunningServers, type ServerDependencies, startServers } from "../server/servers.ts";
import type { KubeletView } from "../server/view.ts";
import { describeFinding } from "../sources/source-set.ts";
import { NodeStats } from "../stats/node-stats.ts";
import { openBeneath } from "../volumes/beneath.ts";
import { type AssembledKubelet, assembleKubelet, MisconfigurationError } from "./assemble-kubelet.ts";
import { buildEvictionManager } from "./build-eviction-manager.ts";
import { eventFamilies } from "./event-metrics.ts";
import { instanceInfo, toCommandSocketPath } from "./instance-info.ts";
import { toKubeletView } from "./kubelet-view.ts";
import { createLogger, wantsColor } from "./log.ts";
import { nodeFacts } from "./node-facts.ts";
import { applyProcessSettings } from "./process-settings.ts";
import { type RunOnceResult, waitForPods } from "./run-once.ts";
import { RunOnceReport, serializeResults } from "./run-once-report.ts";
import { sourceFamilies } from "./source-metrics.ts";
import { surviveUnexpectedErrors } from "./unexpected-errors.ts";
import { versionLine } from "./version.ts";
import { type OomWatch, watchOomKills } from "./watch-oom-kills.ts";

/** Exit codes of every command. */
export const EXIT = { done: 0, failed: 1, badInput: 2 } as const;

const NO_MANIFESTS = "no manifests: name a file, a directory or a URL, or use --pod-manifest-path or --manifest-url";

type Environment = Readonly<Record<string, string | undefined>>;

/** Pauses between two tries to reach an engine that is not there yet. */
const CONNECT_RETRY_MS = 1000;

/** `kubelet-ts [flags] [manifest…]`: the kubelet itself. @returns the exit code */
export async function runKubelet(argv: readonly string[], commands: readonly CommandSummary[]): Promise<number> {
  const resolved = await resolveOptions(argv);
  const { options } = resolved;
  if (resolved.request === "help") {
    writeAll(1, renderHelp(commands));
    return EXIT.done;
  }
  if (resolved.request === "version") {
    writeAll(1, `${versionLine()}\n`);
    return EXIT.done;
  }
  const places = [...resolved.positionals, ...options.podManifestPaths, ...options.manifestUrls];
  // An empty wish would mean: remove every pod of this node. Nobody means that by typing nothing.
  // Where a flag is misspelt it may be the one that names them.
  const errors = places.length > 0 || resolved.errors.length > 0 ? resolved.errors : [NO_MANIFESTS];
  if (errors.length > 0) {
    for (const message of errors) writeStderr(`kubelet-ts: ${message}\n`);
    writeStderr("Try 'kubelet-ts --help'.\n");
    return EXIT.badInput;
  }
  const logger = createLogger({
    verbosity: options.verbosity,
    format: options.logFormat,
    logDir: options.logDir,
    logToStderr: options.logToStderr,
    writeStderr,
    color: wantsColor(process.env, process.stderr.isTTY === true),
    now: () => new Date(),
  });
  surviveUnexpectedErrors(logger);
  for (const message of resolved.warnings) logger.warn(message);
  if (!options.runOnce && options.port === 0 && resolved.origins.port === "default" && options.enableServer) {
    logger.debug(
      "The authenticated port stays closed: without --client-ca-file or --anonymous-auth nobody could get in",
    );
  }
  const environment = forgetProxies();

  let servers: RunningServers | undefined;
  const release = await lockRootDir(computeRootHash(options.rootDir), () =>
    instanceInfo(options, environment, servers),
  );
  if (!release) {
    logger.error(`Another kubelet-ts works on "${options.rootDir}"; give this one a --root-dir of its own`);
    return EXIT.failed;
  }
  try {
    const stop = stopOnSignals(logger);
    return options.runOnce
      ? await runOnce(options, resolved.positionals, environment, logger, stop)
      : await runForEver(options, resolved.positionals, environment, logger, stop, (started) => {
          servers = started;
        });
  } catch (error) {
    if (error instanceof ReaderGone) return READER_GONE_EXIT;
    logger.error((error as Error).message);
    return EXIT.failed;
  } finally {
    release();
  }
}

async function runForEver(
  options: KubeletOptions,
  manifests: readonly string[],
  environment: Environment,
  logger: Logger,
  stop: AbortSignal,
  onServers: (servers: RunningServers) => void,
): Promise<number> {
  await applyProcessSettings(options, logger);
  const clock = new SystemClock();
  const nodeName = readNodeName(options.hostnameOverride);
  const rate = { perSecond: options.eventRecordQps, burst: options.eventBurst };
  const recorder = new PodEventRecorder({ clock, logger, nodeName, rate });
  let eviction: EvictionManager | undefined;
  let shutdown: ShutdownManager | undefined;
  const refusalOfNew = (pod: Pod) => shutdown?.refusal() ?? eviction?.refusalOf(pod);
  let oomWatch: OomWatch | undefined;
  const onOom = (id: ContainerId) => oomWatch?.note(id);
  const input = { options, manifests, environment, clock, logger, recorder, refusalOfNew, onOom };
  const parts = await assembleKubelet(input);
  logger.info(`${versionLine()} on node "${parts.nodeName}", root directory "${options.rootDir}"`);
  const view = viewOf(parts, recorder, options);
  const stats = statsOf(view, parts, options, clock);
  eviction = buildEvictionManager({ parts, options, stats, podFacts: () => view.podFacts(), clock, logger, recorder });
  const isLeaving = () => shutdown?.refusal() !== undefined;
  const facts = nodeFacts({ parts, options, eviction, isLeaving, clock });
  const servers = startAllServers(view, stats, facts, parts, recorder, options, clock, logger);
  onServers(servers);
  const periods = computeShutdownPeriods(options);
  if (periods.length > 0) {
    const host = new Logind({ clock, logger, environment });
    shutdown = new ShutdownManager({ clock, logger, kubelet: parts.kubelet, host, periods });
  }
  const { kubelet } = parts;
  const { reader } = stats;
  oomWatch = watchOomKills({ podFacts: () => view.podFacts(), kubelet, reader, recorder, clock, logger });
  await connectPatiently(parts, clock, logger, stop);
  if (!stop.aborted) {
    await parts.preload(stop);
    void parts.images.run(stop);
    parts.feed.onChange((state, { isComplete }) => parts.kubelet.setDesired(state, isComplete));
    parts.feed.start();
    parts.kubelet.start();
    void parts.imageGc.run(stop);
    void eviction.run(stop);
    void new MemoryReclaimer({ clock }).run(stop);
    void shutdown?.run(stop);
    await aborted(stop);
    await shutdown?.beforeExit();
  }
  oomWatch.end();
  parts.kubelet.stop();
  await parts.probes.stop();
  await Promise.all([parts.feed.stop(), servers.stop()]);
  logger.info("Stopped; pods go on running");
  return EXIT.done;
}

const viewOf = (parts: AssembledKubelet, recorder: PodEventRecorder, options: KubeletOptions): KubeletView =>
  toKubeletView({
    nodeName: parts.nodeName,
    kubelet: parts.kubelet,
    recorder,
    config: toKubeletConfiguration(options),
    sources: () => parts.feed.status(),
    usagePaths: ({ revision }) => (revision ? parts.volumes.usagePaths(revision.pod) : []),
  });

const statsOf = (view: KubeletView, parts: AssembledKubelet, options: KubeletOptions, clock: SystemClock): NodeStats =>
  new NodeStats({
    clock,
    nodeName: parts.nodeName,
    podFacts: () => view.podFacts(),
    rootDir: options.rootDir,
    imagesDir: () => parts.engineIfKnown()?.imagesDir ?? "",
    engineVersion: () => parts.engineIfKnown()?.serverVersion ?? "",
    volumeStatsAggPeriodMs: options.volumeStatsAggPeriodMs,
    readImageBytes: async () => (await parts.imageInventory.look()).bytes,
  });

function startAllServers(
  view: KubeletView,
  stats: NodeStats,
  facts: ServerDependencies["nodeFacts"],
  parts: AssembledKubelet,
  recorder: PodEventRecorder,
  options: KubeletOptions,
  clock: SystemClock,
  logger: Logger,
): RunningServers {
  const socketPath = options.enableServer ? toCommandSocketPath(options.rootDir) : undefined;
  return startServers(options, view, {
    ...(socketPath !== undefined && { socketPath }),
    clock,
    logger,
    stats,
    nodeFacts: facts,
    kubeletMetrics: parts.metrics.kubelet,
    registry: {
      collect: () => [...parts.metrics.collect(), ...sourceFamilies(parts.feed.status()), ...eventFamilies(recorder)],
    },
    processMetrics: new ProcessMetrics(),
    probeRegistry: parts.metrics.probeRegistry,
    ...(options.port !== 0 && {
      authenticated: {
        options,
        containers: new DockerContainerAccess(parts.client, (ms, callback) => clock.schedule(ms, callback)),
        dialPod,
        logDirectory: options.enableSystemLogHandler ? new HostLogDirectory("/var/log", openBeneath) : undefined,
        names: { nodeName: parts.nodeName, nodeIp: parts.node.ip },
      },
    }),
  });
}

async function runOnce(
  options: KubeletOptions,
  manifests: readonly string[],
  environment: Environment,
  logger: Logger,
  stop: AbortSignal,
): Promise<number> {
  const clock = new SystemClock();
  const out = process.stderr;
  const report = new RunOnceReport({
    write: writeStderr,
    isTerminal: out.isTTY === true && options.output === "text" && process.env.TERM !== "dumb",
    color: wantsColor(process.env, out.isTTY === true),
    columns: () => out.columns || 80,
  });
  // The report tells what became of each pod; its events are for those who want to see more.
  const quiet: Logger = { ...logger, info: logger.debug, warn: logger.debug };
  const nodeName = readNodeName(options.hostnameOverride);
  const rate = { perSecond: options.eventRecordQps, burst: options.eventBurst };
  const recorder = new PodEventRecorder({ clock, logger: quiet, nodeName, rate });
  const onPullProgress = report.pull.bind(report);
  const parts = await assembleKubelet({ options, manifests, environment, clock, logger, recorder, onPullProgress });
  const read = await parts.feed.readOnce(stop);
  for (const failure of read.failures) logger.error(failure);
  // Files and URLs report for themselves.
  for (const finding of read.findings.filter(({ file }) => file === "-")) {
    logger[finding.severity === "error" ? "error" : "warn"](describeFinding(finding));
  }
  const hasBadInput = read.failures.length > 0 || read.findings.some(({ severity }) => severity === "error");
  if (read.state.pods.length === 0) {
    if (!hasBadInput) logger.error("There is no pod in what was given; nothing was started");
    return EXIT.badInput;
  }
  await parts.connect(stop);
  await parts.preload(stop);
  void parts.images.run(stop);
  const results = await startAndWait(parts, read.state, options, clock, report, stop);
  report.finish(options.output === "text" ? results : []);
  if (options.output !== "text") writeAll(1, await serializeResults(results, options.output));
  if (results.some(({ verdict }) => verdict.state === "failed")) return EXIT.failed;
  return hasBadInput ? EXIT.badInput : EXIT.done;
}

async function startAndWait(
  { kubelet, probes }: AssembledKubelet,
  state: DesiredState,
  options: KubeletOptions,
  clock: SystemClock,
  report: RunOnceReport,
  signal: AbortSignal,
): Promise<RunOnceResult[]> {
  // Never complete: a run-once starts pods, it does not sweep away those of others.
  kubelet.setDesired(state, false);
  kubelet.start();
  try {
    const onProgress = report.progress.bind(report);
    const processes = { sample: sampleProcesses, isOfContainer };
    const timeoutMs = options.runOnceTimeoutMs;
    return await waitForPods({ kubelet, clock, processes, timeoutMs, onProgress, signal });
  } finally {
    kubelet.stop();
    await probes.stop();
  }
}

/** The engine may come up after us: said once, tried each second. */
async function connectPatiently(
  parts: AssembledKubelet,
  clock: SystemClock,
  logger: Logger,
  stop: AbortSignal,
): Promise<void> {
  for (let said = ""; !stop.aborted; ) {
    try {
      return await parts.connect(stop);
    } catch (error) {
      if (stop.aborted) return;
      if (error instanceof MisconfigurationError) throw error;
      const { message } = error as Error;
      if (message !== said) logger.error(message);
      said = message;
      await clock.sleep(CONNECT_RETRY_MS, stop).catch(() => {});
    }
  }
}

/** SIGTERM and SIGINT end us, not the pods. */
function stopOnSignals(logger: Logger): AbortSignal {
  const stop = new AbortController();
  for (const name of ["SIGTERM", "SIGINT"] as const) {
    process.on(name, () => {
      logger.debug(`${name}: stopping`);
      stop.abort(new Error(`stopped by ${name}`));
    });
  }
  return stop.signal;
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });

/** Bun's fetch obeys these for every address, also for pods. @returns the environment as it was, for the URL source */
function forgetProxies(): Environment {
  const before = { ...process.env };
  for (const name of ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]) {
    delete process.env[name];
    delete process.env[name.toLowerCase()];
  }
  return before;
}

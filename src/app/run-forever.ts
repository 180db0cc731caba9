import { Logind } from "../host/logind.ts";
import { MemoryReclaimer } from "../host/memory-reclaimer.ts";
import { readNodeName } from "../host/node-info.ts";
import { ServiceNotifier } from "../host/service-notifier.ts";
import { SystemClock } from "../host/system-clock.ts";
import { PodEventRecorder } from "../kubelet/event-recorder.ts";
import type { Kubelet } from "../kubelet/kubelet.ts";
import { ShutdownManager } from "../kubelet/shutdown/shutdown-manager.ts";
import type { Clock } from "../model/clock.ts";
import type { Logger } from "../model/logger.ts";
import { computeShutdownPeriods } from "../plan/node-shutdown.ts";
import { MisconfigurationError } from "../runtime/engine-connection.ts";
import type { KubeletView } from "../server/view.ts";
import { PathWatch } from "../sources/path-watch.ts";
import type { NodeStats } from "../stats/node-stats.ts";
import { assembleKubelet } from "./assembly/assemble-kubelet.ts";
import type { AssembledKubelet } from "./assembly/assembled-kubelet.ts";
import { startCluster } from "./assembly/build-cluster.ts";
import { buildEvictionManager } from "./assembly/build-eviction-manager.ts";
import { startLocalApi } from "./assembly/build-local-api.ts";
import { buildStats, buildView, startNodeServers } from "./assembly/build-servers.ts";
import { nodeFacts } from "./assembly/node-facts.ts";
import { type OomWatch, watchOomKills } from "./assembly/watch-oom-kills.ts";
import type { KubeletRun } from "./kubelet-run.ts";
import { applyProcessSettings } from "./process-settings.ts";
import { SettingsReloader } from "./settings-reloader.ts";
import { versionLine } from "./version.ts";

const CONNECT_RETRY_MS = 1000;

/** A loop that runs concurrently with the kubelet until the signal aborts. */
interface BackgroundLoop {
  run(signal: AbortSignal): Promise<unknown>;
}

/** Supervises the pods of all sources until SIGTERM or SIGINT; pods keep running after that.*/
export async function runForever(run: KubeletRun): Promise<void> {
  const { options, manifests, environment, logger, stop, onServers } = run;
  await applyProcessSettings(options, logger);
  const clock = new SystemClock();
  const recorder = new PodEventRecorder({
    clock,
    logger,
    nodeName: readNodeName(options.hostnameOverride),
    rate: { perSecond: options.eventRecordQps, burst: options.eventBurst },
  });
  const parts = await assembleKubelet({ options, manifests, environment, clock, logger, recorder });
  logger.info(`${versionLine()} on node "${parts.context.node.name}", root directory "${options.rootDir}"`);
  clock.onTimer = (lagMs) => {
    parts.context.loopLag.observe(lagMs);
    parts.context.metrics.kubelet.eventLoopLag.observe(lagMs / 1000);
  };
  const view = buildView(parts);
  const stats = buildStats(parts, view);
  const shutdown = buildShutdownManager(parts);
  const { servers, eviction } = startServing(parts, view, stats, () => shutdown?.refusal() !== undefined, onServers);
  const service = new ServiceNotifier({ clock, logger, environment });
  await service.ready();
  void service.status("waiting for the Docker engine");
  if (shutdown) parts.admission.addHandler(() => shutdown.refusal());
  parts.admission.addHandler((pod) => eviction.refusalOf(pod));
  const oomWatch = startOomWatch(parts, view, stats);
  if (parts.localApi && options.enableServer) {
    await startLocalApi(parts.localApi, parts, view, servers);
  }
  if (parts.cluster) startCluster(parts.cluster, parts, servers);
  await connectPatiently(parts, clock, logger, stop);
  if (!stop.aborted) {
    await parts.preload(stop);
    // The node's own loops. An API server, workload controllers and the like join this list.
    const settings = buildSettingsReloader(run, clock, () => {
      logger.setVerbosity(options.verbosity);
      // Pods are compared with the new settings; none is restarted by them.
      parts.workloads.refresh();
    });
    process.on("SIGHUP", () => {
      logger.info("SIGHUP: reading the configuration again");
      void settings.reload();
    });
    const loops: (BackgroundLoop | undefined)[] = [
      parts.images,
      parts.imageGc,
      eviction,
      new MemoryReclaimer({ clock }),
      shutdown,
      settings,
    ];
    parts.feed.onChange((state, { isComplete }) => parts.workloads.setDesired(state, isComplete));
    parts.feed.start();
    parts.kubelet.start();
    if (service.isWanted) parts.kubelet.onChange(() => void service.status(describePods(parts.kubelet)));
    for (const loop of loops) void loop?.run(stop);
    await aborted(stop);
    await shutdown?.beforeExit();
  }
  await service.stopping();
  oomWatch.end();
  parts.workloads.stop();
  parts.imageUpdates.stop();
  parts.secretValues.stop();
  parts.kubelet.stop();
  await parts.probes.stop();
  await Promise.all([parts.feed.stop(), servers.stop(), parts.localApi?.stop(), parts.cluster?.stop()]);
  logger.info("Stopped; pods keep running");
}

const buildSettingsReloader = (
  { options, logger, resolve, configPaths }: KubeletRun,
  clock: Clock,
  onChanged: () => void,
): SettingsReloader =>
  new SettingsReloader({
    clock,
    logger,
    options,
    resolve,
    watch: (onEvent) => configPaths.map((path) => new PathWatch(path, onEvent)),
    onChanged,
  });

/** For `systemctl status`: `3 pods, 2 ready`. */
function describePods(kubelet: Pick<Kubelet, "pods" | "runtimeError">): string {
  if (kubelet.runtimeError !== undefined) return kubelet.runtimeError;
  const pods = kubelet.pods();
  const ready = pods.filter(({ status }) =>
    status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True"),
  );
  return `${pods.length} pods, ${ready.length} ready`;
}

/** The ports answer before the engine does, so that health checks can report it. */
function startServing(
  parts: AssembledKubelet,
  view: KubeletView,
  stats: NodeStats,
  isLeaving: () => boolean,
  onServers: KubeletRun["onServers"],
) {
  const { options, clock, logger, recorder } = parts.context;
  const podFacts = () => view.podFacts();
  const eviction = buildEvictionManager({ parts, options, stats, podFacts, clock, logger, recorder });
  const facts = nodeFacts({ parts, options, eviction, isLeaving, clock });
  return { eviction, servers: startNodeServers(parts, view, stats, facts, onServers) };
}

/** undefined unless a grace period for shutdowns of the machine is configured. */
function buildShutdownManager({ context, kubelet }: AssembledKubelet): ShutdownManager | undefined {
  const { options, clock, logger, environment } = context;
  const periods = computeShutdownPeriods(options);
  if (periods.length === 0) return undefined;
  return new ShutdownManager({ clock, logger, kubelet, host: new Logind({ clock, logger, environment }), periods });
}

function startOomWatch(
  { context, kubelet, oomEvents }: AssembledKubelet,
  view: KubeletView,
  stats: NodeStats,
): OomWatch {
  const { clock, logger, recorder } = context;
  const watch = watchOomKills({
    podFacts: () => view.podFacts(),
    kubelet,
    reader: stats.reader,
    recorder,
    clock,
    logger,
  });
  oomEvents.add((id) => watch.note(id));
  return watch;
}

/** The engine may start later than the kubelet: each new error is logged once, attempts are made every second. */
async function connectPatiently(
  parts: AssembledKubelet,
  clock: Clock,
  logger: Logger,
  stop: AbortSignal,
): Promise<void> {
  for (let lastMessage = ""; !stop.aborted; ) {
    try {
      return await parts.connect(stop);
    } catch (error) {
      if (stop.aborted) return;
      if (error instanceof MisconfigurationError) throw error;
      const { message } = error as Error;
      if (message !== lastMessage) logger.error(message);
      lastMessage = message;
      await clock.sleep(CONNECT_RETRY_MS, stop).catch(() => {});
    }
  }
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });

import { hasCondition } from "../base/api/meta.ts";
import { isPipe } from "../base/files/pipe.ts";
import { followKernelLog } from "../base/host/kmsg.ts";
import { Logind } from "../base/host/logind.ts";
import { reclaimMemory } from "../base/host/memory-reclaimer.ts";
import { readNodeName } from "../base/host/node-info.ts";
import { ServiceNotifier } from "../base/host/service-notifier.ts";
import { SystemClock } from "../base/host/system-clock.ts";
import type { Clock } from "../base/model/clock.ts";
import type { ConfigurationStatus } from "../base/model/configuration.ts";
import type { Logger } from "../base/model/logger.ts";
import { nodeTarget } from "../base/model/pod-event.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import { MisconfigurationError } from "../docker/docker-engine.ts";
import { PodEventRecorder } from "../kubelet/event-recorder.ts";
import type { EvictionManager } from "../kubelet/eviction/eviction-manager.ts";
import type { Kubelet } from "../kubelet/kubelet.ts";
import { OomNotices } from "../kubelet/oom-notices.ts";
import { ShutdownManager } from "../kubelet/shutdown/shutdown-manager.ts";
import { computeShutdownPeriods } from "../plan/node-shutdown.ts";
import type { Servers } from "../server/servers.ts";
import type { KubeletView } from "../server/view.ts";
import { PathWatch } from "../sources/path-watch.ts";
import { findMissingControllers } from "../stats/cgroups/cgroup-layout.ts";
import type { NodeStats } from "../stats/node-stats.ts";
import { OomKillParser, readOomKills, toContainerId, toOomEvent } from "../stats/oom-kill.ts";
import { type AssembledKubelet, assembleKubelet } from "./assembly/assemble-kubelet.ts";
import { buildEvictionManager } from "./assembly/build-eviction-manager.ts";
import { buildStats, buildView, startCluster, startLocalApi, startNodeServers } from "./assembly/build-servers.ts";
import { openStateFile } from "./assembly/state-files.ts";
import type { ConfigurationStart } from "./choose-configuration.ts";
import { ConfigurationTrial } from "./configuration-trial.ts";
import type { KubeletRun } from "./kubelet-run.ts";
import { applyProcessSettings } from "./process-settings.ts";
import { aborted, SettingsReloader } from "./settings-reloader.ts";
import { versionLine } from "./version.ts";

/**
 * Supervises the pods of all sources until SIGTERM or SIGINT; pods keep running after that.
 * @returns "restart" when another configuration needs a new process
 */
export async function runForever(run: KubeletRun): Promise<"stopped" | "restart"> {
  const { options, manifests, environment, logger, onServers } = run;
  const ending = new AbortController();
  run.stop.addEventListener("abort", () => ending.abort(run.stop.reason), { once: true });
  if (run.stop.aborted) ending.abort(run.stop.reason);
  const stop = ending.signal;
  await applyProcessSettings(options, logger);
  const clock = new SystemClock();
  const recorder = new PodEventRecorder({
    clock,
    logger,
    nodeName: readNodeName(options.hostnameOverride),
    rate: { perSecond: options.eventRecordQps, burst: options.eventBurst },
  });
  const parts = await assembleKubelet({ options, manifests, environment, clock, logger, recorder });
  recorder.keepIn(openStateFile(parts.context, "events"));
  logger.info(`${versionLine()} on node "${parts.context.node.name}", root directory "${options.rootDir}"`);
  clock.onTimer = (lagMs) => {
    parts.context.loopLag.observe(lagMs);
    parts.context.metrics.eventLoopLag.observe(lagMs / 1000);
  };
  const view = buildView(parts);
  const stats = buildStats(parts, view);
  const missing = findMissingControllers([...stats.reader.layout.controllers.keys()]);
  if (missing) logger.warn(`Cgroups have ${missing.problem}; ${missing.fix}`);
  const shutdown = buildShutdownManager(parts);
  let configurationStatus = (): ConfigurationStatus | undefined => undefined;
  const eviction = buildEvictionManager(parts, view, stats);
  const configuration = () => configurationStatus();
  const isShuttingDown = () => shutdown?.refusal() !== undefined;
  // The ports answer before the engine does, so that health checks can report it.
  const servers = startNodeServers(parts, view, stats, { eviction, isShuttingDown, configuration, onServers });
  // Pods are compared with the new settings; none is restarted by them.
  let isSupervising = false;
  const settings = new SettingsReloader({
    clock,
    logger,
    options,
    resolve: run.resolve,
    paths: run.configPaths.some(isPipe) ? [] : run.configPaths,
    watch: (onEvent) => new PathWatch(onEvent, { clock, slot: parts.context.background.slot }),
    onChanged: () => {
      logger.setVerbosity(options.verbosity);
      if (isSupervising) parts.workloads.refresh();
    },
  });
  const trial =
    run.configuration &&
    buildTrial(run, run.configuration, parts, { servers, eviction, settings, restart: () => ending.abort(RESTART) });
  if (trial) {
    configurationStatus = () => trial.status;
    settings.setTrial(trial);
    trial.begin();
  }
  // Before the engine is asked: it may be the settings that keep it from being found.
  void settings.run(stop);
  process.on("SIGHUP", () => {
    logger.info("SIGHUP: reading the configuration again");
    void settings.reload();
  });
  const service = new ServiceNotifier({ clock, logger, environment });
  await service.ready();
  void service.status("waiting for the Docker engine");
  if (shutdown) parts.admission.addHandler(() => shutdown.refusal());
  parts.admission.addHandler((pod) => eviction.refusalOf(pod));
  const endOomWatch = watchOomKills(parts, view, stats);
  if (parts.localApi && options.enableServer) await startLocalApi(parts.localApi, parts, view, servers);
  if (parts.cluster) startCluster(parts.cluster, parts, servers);
  // Desired pods are shown before the engine answers, too; the kubelet does nothing for them until then.
  parts.feed.onChange((state, info) => parts.workloads.setDesired(state, info.isComplete, info.isRead));
  isSupervising = true;
  parts.feed.start();
  await connectWithRetries(parts.connect, clock, logger, stop).catch((error) => {
    trial?.failed();
    throw error;
  });
  if (!stop.aborted) {
    await parts.preload(stop);
    parts.kubelet.start();
    if (service.isWanted) parts.kubelet.onChange(() => void service.status(describePods(parts.kubelet)));
    for (const loop of [parts.imageGc, eviction, shutdown]) void loop?.run(stop);
    void reclaimMemory(clock, stop);
    await aborted(stop);
    await shutdown?.beforeExit();
  }
  const isRestart = stop.reason === RESTART;
  await (isRestart ? service.restarting() : service.stopping());
  endOomWatch();
  parts.workloads.stop();
  parts.imageUpdates.stop();
  parts.secretValues.stop();
  parts.ingresses?.stop();
  parts.kubelet.stop();
  await parts.probes.stop();
  await Promise.all([parts.feed.stop(), servers.stop(), parts.localApi?.stop(), parts.cluster?.stop()]);
  recorder.store();
  await parts.context.background.settled();
  trial?.stopped();
  logger.info(isRestart ? "Restarting; pods keep running" : "Stopped; pods keep running");
  return isRestart ? "restart" : "stopped";
}

/** Reason of the end of a process whose configuration was rejected. */
const RESTART = new Error("another configuration needs a restart");

function buildTrial(
  { manifests }: Pick<KubeletRun, "manifests">,
  start: ConfigurationStart,
  parts: AssembledKubelet,
  running: { servers: Servers; eviction: EvictionManager; settings: SettingsReloader; restart: () => void },
): ConfigurationTrial {
  const { options, clock, logger, recorder, node } = parts.context;
  const { servers, eviction, settings, restart } = running;
  return new ConfigurationTrial({
    clock,
    recorder,
    nodeName: node.name,
    start,
    options,
    trialMs: options.configTrialPeriodMs,
    health: () => ({
      engineError: parts.engine.connectError ?? parts.kubelet.runtimeError,
      closedPorts: closedPorts(options, servers),
      pressures: [...eviction.pressures],
    }),
    rollBack: async (configuration) => {
      try {
        const needRestart = await settings.rollBackTo(configuration);
        if (needRestart.length === 0) return;
        // Standard input cannot be read again.
        if (manifests.includes("-")) throw new Error(`${needRestart.join(", ")} need a restart of kubelet-ts`);
        restart();
      } catch (error) {
        logger.error("The last known good configuration cannot be used", { error: (error as Error).message });
      }
    },
  });
}

function closedPorts(options: KubeletOptions, servers: Servers): string[] {
  const open = servers.ports();
  const wanted = [
    ["healthz", options.healthzPort, open.healthz],
    ["read-only", options.readOnlyPort, open.readOnly],
    ["cAdvisor", options.cadvisorPort, open.cadvisor],
    ["authenticated", options.port, open.authenticated],
  ] as const;
  return wanted.filter(([, port, bound]) => port !== 0 && bound === undefined).map(([name]) => name);
}

/** For `systemctl status`: `3 pods, 2 ready`. */
function describePods(kubelet: Pick<Kubelet, "pods" | "runtimeError">): string {
  if (kubelet.runtimeError !== undefined) return kubelet.runtimeError;
  const pods = kubelet.pods();
  const ready = pods.filter(({ status }) => hasCondition(status, "Ready"));
  return `${pods.length} pods, ${ready.length} ready`;
}

/** undefined unless a grace period for shutdowns of the machine is configured. */
function buildShutdownManager({ context, kubelet }: AssembledKubelet): ShutdownManager | undefined {
  const { options, clock, logger, environment } = context;
  const periods = computeShutdownPeriods(options);
  if (periods.length === 0) return undefined;
  return new ShutdownManager({ clock, logger, kubelet, host: new Logind({ clock, logger, environment }), periods });
}

/**
 * Reports the kernel's OOM kills: as an event of the pod that owns the container, and as an event of the node when the
 * machine itself ran out of memory. Where the kernel's log cannot be read, kills are known from the engine.
 * @returns ends it
 */
function watchOomKills(parts: AssembledKubelet, view: KubeletView, stats: NodeStats): () => void {
  const { context, kubelet, oomEvents, cluster } = parts;
  const { clock, logger, recorder, node } = context;
  const parser = new OomKillParser();
  const end = followKernelLog(({ message }) => {
    const kill = parser.feed(message);
    const oom = kill && toOomEvent(kill, view.podFacts());
    if (!oom) return;
    // The engine misses kills that end a container of cgroup v2 at once.
    const id = oom.container === undefined ? undefined : toContainerId(kill.victimCgroup);
    if (id !== undefined) kubelet.noteOom(id);
    if (oom.pod) recorder.record(oom.pod, oom.event);
    if (oom.event.reason === "SystemOOM" && cluster) recorder.record(nodeTarget(node.name), oom.event);
    else if (!oom.pod) logger.warn(`${oom.event.reason}: ${oom.event.message}`);
  }, logger);
  if (end) return end;
  const notices = new OomNotices({
    clock,
    recorder,
    pods: () => [...kubelet.workers.values()].map(({ snapshot }) => snapshot),
    readKills: (pid) => {
      const directories = stats.reader.ofProcess(pid);
      return directories && readOomKills(directories);
    },
  });
  oomEvents.add((id) => notices.note(id));
  return () => {};
}

/** Pause after an attempt that failed. */
const RETRY_MS = 1_000;
/** An attempt without an answer is logged after this time; it continues. */
const SILENCE_MS = 10_000;

/**
 * Connects to the engine, which may start later than the kubelet: each new error is logged once, attempts are made every
 * second. Resolves when it is connected or `stop` aborts.
 * @throws MisconfigurationError: a retry does not help
 */
export async function connectWithRetries(
  connect: (signal: AbortSignal) => Promise<void>,
  clock: Clock,
  logger: Logger,
  stop: AbortSignal,
): Promise<void> {
  let isSilenceLogged = false;
  const noteSilence = () => {
    if (isSilenceLogged) return;
    isSilenceLogged = true;
    const seconds = SILENCE_MS / 1000;
    logger.warn(
      `The Docker engine has not answered for ${seconds} s: no pod starts before it does ("docker info" shows whether it hangs)`,
    );
  };
  for (let lastMessage = ""; !stop.aborted; ) {
    const cancel = clock.schedule(SILENCE_MS, noteSilence);
    try {
      await connect(stop);
      if (isSilenceLogged || lastMessage !== "") logger.info("The Docker engine answers");
      return;
    } catch (error) {
      if (stop.aborted) return;
      if (error instanceof MisconfigurationError) throw error;
      const { message } = error as Error;
      if (message !== lastMessage) logger.error(message);
      lastMessage = message;
    } finally {
      cancel();
    }
    await clock.sleep(RETRY_MS, stop).catch(() => {});
  }
}

import { HostLogDirectory } from "../../base/host/log-directory.ts";
import { SystemClock } from "../../base/host/system-clock.ts";
import type { ConfigurationStatus } from "../../base/model/configuration.ts";
import type { Logger } from "../../base/model/logger.ts";
import { toServedConfiguration } from "../../config/effective-config.ts";
import type { KubeletOptions } from "../../config/option-table.ts";
import type { ReadNodeFacts } from "../../server/node-object.ts";
import { type AuthenticatedParts, Servers } from "../../server/servers.ts";
import type { KubeletView } from "../../server/view.ts";
import type { Metric } from "../../stats/metrics/metric.ts";
import { processMetrics } from "../../stats/metrics/process-metrics.ts";
import type { SystemContainerName } from "../../stats/node-sample.ts";
import { NodeStats } from "../../stats/node-stats.ts";
import { toCommandSocketPath } from "../instance-info.ts";
import type { KubeletRun } from "../kubelet-run.ts";
import type { MetricsRecorder } from "../metrics-recorder.ts";
import {
  configurationMetrics,
  countedMetrics,
  imageUpdateMetrics,
  podMetrics,
  sourceMetrics,
} from "../node-metrics.ts";
import type { AssembledKubelet } from "./assembled-kubelet.ts";
import { certificateStore, toPodStreams } from "./build-local-api.ts";
import { buildPage } from "./build-page.ts";
import { toKubeletView } from "./kubelet-view.ts";
import type { NodeFactsInput } from "./node-facts.ts";

/** The kubelet as HTTP answers show it. */
export const buildView = ({ context, kubelet, feed, volumes, engine }: AssembledKubelet): KubeletView =>
  toKubeletView({
    nodeName: context.node.name,
    kubelet,
    recorder: context.recorder,
    config: () => toServedConfiguration(context.options),
    sources: () => feed.status(),
    rejections: () => feed.rejections(),
    connectError: () => engine.connectError,
    usagePaths: ({ revision }) =>
      revision ? volumes.usagePaths(revision.pod, revision.claims, engine.infoIfKnown?.dockerRootDir) : [],
  });

/** Measurements of the node and of the pods in the view. */
export function buildStats(parts: AssembledKubelet, view: KubeletView): NodeStats {
  const { options, logger, background } = parts.context;
  const stats = new NodeStats({
    clock: parts.context.clock,
    nodeName: parts.context.node.name,
    podFacts: () => view.podFacts(),
    rootDir: parts.context.options.rootDir,
    imagesDir: () => parts.engine.infoIfKnown?.imagesDir ?? "",
    systemCgroups: toSystemCgroups(options),
    engineVersion: () => parts.engine.infoIfKnown?.serverVersion ?? "",
    volumeStatsAggPeriodMs: parts.context.options.volumeStatsAggPeriodMs,
    slot: background.slot,
    disabledMetrics: options.disabledMetrics,
    readImageBytes: async () => (await parts.engine.images.inventory()).bytes,
  });
  warnOfMissingCgroups(options, (path) => stats.measureOnce(path) !== undefined, logger);
  return stats;
}

/**
 * Opens every port that is configured, and the socket of the commands. Never throws for a port that is taken.
 * @param onServers called at once, and again with each port that opens later
 */
export function startNodeServers(
  parts: AssembledKubelet,
  view: KubeletView,
  stats: NodeStats,
  nodeFacts: ReadNodeFacts,
  { configuration, onServers }: Pick<NodeFactsInput, "configuration"> & Pick<KubeletRun, "onServers">,
): Servers {
  const { options, clock, logger, recorder, metrics, background } = parts.context;
  let servers: Servers | undefined;
  servers = new Servers(view, {
    options,
    socketPath: options.enableServer ? toCommandSocketPath(options.rootDir) : undefined,
    environment: {
      clock,
      logger,
      portHolder: background.tasks.findPortHolder,
      onListening: () => servers && onServers(servers),
    },
    stats,
    nodeFacts,
    metrics: {
      requests: metrics.kubelet,
      shown: () => [
        ...collectMetrics(metrics, configuration()),
        ...sourceMetrics(parts.feed.status(), parts.feed.rejections()),
        ...podMetrics(view.pods()),
        ...configurationMetrics(configuration()),
        ...imageUpdateMetrics(parts.imageUpdates.report()),
        ...countedMetrics(recorder, clock instanceof SystemClock ? clock.pendingTimers : undefined),
        ...processMetrics(),
      ],
      probes: metrics.probeMetrics,
    },
    page: buildPage(parts, view, stats, nodeFacts),
    authenticated: authenticatedParts(parts, view),
  });
  onServers(servers);
  return servers;
}

const authenticatedParts = (parts: AssembledKubelet, view: KubeletView): AuthenticatedParts => {
  const { context, engine, cluster } = parts;
  return {
    reviewer: cluster?.accessReviewer,
    containers: engine.containers,
    streams: toPodStreams(parts, view),
    logDirectory: context.options.enableSystemLogHandler
      ? new HostLogDirectory("/var/log", context.background.tasks)
      : undefined,
    nodeIp: context.node.ip,
    certificates: certificateStore(context),
  };
};

function collectMetrics(metrics: MetricsRecorder, status: ConfigurationStatus | undefined): Metric[] {
  metrics.kubelet.nodeConfigError.set(status?.error === undefined ? 0 : 1);
  return metrics.collect();
}

const FLAGS: readonly [SystemContainerName, "kubeletCgroups" | "runtimeCgroups" | "systemCgroups", string][] = [
  ["kubelet", "kubeletCgroups", "--kubelet-cgroups"],
  ["runtime", "runtimeCgroups", "--runtime-cgroups"],
  ["misc", "systemCgroups", "--system-cgroups"],
];

type SystemCgroupOptions = Pick<KubeletOptions, "kubeletCgroups" | "runtimeCgroups" | "systemCgroups">;

/** Cgroups of the system that options name, by their names in the summary. */
export const toSystemCgroups = (options: SystemCgroupOptions): ReadonlyMap<SystemContainerName, string> =>
  new Map(FLAGS.map(([name, option]) => [name, options[option]] as const).filter(([, path]) => path !== ""));

/** Names each cgroup of an option that does not exist: the summary has no such system container until it does. */
export function warnOfMissingCgroups(
  options: SystemCgroupOptions,
  exists: (cgroupPath: string) => boolean,
  logger: Logger,
): void {
  for (const [name, option, flag] of FLAGS) {
    const path = options[option];
    if (path === "" || exists(path)) continue;
    logger.warn(
      `${flag}: there is no cgroup "${path}"; /stats/summary has no systemContainers ${name} until it exists (cat /proc/PID/cgroup shows the cgroup of a process)`,
    );
  }
}

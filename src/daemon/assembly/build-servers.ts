import { ephemeralContainersRoute } from "../../apiserver/node/ephemeral-containers.ts";
import type { LocalApi } from "../../apiserver/node/local-api.ts";
import { nodeRoutes, restartRoute, updateRoutes } from "../../apiserver/node/node-routes.ts";
import { NodeView } from "../../apiserver/node/node-view.ts";
import { podRoutes } from "../../apiserver/node/pod-routes.ts";
import { LogDirectory } from "../../base/host/log-directory.ts";
import { dialPod } from "../../base/host/pod-dialer.ts";
import { SystemClock } from "../../base/host/system-clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import type { ClusterNode } from "../../cluster/cluster-node.ts";
import type { KubeletOptions } from "../../config/option-table.ts";
import { isStaticPod } from "../../manifest/identity.ts";
import type { ReadNodeFacts } from "../../server/node-object.ts";
import { PodStreams } from "../../server/pod-streams.ts";
import { Servers } from "../../server/servers.ts";
import type { KubeletView } from "../../server/view.ts";
import { processMetrics } from "../../stats/metrics/process-metrics.ts";
import type { SystemContainerName } from "../../stats/node-sample.ts";
import { NodeStats } from "../../stats/node-stats.ts";
import { toCommandSocketPath } from "../instance-info.ts";
import type { KubeletRun } from "../kubelet-run.ts";
import {
  configurationMetrics,
  countedMetrics,
  imageUpdateMetrics,
  podMetrics,
  sourceMetrics,
} from "../node-metrics.ts";
import type { AssembledKubelet } from "./assemble-kubelet.ts";
import { buildPage } from "./build-page.ts";
import { certificateStore } from "./node-context.ts";
import type { NodeFactsInput } from "./node-facts.ts";

/** Measurements of the node and of the pods in the view. */
export function buildStats({ context, engine }: AssembledKubelet, view: KubeletView): NodeStats {
  const { clock, node, options, logger, background } = context;
  const stats = new NodeStats({
    clock,
    nodeName: node.name,
    podFacts: () => view.podFacts(),
    rootDir: options.rootDir,
    imagesDir: () => engine.infoIfKnown?.imagesDir ?? "",
    systemCgroups: toSystemCgroups(options),
    engineVersion: () => engine.infoIfKnown?.serverVersion ?? "",
    volumeStatsAggPeriodMs: options.volumeStatsAggPeriodMs,
    slot: background.slot,
    disabledMetrics: options.disabledMetrics,
    readImageBytes: async () => (await engine.images.inventory()).bytes,
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
        ...metrics.collect(configuration()),
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
    authenticated: {
      reviewer: parts.cluster?.accessReviewer,
      containers: parts.engine.containers,
      streams: toPodStreams(parts, view),
      logDirectory: options.enableSystemLogHandler ? new LogDirectory("/var/log", background.tasks) : undefined,
      nodeIp: parts.context.node.ip,
      certificates: certificateStore(parts.context),
    },
  });
  onServers(servers);
  return servers;
}

/** Begins to serve. Resolves when the socket does; the port may come later. */
export async function startLocalApi(
  api: LocalApi,
  parts: AssembledKubelet,
  view: KubeletView,
  servers: Servers,
): Promise<void> {
  const { kubelet, workloads, feed, cordon, context } = parts;
  const node = new NodeView({ kubelet, workloads, feed, cordon, view, servers });
  feed.onChange(() => api.podsChanged());
  kubelet.onChange(() => api.podsChanged());
  let hasSettled = false;
  workloads.onSync(() => {
    // Dependents may have gone while no kubelet ran.
    if (!hasSettled && kubelet.isSynced) api.deleter.settleOwners(() => true);
    hasSettled ||= kubelet.isSynced;
    api.releaseAdopted((uid) => workloads.hasTakenOver(uid));
    api.deleteExpired((uid) => workloads.isExpired(uid));
    api.podsChanged();
  });
  context.recorder.onRecord(() => api.eventRecorded());
  await api.start(node, [
    ...podRoutes(api, toPodStreams(parts, view)),
    ...updateRoutes(parts.imageUpdates),
    restartRoute({ api, kubelet }),
    ephemeralContainersRoute({ api, reader: api.reader, kubelet }),
    ...nodeRoutes({ api, nodeName: context.node.name, servers }),
  ]);
}

/** Logs, commands and ports of pods, for both ports that have them. */
export const toPodStreams = ({ context, engine: { containers } }: AssembledKubelet, view: KubeletView): PodStreams => {
  const { clock, logger, options } = context;
  const idleTimeoutMs = options.streamingConnectionIdleTimeoutMs;
  return new PodStreams({ view, containers, dialPod, clock, logger, idleTimeoutMs });
};

/** Joins the cluster. */
export function startCluster(cluster: ClusterNode, parts: AssembledKubelet, servers: Servers): void {
  const { kubelet, admission, context, networks, engine } = parts;
  admission.addHandler((pod) => cluster.refusalOf(pod));
  cluster.start({
    pods: () => kubelet.pods(),
    pod: (uid) => kubelet.pod(uid),
    hasStatus: (uid) => kubelet.worker(uid)?.status !== undefined || kubelet.rejection(uid) !== undefined,
    isGone: (uid) => kubelet.isGone(uid),
    staticPods: () => kubelet.pods().filter(isStaticPod),
    isWanted: ({ metadata }) => kubelet.desiredPods.some(({ pod }) => pod.metadata.uid === metadata.uid),
    get isComplete() {
      return kubelet.isComplete;
    },
    readNode: () => servers.node(),
    isReady: () => engine.connectError === undefined && kubelet.runtimeError === undefined && !networks.problem(),
    onNodeLabels: (labels) => admission.setNodeLabels(labels),
    onChange: (listener) => void kubelet.onChange(listener),
    events: {
      newerThan: (version) => context.recorder.newerThan(version),
      onRecord: (listener) => void context.recorder.onRecord(listener),
    },
  });
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

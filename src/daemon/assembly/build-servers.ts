import { statSync } from "node:fs";
import { join } from "node:path";
import type { LocalApi } from "../../apiserver/node/local-api.ts";
import { nodeRoutes, restartRoute, updateRoutes } from "../../apiserver/node/node-routes.ts";
import { NodeView } from "../../apiserver/node/node-view.ts";
import { podRoutes, proxyRoutes } from "../../apiserver/node/pod-routes.ts";
import { SYSTEM_FILE_BYTES } from "../../base/files/whole-file.ts";
import { LogDirectory } from "../../base/host/log-directory.ts";
import { dialPod } from "../../base/host/pod-dialer.ts";
import { findSocketUser } from "../../base/host/port-holder.ts";
import { SystemClock } from "../../base/host/system-clock.ts";
import type { ConfigurationStatus } from "../../base/model/configuration.ts";
import type { HealthCheck } from "../../base/model/health-check.ts";
import type { EngineContainer } from "../../base/model/pod-snapshot.ts";
import { unlessFailed } from "../../base/text/error-message.ts";
import type { ClusterNode } from "../../cluster/cluster-node.ts";
import { toTlsVersions } from "../../config/cipher-suites.ts";
import { toFlagLines, toServedConfiguration } from "../../config/effective-config.ts";
import { usableRuntimes } from "../../docker/create-bodies.ts";
import { isApiAtLeast } from "../../docker/security.ts";
import type { EvictionManager } from "../../kubelet/eviction/eviction-manager.ts";
import type { PodWorker } from "../../kubelet/pod-worker.ts";
import type { VolumeUsagePath } from "../../kubelet/volumes/volume-plugins.ts";
import { isStaticPod } from "../../manifest/defaults.ts";
import { computeAllocatableDisk, computeNodeAllocatable } from "../../plan/admission.ts";
import type { ReadNodeFacts } from "../../server/node-object.ts";
import { PageFeed } from "../../server/page/page-feed.ts";
import { PageRoutes } from "../../server/page/page-routes.ts";
import { ensurePageSecret, PageSessions } from "../../server/page/page-session.ts";
import { KeptHistory, UsageRecorder } from "../../server/page/usage-history.ts";
import { PodStreams } from "../../server/pod-streams.ts";
import { isLoopback } from "../../server/request-handler.ts";
import { type Page, Servers } from "../../server/servers.ts";
import { readTlsMaterial, type TlsMaterial } from "../../server/serving-certificate.ts";
import type { KubeletView } from "../../server/view.ts";
import { describeFinding } from "../../sources/source-set.ts";
import { processMetrics } from "../../stats/metrics/process-metrics.ts";
import { NodeStats } from "../../stats/node-stats.ts";
import type { ContainerFacts, PodFacts, VolumeFacts } from "../../stats/pod-facts.ts";
import { warnOfMissingCgroups } from "../../stats/sampler.ts";
import { toCommandSocketPath } from "../instance-info.ts";
import type { KubeletRun } from "../kubelet-run.ts";
import {
  configurationMetrics,
  countedMetrics,
  imageUpdateMetrics,
  podMetrics,
  sourceMetrics,
} from "../node-metrics.ts";
import { buildInfo, kubeletVersion } from "../version.ts";
import type { AssembledKubelet } from "./assemble-kubelet.ts";
import { imagesWithin } from "./build-images.ts";
import { certificateStore, type NodeContext, nodeLabelsOf } from "./node-context.ts";
import { NodeActions } from "./page-actions.ts";
import { KubeletPage } from "./page-source.ts";
import { openStateFile } from "./state-files.ts";

/** The kubelet as its servers see it: only reading, only from memory. */
export function buildView({ context, kubelet, feed, volumes, engine }: AssembledKubelet): KubeletView {
  const { node, options, recorder } = context;
  const usagePaths = ({ revision }: PodWorker) =>
    revision ? volumes.usagePaths(revision.pod, revision.desired.claims, engine.infoIfKnown?.dockerRootDir) : [];
  const engineError = () => engine.connectError ?? kubelet.runtimeError;
  return {
    nodeName: () => node.name,
    pods: () => kubelet.pods(),
    events: () => ({ revision: recorder.revision, items: recorder.list() }),
    podFacts: () => [...kubelet.workers.values()].flatMap((worker) => toPodFacts(worker, usagePaths(worker)) ?? []),
    engineError,
    healthChecks: () => [
      ok("ping"),
      ok("log"),
      { name: "syncloop", ok: engineError() === undefined, message: engineError() ?? "" },
      // A source out of reach does not make the kubelet unhealthy: the last set keeps running.
      ...feed.status().map(({ kind, name, state, message }) => {
        const why = state === "ok" ? "" : ` (${state}${message ? `: ${message}` : ""})`;
        return ok(`source ${kind} ${name}${why}`);
      }),
      // Nor does a refused manifest: its pods keep running as before.
      ...feed.rejections().map(({ finding }) => ok(`manifest ${finding.file} refused (${describeFinding(finding)})`)),
    ],
    config: () => toServedConfiguration(options),
    flags: () => toFlagLines(options),
    version: () => buildInfo.version,
  };
}

const ok = (name: string): HealthCheck => ({ name, ok: true, message: "" });

/** undefined for a pod without a running sandbox: there is nothing to measure. */
function toPodFacts(worker: PodWorker, volumes: readonly VolumeUsagePath[]): PodFacts | undefined {
  const { snapshot, ref } = worker;
  const sandbox = snapshot.sandboxes[0];
  if (sandbox?.state !== "ready") return undefined;
  const startTime = worker.status?.startTime;
  return {
    uid: ref.uid,
    name: ref.name,
    namespace: ref.namespace,
    startTime: startTime ? new Date(startTime) : sandbox.createdAt,
    hostNetwork: sandbox.hostNetwork,
    cgroupParent: sandbox.cgroupParent,
    sandbox: toContainerFacts("POD", sandbox),
    containers: snapshot.containers
      .filter(({ state }) => state === "running")
      .map((container) => toContainerFacts(container.name, container)),
    volumes: volumes.map(toVolumeFacts),
  };
}

const toContainerFacts = (name: string, it: EngineContainer): ContainerFacts => ({
  ...it,
  name,
  image: it.imageId,
  startedAt: it.startedAt ?? it.createdAt,
});

const toVolumeFacts = ({ name, path, method, isEphemeral, claimName }: VolumeUsagePath): VolumeFacts => ({
  name,
  path,
  ephemeral: isEphemeral,
  isFileSystem: method === "statfs",
  ...(claimName !== undefined && { pvcName: claimName }),
});

/** Measurements of the node and of the pods in the view. */
export function buildStats({ context, engine }: AssembledKubelet, view: KubeletView): NodeStats {
  const { node, options, logger, background } = context;
  const place = { nodeName: node.name, settings: options, slot: background.slot };
  const stats = new NodeStats({ ...context, ...place, view, engine });
  warnOfMissingCgroups(options, (path) => stats.sampler.measureOnce(path) !== undefined, logger);
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
  { onServers, ...input }: NodeFactsInput & Pick<KubeletRun, "onServers">,
): Servers {
  const { configuration } = input;
  const nodeFacts = readNodeFacts(parts, input);
  const { options, clock, logger, recorder, metrics, metricsRecorder, background } = parts.context;
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
      requests: metrics,
      shown: () => [
        ...metricsRecorder.collect(configuration()),
        ...sourceMetrics(parts.feed.status(), parts.feed.rejections()),
        ...podMetrics(view.pods()),
        ...configurationMetrics(configuration()),
        ...imageUpdateMetrics(parts.imageUpdates.report()),
        ...countedMetrics(recorder, clock instanceof SystemClock ? clock.pendingTimers : undefined),
        ...processMetrics(),
      ],
      probes: metricsRecorder.probeMetrics,
    },
    page: options.cadvisorPort === 0 ? undefined : buildPage(parts, view, stats, nodeFacts),
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

/** An engine that does not answer by then leaves the node without its images. */
const IMAGES_WITHIN_MS = 1000;

interface NodeFactsInput {
  eviction: Pick<EvictionManager, "states">;
  /** The machine is about to go down. */
  isShuttingDown: () => boolean;
  /** undefined without configuration files. */
  configuration: () => ConfigurationStatus | undefined;
}

/** Facts that `/node` shows in addition to measurements: read at each request, except when the kubelet became ready. */
function readNodeFacts(parts: AssembledKubelet, input: NodeFactsInput): ReadNodeFacts {
  const { eviction, isShuttingDown, configuration } = input;
  const { kubelet, networks } = parts;
  const { node, options, clock } = parts.context;
  const findProblem = () => {
    // Upstream's words.
    if (isShuttingDown()) return "node is shutting down";
    return parts.engine.connectError ?? kubelet.runtimeError ?? toNetworkError(networks.problem());
  };
  const ready = { runtimeError: findProblem(), since: clock.now() };
  const noteReady = () => {
    const runtimeError = findProblem();
    if ((runtimeError === undefined) !== (ready.runtimeError === undefined)) ready.since = clock.now();
    ready.runtimeError = runtimeError;
  };
  kubelet.onChange(noteReady);
  const fixed = {
    name: node.name,
    ip: node.ip,
    taints: options.nodeTaints,
    maxPods: parts.admission.maxPods,
    maxImages: options.nodeStatusMaxImages,
    kubeletPort: options.port,
    kubeletVersion: options.kubeconfig === "" ? buildInfo.version : kubeletVersion,
    allocatable: {
      ...computeNodeAllocatable(node, options),
      diskBytes: (capacityBytes: number) => computeAllocatableDisk(capacityBytes, options),
    },
    createdAt: createdAt(options.rootDir),
  };
  return async (withImages = true) => {
    const [store] = await Promise.all([
      withImages ? imagesWithin(IMAGES_WITHIN_MS, parts.engine, clock) : undefined,
      networks.findProblem().catch(() => {}),
    ]);
    noteReady();
    const engine = parts.engine.infoIfKnown;
    return {
      ...fixed,
      labels: parts.settings?.labels ?? nodeLabelsOf(parts.context),
      annotations: parts.settings?.annotations,
      cordonedSince: parts.settings?.since,
      pressures: eviction.states(),
      ready: { ...ready },
      images: store?.images,
      configuration: configuration(),
      runtimes: engine && {
        names: usableRuntimes(engine),
        recursiveReadOnlyMounts: isApiAtLeast(engine, "1.44"),
      },
    };
  };
}

const toNetworkError = (problem: string | undefined) =>
  problem && `runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:${problem}`;

/** A node is as old as its root directory; undefined where the file system does not keep that. */
function createdAt(directory: string): Date | undefined {
  const { birthtime } = unlessFailed(() => statSync(directory)) ?? {};
  return birthtime && birthtime.getTime() > 0 ? birthtime : undefined;
}

/** Begins to serve. Resolves when the socket does; the port may come later. */
export async function startLocalApi(
  api: LocalApi,
  parts: AssembledKubelet,
  view: KubeletView,
  servers: Servers,
): Promise<void> {
  const { kubelet, workloads, feed, settings, context } = parts;
  const node = new NodeView({
    ...{ kubelet, workloads, feed, settings, view, servers, clock: context.clock },
    firstSeen: openStateFile(context, "first-seen"),
  });
  feed.onChange(() => api.podsChanged());
  kubelet.onChange((uid) => api.podsChanged(uid !== undefined));
  workloads.syncs.add(() => {
    api.releaseAdopted((uid) => workloads.hasTakenOver(uid));
    api.deleteExpired((uid) => workloads.isExpired(uid));
    api.podsChanged();
  });
  context.recorder.records.add(() => api.events.recorded());
  await api.start(node, [
    ...podRoutes(api, toPodStreams(parts, view)),
    ...proxyRoutes({ api, random: Math.random }),
    ...updateRoutes(parts.imageUpdates),
    restartRoute(api, kubelet),
    ...nodeRoutes({ api, nodeName: context.node.name, port: context.options.port, servers }),
  ]);
}

/** Logs, commands and ports of pods, for both ports that have them. */
const toPodStreams = ({ context, engine: { containers } }: AssembledKubelet, view: KubeletView): PodStreams => {
  const { clock, logger, options } = context;
  const idleTimeoutMs = options.streamingConnectionIdleTimeoutMs;
  return new PodStreams({ view, containers, dialPod, clock, logger, idleTimeoutMs });
};

/** Joins the cluster. */
export function startCluster(cluster: ClusterNode, parts: AssembledKubelet, servers: Servers): void {
  const { kubelet, admission, context, networks, engine, feed } = parts;
  admission.addHandler((pod) => cluster.refusalOf(pod));
  cluster.start({
    pods: () => kubelet.pods(),
    hasStatus: (uid) => kubelet.workers.get(uid)?.status !== undefined || kubelet.rejection(uid) !== undefined,
    isGone: (uid) => kubelet.isGone(uid),
    flush: () => feed.flush(),
    staticPods: () => kubelet.pods().filter(isStaticPod),
    isWanted: ({ metadata }) => kubelet.desiredPods.some(({ pod }) => pod.metadata.uid === metadata.uid),
    get isComplete() {
      return kubelet.isComplete;
    },
    readNode: () => servers.node(),
    isReady: () => engine.connectError === undefined && kubelet.runtimeError === undefined && !networks.problem(),
    onChange: (listener) => void kubelet.onChange(listener),
    events: context.recorder,
  });
}

/** The page of the cAdvisor port. */
function buildPage(parts: AssembledKubelet, view: KubeletView, stats: NodeStats, nodeFacts: ReadNodeFacts): Page {
  const { context, kubelet, engine, localApi } = parts;
  const { clock, logger, options, background } = context;
  const isLocal = isLoopback(options.cadvisorBindAddress);
  const usage = new UsageRecorder();
  const history = new KeptHistory(usage, options.rootDir, clock, logger, background.tasks.replaceFile);
  history.restore();
  const page = new KubeletPage(parts, view, stats, nodeFacts);
  const feed = new PageFeed(clock, logger, usage, page);
  const routes = new PageRoutes({
    clock,
    feed,
    details: page,
    sessions: new PageSessions(ensurePageSecret(options.rootDir), () => clock.now().getTime()),
    isLocal,
    containers: engine.containers,
    clientUserId: ({ ports }) => ports && findSocketUser(ports.client, ports.server),
    actions: localApi && new NodeActions(context, kubelet, localApi, () => page.desired),
  });
  feed.start();
  return {
    route: (request) => routes.route(request),
    // The port serves cAdvisor's API without TLS too, as it always did.
    tls: isLocal
      ? undefined
      : {
          isOptional: true,
          versions: toTlsVersions(options.tlsMinVersion, options.tlsCipherSuites),
          readMaterial: () => readPageMaterial(context),
        },
    stop: () => {
      feed.stop();
      history.stop();
    },
  };
}

/**
 * The certificate of `--tls-cert-file`; without that flag, the one of the local API, whose authority a browser can import
 * to trust; without a local API, the one of the authenticated port.
 */
async function readPageMaterial(context: NodeContext): Promise<TlsMaterial> {
  const { options, node, clock } = context;
  const store = certificateStore(context);
  if (options.tlsCertFile !== "" || options.localApiPort === 0) {
    const names = { nodeName: node.name, nodeIp: node.ip };
    return await readTlsMaterial(store, { ...options, clientCaFile: "" }, names, clock.now());
  }
  const directory = join(options.rootDir, "apiserver");
  const read = async (name: string) => {
    const path = join(directory, name);
    const text = await store.files.readText(path, SYSTEM_FILE_BYTES);
    if (text === undefined) throw new Error(`there is no "${path}"`);
    return text;
  };
  return { cert: await read("server.crt"), key: await read("server.key"), clientCas: [] };
}

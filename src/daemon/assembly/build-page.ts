import { loadavg, uptime } from "node:os";
import { join } from "node:path";
import { creationTime, summarizePod } from "../../apiserver/printers/pod-row.ts";
import type { Pod } from "../../base/api/pod.ts";
import type { Summary } from "../../base/api/stats-summary.ts";
import { SYSTEM_FILE_BYTES } from "../../base/files/bounded-read.ts";
import type { TextFiles } from "../../base/files/text-files.ts";
import { findSocketUser } from "../../base/host/socket-user.ts";
import type { ContainerAccess } from "../../base/model/container-access.ts";
import type { DesiredState } from "../../base/model/desired-pod.ts";
import type { Finding } from "../../base/model/finding.ts";
import type { PodUID } from "../../base/model/identity.ts";
import { hostPortsOf } from "../../base/model/pod-containers.ts";
import { toTlsVersions } from "../../config/cipher-suites.ts";
import { DockerContainerAccess } from "../../docker/docker-container-access.ts";
import type { NodeDetail, NodeState, NodeUsage, PodRow, Rejection } from "../../page/wire.ts";
import { type ExplainInput, explainPod } from "../../plan/status/explain-pod.ts";
import { findLogContainer } from "../../plan/status/log-container.ts";
import { isLoopback } from "../../server/host-header.ts";
import type { ListenerTls } from "../../server/listener.ts";
import { type ReadNodeFacts, toNodeConditions } from "../../server/node-object.ts";
import { toClusterState } from "../../server/page/cluster-state.ts";
import { hideLogEnds, hideProbeOutput } from "../../server/page/hide-output.ts";
import { MAX_SHOWN_MANIFEST_BYTES, toManifestView } from "../../server/page/manifest-view.ts";
import { PageFeed } from "../../server/page/page-feed.ts";
import { PageRoutes } from "../../server/page/page-routes.ts";
import { ensurePageSecret } from "../../server/page/page-secret.ts";
import { PageSessions } from "../../server/page/page-session.ts";
import { toCondition, toEventRow, toPodDetail } from "../../server/page/pod-detail.ts";
import { toPodRow } from "../../server/page/pod-row.ts";
import { PodVersions } from "../../server/page/pod-versions.ts";
import { UsageRecorder } from "../../server/page/usage-recorder.ts";
import { redactPod } from "../../server/redact-pod.ts";
import type { Page } from "../../server/servers.ts";
import { readTlsMaterial, type TlsMaterial } from "../../server/serving-certificate.ts";
import type { KubeletView } from "../../server/view.ts";
import { CadvisorFactsReader } from "../../stats/cadvisor/cadvisor-facts.ts";
import { readMachinePressure } from "../../stats/cgroups/cgroup-figures.ts";
import type { NodeStats } from "../../stats/node-stats.ts";
import { versionLine } from "../version.ts";
import type { AssembledKubelet } from "./assembled-kubelet.ts";
import { EngineCheck } from "./engine-check.ts";
import { KeptHistory } from "./kept-history.ts";
import type { NodeContext } from "./node-context.ts";
import { NodeActions } from "./page-actions.ts";
import { MachineRates } from "./page-machine.ts";
import { readNodeDetail } from "./page-node-detail.ts";
import { describeSource, toUnreadSources } from "./page-source.ts";
import { toImageUpdateRows, toWorkloadRows } from "./page-workloads.ts";

/** The page of the cAdvisor port. */
export function buildPage(
  parts: AssembledKubelet,
  view: KubeletView,
  stats: NodeStats,
  nodeFacts: ReadNodeFacts,
): Page {
  const { context, kubelet, client, probeLog } = parts;
  const { clock, logger, options, background, recorder } = context;
  const isLocal = isLoopback(options.cadvisorBindAddress);
  const usage = new UsageRecorder();
  const history = new KeptHistory(usage, options.rootDir, clock, logger, background.tasks.replaceFile);
  history.restore();
  const cadvisor = new CadvisorFactsReader(stats);
  const rates = new MachineRates(clock);
  const engineCheck = new EngineCheck((asked) => client.ping(asked));
  let findings: readonly Finding[] = [];
  let rejections: Rejection[] = [];
  let desired: DesiredState = { pods: [], configMaps: new Map(), secrets: new Map() };
  parts.feed.onChange((state, info) => {
    desired = state;
    findings = info.findings;
    rejections = findings.filter(({ severity }) => severity === "error").map(toRejection);
  });
  const containers = new DockerContainerAccess(client, (ms, callback) => clock.schedule(ms, callback));
  /** The text of `kubelet-ts explain`. */
  const explain = (pod: Pod, more: Partial<Pick<ExplainInput, "logs" | "portHolders">> = {}) =>
    explainPod({
      pod,
      events: recorder.list(pod.metadata.uid),
      logs: new Map(),
      pods: view.pods(),
      now: clock.now(),
      ...more,
    });
  const find = ({ metadata: { uid } }: Pod) => kubelet.desiredPods.find(({ pod }) => pod.metadata.uid === uid);
  const toRow = (pod: Pod): PodRow => {
    const desired = find(pod);
    const source = desired ? describeSource(desired, desired.location) : "";
    return toPodRow(pod, { ...summarizePod(pod), createdAt: creationTime(pod) }, source, explain(pod));
  };
  const measure = async () => {
    const summary = await stats.summary(false);
    return { summary, node: toNodeUsage(summary) };
  };
  const node = async (): Promise<NodeState> => {
    const facts = await nodeFacts(false);
    const { serverVersion } = parts.engineIfKnown() ?? {};
    return {
      name: context.node.name,
      version: versionLine(),
      engine: serverVersion ? `Docker ${serverVersion}` : "no Docker engine",
      problem: facts.ready.runtimeError ?? engineCheck.problem(),
      conditions: toNodeConditions(facts, clock.now()).map((condition) => toCondition(condition)),
      cpuCount: context.node.cpuCount,
      memoryBytes: context.node.memoryBytes,
      // Coarse: a node that did not change is not sent again.
      bootTime: Math.round((clock.now().getTime() - uptime() * 1000) / 60_000) * 60_000,
      cluster: parts.cluster ? toClusterState(parts.cluster.connection, clock.now().getTime()) : null,
    };
  };
  const shownPods = new PodVersions({
    pods: () => view.pods(),
    eventsAfter: (version) => recorder.newerThan(version),
  });
  const feed = new PageFeed({
    clock,
    usage,
    isComplete: () => kubelet.isComplete,
    node,
    measure,
    toRow,
    pods: () => shownPods.list(),
    onPodsChanged: (callback) => {
      const subscriptions = [kubelet.onChange(callback), recorder.onRecord(callback)];
      return () => {
        for (const unsubscribe of subscriptions) unsubscribe();
      };
    },
    rejections: () => [...toUnreadSources(parts.feed.status()), ...rejections],
    workloads: () => toWorkloadRows(desired, parts.workloads.reader, clock.now()),
    onError: (error) => logger.debug("The usage of pods could not be sampled", { error: String(error) }),
  });
  const podDetail = async (uid: PodUID, privileged: boolean) => {
    const pod = shownPods.list().find(({ metadata }) => metadata.uid === uid);
    if (!pod) return undefined;
    const shown = privileged ? pod : redactPod(hideLogEnds(pod));
    const summary = await stats.summary(false);
    const { stringify } = await import("yaml");
    const sample = await stats.sampleWithRates();
    const measured = sample.pods.find(({ facts }) => facts.uid === uid)?.containers ?? [];
    const location = find(pod)?.location;
    return toPodDetail({
      row: feed.row(pod),
      pod: shown,
      usage: summary.pods.find(({ podRef }) => podRef.uid === uid),
      events: view.events().items,
      explanation: explain(shown, {
        ...(privileged && { logs: await readLogTails(pod, containers) }),
        ...(pod.status?.phase === "Pending" && {
          portHolders: await background.tasks.findPortHolders(hostPortsOf(pod.spec)).catch(() => new Map()),
        }),
      }),
      probeResponses: (container, kind) => {
        const answers = probeLog.answers(uid, container, kind);
        return privileged ? answers : hideProbeOutput(answers);
      },
      counters: (name) => {
        const path = measured.find(({ facts }) => facts.name === name)?.cgroup.path;
        return path === undefined ? undefined : stats.measureOnce(path)?.stats;
      },
      imageUpdates: toImageUpdateRows(parts.imageUpdates.report(), pod),
      manifest: toManifestView({
        file: location?.file ?? "",
        line: location?.line,
        text: privileged ? await readManifestFile(background.textFiles, location?.file) : undefined,
        findings,
        rendered: stringify({ apiVersion: "v1", kind: "Pod", metadata: shown.metadata, spec: shown.spec }),
      }),
    });
  };
  const nodeDetail = async (): Promise<NodeDetail> => ({
    ...(await readNodeDetail(parts, stats, cadvisor, rates, view.pods())),
    state: await node(),
    events: view.events().items.map(toEventRow),
  });
  const routes = new PageRoutes({
    clock,
    feed,
    sessions: new PageSessions(ensurePageSecret(options.rootDir), () => clock.now().getTime()),
    isLocal,
    pods: () => view.pods(),
    podDetail,
    nodeDetail,
    processes: (uid) =>
      background.tasks.listProcesses(
        (stats.sample("basics").pods.find(({ facts }) => facts.uid === uid)?.containers ?? []).map(
          ({ facts, cgroup }) => ({
            name: facts.name,
            processIds: cgroup.stats.processIds,
          }),
        ),
      ),
    history: (uid, range) => usage.history(uid, range, clock.now().getTime()),
    containers,
    clientUserId: ({ ports }) => ports && findSocketUser(ports.client, ports.server),
    actions: parts.localApi && new NodeActions(context, kubelet, parts.localApi, () => desired),
  });
  feed.start();
  return {
    route: (request) => routes.route(request),
    tls: isLocal ? undefined : pageTls(context),
    stop: () => {
      feed.stop();
      history.stop();
    },
  };
}

/** A file of this machine, as it is now; undefined for other sources and for what cannot be read. */
async function readManifestFile(files: TextFiles, file: string | undefined): Promise<string | undefined> {
  if (!file?.startsWith("/")) return undefined;
  try {
    return await files.readText(file, MAX_SHOWN_MANIFEST_BYTES);
  } catch {
    return undefined;
  }
}

const TAIL_LINES = 5;
const TAIL_BYTES = 8192;

/** The last lines of each container that is not ready, for the explanation. A log that cannot be read is left out. */
async function readLogTails(pod: Pod, containers: ContainerAccess): Promise<Map<string, string[]>> {
  const { initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {};
  const tails = new Map<string, string[]>();
  for (const { name, ready } of [...initContainerStatuses, ...containerStatuses]) {
    const found = findLogContainer(pod, name, false);
    if (ready || "problem" in found) continue;
    const selection = {
      follow: false,
      tailLines: TAIL_LINES,
      limitBytes: TAIL_BYTES,
      timestamps: false,
      stdout: true,
      stderr: true,
    };
    try {
      let text = "";
      const decoder = new TextDecoder();
      for await (const data of await containers.logs(found.id, selection, AbortSignal.timeout(2000))) {
        text += decoder.decode(data, { stream: true });
      }
      tails.set(
        name,
        text.split("\n").filter((line) => line !== ""),
      );
    } catch {
      // The engine is unreachable, or the container is gone.
    }
  }
  return tails;
}

const toRejection = ({ file, line, column, field, message }: Finding): Rejection => ({
  source: file,
  line,
  column,
  message: field === "" ? message : `${field}: ${message}`,
});

function toNodeUsage({ node }: Summary): NodeUsage {
  const { cpu, memory, fs, runtime } = node;
  const [one = 0, five = 0, fifteen = 0] = loadavg();
  const pressure = readMachinePressure();
  return {
    cpuCores: (cpu?.usageNanoCores ?? 0) / 1e9,
    memoryBytes: memory?.workingSetBytes ?? 0,
    diskUsedBytes: (fs?.capacityBytes ?? 0) - (fs?.availableBytes ?? 0),
    diskBytes: fs?.capacityBytes ?? 0,
    imageUsedBytes: runtime?.imageFs?.usedBytes ?? 0,
    imageDiskUsedBytes: (runtime?.imageFs?.capacityBytes ?? 0) - (runtime?.imageFs?.availableBytes ?? 0),
    imageDiskBytes: runtime?.imageFs?.capacityBytes ?? 0,
    load: [one, five, fifteen],
    ...(pressure && { pressure }),
  };
}

/** TLS of the page on a network address. The port serves cAdvisor's API without TLS too, as it always did. */
const pageTls = (context: NodeContext): ListenerTls => ({
  isOptional: true,
  versions: toTlsVersions(context.options.tlsMinVersion, context.options.tlsCipherSuites),
  readMaterial: () => readPageMaterial(context),
});

/**
 * The certificate of `--tls-cert-file`; without that flag, the one of the local API, whose authority a browser can import
 * to trust; without a local API, the one of the authenticated port.
 */
async function readPageMaterial({ options, node, clock, background }: NodeContext): Promise<TlsMaterial> {
  const files = background.textFiles;
  if (options.tlsCertFile !== "" || options.localApiPort === 0) {
    const names = { nodeName: node.name, nodeIp: node.ip };
    return await readTlsMaterial(files, { ...options, clientCaFile: "" }, names, clock.now());
  }
  const directory = join(options.rootDir, "apiserver");
  const read = async (name: string) => {
    const path = join(directory, name);
    const text = await files.readText(path, SYSTEM_FILE_BYTES);
    if (text === undefined) throw new Error(`there is no "${path}"`);
    return text;
  };
  return { cert: await read("server.crt"), key: await read("server.key"), clientCas: [] };
}

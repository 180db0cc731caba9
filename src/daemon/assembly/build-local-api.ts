import type { ExtraRoute } from "../../apiserver/api-server.ts";
import { ephemeralContainersRoute } from "../../apiserver/node/ephemeral-containers.ts";
import { LocalApi } from "../../apiserver/node/local-api.ts";
import { nodeRoutes } from "../../apiserver/node/node-routes.ts";
import { restartRoute } from "../../apiserver/node/restart-route.ts";
import { updateRoutes } from "../../apiserver/node/update-routes.ts";
import type { VersionInfo } from "../../apiserver/non-resource-paths.ts";
import { makeInChild, makeSelfSigned } from "../../apiserver/pki/certificate-process.ts";
import { SOURCE_ID } from "../../apiserver/storage/submitted-set.ts";
import { podRoutes } from "../../apiserver/streams/pod-routes.ts";
import type { ObjectMeta } from "../../base/api/meta.ts";
import { dialPod } from "../../base/host/pod-dialer.ts";
import { objectKey } from "../../base/model/desired-object.ts";
import type { DesiredState } from "../../base/model/desired-pod.ts";
import { toTlsVersions } from "../../config/cipher-suites.ts";
import { usesClaim } from "../../controllers/claims.ts";
import { NodeCordon } from "../../kubelet/node-cordon.ts";
import { readManifest } from "../../manifest/read-manifest.ts";
import type { Servers } from "../../server/servers.ts";
import type { CertificateStore } from "../../server/serving-certificate.ts";
import type { KubeletView } from "../../server/view.ts";
import type { RunnableKey } from "../../sources/kept-source.ts";
import { buildInfo, KUBERNETES_VERSION } from "../version.ts";
import type { AssembledKubelet } from "./assembled-kubelet.ts";
import { type NodeContext, openStateFile } from "./node-context.ts";
import { CordonSchema, ResourceVersionSchema } from "./state-schemas.ts";

/** The store and the writers of the local API; nothing listens yet. */
export function buildLocalApi(context: NodeContext): LocalApi {
  const { options, node, clock, logger, background } = context;
  return new LocalApi({
    rootDir: options.rootDir,
    nodeName: node.name,
    nodeIp: node.ip,
    address: options.localApiAddress,
    // The page may be served with the same certificate.
    otherAddresses: [options.cadvisorBindAddress],
    port: options.localApiPort,
    clientCaFile: options.clientCaFile,
    tlsVersions: toTlsVersions(options.tlsMinVersion, options.tlsCipherSuites),
    tokenAuthFile: options.tokenAuthFile,
    read: (bytes) => readSubmitted(context, bytes),
    clock,
    logger,
    version: versionInfo(),
    mark: openStateFile(context, "resource-version", ResourceVersionSchema, { durable: true }),
    makeCertificates: (order) => makeInChild(ownCommand(), order),
    portHolder: background.tasks.findPortHolder,
    files: background.textFiles,
    probeDirectory: background.tasks.probeDirectory,
  });
}

/** `spec.unschedulable` of the node. */
export const buildCordon = (context: NodeContext): NodeCordon =>
  new NodeCordon({
    clock: context.clock,
    file: openStateFile(context, "cordon", CordonSchema, { durable: true }),
    recorder: context.recorder,
    nodeName: context.node.name,
    submittedSourceId: SOURCE_ID,
  });

/** Reads an object that a client sent. */
const readSubmitted = ({ options, node }: NodeContext, bytes: Uint8Array, allowEphemeralContainers = false) =>
  readManifest(bytes, {
    file: "request",
    nodeName: node.name,
    source: "api",
    strictness: "warn",
    allowPrivileged: options.allowPrivileged,
    allowEphemeralContainers,
  });

/** Begins to answer. Resolves when the socket does; the port may come later. */
export async function startLocalApi(
  api: LocalApi,
  parts: AssembledKubelet,
  view: KubeletView,
  servers: Servers,
): Promise<void> {
  const { kubelet, context } = parts;
  let desired: DesiredState = { pods: [], configMaps: new Map(), secrets: new Map() };
  let isRead = false;
  parts.feed.onChange((state, info) => {
    desired = state;
    isRead = info.isRead;
    api.podsChanged();
  });
  kubelet.onChange(() => api.podsChanged());
  parts.workloads.onSync(() => {
    api.releaseAdopted((uid) => parts.workloads.hasTakenOver(uid));
    api.deleteExpired((uid) => parts.workloads.isExpired(uid));
    api.podsChanged();
  });
  context.recorder.onRecord(() => api.eventRecorded());
  await api.start({
    view: {
      pods: () => kubelet.pods(),
      isThere: (uid) => kubelet.worker(uid) !== undefined,
      originOf: (kind, metadata) => {
        const pod = kubelet.desiredPods.find((it) => kind === "Pod" && it.pod.metadata.uid === metadata.uid);
        const { file, line } = pod?.location ?? desired.locations?.[objectKey(kind, metadata)] ?? {};
        return file !== undefined && line !== undefined ? `${file}:${line}` : pod?.origin;
      },
      desired: () => desired,
      forget: (key) => parts.feed.forget(key as RunnableKey),
      deleteClaim: (fullName) => parts.workloads.deleteClaim(fullName),
      userOfClaim: (fullName) => parts.workloads.userOfClaim(fullName),
      isInUse: (kind, metadata) =>
        kind === "PersistentVolume"
          ? isBound(parts.workloads.reader.statusOf(kind, { metadata }))
          : isClaimUsed(kubelet, metadata),
      arePodsKnown: () => kubelet.isSynced && isRead,
      isOfWorkload: (uid) => parts.workloads.hasPod(uid),
      deleteOfWorkload: (uid, graceSeconds) => parts.workloads.deletePod(uid, { graceSeconds }),
      derivedObjects: () => parts.workloads.reader.derivedObjects(),
      identityOf: (kind, metadata) => parts.workloads.reader.identityOf(kind, metadata),
      workloadStatus: (kind, object) =>
        parts.workloads.reader.statusOf(kind, object as { metadata: ObjectMeta; spec?: unknown }),
      workloadAnnotations: (kind, object) =>
        parts.workloads.reader.annotationsOf(kind, object as { metadata: ObjectMeta }),
      events: () => view.events(),
      node: () => servers.node(),
      setUnschedulable: (isUnschedulable) => {
        const assigned = kubelet.pods().map(({ metadata }) => metadata.uid ?? "");
        if (parts.cordon?.set(isUnschedulable, assigned)) kubelet.refresh();
      },
    },
    healthChecks: () => view.healthChecks(),
    extras: buildRoutes(api, parts, view, servers),
  });
}

/** Whether a desired pod, or one that still terminates, has a volume of the claim. */
const isClaimUsed = (kubelet: AssembledKubelet["kubelet"], claim: ObjectMeta): boolean =>
  kubelet.desiredPods.some(({ pod, claims }) => usesClaim(pod, claims, claim)) ||
  [...kubelet.workers()].some(({ revision }) => revision && usesClaim(revision.pod, revision.claims, claim));

const isBound = (status: object | undefined): boolean =>
  status !== undefined && "phase" in status && status.phase === "Bound";

/** Paths that lead into containers, to the kubelet's own answers and to its measurements. */
function buildRoutes(
  api: LocalApi,
  { context, engine, kubelet, imageUpdates }: AssembledKubelet,
  view: KubeletView,
  servers: Servers,
): ExtraRoute[] {
  const { clock, logger, node, options } = context;
  const refresh = () => api.refreshPods();
  return [
    ...podRoutes({
      store: api.store,
      refresh,
      containers: engine.containers,
      dialPod,
      addressOf: ({ metadata, status }) => {
        const facts = view.podFacts().find(({ uid }) => uid === metadata.uid);
        if (!facts || !status?.podIP) return undefined;
        return {
          ip: status.podIP,
          hostNetwork: facts.hostNetwork,
          sandboxId: facts.sandbox.id,
          sandboxPid: facts.sandbox.pid,
        };
      },
      clock,
      logger,
      idleTimeoutMs: options.streamingConnectionIdleTimeoutMs,
    }),
    ...updateRoutes(imageUpdates),
    restartRoute({ store: api.store, refresh, restartPod: (uid) => kubelet.restartPod(uid) }),
    ephemeralContainersRoute({
      store: api.store,
      refresh,
      read: (bytes) => readSubmitted(context, bytes, true),
      setEphemeralContainers: (uid, containers) => kubelet.setEphemeralContainers(uid, containers),
    }),
    ...nodeRoutes({
      nodeName: node.name,
      store: api.store,
      registry: api.registry,
      deleter: api.deleter,
      refresh,
      kubelet: async (request, path) => {
        const response = await servers.respond({
          method: request.method,
          path,
          query: request.query,
          header: request.header,
          signal: request.signal,
          text: async () => Buffer.from(await request.body()).toString("utf8"),
        });
        const { status, headers, body } = response;
        return { status, headers, body: body instanceof Blob ? new Uint8Array(await body.arrayBuffer()) : body };
      },
    }),
  ];
}

/** How this program is started again: a compiled binary by its path, a script by Bun with the script. */
export function ownCommand(): string[] {
  const script = process.argv[1] ?? "";
  return script.startsWith("/$bunfs/") ? [process.execPath] : [process.execPath, script];
}

/** Certificates are made by a process of their own, because the library takes 20 MB once it is loaded. */
export const certificateStore = ({ background }: NodeContext): CertificateStore => ({
  files: background.textFiles,
  makeCertificate: (request) => makeSelfSigned(ownCommand(), request),
});

function versionInfo(): VersionInfo {
  const { major, minor } = KUBERNETES_VERSION;
  return {
    major,
    minor,
    gitVersion: `v${major}.${minor}.0+kubelet-ts.${buildInfo.version}`,
    gitCommit: buildInfo.gitCommit,
    gitTreeState: buildInfo.gitTreeState,
    buildDate: buildInfo.buildDate,
    goVersion: `bun${Bun.version}`,
    compiler: "bun",
    platform: `linux/${process.arch === "x64" ? "amd64" : process.arch}`,
  };
}

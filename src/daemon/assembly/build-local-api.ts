import { ephemeralContainersRoute } from "../../apiserver/node/ephemeral-containers.ts";
import { LocalApi } from "../../apiserver/node/local-api.ts";
import { nodeRoutes, restartRoute, updateRoutes } from "../../apiserver/node/node-routes.ts";
import { NodeView } from "../../apiserver/node/node-view.ts";
import { podRoutes } from "../../apiserver/node/pod-routes.ts";
import type { VersionInfo } from "../../apiserver/non-resource-paths.ts";
import { SOURCE_ID } from "../../apiserver/storage/submitted-objects.ts";
import { dialPod } from "../../base/host/pod-dialer.ts";
import { toTlsVersions } from "../../config/cipher-suites.ts";
import { NodeCordon } from "../../kubelet/node-cordon.ts";
import { makeSelfSigned } from "../../server/certificates/certificate-process.ts";
import { PodStreams } from "../../server/pod-streams.ts";
import type { Servers } from "../../server/servers.ts";
import type { CertificateStore } from "../../server/serving-certificate.ts";
import type { KubeletView } from "../../server/view.ts";
import { buildInfo, KUBERNETES_VERSION } from "../version.ts";
import type { AssembledKubelet } from "./assembled-kubelet.ts";
import { type NodeContext, openStateFile } from "./node-context.ts";
import { CordonSchema, ResourceVersionSchema } from "./state-schemas.ts";

/** The store and the writers of the local API; nothing listens yet. */
export function buildLocalApi(context: NodeContext): LocalApi {
  const { options, node, clock, logger, background } = context;
  return new LocalApi({
    options,
    tlsVersions: toTlsVersions(options.tlsMinVersion, options.tlsCipherSuites),
    node,
    clock,
    logger,
    version: versionInfo(),
    mark: openStateFile(context, "resource-version", ResourceVersionSchema, { durable: true }),
    background,
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
  workloads.onSync(() => {
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

/** Files of certificates, and the process that makes them. */
export const certificateStore = ({ background }: NodeContext): CertificateStore => ({
  files: background.textFiles,
  makeCertificate: makeSelfSigned,
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

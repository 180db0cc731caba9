import { join } from "node:path";
import { SYSTEM_FILE_BYTES } from "../../base/files/bounded-read.ts";
import { findSocketUser } from "../../base/host/port-holder.ts";
import { toTlsVersions } from "../../config/cipher-suites.ts";
import { isLoopback } from "../../server/host-header.ts";
import type { ReadNodeFacts } from "../../server/node-object.ts";
import type { ListenerTls } from "../../server/node-transport.ts";
import { PageFeed } from "../../server/page/page-feed.ts";
import { PageRoutes } from "../../server/page/page-routes.ts";
import { ensurePageSecret, PageSessions } from "../../server/page/page-session.ts";
import { KeptHistory, UsageRecorder } from "../../server/page/usage-history.ts";
import type { Page } from "../../server/servers.ts";
import { readTlsMaterial, type TlsMaterial } from "../../server/serving-certificate.ts";
import type { KubeletView } from "../../server/view.ts";
import type { NodeStats } from "../../stats/node-stats.ts";
import type { AssembledKubelet } from "./assemble-kubelet.ts";
import { certificateStore, type NodeContext } from "./node-context.ts";
import { NodeActions } from "./page-actions.ts";
import { KubeletPage } from "./page-source.ts";

/** The page of the cAdvisor port. */
export function buildPage(
  parts: AssembledKubelet,
  view: KubeletView,
  stats: NodeStats,
  nodeFacts: ReadNodeFacts,
): Page {
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
    tls: isLocal ? undefined : pageTls(context),
    stop: () => {
      feed.stop();
      history.stop();
    },
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

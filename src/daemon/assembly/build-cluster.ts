import type { ClusterNode } from "../../cluster/cluster-node.ts";
import { isStaticPod } from "../../manifest/identity.ts";
import { makeSigningRequest } from "../../server/certificates/certificate-process.ts";
import type { Servers } from "../../server/servers.ts";
import { CheckpointStore } from "../../sources/checkpoint-store.ts";
import { proxyFor } from "../../sources/proxy.ts";
import { probeVersion } from "../version.ts";
import type { AssembledKubelet } from "./assembled-kubelet.ts";
import { type NodeContext, openStateFile } from "./node-context.ts";
import { RuntimeClassesSchema, ServicesSchema } from "./state-schemas.ts";

/**
 * The node of a cluster; undefined without --kubeconfig, and then nothing of it is loaded.
 * @throws SettingsError when the kubeconfig cannot be used
 */
export async function buildCluster(context: NodeContext): Promise<ClusterNode | undefined> {
  const { options, node, clock, logger, background } = context;
  if (options.kubeconfig === "" || options.runOnce) return undefined;
  const { ClusterNode } = await import("../../cluster/cluster-node.ts");
  const dir = `${options.rootDir}/checkpoints`;
  const checkpoints = new CheckpointStore({
    dir,
    nodeName: node.name,
    clock,
    logger,
    replaceFile: background.tasks.replaceFile,
  });
  return new ClusterNode({
    options,
    nodeName: node.name,
    clock,
    logger,
    userAgent: `kubelet-ts/${probeVersion} (linux/${process.arch === "x64" ? "amd64" : process.arch})`,
    proxyFor: (url) => proxyFor(url, context.environment),
    loadCheckpoint: (id) => checkpoints.load(id),
    storedServices: openStateFile(context, "services", ServicesSchema),
    storedRuntimeClasses: openStateFile(context, "runtime-classes", RuntimeClassesSchema),
    makeSigningRequest,
  });
}

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

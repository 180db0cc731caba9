import type { ServiceHosts } from "../../controllers/service-hosts.ts";
import { WorkloadManager } from "../../controllers/workload-manager.ts";
import type { Kubelet } from "../../kubelet/kubelet.ts";
import { ManifestEvents } from "../../kubelet/manifest-events.ts";
import type { PodRuntimeManager } from "../../kubelet/pod-runtime-manager.ts";
import { computeNodeLabels } from "../../plan/node-affinity.ts";
import type { DesiredStateFeed } from "../../sources/desired-state-feed.ts";
import { describeFinding } from "../../sources/source-set.ts";
import type { SecretValues } from "../secret-values.ts";
import { type NodeContext, openStateFile } from "./node-context.ts";
import { WorkloadsSchema } from "./state-schemas.ts";

/** The controllers of workloads, between the sources and the kubelet. */
export function buildWorkloads(
  context: NodeContext,
  kubelet: Kubelet,
  runtime: PodRuntimeManager,
  services: ServiceHosts,
  feed: Pick<DesiredStateFeed, "rejections">,
  secretValues: SecretValues,
): WorkloadManager {
  const { clock, logger, node, options, recorder } = context;
  const clusterDns = () => options.clusterDns;
  const events = new ManifestEvents({ recorder, nodeName: node.name, clusterDns });
  return new WorkloadManager({
    clock,
    logger,
    recorder,
    nodeName: node.name,
    nodeLabels: computeNodeLabels(node.name, process.arch === "x64" ? "amd64" : process.arch, options.nodeLabels),
    comparesAllLabels: options.validate === "strict",
    file: openStateFile(context, "workloads", WorkloadsSchema, { durable: true }),
    kubelet,
    services,
    rewriteHosts: (pod, podIps) => runtime.rewriteHostsFile(pod, podIps),
    publish: (state, isComplete) => {
      const refused = feed.rejections().filter(({ stalePods }) => stalePods.length === 0);
      events.observe(
        state,
        refused.map(({ finding }) => ({ file: finding.file, message: describeFinding(finding) })),
      );
      secretValues.setDesired(state, isComplete);
    },
  });
}

import { LoopLagMonitor } from "../../base/concurrency/loop-lag-monitor.ts";
import { ARCHITECTURE, readNodeInfo, readNodeName } from "../../base/host/node-info.ts";
import { readKeptNames } from "../../base/host/node-name.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Owner } from "../../base/model/container-engine.ts";
import type { Logger } from "../../base/model/logger.ts";
import type { NodeInfo } from "../../base/model/node.ts";
import type { KubeletOptions } from "../../config/option-table.ts";
import { computeRootHash } from "../../docker/labels.ts";
import type { PodEventRecorder } from "../../kubelet/event-recorder.ts";
import { computeAllocatableDisk, computeNodeAllocatable } from "../../plan/admission.ts";
import type { NodeAllocatable } from "../../plan/downward-api.ts";
import { computeNodeLabels } from "../../plan/node-affinity.ts";
import { makeSelfSigned } from "../../server/certificates/certificate-process.ts";
import type { CertificateStore } from "../../server/serving-certificate.ts";
import { readCapacity } from "../../stats/disk-usage.ts";
import type { KubeletMetrics } from "../../stats/metrics/kubelet-metrics.ts";
import { BackgroundThreads } from "../background/background-threads.ts";
import { MetricsRecorder } from "../metrics-recorder.ts";

export interface NodeContextInput {
  options: KubeletOptions;
  /** As the process was started with it. */
  environment: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  logger: Logger;
  recorder: PodEventRecorder;
}

/** The dependencies of every subsystem. */
export interface NodeContext extends NodeContextInput {
  node: NodeInfo;
  owner: Owner;
  allocatable: NodeAllocatable;
  metrics: KubeletMetrics;
  metricsRecorder: MetricsRecorder;
  loopLag: LoopLagMonitor;
  background: BackgroundThreads;
}

/** Reads the facts of this machine; does not talk to the engine. */
export async function readNodeContext(input: NodeContextInput): Promise<NodeContext> {
  const { options, clock } = input;
  const name = readNodeName(options.hostnameOverride);
  const kept = readKeptNames(options.rootDir, name);
  const node: NodeInfo = { ...readNodeInfo(name, options.nodeIp), formerNames: kept.former };
  const background = new BackgroundThreads(clock);
  const disk = await readCapacity(options.rootDir, background.slot);
  const metricsRecorder = new MetricsRecorder(name, clock);
  return {
    ...input,
    node,
    owner: { nodeName: kept.owner, rootHash: computeRootHash(options.rootDir) },
    allocatable: {
      ...computeNodeAllocatable(node, options),
      ephemeralStorageBytes: disk ? computeAllocatableDisk(disk.capacityBytes, options) : 0,
    },
    metrics: metricsRecorder.kubelet,
    metricsRecorder,
    loopLag: new LoopLagMonitor(clock),
    background,
  };
}

/** Some options under other names, read at each use: they may change while the kubelet runs. */
export function liveOptions<const M extends Record<string, keyof KubeletOptions>>(
  options: KubeletOptions,
  names: M,
): { readonly [K in keyof M]: KubeletOptions[M[K]] } {
  const getters = Object.entries(names).map(([name, option]) => [
    name,
    { get: () => options[option], enumerable: true },
  ]);
  return Object.defineProperties({}, Object.fromEntries(getters)) as { [K in keyof M]: KubeletOptions[M[K]] };
}

/** Files of certificates, and the process that makes them. */
export const certificateStore = ({ background }: NodeContext): CertificateStore => ({
  files: background.repeatedFiles,
  makeCertificate: makeSelfSigned,
});

/** The labels of this node. */
export const nodeLabelsOf = ({ node, options }: NodeContext): Record<string, string> =>
  computeNodeLabels(node.name, ARCHITECTURE, options.nodeLabels);

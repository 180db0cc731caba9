import type { LocalApi } from "../../apiserver/node/local-api.ts";
import type { Listeners } from "../../base/concurrency/listeners.ts";
import type { PodNetworks } from "../../base/model/pod-networks.ts";
import type { ContainerId } from "../../base/model/pod-snapshot.ts";
import type { ClusterNode } from "../../cluster/cluster-node.ts";
import type { WorkloadManager } from "../../controllers/workload-manager.ts";
import type { DockerEngine } from "../../docker/docker-engine.ts";
import type { ImageGcManager } from "../../kubelet/images/image-gc-manager.ts";
import type { ImageUpdateManager } from "../../kubelet/images/image-update-manager.ts";
import type { Kubelet } from "../../kubelet/kubelet.ts";
import type { NodeCordon } from "../../kubelet/node-cordon.ts";
import type { ProbeManager } from "../../kubelet/prober/probe-manager.ts";
import type { VolumeManager } from "../../kubelet/volumes/volume-manager.ts";
import type { ProbeLog } from "../../server/page/probe-log.ts";
import type { DesiredStateFeed } from "../../sources/desired-state-feed.ts";
import type { SecretValues } from "../secret-values.ts";
import type { NodeContext } from "./node-context.ts";
import type { PodAdmission } from "./pod-admission.ts";

/** All subsystems of a kubelet, built but not yet running. */
export interface AssembledKubelet {
  context: NodeContext;
  engine: DockerEngine;
  kubelet: Kubelet;
  /** Turns workloads into pods, between the sources and the kubelet. */
  workloads: WorkloadManager;
  /** Completes Secrets with values of files, between the workloads and the kubelet. */
  secretValues: SecretValues;
  feed: DesiredStateFeed;
  /** The cluster this machine is a node of; undefined without --kubeconfig. */
  cluster: ClusterNode | undefined;
  /** The Kubernetes API of this node; undefined when pods run once, and for a node of a cluster. */
  localApi: LocalApi | undefined;
  /** undefined without a local API. */
  cordon: NodeCordon | undefined;
  imageUpdates: ImageUpdateManager;
  imageGc: ImageGcManager;
  volumes: VolumeManager;
  networks: PodNetworks;
  probes: ProbeManager;
  /** Last answers of each probe. */
  probeLog: ProbeLog;
  admission: PodAdmission;
  /** Containers and sandboxes that ran out of memory, as the engine reports it. */
  oomEvents: Listeners<ContainerId>;
  /** Loads the archives of `--images-dir` before anything is pulled. Rejects only when the signal aborts. */
  preload: (signal: AbortSignal) => Promise<void>;
  /** One attempt to reach the engine. @throws DockerUnreachableError, DockerError, DockerProtocolError, MisconfigurationError */
  connect: (signal: AbortSignal) => Promise<void>;
}

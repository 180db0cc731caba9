import type { LocalApi } from "../../apiserver/node/local-api.ts";
import type { ClusterNode } from "../../cluster/cluster-node.ts";
import { Listeners } from "../../concurrency/listeners.ts";
import type { DockerClient } from "../../docker/docker-client.ts";
import type { ImageGcManager } from "../../kubelet/images/image-gc-manager.ts";
import type { Kubelet } from "../../kubelet/kubelet.ts";
import { PodManager } from "../../kubelet/pod-manager.ts";
import type { PodUID } from "../../model/identity.ts";
import type { EngineInfo } from "../../model/node.ts";
import type { PodNetworks } from "../../model/pod-networks.ts";
import type { ContainerId } from "../../model/pod-snapshot.ts";
import { ProbeLog } from "../../pageserver/probe-log.ts";
import type { ProbeManager } from "../../prober/probe-manager.ts";
import { ImageInventory } from "../../runtime/image-inventory.ts";
import type { ImageManager } from "../../runtime/image-manager.ts";
import type { ImageProgress } from "../../runtime/pull-progress.ts";
import type { DesiredStateFeed } from "../../sources/desired-state-feed.ts";
import type { VolumeManager } from "../../volumes/volume-manager.ts";
import { ServiceHosts } from "../../workloads/service-hosts.ts";
import type { WorkloadManager } from "../../workloads/workload-manager.ts";
import { buildCgroups } from "./build-cgroups.ts";
import { buildCluster } from "./build-cluster.ts";
import { buildImageGc, buildImageManager, preloadImageArchives } from "./build-images.ts";
import { buildKubelet } from "./build-kubelet.ts";
import { buildLocalApi } from "./build-local-api.ts";
import { buildManifestFeed } from "./build-manifest-feed.ts";
import { buildNetworks, takeUpNetworks } from "./build-networks.ts";
import { buildProbes } from "./build-probes.ts";
import { buildLogLinks, buildRuntimeManager } from "./build-runtime-manager.ts";
import { buildVolumeEngine, buildVolumes } from "./build-volumes.ts";
import { buildWorkloads } from "./build-workloads.ts";
import { buildEngineConnection, type NodeContext, type NodeContextInput, readNodeContext } from "./node-context.ts";
import { PodAdmission } from "./pod-admission.ts";

export interface AssembleInput extends NodeContextInput {
  /** Manifests given as arguments: absolute paths, URLs, `-`. */
  manifests: readonly string[];
  onPullProgress?: (progress: ImageProgress) => void;
}

/** All subsystems of a kubelet, built but not yet running. */
export interface AssembledKubelet {
  context: NodeContext;
  client: DockerClient;
  kubelet: Kubelet;
  /** Turns workloads into pods, between the sources and the kubelet. */
  workloads: WorkloadManager;
  feed: DesiredStateFeed;
  /** The cluster this machine is a node of; undefined without --kubeconfig. */
  cluster: ClusterNode | undefined;
  /** The Kubernetes API of this node; undefined when pods run once, and for a node of a cluster. */
  localApi: LocalApi | undefined;
  images: ImageManager;
  imageGc: ImageGcManager;
  imageInventory: ImageInventory;
  volumes: VolumeManager;
  networks: PodNetworks;
  probes: ProbeManager;
  /** Last answers of each probe. */
  probeLog: ProbeLog;
  admission: PodAdmission;
  /** Containers and sandboxes that ran out of memory, as the engine reports it. */
  oomEvents: Listeners<ContainerId>;
  /** Facts of the engine; undefined before {@link AssembledKubelet.connect} has resolved. */
  engineIfKnown: () => EngineInfo | undefined;
  /** Why the engine was never reached; undefined once it was. */
  connectError: () => string | undefined;
  /** Loads the archives of `--images-dir` before anything is pulled. Rejects only when the signal aborts. */
  preload: (signal: AbortSignal) => Promise<void>;
  /** One attempt to reach the engine. @throws DockerUnreachableError, DockerError, DockerProtocolError, MisconfigurationError */
  connect: (signal: AbortSignal) => Promise<void>;
}

/** Builds one subsystem after the other. Reads and writes below the root directory but does not talk to the engine. */
export async function assembleKubelet(input: AssembleInput): Promise<AssembledKubelet> {
  const context = await readNodeContext(input);
  const engine = buildEngineConnection(context);
  const { client } = engine;
  const cluster = await buildCluster(context);
  const podManager = new PodManager();
  const images = buildImageManager(context, engine, input.onPullProgress);
  const volumeEngine = buildVolumeEngine(context, engine, images, podManager);
  const volumes = await buildVolumes(context, volumeEngine, cluster);
  const cgroups = buildCgroups(context, engine, podManager);
  const logLinks = buildLogLinks(context, engine);
  const networks = buildNetworks(context);
  const serviceHosts = new ServiceHosts(context.options.clusterDomain);
  const services = buildRuntimeManager(context, engine, {
    images,
    volumes,
    cgroups,
    logLinks,
    networks,
    serviceHosts,
    ...(cluster && { serviceEnvironmentOf: (pod) => cluster.serviceEnvironmentOf(pod) }),
  });
  const probeChanges = new Listeners<PodUID>();
  const probeLog = new ProbeLog();
  const probes = buildProbes(context, client, probeChanges, probeLog);
  const admission = new PodAdmission(context, engine);
  const oomEvents = new Listeners<ContainerId>();
  const kubelet = buildKubelet(context, engine, {
    podManager,
    images,
    services,
    networks,
    probes,
    admission,
    oomEvents,
  });
  probeChanges.add((uid) => kubelet.worker(uid)?.wake());
  const imageGc = buildImageGc(context, engine, images, kubelet);
  const localApi = input.options.runOnce || cluster ? undefined : buildLocalApi(context);
  const feed = buildManifestFeed(context, input.manifests, cluster?.source ?? localApi?.submitted);
  return {
    context,
    client,
    kubelet,
    cluster,
    localApi,
    workloads: buildWorkloads(context, kubelet, services, serviceHosts, feed),
    feed,
    images,
    imageGc,
    imageInventory: new ImageInventory(client, context.clock),
    volumes,
    networks,
    probes,
    probeLog,
    admission,
    oomEvents,
    engineIfKnown: () => engine.infoIfKnown,
    connectError: () => engine.connectError,
    preload: (signal) => preloadImageArchives(context, engine, imageGc, signal),
    connect: async (signal) => {
      await engine.connect(signal);
      await volumeEngine.removeLeftovers(signal);
      logLinks.sweep();
      await takeUpNetworks(context, client, networks, signal);
      cgroups.oomGroup.check();
      if (!engine.info().negativeOomScores) {
        context.logger.warn("The kernel refuses negative OOM scores (no CAP_SYS_RESOURCE): containers get 0 instead");
      }
    },
  };
}

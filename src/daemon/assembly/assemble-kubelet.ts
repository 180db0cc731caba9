import { Listeners } from "../../base/concurrency/listeners.ts";
import { lookUpName } from "../../base/host/look-up-name.ts";
import type { PodUID } from "../../base/model/identity.ts";
import type { ContainerId } from "../../base/model/pod-snapshot.ts";
import { ExternalNames } from "../../controllers/external-names.ts";
import { ServiceHosts } from "../../controllers/service-hosts.ts";
import { ImageInventory } from "../../docker/image-inventory.ts";
import type { ImageProgress } from "../../docker/pull-progress.ts";
import { PodManager } from "../../kubelet/pod-manager.ts";
import { ProbeLog } from "../../server/page/probe-log.ts";
import { SecretValues } from "../secret-values.ts";
import type { AssembledKubelet } from "./assembled-kubelet.ts";
import { buildCgroups } from "./build-cgroups.ts";
import { buildCluster } from "./build-cluster.ts";
import { buildImageUpdates } from "./build-image-updates.ts";
import { buildImageCredentials, buildImageGc, buildImageManager, preloadImageArchives } from "./build-images.ts";
import { buildKubelet } from "./build-kubelet.ts";
import { buildCordon, buildLocalApi } from "./build-local-api.ts";
import { buildManifestFeed } from "./build-manifest-feed.ts";
import { adoptNetworks, buildNetworks } from "./build-networks.ts";
import { buildProbes } from "./build-probes.ts";
import { buildLogLinks, buildRuntimeManager } from "./build-runtime-manager.ts";
import { buildVolumeEngine, buildVolumes } from "./build-volumes.ts";
import { buildWorkloads } from "./build-workloads.ts";
import { buildEngineConnection, type NodeContextInput, readNodeContext } from "./node-context.ts";
import { PodAdmission } from "./pod-admission.ts";

interface AssembleInput extends NodeContextInput {
  /** Manifests given as arguments: absolute paths, URLs, `-`. */
  manifests: readonly string[];
  onPullProgress?: (progress: ImageProgress) => void;
}

/** Builds one subsystem after the other. Reads and writes below the root directory but does not talk to the engine. */
export async function assembleKubelet(input: AssembleInput): Promise<AssembledKubelet> {
  const context = await readNodeContext(input);
  const engine = buildEngineConnection(context);
  const { client } = engine;
  const cluster = await buildCluster(context);
  const podManager = new PodManager();
  const credentials = buildImageCredentials(context);
  const images = buildImageManager(context, engine, credentials, input.onPullProgress);
  const volumeEngine = buildVolumeEngine(context, engine, images, podManager);
  const volumes = await buildVolumes(context, volumeEngine, podManager, cluster);
  const cgroups = buildCgroups(context, engine, podManager, cluster);
  const logLinks = buildLogLinks(context, engine);
  const networks = buildNetworks(context);
  const { clock, logger } = context;
  const externalNames = new ExternalNames({ clock, logger, lookUp: lookUpName });
  const serviceHosts = new ServiceHosts(context.options.clusterDomain, externalNames);
  const services = buildRuntimeManager(context, engine, {
    images,
    volumes,
    cgroups,
    logLinks,
    networks,
    serviceHosts,
    ...(cluster && {
      serviceEnvironmentOf: (pod) => cluster.serviceEnvironmentOf(pod),
      runtimeHandlerOf: (pod) => cluster.runtimeHandlerOf(pod),
    }),
  });
  const probeChanges = new Listeners<PodUID>();
  const probeLog = new ProbeLog();
  const probes = buildProbes(context, client, probeChanges, probeLog);
  const admission = new PodAdmission(context, engine);
  const oomEvents = new Listeners<ContainerId>();
  const imageChanges = new Listeners();
  const imageUpdates = buildImageUpdates(context, engine, {
    images,
    credentials,
    volumes,
    onChange: () => imageChanges.emit(),
  });
  const hasLocalApi = !input.options.runOnce && !cluster;
  const cordon = hasLocalApi ? buildCordon(context) : undefined;
  const kubelet = buildKubelet(context, engine, {
    podManager,
    images,
    services,
    networks,
    probes,
    admission,
    oomEvents,
    imageUpdates,
    cordon,
  });
  probeChanges.add((uid) => kubelet.worker(uid)?.wake());
  imageChanges.add(() => kubelet.refresh());
  const imageGc = buildImageGc(context, engine, images, kubelet, imageUpdates);
  const localApi = hasLocalApi ? buildLocalApi(context) : undefined;
  const feed = buildManifestFeed(context, input.manifests, cluster?.source ?? localApi?.submitted);
  const secretValues = new SecretValues({
    logger: context.logger,
    credentialsDir: context.environment.CREDENTIALS_DIRECTORY || undefined,
    readBytes: context.background.tasks.readBytes,
    publish: (state, isComplete) => kubelet.setDesired(state, isComplete),
  });
  return {
    context,
    client,
    kubelet,
    secretValues,
    cluster,
    localApi,
    cordon,
    workloads: buildWorkloads(context, kubelet, services, serviceHosts, feed, secretValues),
    feed,
    images,
    imageUpdates,
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
      await adoptNetworks(context, client, networks, signal);
      cgroups.oomGroup.check();
      if (!engine.info().negativeOomScores) {
        context.logger.warn("The kernel refuses negative OOM scores (no CAP_SYS_RESOURCE): containers get 0 instead");
      }
    },
  };
}

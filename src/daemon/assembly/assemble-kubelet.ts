import { Listeners } from "../../base/concurrency/listeners.ts";
import { lookUpName } from "../../base/host/look-up-name.ts";
import type { ContainerId } from "../../base/model/pod-snapshot.ts";
import { encryptionOf } from "../../base/text/age-text.ts";
import { ExternalNames } from "../../controllers/external-names.ts";
import { ServiceHosts } from "../../controllers/service-hosts.ts";
import type { ImageProgress } from "../../docker/image-manager.ts";
import { PodManager } from "../../kubelet/pod-manager.ts";
import type { ReadManifestOptions } from "../../manifest/manifest-result.ts";
import { readManifest } from "../../manifest/read-manifest.ts";
import { ProbeLog } from "../../server/page/probe-log.ts";
import { buildFeed } from "../../sources/build-sources.ts";
import type { FeedSource } from "../../sources/checkpoint-store.ts";
import type { DesiredStateFeed } from "../../sources/desired-state-feed.ts";
import { ManifestChangeCheck } from "../../sources/manifest-change-check.ts";
import { proxyFor } from "../../sources/proxy.ts";
import { SecretValues } from "../secret-values.ts";
import type { AssembledKubelet } from "./assembled-kubelet.ts";
import { buildCluster } from "./build-cluster.ts";
import { buildImageGc, buildImageUpdates, preloadImageArchives } from "./build-images.ts";
import { buildKubelet, buildProbes } from "./build-kubelet.ts";
import { buildCordon, buildLocalApi } from "./build-local-api.ts";
import { buildPodServices } from "./build-pod-services.ts";
import { buildWorkloads } from "./build-workloads.ts";
import { type NodeContext, type NodeContextInput, readNodeContext } from "./node-context.ts";
import { PodAdmission } from "./pod-admission.ts";

interface AssembleInput extends NodeContextInput {
  /** Manifests given as arguments: absolute paths, URLs, `-`. */
  manifests: readonly string[];
  onPullProgress?: (progress: ImageProgress) => void;
}

/** Builds one subsystem after the other. Reads and writes below the root directory but does not talk to the engine. */
export async function assembleKubelet(input: AssembleInput): Promise<AssembledKubelet> {
  const context = await readNodeContext(input);
  const cluster = await buildCluster(context);
  const podManager = new PodManager();
  const { clock, logger } = context;
  const externalNames = new ExternalNames({ clock, logger, lookUp: lookUpName });
  const serviceHosts = new ServiceHosts(context.options.clusterDomain, externalNames);
  const { onPullProgress } = input;
  const parts = await buildPodServices(context, { podManager, cluster, serviceHosts, onPullProgress });
  const { engine, credentials, volumes, networks, services, connect } = parts;
  const probeLog = new ProbeLog();
  const probes = buildProbes(context, engine, probeLog);
  const admission = new PodAdmission(context, engine);
  const oomEvents = new Listeners<ContainerId>();
  const imageUpdates = buildImageUpdates(context, engine, credentials, volumes);
  const hasLocalApi = !input.options.runOnce && !cluster;
  const cordon = hasLocalApi ? buildCordon(context) : undefined;
  const kubelet = buildKubelet(context, engine, {
    podManager,
    services,
    probes,
    admission,
    oomEvents,
    imageUpdates,
    cordon,
  });
  probes.changes.add(({ uid }) => kubelet.worker(uid)?.wake());
  const imageGc = buildImageGc(context, engine, kubelet, imageUpdates);
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
    engine,
    kubelet,
    secretValues,
    cluster,
    localApi,
    cordon,
    workloads: buildWorkloads(context, kubelet, services, serviceHosts, feed, secretValues),
    feed,
    imageUpdates,
    imageGc,
    volumes,
    networks,
    probes,
    probeLog,
    admission,
    oomEvents,
    preload: (signal) => preloadImageArchives(context, engine, imageGc, signal),
    connect,
  };
}

/** A longer text takes more than some 10 ms, and is parsed in another thread. */
const LONG_MANIFEST_BYTES = 256 * 1024;

/**
 * @param manifests arguments of the command line: absolute paths, URLs, `-`
 * @param submitted pods of the cluster's API server, or objects of the local API; absent when pods run once
 */
function buildManifestFeed(
  { options, environment, node, clock, logger, background }: NodeContext,
  manifests: readonly string[],
  submitted?: FeedSource,
): DesiredStateFeed {
  const changeCheck = new ManifestChangeCheck(background.slot);
  return buildFeed({
    options,
    manifests,
    ...(submitted && { submitted }),
    nodeName: node.name,
    read: (bytes, file, source) => {
      const how: ReadManifestOptions = {
        file,
        nodeName: node.name,
        source,
        strictness: options.validate,
        allowPrivileged: options.allowPrivileged,
      };
      const { manifestIdentityFile } = options;
      return manifestIdentityFile !== "" && encryptionOf(bytes)
        ? background.tasks.readEncryptedManifest(bytes, how, manifestIdentityFile)
        : bytes.length > LONG_MANIFEST_BYTES
          ? background.tasks.readManifest(bytes, how)
          : readManifest(bytes, how);
    },
    readManifests: async (path, known) =>
      (await changeCheck.snapshotIfUnchanged(path, known)) ?? background.tasks.readManifests(path, known),
    replaceFile: background.tasks.replaceFile,
    files: background.textFiles,
    clock,
    logger,
    random: Math.random,
    proxyFor: (url) => proxyFor(url, environment),
  });
}

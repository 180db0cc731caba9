import { readBoundedText, SYSTEM_FILE_BYTES } from "../../base/files/whole-file.ts";
import { MachineLock } from "../../base/host/machine-lock.ts";
import { readMayLowerOomScores } from "../../base/host/node-info.ts";
import { OomGroup } from "../../base/host/oom-group.ts";
import { PodCgroups, runSystemctl } from "../../base/host/pod-cgroups.ts";
import type { ImageProgress } from "../../base/model/container-engine.ts";
import { nodeTarget, type PodEvent } from "../../base/model/pod-event.ts";
import type { PodNetworks } from "../../base/model/pod-networks.ts";
import { messageOf } from "../../base/text/error-message.ts";
import type { ClusterNode } from "../../cluster/cluster-node.ts";
import { computeClaimBytes } from "../../controllers/claims.ts";
import type { ServiceManager } from "../../controllers/service-manager.ts";
import { DockerEngine } from "../../docker/docker-engine.ts";
import { CredentialProviders, ImageCredentials } from "../../docker/image-credentials.ts";
import { CniNetworks } from "../../kubelet/cni/cni-networks.ts";
import { ImageManager } from "../../kubelet/images/image-manager.ts";
import { LogLinks } from "../../kubelet/log-links.ts";
import { PodCgroupManager } from "../../kubelet/pod-cgroup-manager.ts";
import { PodFiles } from "../../kubelet/pod-files.ts";
import { PodHookRunner } from "../../kubelet/pod-hook-runner.ts";
import type { PodManager } from "../../kubelet/pod-records.ts";
import { PodRuntimeManager, PodSandboxes } from "../../kubelet/pod-runtime-manager.ts";
import { canMount, Mounter } from "../../kubelet/volumes/mounter.ts";
import { VolumeManager } from "../../kubelet/volumes/volume-manager.ts";
import type { VolumeHost } from "../../kubelet/volumes/volume-plugins.ts";
import { isStaticPod } from "../../manifest/defaults.ts";
import { parseCgroupMounts } from "../../stats/cgroups/cgroup-layout.ts";
import { countOperation } from "../../stats/metrics/kubelet-metrics.ts";
import { refuseOtherEngine, writeRemovalSettings } from "../removal-settings.ts";
import { probeVersion } from "../version.ts";
import type { NodeContext } from "./node-context.ts";

/** Lines of a log that become a termination message. Source: the kubelet. */
const LOG_TAIL_LINES = 80;
/** Source: the kubelet's container manager. */
const NODE_BOUNDED: PodEvent = {
  type: "Normal",
  reason: "NodeAllocatableEnforced",
  message: "Updated Node Allocatable limit across pods",
};

interface PodServicesInput {
  podManager: PodManager;
  /** The cluster this machine is a node of. */
  cluster?: ClusterNode | undefined;
  /** Names and variables of Services; absent: there are none. */
  serviceManager?: ServiceManager;
  onPullProgress?: ((progress: ImageProgress) => void) | undefined;
}

/**
 * The engine, and every step of a pod's life on it: sandbox, images, containers, hooks, volumes, cgroups, networks. Reads
 * and writes below the root directory, tests whether this process may mount, and does not talk to the engine.
 */
export async function buildPodServices(context: NodeContext, input: PodServicesInput) {
  const { options, environment, node, clock, logger, recorder, metrics, metricsRecorder, background } = context;
  const { cluster, serviceManager } = input;
  const hierarchies = parseCgroupMounts(readBoundedText("/proc/self/mountinfo", SYSTEM_FILE_BYTES));
  const networks = buildNetworks(context);
  const oomGroup = new OomGroup({
    hierarchies,
    cgroupVersion: () => engine.info().cgroupVersion,
    singleProcess: options.singleProcessOomKill,
    log: logger,
  });
  const credentials = buildImageCredentials(context);
  const engine = new DockerEngine({
    ...context,
    endpoint: options.dockerEndpoint,
    timeoutMs: options.runtimeRequestTimeoutMs,
    killExecProcesses: background.tasks.killExecProcesses,
    mayLowerOomScores: readMayLowerOomScores,
    pods: {
      networks,
      onOperation: (...operation) => countOperation(metrics, ...operation),
      onStarted: async (id, signal) => {
        if (!oomGroup.isWanted) return;
        // A container that has been removed already needs no setting.
        const pid = await engine.pods.pidOf(id, signal).catch(() => 0);
        if (pid) oomGroup.apply(pid);
      },
      onRemoved: (uid, id) => cgroups.endContainer(uid, id),
    },
  });
  const cgroupVersion = () => engine.info().cgroupVersion;
  const podCgroups = new PodCgroups({ hierarchies, cgroupVersion, log: logger, systemctl: runSystemctl });
  const qosLock = new MachineLock(`kubepods${options.cgroupRoot}`);
  const onNodeBounded = cluster && (() => recorder.record(nodeTarget(node.name), NODE_BOUNDED));
  const cgroups = new PodCgroupManager(
    {
      ...context,
      cgroups: metricsRecorder.timeCgroups(podCgroups),
      engine: engine.info,
      node: () => node,
      pods: () => input.podManager.state.pods.map(({ pod }) => pod),
      ownsQosCgroups: () => qosLock.hold(),
    },
    onNodeBounded,
  );
  const images = new ImageManager({
    ...context,
    images: engine.images,
    credentials,
    limits: {
      maxParallel: options.serializeImagePulls ? 1 : options.maxParallelImagePulls,
      perSecond: options.registryPullQps,
      burst: options.registryBurst,
      progressDeadlineMs: options.imagePullProgressDeadlineMs,
    },
    onProgress: input.onPullProgress,
  });
  const volumes = await buildVolumes(context, engine, images, input);
  const logLinks = new LogLinks({
    podLogsDir: options.podLogsDir,
    containersLogsDir: options.containersLogsDir,
    engineLogPath: (id) => engine.logPathOf(id),
    log: logger,
    perform: background.tasks.performLogLinkTask,
  });
  const files = new PodFiles({
    ...context,
    files: background.tasks,
    serviceHosts: serviceManager,
    readLogTail: (id, signal) => engine.containers.logTail(id, LOG_TAIL_LINES, signal),
  });
  const services = new PodRuntimeManager(
    {
      ...context,
      info: node,
      engine: engine.info,
      ...(serviceManager && { serviceEnvironmentOf: (pod) => serviceManager.environmentOf(pod) }),
      ...(cluster && {
        runtimeHandlerOf: (pod) => cluster.runtimeClasses.handlerOf(pod),
        serviceEnvironmentOf: (pod) => cluster.services.environmentOf(pod),
      }),
    },
    {
      pods: engine.pods,
      sandboxes: new PodSandboxes({
        logger,
        pods: engine.pods,
        networks,
        ensurePauseImage: (signal) => engine.ensurePauseImage(signal, (image, stop) => images.pull(image, stop)),
      }),
      images,
      volumes,
      files,
      hooks: new PodHookRunner({
        ...{ clock, recorder, node, exec: engine.containers, version: probeVersion },
        left: serviceManager && ((podIps) => serviceManager.left(podIps)),
      }),
      cgroups,
      logLinks,
    },
  );
  /** One attempt to reach the engine. @throws EngineError, MisconfigurationError */
  const connect = async (signal: AbortSignal) => {
    await refuseOtherEngine(options, environment);
    await engine.connect(signal);
    // Until then the settings stay those of the last run: its pods may be on another engine.
    writeRemovalSettings(options, environment);
    await engine.volumes.removeLeftovers(signal);
    logLinks.sweep();
    await adoptNetworks(context, engine, networks, signal);
    oomGroup.check();
    if (!engine.info().negativeOomScores) {
      logger.warn("The kernel refuses negative OOM scores (no CAP_SYS_RESOURCE): containers get 0 instead");
    }
  };
  return { engine, images, credentials, volumes, networks, services, files, connect };
}

/** The credentials of the machine, of pods and of credential providers. */
function buildImageCredentials({ options, environment, clock, logger, background }: NodeContext): ImageCredentials {
  const { imageCredentialProviderConfig: file, imageCredentialProviderBinDir: binDir } = options;
  return new ImageCredentials({
    rootDir: options.rootDir,
    homeDir: environment.HOME ?? "",
    logger,
    files: background.textFiles,
    ...(file && { providers: CredentialProviders.fromFile(file, binDir, clock, logger) }),
  });
}

async function buildVolumes(
  context: NodeContext,
  engine: DockerEngine,
  images: ImageManager,
  { podManager, cluster }: PodServicesInput,
): Promise<VolumeManager> {
  const { options, logger, background } = context;
  const mounter = new Mounter();
  const mounting = await canMount(options.rootDir, mounter);
  if (!mounting.ok) logger.info(`Volumes in memory and subPath are not available: ${mounting.why}`);
  const host: VolumeHost = {
    ...context,
    engine: engine.volumes,
    images,
    ...(mounting.ok && { mounter }),
    hostFiles: background.tasks,
    // Claims of static pods are those of manifests, as without a cluster.
    claimProblemOf: (pod, claimName) =>
      cluster && !isStaticPod(pod)
        ? cluster.claims.problemOf(pod, claimName)
        : podManager.state.claimProblems?.get(`${pod.metadata.namespace ?? "default"}/${claimName}`),
    ...(cluster && { cluster: { tokenFor: (pod, spec) => cluster.tokens.tokenFor(pod, spec) } }),
    claimBytesOf: (pod, claimName) => computeClaimBytes(podManager.state.objects ?? [], pod, claimName),
  };
  return new VolumeManager(host, { ...context, rootDir: options.rootDir });
}

const buildNetworks = ({ options, clock, logger, background }: NodeContext): PodNetworks =>
  new CniNetworks(
    {
      isEnabled: options.networkPlugin === "cni",
      confDir: options.cniConfDir,
      binDirs: options.cniBinDirs,
      cacheDir: options.cniCacheDir,
      files: {
        replaceFile: background.tasks.replaceFile,
        removeFile: background.tasks.removeFile,
        readDirectory: background.textFiles.readDirectory,
      },
    },
    clock,
    logger,
  );

/**
 * Releases the networks of sandboxes that were removed while no kubelet-ts ran, and checks those of the others in the
 * background: a network that has changed is reported, its pod is left alone.
 */
async function adoptNetworks(
  { logger }: NodeContext,
  { pods }: DockerEngine,
  networks: PodNetworks,
  signal: AbortSignal,
): Promise<void> {
  const listed = await pods.list(signal);
  await networks.detachMissing(new Set(listed.map(({ id }) => id)), signal);
  const check = async () => {
    for (const { id, state } of listed) {
      if (state !== "running" || !networks.holds(id)) continue;
      const seen = await pods.inspect(id, signal);
      if (seen?.kind !== "sandbox" || seen.sandbox.pid === 0) continue;
      const problem = await networks.check({ id, netns: `/proc/${seen.sandbox.pid}/ns/net` }, signal);
      const pod = `${seen.pod.namespace}/${seen.pod.name}`;
      if (problem !== undefined) logger.warn(`The network of pod "${pod}" has changed since it was set up: ${problem}`);
    }
  };
  check().catch((error: unknown) => {
    if (!signal.aborted) logger.warn(`The networks of pods cannot be checked: ${messageOf(error)}`);
  });
}

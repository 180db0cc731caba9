import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Pod } from "../api/pod.ts";
import { parseCgroupMounts } from "../cgroups/cgroup-layout.ts";
import { ConcurrencyLimit } from "../concurrency/concurrency-limit.ts";
import { SingleFlight } from "../concurrency/single-flight.ts";
import { DockerClient } from "../docker/docker-client.ts";
import { readMayLowerOomScores, readNodeInfo, readNodeName } from "../host/node-info.ts";
import { OomGroup } from "../host/oom-group.ts";
import { PodCgroups, runSystemctl } from "../host/pod-cgroups.ts";
import { prepareRootDirectory } from "../host/root-directory.ts";
import { StateFile } from "../host/state-file.ts";
import { Completions } from "../kubelet/completions.ts";
import type { PodEventRecorder } from "../kubelet/event-recorder.ts";
import type { EvictionsFile } from "../kubelet/eviction/evictions.ts";
import { ImageGcManager } from "../kubelet/images/image-gc-manager.ts";
import { Kubelet, type Rejection } from "../kubelet/kubelet.ts";
import { PodCgroupManager } from "../kubelet/pod-cgroup-manager.ts";
import type { Completion } from "../kubelet/pod-revision.ts";
import { PodRuntimeManager } from "../kubelet/pod-runtime-manager.ts";
import { toPodRevision } from "../kubelet/to-pod-revision.ts";
import { readManifest } from "../manifest/read-manifest.ts";
import type { Clock } from "../model/clock.ts";
import type { PodRef } from "../model/container-runtime.ts";
import type { DesiredState } from "../model/desired-pod.ts";
import type { KubeletOptions } from "../model/kubelet-options.ts";
import type { Logger } from "../model/logger.ts";
import type { EngineInfo, NodeInfo } from "../model/node.ts";
import { containersOf } from "../model/pod-containers.ts";
import type { ContainerId } from "../model/pod-snapshot.ts";
import type { StoredProbeResults } from "../model/prober.ts";
import { NodeAdmission } from "../plan/admission.ts";
import { conflictOverPorts } from "../plan/host-ports.ts";
import { computeNodeLabels } from "../plan/node-affinity.ts";
import { computeAllocatableDisk, computeMaxPods, computeNodeAllocatable } from "../plan/node-allocatable.ts";
import { HostProber } from "../prober/host-prober.ts";
import { runLifecycleHook } from "../prober/lifecycle-hook.ts";
import { ProbeManager } from "../prober/probe-manager.ts";
import { CredentialProviders } from "../runtime/credential-provider.ts";
import { DockerPods } from "../runtime/docker-pods.ts";
import { DockerRuntime } from "../runtime/docker-runtime.ts";
import { DockerVolumeEngine } from "../runtime/docker-volume-engine.ts";
import { EngineImages, toImageKey } from "../runtime/engine-images.ts";
import { readEngineInfo } from "../runtime/engine-info.ts";
import { ImageCredentials } from "../runtime/image-credentials.ts";
import { ImageInventory } from "../runtime/image-inventory.ts";
import { ImageManager } from "../runtime/image-manager.ts";
import { preloadImages } from "../runtime/image-preload.ts";
import { computeRootHash, LABEL, type Owner } from "../runtime/labels.ts";
import { LogLinks, toEngineLogPath } from "../runtime/log-links.ts";
import { ensurePauseImage } from "../runtime/pause-image.ts";
import { findPodRefusal } from "../runtime/pod-refusal.ts";
import type { ImageProgress } from "../runtime/pull-progress.ts";
import { buildFeed } from "../sources/build-sources.ts";
import type { DesiredStateFeed } from "../sources/desired-state-feed.ts";
import { proxyFor } from "../sources/proxy.ts";
import { readCapacity } from "../stats/disk-usage.ts";
import type { ImageNames } from "../status/container-status.ts";
import { toTerminationMessage } from "../status/termination-message.ts";
import { canMount, Mounter } from "../volumes/mounter.ts";
import { writeHostsFile } from "../volumes/network-files.ts";
import { VolumeManager } from "../volumes/volume-manager.ts";
import { MetricsRecorder } from "./metrics-recorder.ts";
import { buildInfo } from "./version.ts";

export interface AssembleInput {
  options: KubeletOptions;
  /** Manifests given as arguments: absolute paths, URLs, `-`. */
  manifests: readonly string[];
  /** As the process was started with it. */
  environment: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  logger: Logger;
  recorder: PodEventRecorder;
  onPullProgress?: (progress: ImageProgress) => void;
  /** Why the node takes no such pod just now; asked for pods that do not run yet. */
  refusalOfNew?: (pod: Pod) => Rejection | undefined;
  /** The engine says that a container, or a sandbox, ran out of memory. */
  onOom?: (id: ContainerId) => void;
}

/** Everything that makes a kubelet, put together but not yet running. */
export interface AssembledKubelet {
  nodeName: string;
  node: NodeInfo;
  owner: Owner;
  client: DockerClient;
  kubelet: Kubelet;
  feed: DesiredStateFeed;
  images: ImageManager;
  imageGc: ImageGcManager;
  imageInventory: ImageInventory;
  volumes: VolumeManager;
  probes: ProbeManager;
  /** What the engine can do; known once {@link AssembledKubelet.connect} has resolved. */
  engine: () => EngineInfo;
  /** undefined before that. */
  engineIfKnown: () => EngineInfo | undefined;
  metrics: MetricsRecorder;
  /** Loads the archives of `--images-dir`, before anything is pulled [D4]. Rejects only when the signal aborts. */
  preload: (signal: AbortSignal) => Promise<void>;
  /** One try to reach the engine. @throws DockerUnreachableError, DockerError, DockerProtocolError, MisconfigurationError */
  connect: (signal: AbortSignal) => Promise<void>;
}

/** What was asked for does not go with the engine that is there: no use to try again. */
export class MisconfigurationError extends Error {
  override readonly name = "MisconfigurationError";
}

/** As many creates and starts as keep an engine busy; more only make each of them slower. */
const MAX_ENGINE_CALLS = 8;
const LOG_TAIL_LINES = 80;

/** The one place where parts meet. Touches the disk (root directory, state files), not yet the engine. */
export async function assembleKubelet(input: AssembleInput): Promise<AssembledKubelet> {
  const { options, clock, logger, recorder } = input;
  prepareRootDirectory(options.rootDir);
  const nodeName = readNodeName(options.hostnameOverride);
  const node: NodeInfo = readNodeInfo(nodeName, options.nodeIp);
  const owner: Owner = { nodeName, rootHash: computeRootHash(options.rootDir) };
  const client = new DockerClient(DockerClient.endpointFrom(options.dockerEndpoint || undefined, input.environment), {
    schedule: (ms, callback) => clock.schedule(ms, callback),
    timeoutMs: options.runtimeRequestTimeoutMs,
  });
  const metrics = new MetricsRecorder(nodeName, clock);
  let engineInfo: EngineInfo | undefined;
  const engine = () => {
    if (!engineInfo) throw new Error("the Docker engine has not answered yet");
    return engineInfo;
  };

  const images = new ImageManager({
    client,
    clock,
    logger,
    recorder,
    credentials: new ImageCredentials({
      rootDir: options.rootDir,
      homeDir: input.environment.HOME ?? "",
      logger,
      ...(options.imageCredentialProviderConfig && {
        providers: CredentialProviders.fromFile(
          options.imageCredentialProviderConfig,
          options.imageCredentialProviderBinDir,
          clock,
          logger,
        ),
      }),
    }),
    limits: {
      maxParallel: options.serializeImagePulls ? 1 : options.maxParallelImagePulls,
      perSecond: options.registryPullQps,
      burst: options.registryBurst,
    },
    progressDeadlineMs: options.imagePullProgressDeadlineMs,
    onProgress: input.onPullProgress,
    onPull: (durationMs, failed) => metrics.countOperation("pull_image", durationMs, failed),
    onUse: ({ id, ref }) => imageGc.noteUsed(id, toImageKey(ref)),
  });

  const mounter = new Mounter();
  const mounting = await canMount(options.rootDir, mounter);
  if (!mounting.ok) logger.warn(`Volumes in memory and subPath are not available: ${mounting.why}`);
  const disk = await readCapacity(options.rootDir);
  const allocatable = {
    ...computeNodeAllocatable(node, options),
    ...(disk && { ephemeralStorageBytes: computeAllocatableDisk(disk.capacityBytes, options) }),
  };
  const volumeEngine = new DockerVolumeEngine({
    client,
    images,
    owner,
    pullSecretsOf: (pod) => kubelet?.pullSecretsOf(pod) ?? [],
  });
  const volumes = new VolumeManager({
    onSetUp: metrics.countVolume,
    rootDir: options.rootDir,
    node,
    allocatable: { ephemeralStorageBytes: 0, ...allocatable },
    clock,
    logger,
    engine: volumeEngine,
    ...(mounting.ok && { mounter }),
    ownerLabels: { [LABEL.node]: owner.nodeName, [LABEL.root]: owner.rootHash },
  });

  const version = buildInfo.version.split(".").slice(0, 2).join(".");

  const admission = new NodeAdmission({
    name: nodeName,
    labels: computeNodeLabels(nodeName, process.arch === "x64" ? "amd64" : process.arch, options.nodeLabels),
    maxPods: computeMaxPods(options, node.cpuCount),
    ...allocatable,
    ...(node.hugePageBytes && { hugePageBytes: node.hugePageBytes }),
  });
  const imageNames = new Map<string, ImageNames>();
  const trouble = (message: string) => logger.warn(message);
  const stateFile = <T>(name: string, durable: boolean) =>
    new StateFile<T>(
      join(options.rootDir, "state", `${name}-${nodeName}.json`),
      { version: 1, durable },
      clock,
      trouble,
    );
  const imageGc = new ImageGcManager({
    clock,
    logger,
    images: new EngineImages(client, owner, options.podInfraContainerImage),
    readDisk: () => readCapacity(engine().imagesDir),
    wantedNames: () => new Set(kubelet?.desiredPods.flatMap(({ pod }) => imagesOf(pod)).map(toImageKey)),
    isReady: () => kubelet?.isComplete ?? false,
    file: stateFile("images-used", false),
    policy: {
      highThresholdPercent: options.imageGcHighThresholdPercent,
      lowThresholdPercent: options.imageGcLowThresholdPercent,
      minimumTtlMs: options.minimumImageTtlMs,
      maximumAgeMs: options.imageMaximumGcAgeMs,
    },
  });
  const evictions = stateFile<ReturnType<EvictionsFile["read"]>>("evictions", true);
  // Whoever runs pods by hand wants them to run.
  if (options.runOnce && evictions.read()) evictions.write([]);
  // No container outlives a power cut, so what probes said need not either.
  const probeFile = stateFile<[string, StoredProbeResults][]>("probes", false);
  const hierarchies = parseCgroupMounts(readFileSync("/proc/self/mountinfo", "utf8"));
  const cgroupVersion = () => engine().cgroupVersion;
  const oomGroup = new OomGroup({
    hierarchies,
    cgroupVersion,
    singleProcess: options.singleProcessOomKill,
    log: logger,
  });
  // Pods that need their sandbox at a time wait for one look.
  const pauseImage = new SingleFlight<string>();
  let kubelet: Kubelet | undefined;
  const lifecycle = new PodRuntimeManager({
    clock,
    logger,
    recorder,
    options,
    owner,
    node: () => node,
    allocatable: { ephemeralStorageBytes: 0, ...allocatable },
    engine,
    mayWriteEngineFiles: process.getuid?.() === 0,
    pods: new DockerPods({
      client,
      owner,
      clock,
      random: Math.random,
      onOperation: metrics.countOperation,
      onStarted: async (id, signal) => {
        if (!oomGroup.isWanted) return;
        // One that is gone already needs nothing.
        const container = await client.inspectContainer(id, { signal }).catch(() => undefined);
        if (container?.State.Running) oomGroup.apply(container.State.Pid);
      },
    }),
    images,
    volumes,
    hooks: {
      run: (handler, { container, pod, podIp }, signal) =>
        runLifecycleHook(
          handler,
          {
            containerId: container.id,
            containerName: container.name,
            ports: container.ports ?? [],
            podIp,
            podName: pod.name,
            podUid: pod.uid,
            namespace: pod.namespace,
          },
          { exec: client, clock, version },
          signal,
        ),
    },
    cgroups: new PodCgroupManager({
      clock,
      cgroups: metrics.timeCgroups(
        new PodCgroups({ hierarchies, cgroupVersion, log: logger, systemctl: runSystemctl }),
      ),
      engine,
      node: () => node,
      pods: () => kubelet?.desiredPods.map(({ pod }) => pod) ?? [],
      options,
      logger,
    }),
    logLinks: new LogLinks({
      podLogsDir: options.podLogsDir,
      containersLogsDir: options.containersLogsDir,
      engineLogPath: (id) => toEngineLogPath(engine().dockerRootDir, id),
      log: logger,
    }),
    gate: new ConcurrencyLimit(MAX_ENGINE_CALLS),
    ensurePauseImage: (signal) =>
      pauseImage.join(
        "pause",
        (stop) =>
          ensurePauseImage(
            client,
            {
              override: options.podInfraContainerImage || undefined,
              pull: async (reference) => void (await images.pull(reference, stop)),
            },
            stop,
          ),
        signal,
      ),
    writeHostsFile: (pod, podIps, names) =>
      writeHostsFile(volumes.directories(pod.metadata.uid ?? ""), pod, { podIps, names }),
    readLogTail: async (id, signal) => {
      const pieces: string[] = [];
      const decoder = new TextDecoder();
      for await (const { data } of client.containerLogs(id, { tail: LOG_TAIL_LINES, signal })) {
        pieces.push(decoder.decode(data, { stream: true }));
      }
      return pieces.join("");
    },
    toTerminationMessage,
  });

  const probes = new ProbeManager({
    clock,
    logger,
    recorder,
    prober: new HostProber({ exec: client, clock, version }),
    random: Math.random,
    hostIp: () => node.ip,
    onChange: (uid) => kubelet?.worker(uid)?.wake(),
    stored: storedProbes(probeFile.read()),
    store: { save: async (results) => probeFile.write([...results]) },
    onAttempt: ({ pod, containerName, kind, outcome }) => {
      metrics.countProbe(pod, containerName, kind, outcome);
    },
  });
  kubelet = new Kubelet({
    clock,
    logger,
    recorder,
    runtime: new DockerRuntime(client, owner, clock, async (signal) => {
      // It may have come back as another version, or with another cgroup driver.
      if (engineInfo) engineInfo = await readEngineInfo(client, engineInfo.negativeOomScores, signal);
    }),
    services: lifecycle,
    probes,
    hostIp: () => node.ip,
    imageNames,
    learnImage: async (imageId) => {
      const image = await images.imageStatus(imageId);
      const [tag] = image?.repoTags ?? [];
      const [digest] = image?.repoDigests ?? [];
      imageNames.set(imageId, { ...(tag && { tag }), ...(digest && { digest }) });
    },
    toPodRevision: (desired, objects) => toPodRevision(desired, objects as DesiredState, options, node),
    admit: (pods, running) => {
      const refusals = new Map<string, Rejection>();
      for (const { pod } of pods) {
        const isNew = !running.has(pod.metadata.uid ?? "");
        const refusal =
          findPodRefusal({ pod, engine: engine(), settings: options }) ??
          (isNew ? input.refusalOfNew?.(pod) : undefined);
        if (refusal) refusals.set(pod.metadata.uid ?? "", refusal);
      }
      // What cannot run here takes no resources from what can.
      const others = pods.filter(({ pod }) => !refusals.has(pod.metadata.uid ?? ""));
      return new Map([...admission.admit(others, running), ...refusals]);
    },
    conflict: conflictOverPorts,
    completions: new Completions(stateFile<Record<string, Completion>>("completions", true)),
    podCleanup: stateFile<PodRef[]>("pods", false),
    evictions,
    shutdownTerminated: stateFile<ContainerId[]>("cut-off", true),
    oomVerdicts: stateFile<ContainerId[]>("oom-killed", false),
    relistPeriodMs: options.syncFrequencyMs,
    deadContainers: { maxInAll: options.maximumDeadContainers, minTtlMs: options.minimumContainerTtlMs },
    ...(input.onOom && { onOom: input.onOom }),
    work: metrics.pods,
    onRelist: metrics.countRelist,
    onPodGone: (uid) => recorder.podGone(uid),
  });
  metrics.watch(kubelet);

  const feed = buildFeed({
    options,
    manifests: input.manifests,
    nodeName,
    read: (bytes, file, source) =>
      readManifest(bytes, {
        file,
        nodeName,
        source,
        strictness: options.validate,
        allowPrivileged: options.allowPrivileged,
      }),
    clock,
    logger,
    random: Math.random,
    proxyFor: (url) => proxyFor(url, input.environment),
  });

  return {
    nodeName,
    node,
    owner,
    client,
    kubelet,
    feed,
    images,
    imageGc,
    imageInventory: new ImageInventory(client, clock),
    volumes,
    probes,
    engine,
    engineIfKnown: () => engineInfo,
    metrics,
    preload: async (signal) => {
      if (!options.imagesDir) return;
      const state = join(options.rootDir, "state", "images.json");
      const archives = await preloadImages(client, options.imagesDir, state, logger, signal);
      for (const name of archives.flatMap((archive) => archive.images)) {
        const image = await client.inspectImage(name, { signal }).catch(() => undefined);
        if (image) imageGc.noteUsed(image.Id, toImageKey(name));
      }
    },
    connect: async (signal) => {
      await client.connect({ signal });
      engineInfo = await readEngineInfo(client, readMayLowerOomScores(), signal);
      const { cgroupDriver } = engineInfo;
      if (options.cgroupDriver !== "" && options.cgroupDriver !== cgroupDriver) {
        throw new MisconfigurationError(
          `--cgroup-driver is ${options.cgroupDriver}, but that of the Docker engine is ${cgroupDriver}: leave the flag away, or change native.cgroupdriver of the engine`,
        );
      }
      await volumeEngine.removeLeftovers(signal);
      oomGroup.check();
      if (!engineInfo.negativeOomScores) {
        logger.warn("The kernel refuses negative OOM scores here (no CAP_SYS_RESOURCE): containers get 0 instead");
      }
    },
  };
}

/** A file from another version of us, or a damaged one, is none. */
const storedProbes = (pairs: [string, StoredProbeResults][] | undefined) => new Map(pairs ?? []);

/** Every image a pod mentions. */
const imagesOf = ({ spec }: Pod): string[] =>
  [
    ...containersOf(spec).map(({ image }) => image),
    ...(spec.volumes ?? []).map(({ image }) => image?.reference),
  ].filter((name) => name !== undefined);

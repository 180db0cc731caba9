import type { Pod } from "../../base/api/pod.ts";
import { ConcurrencyLimit } from "../../base/concurrency/concurrency-limit.ts";
import { SingleFlight } from "../../base/concurrency/single-flight.ts";
import type { OomGroup } from "../../base/host/oom-group.ts";
import type { PodNetworks } from "../../base/model/pod-networks.ts";
import type { ServiceHosts } from "../../controllers/service-hosts.ts";
import { DockerPods } from "../../docker/docker-pods.ts";
import type { DockerClient } from "../../docker/engine/docker-client.ts";
import type { EngineConnection } from "../../docker/engine-connection.ts";
import type { ImageManager } from "../../docker/image-manager.ts";
import { LogLinks, toEngineLogPath } from "../../docker/log-links.ts";
import { readLogTail } from "../../docker/log-tail.ts";
import { ensurePauseImage } from "../../docker/pause-image.ts";
import type { PodHooks } from "../../kubelet/pod-effects.ts";
import { PodRuntimeManager } from "../../kubelet/pod-runtime-manager.ts";
import { runLifecycleHook } from "../../kubelet/prober/lifecycle-hook.ts";
import type { VolumeManager } from "../../kubelet/volumes/volume-manager.ts";
import { toTerminationMessage } from "../../plan/status/termination-message.ts";
import { probeVersion } from "../version.ts";
import type { CgroupParts } from "./build-cgroups.ts";
import type { NodeContext } from "./node-context.ts";

/** Creates and starts that run at the same time on the engine; more make each of them slower. */
const MAX_ENGINE_CALLS = 8;
/** Lines of a log that become a termination message. Source: the kubelet. */
const LOG_TAIL_LINES = 80;

interface RuntimeManagerParts {
  images: ImageManager;
  volumes: VolumeManager;
  cgroups: CgroupParts;
  logLinks: LogLinks;
  networks: PodNetworks;
  /** Names of Services; absent: hosts files have none. */
  serviceHosts?: ServiceHosts;
  /** Variables of the Services of a cluster. */
  serviceEnvironmentOf?: (pod: Pod) => ReadonlyMap<string, string>;
  /** Handlers of the RuntimeClasses of a cluster. */
  runtimeHandlerOf?: (pod: Pod) => Promise<string>;
}

export const buildLogLinks = ({ options, logger, background }: NodeContext, engine: EngineConnection): LogLinks =>
  new LogLinks({
    podLogsDir: options.podLogsDir,
    containersLogsDir: options.containersLogsDir,
    engineLogPath: (id) => toEngineLogPath(engine.info().dockerRootDir, id),
    log: logger,
    perform: background.tasks.performLogLinkTask,
  });

/** Every step of a pod's life: sandbox, images, containers, hooks, volumes, cgroups. */
export function buildRuntimeManager(
  context: NodeContext,
  engine: EngineConnection,
  parts: RuntimeManagerParts,
): PodRuntimeManager {
  const { options, node, owner, allocatable, clock, logger, recorder, background } = context;
  const { images, volumes, cgroups, logLinks, networks, serviceHosts, serviceEnvironmentOf, runtimeHandlerOf } = parts;
  const { client } = engine;
  return new PodRuntimeManager({
    clock,
    logger,
    recorder,
    options,
    owner,
    node: () => node,
    ...(serviceEnvironmentOf && { serviceEnvironmentOf }),
    ...(runtimeHandlerOf && { runtimeHandlerOf }),
    allocatable,
    engine: engine.info,
    mayWriteEngineFiles: process.getuid?.() === 0,
    pods: buildDockerPods(context, client, cgroups.oomGroup),
    images,
    volumes,
    hooks: buildHooks(context, client),
    cgroups: cgroups.podCgroups,
    logLinks,
    networks,
    gate: new ConcurrencyLimit(MAX_ENGINE_CALLS),
    ensurePauseImage: pauseImageOf(context, client, images),
    files: background.tasks,
    writeHostsFile: async (pod, podIps, names) => {
      const path = volumes.directories(pod.metadata.uid ?? "").etcHosts;
      await background.tasks.writeHostsFile(path, {
        pod,
        podIps,
        names,
        services: serviceHosts?.aliasesFor(pod) ?? [],
      });
      return path;
    },
    readLogTail: (id, signal) => readLogTail(client, id, LOG_TAIL_LINES, signal),
    toTerminationMessage,
  });
}

const buildDockerPods = ({ owner, clock, metrics }: NodeContext, client: DockerClient, oomGroup: OomGroup) =>
  new DockerPods({
    client,
    owner,
    clock,
    random: Math.random,
    onOperation: metrics.countOperation,
    onStarted: async (id, signal) => {
      if (!oomGroup.isWanted) return;
      // A container that has been removed already needs no setting.
      const container = await client.inspectContainer(id, { signal }).catch(() => undefined);
      if (container?.State.Running) oomGroup.apply(container.State.Pid);
    },
  });

const buildHooks = ({ clock }: NodeContext, client: DockerClient): PodHooks => ({
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
      { exec: client, clock, version: probeVersion },
      signal,
    ),
});

/** Pods that need a sandbox at the same time share one look-up of the pause image. */
function pauseImageOf({ options }: NodeContext, client: DockerClient, images: ImageManager) {
  const flights = new SingleFlight<string>();
  const override = options.podInfraContainerImage || undefined;
  const ensure = (stop: AbortSignal) =>
    ensurePauseImage(client, { override, pull: async (reference) => void (await images.pull(reference, stop)) }, stop);
  return (signal: AbortSignal) => flights.do("pause", ensure, signal);
}

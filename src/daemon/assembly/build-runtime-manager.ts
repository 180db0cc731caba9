import type { Pod } from "../../base/api/pod.ts";
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
import { PodFiles } from "../../kubelet/pod-files.ts";
import { PodHookRunner } from "../../kubelet/pod-hook-runner.ts";
import { PodRuntimeManager } from "../../kubelet/pod-runtime-manager.ts";
import { PodSandboxes } from "../../kubelet/pod-sandboxes.ts";
import { PodVolumeQueue } from "../../kubelet/pod-volume-queue.ts";
import type { VolumeManager } from "../../kubelet/volumes/volume-manager.ts";
import { probeVersion } from "../version.ts";
import type { CgroupParts } from "./build-cgroups.ts";
import type { NodeContext } from "./node-context.ts";

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
  const pods = buildDockerPods(context, client, cgroups.oomGroup);
  return new PodRuntimeManager(
    { recorder, options, owner, info: node, allocatable, engine: engine.info, runtimeHandlerOf, serviceEnvironmentOf },
    {
      pods,
      sandboxes: new PodSandboxes({
        logger,
        pods,
        networks,
        ensurePauseImage: pauseImageOf(context, client, images),
      }),
      images,
      volumes: new PodVolumeQueue({ clock, logger, recorder, volumes }),
      files: new PodFiles({
        logger,
        options,
        node,
        files: background.tasks,
        serviceHosts,
        readLogTail: (id, signal) => readLogTail(client, id, LOG_TAIL_LINES, signal),
      }),
      hooks: new PodHookRunner({ clock, recorder, node, exec: client, version: probeVersion }),
      cgroups: cgroups.podCgroups,
      logLinks,
    },
  );
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

/** Pods that need a sandbox at the same time share one look-up of the pause image. */
function pauseImageOf({ options }: NodeContext, client: DockerClient, images: ImageManager) {
  const flights = new SingleFlight<string>();
  const override = options.podInfraContainerImage || undefined;
  const ensure = (stop: AbortSignal) =>
    ensurePauseImage(client, { override, pull: async (reference) => void (await images.pull(reference, stop)) }, stop);
  return (signal: AbortSignal) => flights.do("pause", ensure, signal);
}

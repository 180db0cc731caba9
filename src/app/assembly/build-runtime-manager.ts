import { ConcurrencyLimit } from "../../concurrency/concurrency-limit.ts";
import { SingleFlight } from "../../concurrency/single-flight.ts";
import type { DockerClient } from "../../docker/docker-client.ts";
import type { OomGroup } from "../../host/oom-group.ts";
import type { PodHooks } from "../../kubelet/pod-effects.ts";
import { PodRuntimeManager } from "../../kubelet/pod-runtime-manager.ts";
import type { ContainerId } from "../../model/pod-snapshot.ts";
import { runLifecycleHook } from "../../prober/lifecycle-hook.ts";
import { DockerPods } from "../../runtime/docker-pods.ts";
import type { EngineConnection } from "../../runtime/engine-connection.ts";
import type { ImageManager } from "../../runtime/image-manager.ts";
import { LogLinks, toEngineLogPath } from "../../runtime/log-links.ts";
import { ensurePauseImage } from "../../runtime/pause-image.ts";
import { toTerminationMessage } from "../../status/termination-message.ts";
import { writeHostsFile } from "../../volumes/network-files.ts";
import type { VolumeManager } from "../../volumes/volume-manager.ts";
import { probeVersion } from "../version.ts";
import type { CgroupParts } from "./build-cgroups.ts";
import type { NodeContext } from "./node-context.ts";

/** Creates and starts that run at the same time on the engine; more make each of them slower. */
const MAX_ENGINE_CALLS = 8;
/** Of a log that becomes a termination message. Source of the lines: the kubelet; a message has at most 2 KiB. */
const LOG_TAIL_LINES = 80;
const LOG_TAIL_BYTES = 64 * 1024;
const LOG_TAIL_MS = 10_000;

export interface RuntimeManagerParts {
  images: ImageManager;
  volumes: VolumeManager;
  cgroups: CgroupParts;
  logLinks: LogLinks;
}

export const buildLogLinks = ({ options, logger }: NodeContext, engine: EngineConnection): LogLinks =>
  new LogLinks({
    podLogsDir: options.podLogsDir,
    containersLogsDir: options.containersLogsDir,
    engineLogPath: (id) => toEngineLogPath(engine.info().dockerRootDir, id),
    log: logger,
  });

/** Every step of a pod's life: sandbox, images, containers, hooks, volumes, cgroups. */
export function buildRuntimeManager(
  context: NodeContext,
  engine: EngineConnection,
  { images, volumes, cgroups, logLinks }: RuntimeManagerParts,
): PodRuntimeManager {
  const { options, node, owner, allocatable, clock, logger, recorder } = context;
  const { client } = engine;
  return new PodRuntimeManager({
    clock,
    logger,
    recorder,
    options,
    owner,
    node: () => node,
    allocatable,
    engine: engine.info,
    mayWriteEngineFiles: process.getuid?.() === 0,
    pods: buildDockerPods(context, client, cgroups.oomGroup),
    images,
    volumes,
    hooks: buildHooks(context, client),
    cgroups: cgroups.podCgroups,
    logLinks,
    gate: new ConcurrencyLimit(MAX_ENGINE_CALLS),
    ensurePauseImage: pauseImageOf(context, client, images),
    writeHostsFile: (pod, podIps, names) =>
      writeHostsFile(volumes.directories(pod.metadata.uid ?? ""), pod, { podIps, names }),
    readLogTail: (id, signal) => readLogTail(client, id, signal),
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
  return (signal: AbortSignal) => flights.join("pause", ensure, signal);
}

async function readLogTail(client: DockerClient, id: ContainerId, signal: AbortSignal): Promise<string> {
  const within = AbortSignal.any([signal, AbortSignal.timeout(LOG_TAIL_MS)]);
  let tail: Uint8Array = new Uint8Array();
  for await (const { data } of client.containerLogs(id, { tail: LOG_TAIL_LINES, signal: within })) {
    tail = Buffer.concat([tail, data]).subarray(-LOG_TAIL_BYTES);
  }
  return new TextDecoder().decode(tail);
}

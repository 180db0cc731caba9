import type { Listeners } from "../../base/concurrency/listeners.ts";
import type { DesiredState } from "../../base/model/desired-pod.ts";
import type { ContainerId } from "../../base/model/pod-snapshot.ts";
import type { DockerEngine } from "../../docker/docker-engine.ts";
import type { ImageManager } from "../../docker/image-manager.ts";
import { toPodRevision } from "../../kubelet/edit-rules.ts";
import type { ImageUpdateManager } from "../../kubelet/images/image-update-manager.ts";
import { Kubelet } from "../../kubelet/kubelet.ts";
import type { NodeCordon } from "../../kubelet/node-cordon.ts";
import type { PodManager } from "../../kubelet/pod-manager.ts";
import type { PodRuntimeManager } from "../../kubelet/pod-runtime-manager.ts";
import { HostProber } from "../../kubelet/prober/host-prober.ts";
import { ProbeManager } from "../../kubelet/prober/probe-manager.ts";
import { conflictOverPorts } from "../../plan/host-ports.ts";
import type { ImageNames } from "../../plan/status/container-status.ts";
import type { ProbeLog } from "../../server/page/probe-log.ts";
import { probeVersion } from "../version.ts";
import { liveOptions, type NodeContext } from "./node-context.ts";
import type { PodAdmission } from "./pod-admission.ts";
import { openStateFile } from "./state-files.ts";

interface KubeletParts {
  podManager: PodManager;
  services: PodRuntimeManager;
  probes: ProbeManager;
  admission: PodAdmission;
  /** Called for each container or sandbox that ran out of memory. */
  oomEvents: Listeners<ContainerId>;
  imageUpdates: ImageUpdateManager;
  /** Absent for a node whose pods something else assigns. */
  cordon: NodeCordon | undefined;
}

/** The sync loop. */
export function buildKubelet(context: NodeContext, { pods, images }: DockerEngine, parts: KubeletParts): Kubelet {
  const { options, node, clock, logger, recorder, metrics } = context;
  const { podManager, services, probes, admission, oomEvents, imageUpdates, cordon } = parts;
  const imageNames = new Map<string, ImageNames>();
  const kubelet = new Kubelet({
    clock,
    logger,
    recorder,
    podManager,
    runtime: pods,
    services,
    probes,
    hostIp: () => node.ip,
    imageNames,
    learnImage: async (imageId) => void imageNames.set(imageId, await readImageNames(images, imageId)),
    toPodRevision: (desired, objects) => toPodRevision(desired, objects as DesiredState, options, node),
    admit: admission.admit,
    ...(cordon && { holdOf: (desired) => cordon.holdOf(desired) }),
    conflict: conflictOverPorts,
    ...stateFilesOf(context),
    imageUpdates,
    isSerialRollout: options.rollout === "serial",
    relistPeriodMs: options.syncFrequencyMs,
    deadContainers: liveOptions(options, { maxInAll: "maximumDeadContainers", minTtlMs: "minimumContainerTtlMs" }),
    onOom: (id) => oomEvents.emit(id),
    work: metrics.pods,
    onRelist: metrics.countRelist,
    onRolledBack: ({ namespace, name }) => metrics.kubelet.rollbacks.inc([namespace, name]),
    onPodGone: (uid) => recorder.objectGone(uid),
  });
  metrics.watch(kubelet);
  return kubelet;
}

function stateFilesOf(context: NodeContext) {
  const evictions = openStateFile(context, "evictions");
  // --runonce is a request to run these pods: earlier evictions do not count.
  if (context.options.runOnce && evictions.read()) evictions.write([]);
  return {
    evictions,
    completions: openStateFile(context, "completions"),
    podCleanup: openStateFile(context, "pods"),
    shutdownTerminated: openStateFile(context, "cut-off"),
    oomVerdicts: openStateFile(context, "oom-killed"),
    ephemeralContainers: openStateFile(context, "ephemeral-containers"),
    rollouts: openStateFile(context, "rollouts"),
  };
}

async function readImageNames(images: ImageManager, imageId: string): Promise<ImageNames> {
  const image = await images.imageStatus(imageId);
  const [tag] = image?.repoTags ?? [];
  const [digest] = image?.repoDigests ?? [];
  return { ...(tag && { tag }), ...(digest && { digest }) };
}

/** Not durable: no container outlives a power cut, and its probe results need not either. */
export function buildProbes(context: NodeContext, { containers }: DockerEngine, log: ProbeLog): ProbeManager {
  const { node, clock, logger, recorder, metrics, loopLag } = context;
  const probes = new ProbeManager({
    clock,
    logger,
    recorder,
    prober: new HostProber({ exec: containers, clock, version: probeVersion }),
    random: Math.random,
    node,
    file: openStateFile(context, "probes"),
    loopLag,
  });
  probes.attempts.add(({ pod, containerName, kind, outcome, durationMs }) => {
    log.add(pod.uid, containerName, kind, outcome, durationMs, clock.now().getTime());
    metrics.countProbe(pod, containerName, kind, outcome);
  });
  return probes;
}

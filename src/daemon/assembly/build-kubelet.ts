import type { Listeners } from "../../base/concurrency/listeners.ts";
import type { DesiredState } from "../../base/model/desired-pod.ts";
import type { PodNetworks } from "../../base/model/pod-networks.ts";
import type { ContainerId } from "../../base/model/pod-snapshot.ts";
import { DockerRuntime } from "../../docker/docker-runtime.ts";
import type { EngineConnection } from "../../docker/engine-connection.ts";
import type { ImageManager } from "../../docker/image-manager.ts";
import { toPodRevision } from "../../kubelet/edit-rules.ts";
import type { ImageUpdateManager } from "../../kubelet/images/image-update-manager.ts";
import { Kubelet } from "../../kubelet/kubelet.ts";
import type { NodeCordon } from "../../kubelet/node-cordon.ts";
import type { PodManager } from "../../kubelet/pod-manager.ts";
import type { PodRuntimeManager } from "../../kubelet/pod-runtime-manager.ts";
import type { ProbeManager } from "../../kubelet/prober/probe-manager.ts";
import { conflictOverPorts } from "../../plan/host-ports.ts";
import type { ImageNames } from "../../plan/status/container-status.ts";
import { type NodeContext, openStateFile } from "./node-context.ts";
import type { PodAdmission } from "./pod-admission.ts";
import {
  CompletionsSchema,
  ContainerIdsSchema,
  EphemeralContainersSchema,
  EvictionsSchema,
  PodsToCleanUpSchema,
  RolloutsSchema,
} from "./state-schemas.ts";

interface KubeletParts {
  podManager: PodManager;
  images: ImageManager;
  services: PodRuntimeManager;
  networks: PodNetworks;
  probes: ProbeManager;
  admission: PodAdmission;
  /** Called for each container or sandbox that ran out of memory. */
  oomEvents: Listeners<ContainerId>;
  imageUpdates: ImageUpdateManager;
  /** Absent for a node whose pods something else assigns. */
  cordon: NodeCordon | undefined;
}

/** The sync loop. */
export function buildKubelet(context: NodeContext, engine: EngineConnection, parts: KubeletParts): Kubelet {
  const { options, node, owner, clock, logger, recorder, metrics } = context;
  const { podManager, images, services, networks, probes, admission, oomEvents, imageUpdates, cordon } = parts;
  const imageNames = new Map<string, ImageNames>();
  const kubelet = new Kubelet({
    clock,
    logger,
    recorder,
    podManager,
    runtime: new DockerRuntime(engine.client, owner, clock, (signal) => engine.refresh(signal), networks),
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
    deadContainers: {
      get maxInAll() {
        return options.maximumDeadContainers;
      },
      get minTtlMs() {
        return options.minimumContainerTtlMs;
      },
    },
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
  const evictions = openStateFile(context, "evictions", EvictionsSchema, { durable: true });
  // --runonce is a request to run these pods: earlier evictions do not count.
  if (context.options.runOnce && evictions.read()) evictions.write([]);
  return {
    evictions,
    completions: openStateFile(context, "completions", CompletionsSchema, { durable: true }),
    podCleanup: openStateFile(context, "pods", PodsToCleanUpSchema),
    shutdownTerminated: openStateFile(context, "cut-off", ContainerIdsSchema, { durable: true }),
    oomVerdicts: openStateFile(context, "oom-killed", ContainerIdsSchema),
    ephemeralContainers: openStateFile(context, "ephemeral-containers", EphemeralContainersSchema, { durable: true }),
    rollouts: openStateFile(context, "rollouts", RolloutsSchema, { durable: true }),
  };
}

async function readImageNames(images: ImageManager, imageId: string): Promise<ImageNames> {
  const image = await images.imageStatus(imageId);
  const [tag] = image?.repoTags ?? [];
  const [digest] = image?.repoDigests ?? [];
  return { ...(tag && { tag }), ...(digest && { digest }) };
}

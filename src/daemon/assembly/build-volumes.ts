import type { ClusterNode } from "../../cluster/cluster-node.ts";
import { computeClaimBytes } from "../../controllers/claims.ts";
import { DockerVolumeEngine } from "../../docker/docker-volume-engine.ts";
import type { EngineConnection } from "../../docker/engine-connection.ts";
import type { ImageManager } from "../../docker/image-manager.ts";
import { LABEL } from "../../docker/labels.ts";
import type { PodManager } from "../../kubelet/pod-manager.ts";
import { canMount, Mounter } from "../../kubelet/volumes/mounter.ts";
import { VolumeManager } from "../../kubelet/volumes/volume-manager.ts";
import { isStaticPod } from "../../manifest/identity.ts";
import type { NodeContext } from "./node-context.ts";

export function buildVolumeEngine(
  { owner }: NodeContext,
  { client }: EngineConnection,
  images: ImageManager,
  podManager: PodManager,
): DockerVolumeEngine {
  return new DockerVolumeEngine({ client, images, owner, pullSecretsOf: (pod) => podManager.pullSecretsOf(pod) });
}

/** Volumes of pods below the root directory. Tests once whether this process may mount. */
export async function buildVolumes(
  context: NodeContext,
  engine: DockerVolumeEngine,
  podManager: PodManager,
  cluster?: ClusterNode,
): Promise<VolumeManager> {
  const { options, owner, allocatable, clock, logger, metrics, background } = context;
  const mounter = new Mounter();
  const mounting = await canMount(options.rootDir, mounter);
  if (!mounting.ok) logger.warn(`Volumes in memory and subPath are not available: ${mounting.why}`);
  return new VolumeManager({
    onSetUp: metrics.countVolume,
    rootDir: options.rootDir,
    allocatable,
    clock,
    logger,
    engine,
    ...(mounting.ok && { mounter }),
    hostFiles: background.tasks,
    ...(cluster && {
      cluster: {
        // Claims of static pods are Docker volumes, as without a cluster.
        claimProblemOf: (pod, claimName) => (isStaticPod(pod) ? undefined : cluster.claimProblemOf(pod, claimName)),
        tokenFor: (pod, spec) => cluster.tokenFor(pod, spec),
      },
    }),
    claimBytesOf: (pod, claimName) => computeClaimBytes(podManager.state.objects ?? [], pod, claimName),
    ownerLabels: { [LABEL.node]: owner.nodeName, [LABEL.root]: owner.rootHash },
  });
}

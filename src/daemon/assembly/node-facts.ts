import { statSync } from "node:fs";
import type { ConfigurationStatus } from "../../base/model/configuration.ts";
import type { ImageStore } from "../../docker/docker-images.ts";
import { usableRuntimes } from "../../docker/sandbox-create-body.ts";
import { isApiAtLeast } from "../../docker/security.ts";
import type { EvictionManager } from "../../kubelet/eviction/eviction-manager.ts";
import { computeAllocatableDisk, computeMaxPods, computeNodeAllocatable } from "../../plan/node-allocatable.ts";
import type { ReadNodeFacts } from "../../server/node-object.ts";
import { buildInfo, kubeletVersion } from "../version.ts";
import type { AssembledKubelet } from "./assemble-kubelet.ts";
import { nodeLabelsOf } from "./node-context.ts";

/** An engine that does not answer by then leaves the node without its images. */
const IMAGES_WITHIN_MS = 1000;

export interface NodeFactsInput {
  eviction: Pick<EvictionManager, "states">;
  /** The machine is about to go down. */
  isShuttingDown: () => boolean;
  /** undefined without configuration files. */
  configuration: () => ConfigurationStatus | undefined;
}

/** Facts that `/node` shows in addition to measurements: read at each request, except when the kubelet became ready. */
export function nodeFacts(parts: AssembledKubelet, input: NodeFactsInput): ReadNodeFacts {
  const { eviction, isShuttingDown, configuration } = input;
  const { kubelet, networks } = parts;
  const { node, options, clock } = parts.context;
  const findProblem = () => {
    // Upstream's words.
    if (isShuttingDown()) return "node is shutting down";
    return parts.engine.connectError ?? kubelet.runtimeError ?? toNetworkError(networks.problem());
  };
  const ready = { runtimeError: findProblem(), since: clock.now() };
  const noteReady = () => {
    const runtimeError = findProblem();
    if ((runtimeError === undefined) !== (ready.runtimeError === undefined)) ready.since = clock.now();
    ready.runtimeError = runtimeError;
  };
  kubelet.onChange(noteReady);
  const fixed = {
    name: node.name,
    ip: node.ip,
    labels: nodeLabelsOf(parts.context),
    taints: options.nodeTaints,
    maxPods: computeMaxPods(options, node.cpuCount),
    maxImages: options.nodeStatusMaxImages,
    kubeletPort: options.port,
    kubeletVersion: options.kubeconfig === "" ? buildInfo.version : kubeletVersion,
    allocatable: {
      ...computeNodeAllocatable(node, options),
      diskBytes: (capacityBytes: number) => computeAllocatableDisk(capacityBytes, options),
    },
    createdAt: createdAt(options.rootDir),
  };
  const readImages = () => {
    const none = clock.sleep(IMAGES_WITHIN_MS).then(() => undefined);
    return Promise.race([parts.engine.images.inventory().catch((): ImageStore | undefined => undefined), none]);
  };
  return async (withImages = true) => {
    const [store] = await Promise.all([withImages ? readImages() : undefined, networks.findProblem().catch(() => {})]);
    noteReady();
    const engine = parts.engine.infoIfKnown;
    return {
      ...fixed,
      cordonedSince: parts.cordon?.since,
      pressures: eviction.states(),
      ready: { ...ready },
      images: store?.images,
      configuration: configuration(),
      runtimes: engine && {
        names: usableRuntimes(engine),
        recursiveReadOnlyMounts: isApiAtLeast(engine, "1.44"),
      },
    };
  };
}

const toNetworkError = (problem: string | undefined) =>
  problem && `runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:${problem}`;

/** A node is as old as its root directory; undefined where the file system does not keep that. */
function createdAt(directory: string): Date | undefined {
  try {
    const { birthtime } = statSync(directory);
    return birthtime.getTime() > 0 ? birthtime : undefined;
  } catch {
    return undefined;
  }
}

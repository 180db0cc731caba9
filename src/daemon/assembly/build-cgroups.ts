import { readBoundedText, SYSTEM_FILE_BYTES } from "../../base/files/bounded-read.ts";
import { MachineLock } from "../../base/host/machine-lock.ts";
import { OomGroup } from "../../base/host/oom-group.ts";
import { PodCgroups, runSystemctl } from "../../base/host/pod-cgroups.ts";
import type { PodEvent } from "../../base/model/pod-event.ts";
import type { ClusterNode } from "../../cluster/cluster-node.ts";
import type { EngineConnection } from "../../docker/engine-connection.ts";
import { PodCgroupManager } from "../../kubelet/pod-cgroup-manager.ts";
import type { PodManager } from "../../kubelet/pod-manager.ts";
import { parseCgroupMounts } from "../../stats/cgroups/cgroup-layout.ts";
import type { NodeContext } from "./node-context.ts";

/** Source: the kubelet's container manager. */
const NODE_BOUNDED: PodEvent = {
  type: "Normal",
  reason: "NodeAllocatableEnforced",
  message: "Updated Node Allocatable limit across pods",
};

export interface CgroupParts {
  podCgroups: PodCgroupManager;
  oomGroup: OomGroup;
}

/** Cgroups above the containers, and what the kernel kills when one of them is out of memory. */
export function buildCgroups(
  context: NodeContext,
  engine: EngineConnection,
  podManager: PodManager,
  cluster?: ClusterNode,
): CgroupParts {
  const { options, node, clock, logger, metrics } = context;
  const hierarchies = parseCgroupMounts(readBoundedText("/proc/self/mountinfo", SYSTEM_FILE_BYTES));
  const cgroupVersion = () => engine.info().cgroupVersion;
  const cgroups = new PodCgroups({ hierarchies, cgroupVersion, log: logger, systemctl: runSystemctl });
  const qosLock = new MachineLock(`kubepods${options.cgroupRoot}`);
  return {
    podCgroups: new PodCgroupManager({
      clock,
      cgroups: metrics.timeCgroups(cgroups),
      engine: engine.info,
      node: () => node,
      pods: () => podManager.pods(),
      ownsQosCgroups: () => qosLock.hold(),
      options,
      logger,
      ...(cluster && { onNodeBounded: () => cluster.recordNode(NODE_BOUNDED) }),
    }),
    oomGroup: new OomGroup({
      hierarchies,
      cgroupVersion,
      singleProcess: options.singleProcessOomKill,
      log: logger,
    }),
  };
}

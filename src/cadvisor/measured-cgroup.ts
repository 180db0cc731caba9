import type { InterfaceCounters } from "../cgroups/proc.ts";
import type { CgroupSample, ContainerSample, NodeSample, PodSample } from "../stats/sampler.ts";

/** One cgroup of a sample with what is known of it, for answers that name cgroups by path. */
export interface MeasuredCgroup {
  at: Date;
  cgroup: CgroupSample;
  isRoot: boolean;
  /** undefined for a cgroup that is not one of our containers. */
  container: ContainerSample | undefined;
  /** Pod it belongs to, or is. */
  pod: PodSample | undefined;
  /** Empty where it has no network of its own. */
  interfaces: readonly InterfaceCounters[];
}

/** Every cgroup of a sample: the node, the groups, the pods, their sandboxes and containers. */
export function measuredCgroups(sample: NodeSample): MeasuredCgroup[] {
  const found: MeasuredCgroup[] = [];
  const add = (cgroup: CgroupSample | undefined, more: Partial<MeasuredCgroup> = {}) => {
    if (!cgroup) return;
    found.push({ at: sample.at, cgroup, isRoot: false, container: undefined, pod: undefined, interfaces: [], ...more });
  };
  add(sample.root, { isRoot: true, interfaces: sample.interfaces });
  for (const group of [sample.kubepods, ...sample.groups]) add(group);
  for (const pod of sample.pods) {
    add(pod.cgroup, { pod });
    if (pod.sandbox) add(pod.sandbox.cgroup, { pod, container: pod.sandbox, interfaces: pod.interfaces });
    for (const container of pod.containers) add(container.cgroup, { pod, container });
  }
  return found;
}

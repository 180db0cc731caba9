import type { InterfaceCounters } from "../base/host/proc.ts";
import type { CgroupSample, ContainerSample, NodeSample, PodSample } from "./node-sample.ts";

/** One cgroup of a sample with what it belongs to. */
export interface MeasuredCgroup {
  /** When it was measured. */
  at: Date;
  cgroup: CgroupSample;
  isRoot: boolean;
  /** undefined for a cgroup that is not a container of one of our pods. */
  container: ContainerSample | undefined;
  /** Its container is a pod's sandbox. */
  isSandbox: boolean;
  /** The pod it belongs to, or is. */
  pod: PodSample | undefined;
  /** Interfaces of the node or of a sandbox; empty for cgroups without a network of their own. */
  interfaces: readonly InterfaceCounters[];
}

/** Every cgroup of a sample: the node, the groups, the pods, their sandboxes and containers. */
export function measuredCgroups(sample: NodeSample): MeasuredCgroup[] {
  const found: MeasuredCgroup[] = [];
  const add = (cgroup: CgroupSample | undefined, more: Partial<MeasuredCgroup> = {}) => {
    if (cgroup) found.push({ ...toMeasuredCgroup(cgroup, sample.at), ...more });
  };
  if (sample.root) add(sample.root, { isRoot: true, interfaces: sample.interfaces });
  for (const group of [sample.kubepods, ...sample.groups]) add(group);
  for (const pod of sample.pods) {
    add(pod.cgroup, { pod });
    if (pod.sandbox) {
      add(pod.sandbox.cgroup, { pod, container: pod.sandbox, isSandbox: true, interfaces: pod.interfaces });
    }
    for (const container of pod.containers) add(container.cgroup, { pod, container });
  }
  return found;
}

/** A cgroup that belongs to nothing known. */
export const toMeasuredCgroup = (cgroup: CgroupSample, at: Date): MeasuredCgroup => ({
  at,
  cgroup,
  isRoot: false,
  container: undefined,
  isSandbox: false,
  pod: undefined,
  interfaces: [],
});

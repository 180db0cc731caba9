import type { CgroupRow } from "../page/wire.ts";
import type { CgroupSample, ContainerSample, NodeSample, PodSample } from "../stats/node-sample.ts";

/**
 * The cgroups of the node and of its pods as a tree, siblings by memory. Pure.
 * @param sample with detail `all`: without it groups and sandboxes are missing
 */
export function toCgroupTree(sample: NodeSample): CgroupRow[] {
  const { root, kubepods, groups, system, pods } = sample;
  const nodes = new Map<string, Node>();
  const add = (cgroup: CgroupSample | undefined, name: string) => {
    if (cgroup) nodes.set(cgroup.path, { row: toRow(cgroup, name), children: [] });
  };
  add(root, "node");
  add(kubepods, "all pods");
  for (const group of groups) add(group, group.path.split("/").at(-1) ?? "");
  for (const [name, cgroup] of system) add(cgroup, SYSTEM_NAMES[name]);
  for (const pod of pods) addPod(pod, add);
  const tops: Node[] = [];
  for (const [path, node] of nodes) (parentOf(path, nodes)?.children ?? tops).push(node);
  return tops.flatMap((node) => flatten(node, 0));
}

interface Node {
  row: CgroupRow;
  children: Node[];
}

const SYSTEM_NAMES = { kubelet: "kubelet", runtime: "engine", misc: "system" } as const;

function addPod({ facts, cgroup, sandbox, containers }: PodSample, add: (c: CgroupSample, name: string) => void): void {
  const pod = `${facts.namespace}/${facts.name}`;
  if (cgroup) add(cgroup, pod);
  // A pod without a cgroup of its own is recognized by each of its containers.
  const prefix = cgroup ? "" : `${pod}/`;
  const addContainer = ({ facts: { name }, cgroup: own }: ContainerSample, title = name) => add(own, prefix + title);
  if (sandbox) addContainer(sandbox, "sandbox");
  for (const container of containers) addContainer(container);
}

/** The nearest cgroup above that is shown. */
function parentOf(path: string, nodes: ReadonlyMap<string, Node>): Node | undefined {
  for (let end = path; end !== "/" && end !== ""; ) {
    end = end.slice(0, end.lastIndexOf("/")) || "/";
    const found = nodes.get(end);
    if (found) return found;
  }
  return undefined;
}

function flatten({ row, children }: Node, depth: number): CgroupRow[] {
  const ordered = children.toSorted((a, b) => b.row.memoryBytes - a.row.memoryBytes);
  return [{ ...row, depth }, ...ordered.flatMap((child) => flatten(child, depth + 1))];
}

const toRow = ({ path, stats, usageNanoCores }: CgroupSample, name: string): CgroupRow => ({
  path,
  name,
  depth: 0,
  cpuCores: usageNanoCores === undefined ? null : usageNanoCores / 1e9,
  memoryBytes: stats.memory.workingSetBytes ?? 0,
  tasks: stats.pids?.current ?? null,
});

import type { CgroupRow } from "../../page/wire.ts";
import type { CgroupSample, ContainerSample, NodeSample, PodSample } from "../../stats/node-sample.ts";

/** The part of a sample that a row shows. */
export type ShownCgroup = Pick<CgroupSample, "path" | "stats" | "usageNanoCores">;

/**
 * The cgroups of the node as a tree, siblings by memory. Pure.
 * @param sample with detail `all`: without it groups and sandboxes are missing
 * @param others cgroups that are not of pods; those of the sample are shown once
 */
export function toCgroupTree(sample: NodeSample, others: readonly ShownCgroup[] = []): CgroupRow[] {
  const { root, kubepods, groups, system, pods } = sample;
  const nodes = new Map<string, Node>();
  const add: Add = (cgroup, name, pod = null) => {
    if (cgroup) nodes.set(cgroup.path, { row: toRow(cgroup, name, pod), children: [] });
  };
  for (const other of others) add(other, shortName(other.path));
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

type Add = (cgroup: ShownCgroup | undefined, name: string, pod?: CgroupRow["pod"]) => void;

/** The last part of a path, ids of containers as `docker ps` prints them. */
const shortName = (path: string): string =>
  (path.split("/").at(-1) ?? "").replace(/[0-9a-f]{64}/, (id) => id.slice(0, 12));

/** Paths of the cgroups that a tree has a row for without `others`. */
export function knownPaths({ root, kubepods, groups, system, pods }: NodeSample): Set<string> {
  const ofPods = pods.flatMap(({ cgroup, sandbox, containers }) => [
    cgroup,
    sandbox?.cgroup,
    ...containers.map((container) => container.cgroup),
  ]);
  const all = [root, kubepods, ...groups, ...system.values(), ...ofPods];
  return new Set(all.flatMap((cgroup) => cgroup?.path ?? []));
}

const SYSTEM_NAMES = { kubelet: "kubelet", runtime: "engine", misc: "system" } as const;

function addPod({ facts: { namespace, name }, cgroup, sandbox, containers }: PodSample, add: Add): void {
  const pod = { namespace, name };
  add(cgroup, `${namespace}/${name}`, pod);
  // A pod without a cgroup of its own is recognized by each of its containers.
  const prefix = cgroup ? "" : `${namespace}/${name}/`;
  const addContainer = ({ facts, cgroup: own }: ContainerSample, title = facts.name) => add(own, prefix + title, pod);
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

const toRow = ({ path, stats, usageNanoCores }: ShownCgroup, name: string, pod: CgroupRow["pod"]): CgroupRow => ({
  path,
  name,
  pod,
  depth: 0,
  cpuCores: usageNanoCores === undefined ? null : usageNanoCores / 1e9,
  memoryBytes: stats.memory.workingSetBytes ?? 0,
  tasks: stats.pids?.current ?? null,
});

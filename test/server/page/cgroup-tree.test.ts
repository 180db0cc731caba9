import { expect, test } from "bun:test";
import { knownPaths, type ShownCgroup, toCgroupTree } from "../../../src/server/page/cgroup-tree.ts";
import type { NodeSample } from "../../../src/stats/node-sample.ts";

const cgroup = (path: string, memory: number) => ({
  path,
  usageNanoCores: 5e8,
  stats: { memory: { workingSetBytes: memory }, pids: { current: 2 } },
});

test("cgroups are a tree, siblings by memory; a pod without a cgroup is reported by its containers", () => {
  const sample = {
    root: cgroup("/", 100),
    kubepods: cgroup("/kubepods", 50),
    groups: [cgroup("/kubepods/burstable", 40)],
    system: new Map([["runtime", cgroup("/system.slice/docker.service", 60)]]),
    pods: [
      {
        facts: { namespace: "default", name: "small" },
        cgroup: cgroup("/kubepods/podA", 5),
        sandbox: { facts: { name: "POD" }, cgroup: cgroup("/kubepods/podA/s", 1) },
        containers: [{ facts: { name: "app" }, cgroup: cgroup("/kubepods/podA/c", 4) }],
      },
      {
        facts: { namespace: "default", name: "bare" },
        containers: [{ facts: { name: "app" }, cgroup: cgroup("/docker/d", 7) }],
      },
    ],
  } as unknown as NodeSample;
  expect(toCgroupTree(sample).map(({ name, depth }) => `${" ".repeat(depth)}${name}`)).toEqual([
    "node",
    " engine",
    " all pods",
    "  burstable",
    "  default/small",
    "   app",
    "   sandbox",
    " default/bare/app",
  ]);
  expect(toCgroupTree(sample)[0]).toMatchObject({ cpuCores: 0.5, memoryBytes: 100, tasks: 2 });
});

test("cgroups that are not of pods have their place in the tree; a container's id is shortened", () => {
  const id = "0123456789ab".padEnd(64, "c");
  const sample = {
    root: cgroup("/", 100),
    groups: [],
    system: new Map([["runtime", cgroup("/system.slice/docker.service", 30)]]),
    pods: [],
  } as unknown as NodeSample;
  expect([...knownPaths(sample)]).toEqual(["/", "/system.slice/docker.service"]);
  const others = [cgroup("/docker", 60), cgroup(`/docker/${id}`, 50), cgroup("/system.slice", 40)];
  expect(
    toCgroupTree(sample, others as unknown as ShownCgroup[]).map(({ name, depth }) => `${" ".repeat(depth)}${name}`),
  ).toEqual(["node", " docker", "  0123456789ab", " system.slice", "  engine"]);
});

import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Pod } from "../../../src/base/api/pod.ts";
import { parseCoreTimes } from "../../../src/base/host/proc.ts";
import {
  knownPaths,
  readMemory,
  type ShownCgroup,
  toCgroupTree,
  toCoreUse,
  toFilesystems,
  toImageRows,
  toInterfaceRows,
} from "../../../src/daemon/assembly/page-node.ts";
import type { NodeFilesystem } from "../../../src/stats/cadvisor/cadvisor-facts.ts";
import type { NodeSample } from "../../../src/stats/sampler.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();

test("memory of the machine", () => {
  const proc = tempDir();
  const lines = ["MemTotal: 100", "MemAvailable: 60", "Buffers: 5", "Cached: 20", "SwapTotal: 50", "SwapFree: 40"];
  writeFileSync(join(proc, "meminfo"), lines.map((line) => `${line} kB\n`).join(""));
  expect(readMemory(proc)).toEqual({
    totalBytes: 102_400,
    availableBytes: 61_440,
    cachedBytes: 25_600,
    swapBytes: 51_200,
    swapUsedBytes: 10_240,
  });
});

test("use of a core is what it did between two readings", () => {
  const stat = (...cores: string[]) => `cpu 1 2 3 4 5 6 7 8\n${cores.join("\n")}\nintr 1 2 3\nbtime 5\n`;
  const before = parseCoreTimes(stat("cpu0 100 0 50 800 10 0 0 0 0 0", "cpu2 0 0 0 0 0 0 0 0 0 0"));
  const after = parseCoreTimes(stat("cpu0 120 10 55 840 15 2 3 15 0 0", "cpu2 0 0 0 0 0 0 0 0 0 0"));
  expect(toCoreUse(before, after)).toEqual([
    { user: 30, system: 10, wait: 5, stolen: 15 },
    { user: 0, system: 0, wait: 0, stolen: 0 },
  ]);
  expect(toCoreUse(before, after.slice(1))).toEqual([]);
});

test("interfaces that carried nothing are left out", () => {
  const counters = { rxPackets: 0, txPackets: 0, rxErrors: 1, txErrors: 2, rxDropped: 3, txDropped: 4 };
  const rows = toInterfaceRows([
    { name: "ifb0", rxBytes: 0, txBytes: 0, ...counters },
    { name: "eth0", rxBytes: 10, txBytes: 20, ...counters },
  ]);
  expect(rows).toEqual([{ name: "eth0", receivedBytes: 10, sentBytes: 20, errors: 3, dropped: 7 }]);
});

const fs = (device: string, mountPoint: string) =>
  ({ device, mountPoint, capacity: { capacityBytes: 100e6, availableBytes: 30e6 } }) as NodeFilesystem;

test("a file system is reported with what the kubelet keeps on it", () => {
  const filesystems = [
    fs("/dev/a", "/"),
    fs("/dev/b", "/var"),
    fs("/run", "/run"),
    fs("/x", "/root/pods/u/volumes/v"),
    fs("/dev/shm", "/dev/shm"),
    fs("s", `/data/containers/${"a".repeat(64)}/mounts/shm`),
  ];
  const places = { "root directory": "/var/lib/kubelet", images: "/variant/docker" };
  expect(
    toFilesystems({ filesystems }, places).map(({ mountPoint, use, usedBytes }) => [mountPoint, use, usedBytes]),
  ).toEqual([
    ["/", "images", 70e6],
    ["/var", "root directory", 70e6],
    ["/run", "", 70e6],
  ]);
});

test("images: the largest first, in use by id or name, else the last use", () => {
  const image = (id: string, names: string[], sizeBytes: number) => ({
    id: `sha256:${id}`,
    names,
    sizeBytes,
    createdSeconds: 1,
  });
  const containerStatuses = [
    { image: "web:1", imageID: "docker://sha256:x" },
    { image: "other", imageID: "docker://sha256:b" },
  ];
  const pod = { metadata: { namespace: "default", name: "web" }, status: { containerStatuses } } as unknown as Pod;
  const images = [image("a", ["web:1"], 1), image("b", [], 3), image("c", ["old:1"], 2), image("d", [], 0)];
  const gc = {
    unusedMs: (id: string) => (id === "sha256:c" ? 400 : undefined),
    // As of the last pass: the pod has begun to use the first one since.
    removable: new Set(["sha256:a", "sha256:c"]),
  };
  const rows = toImageRows(images, [pod], gc, 1000);
  expect(rows.map(({ id, usedBy, isRemovable, lastUse }) => [id, usedBy.join(), isRemovable, lastUse])).toEqual([
    ["sha256:b", "default/web", false, 0],
    ["sha256:c", "", true, 600],
    ["sha256:a", "default/web", false, 0],
    ["sha256:d", "", false, 0],
  ]);
});

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
    others: [],
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
    others: [{ facts: { dockerName: "db" }, cgroup: cgroup(`/docker/${"d".repeat(64)}`, 45) }],
  } as unknown as NodeSample;
  expect([...knownPaths(sample)]).toEqual(["/", "/system.slice/docker.service", `/docker/${"d".repeat(64)}`]);
  const others = [cgroup("/docker", 60), cgroup(`/docker/${id}`, 50), cgroup("/system.slice", 40)];
  expect(
    toCgroupTree(sample, others as unknown as ShownCgroup[]).map(({ name, depth }) => `${" ".repeat(depth)}${name}`),
  ).toEqual(["node", " docker", "  0123456789ab", "  db", " system.slice", "  engine"]);
});

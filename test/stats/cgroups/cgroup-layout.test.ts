import { expect, test } from "bun:test";
import {
  parentDirectories,
  parseCgroupMounts,
  parseProcCgroup,
  toCgroupDirectories,
  toCgroupLayout,
  toProcessDirectories,
} from "../../../src/stats/cgroups/cgroup-layout.ts";

const V1 = `27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:15 - cgroup cgroup rw,cpu,cpuacct
33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
34 31 0:31 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
`;
const UNIFIED = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n";
const V2 = "31 22 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

test("controllers that share a hierarchy are found in it", () => {
  const layout = toCgroupLayout(parseCgroupMounts(V1), "");
  expect(layout.mode).toBe("v1");
  expect(layout.unified).toBeUndefined();
  expect([...layout.controllers.keys()].sort()).toEqual(["cpu", "cpuacct", "memory"]);
  expect(toCgroupDirectories(layout, "/kubepods").cpuacct).toEqual({
    version: 1,
    path: "/sys/fs/cgroup/cpu,cpuacct/kubepods",
  });
});

test("without systemd the one hierarchy is found where it is mounted, anywhere", () => {
  const elsewhere = "50 22 0:27 / /mnt/cg\\040two rw - cgroup2 none rw\n";
  const layout = toCgroupLayout(parseCgroupMounts(elsewhere), "cpu memory io pids\n");
  expect(layout.mode).toBe("v2");
  expect(toCgroupDirectories(layout, "/").memory).toEqual({ version: 2, path: "/mnt/cg two" });
  expect(toCgroupDirectories(layout, "/a").blkio).toEqual({ version: 2, path: "/mnt/cg two/a" });
  expect(layout.controllers.has("hugetlb")).toBe(false);
});

test("a hybrid machine keeps its controllers in v1 and takes from v2 only what is nowhere else", () => {
  const layout = toCgroupLayout(parseCgroupMounts(V1 + UNIFIED), "hugetlb\n");
  expect(layout.mode).toBe("hybrid");
  expect(layout.controllers.get("memory")?.version).toBe(1);
  expect(layout.controllers.get("hugetlb")?.mountPoint).toBe("/sys/fs/cgroup/unified");
  expect(layout.unified?.mountPoint).toBe("/sys/fs/cgroup/unified");
});

test("of several mounts of a hierarchy the one of its root is taken", () => {
  const part = "60 31 0:30 /docker/abc /inside/memory rw - cgroup cgroup rw,memory\n";
  const layout = toCgroupLayout(parseCgroupMounts(part + V1), "");
  expect(layout.controllers.get("memory")?.mountPoint).toBe("/sys/fs/cgroup/memory");
});

test("in a container the mounted part represents its path", () => {
  const part = "60 31 0:30 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
  const layout = toCgroupLayout(parseCgroupMounts(part), "");
  expect(toCgroupDirectories(layout, "/docker/abc/kubepods").memory?.path).toBe("/sys/fs/cgroup/memory/kubepods");
  expect(toCgroupDirectories(layout, "/docker/abc").memory?.path).toBe("/sys/fs/cgroup/memory");
  expect(toCgroupDirectories(layout, "/docker/abcd").memory?.path).toBe("/sys/fs/cgroup/memory/docker/abcd");
});

test("a process may be in another cgroup in each hierarchy", () => {
  const paths = parseProcCgroup("5:memory:/kubepods/a:b\n3:cpu,cpuacct:/other\n1:name=systemd:/x\n0::/unified\n");
  const layout = toCgroupLayout(parseCgroupMounts(V1 + UNIFIED), "");
  const found = toProcessDirectories(layout, paths);
  expect(found.memory?.path).toBe("/sys/fs/cgroup/memory/kubepods/a:b");
  expect(found.cpu?.path).toBe("/sys/fs/cgroup/cpu,cpuacct/other");
  expect(found.unified?.path).toBe("/sys/fs/cgroup/unified/unified");
  expect(parentDirectories(found).memory?.path).toBe("/sys/fs/cgroup/memory/kubepods");
});

test("a v2 process is in one cgroup for all controllers", () => {
  const layout = toCgroupLayout(parseCgroupMounts(V2), "cpu memory");
  const found = toProcessDirectories(layout, parseProcCgroup("0::/kubepods.slice/x.scope\n"));
  expect(found.cpuacct).toEqual({ version: 2, path: "/sys/fs/cgroup/kubepods.slice/x.scope" });
  expect(found.memory).toEqual(found.cpu!);
});

test("nothing is found in a mountinfo without cgroups", () => {
  const layout = toCgroupLayout(parseCgroupMounts("27 1 254:0 / / rw - ext4 /dev/vda rw\nnonsense\n"), "");
  expect([...layout.controllers]).toEqual([]);
  expect(toCgroupDirectories(layout, "/")).toEqual({});
});

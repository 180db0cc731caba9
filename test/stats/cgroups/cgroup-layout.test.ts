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

const ELSEWHERE = "50 22 0:27 / /mnt/cg\\040two rw - cgroup2 none rw\n";
const PART = "60 31 0:30 /docker/abc /inside/memory rw - cgroup cgroup rw,memory\n";

type Row = [
  rule: string,
  mountinfo: string,
  unified: string,
  cgroup: string,
  controller: string,
  path: string | undefined,
];

/** The directory of a controller for a cgroup. `unified`: the controllers of the v2 hierarchy. */
test.each<Row>([
  ["a controller that shares a hierarchy is found in it", V1, "", "/a", "cpuacct", "/sys/fs/cgroup/cpu,cpuacct/a"],
  ["a hierarchy is found where it is mounted, anywhere", ELSEWHERE, "cpu memory io\n", "/", "memory", "/mnt/cg two"],
  ["blkio is io there", ELSEWHERE, "cpu memory io\n", "/a", "blkio", "/mnt/cg two/a"],
  ["a controller that is nowhere is absent", ELSEWHERE, "cpu memory io\n", "/", "hugetlb", undefined],
  ["a hybrid machine keeps v1", V1 + UNIFIED, "hugetlb memory\n", "/a", "memory", "/sys/fs/cgroup/memory/a"],
  ["only what v1 lacks comes of v2", V1 + UNIFIED, "hugetlb\n", "/a", "hugetlb", "/sys/fs/cgroup/unified/a"],
  ["v1 alone has no unified hierarchy", V1, "", "/a", "unified", undefined],
  ["of several mounts the one of the root is taken", PART + V1, "", "/a", "memory", "/sys/fs/cgroup/memory/a"],
  ["in a container the mounted part is its cgroup", PART, "", "/docker/abc", "memory", "/inside/memory"],
  ["and those below it", PART, "", "/docker/abc/kubepods", "memory", "/inside/memory/kubepods"],
  ["not one whose name begins alike", PART, "", "/docker/abcd", "memory", "/inside/memory/docker/abcd"],
  ["without cgroups: nothing", "27 1 254:0 / / rw - ext4 /dev/vda rw\nnonsense\n", "", "/", "memory", undefined],
])("%s", (_, mountinfo, unified, cgroup, controller, path) => {
  const directories = toCgroupDirectories(toCgroupLayout(parseCgroupMounts(mountinfo), unified), cgroup);
  expect(directories[controller as keyof typeof directories]?.path).toBe(path as string);
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

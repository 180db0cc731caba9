import { describe, expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import {
  computePodCgroupLimits,
  computeQosCgroups,
  type PodCgroupSettings,
  toCgroupParent,
  toCgroupPath,
  toCgroupPlan,
  toCgroupV1Writes,
  toCgroupV2Writes,
  toHugePageSizeName,
  toPodCgroupName,
  toSliceProperties,
} from "../../src/plan/pod-cgroup.ts";

type Resources = { requests?: Record<string, string>; limits?: Record<string, string> };

const podOf = (containers: Resources[], initContainers: object[] = [], spec: object = {}) =>
  ({
    metadata: { uid: "u-1" },
    spec: { containers: containers.map((resources) => ({ name: "c", resources })), initContainers, ...spec },
  }) as unknown as Pod;

const same = (list: Record<string, string>): Resources => ({ requests: list, limits: list });

const SETTINGS: PodCgroupSettings = {
  cpuCfsQuota: true,
  cpuCfsQuotaPeriodMs: 100,
  podPidsLimit: -1,
  memorySwap: "NoSwap",
};

const BURSTABLE_SLICE = "/kubepods.slice/kubepods-burstable.slice";
const BEST_EFFORT_SLICE = "/kubepods.slice/kubepods-besteffort.slice";

describe("names", () => {
  test.each([
    ["Guaranteed", "/kubepods/podu-1", "/kubepods.slice", "kubepods-podu_1.slice"],
    ["Burstable", "/kubepods/burstable/podu-1", BURSTABLE_SLICE, "kubepods-burstable-podu_1.slice"],
    ["BestEffort", "/kubepods/besteffort/podu-1", BEST_EFFORT_SLICE, "kubepods-besteffort-podu_1.slice"],
  ] as const)("%s", (qosClass, cgroupfs, parents, slice) => {
    const name = toPodCgroupName("u-1", qosClass);
    expect(toCgroupPath(name, "cgroupfs")).toBe(cgroupfs);
    expect(toCgroupPath(name, "systemd")).toBe(`${parents}/${slice}`);
    expect(toCgroupParent(name, "cgroupfs")).toBe(cgroupfs);
    expect(toCgroupParent(name, "systemd")).toBe(slice);
  });

  test("under --cgroup-root", () => {
    expect(toCgroupParent(toPodCgroupName("u", "Guaranteed"), "cgroupfs", "/a/b/")).toBe("/a/b/kubepods/podu");
  });
});

describe("bounds of the pod", () => {
  test("Guaranteed: the sums", () => {
    const pod = podOf([same({ cpu: "100m", memory: "64Mi" }), same({ cpu: "1500m", memory: "128M" })]);
    expect(computePodCgroupLimits(pod, SETTINGS)).toEqual({
      cpuShares: 1638,
      cpuPeriodUs: 100_000,
      cpuQuotaUs: 160_000,
      memoryBytes: 195_108_864,
      swapBytes: 0,
      pids: -1,
      hugePageBytes: {},
    });
  });

  const main = same({ cpu: "1", memory: "10Mi" });
  const init = { name: "i", resources: same({ cpu: "3", memory: "1Mi" }) };
  const sidecar = { name: "s", restartPolicy: "Always", resources: same({ cpu: "1", memory: "1Mi" }) };
  const partly = [{ requests: { cpu: "100m" }, limits: { cpu: "1", memory: "10Mi" } }, { limits: { cpu: "1" } }];
  test.each<[when: string, pod: Pod, want: ReturnType<typeof computePodCgroupLimits>]>([
    ["BestEffort: none, the least weight", podOf([{}]), { cpuShares: 2, cpuQuotaUs: -1, memoryBytes: -1 }],
    ["Burstable: bounds need every container", podOf(partly), { cpuShares: 102, cpuQuotaUs: 200_000, memoryBytes: -1 }],
    ["an init container that needs more", podOf([main], [init]), { cpuShares: 3072, memoryBytes: 10 << 20 }],
    ["a sidecar runs with the others", podOf([main], [sidecar]), { cpuShares: 2048 }],
    ["and with an init container after it", podOf([main], [sidecar, init]), { cpuShares: 4096 }],
    ["not with one before it", podOf([main], [init, sidecar]), { cpuShares: 3072 }],
  ])("%s", (_when, pod, want) => expect(computePodCgroupLimits(pod, SETTINGS)).toMatchObject(want));

  test("what the pod itself says takes precedence", () => {
    const pod = podOf([{ limits: { memory: "10Mi" } }, {}], [], {
      resources: { requests: { cpu: "500m" }, limits: { cpu: "2", memory: "1Gi", "hugepages-2Mi": "4Mi" } },
    });
    expect(computePodCgroupLimits(pod, SETTINGS)).toMatchObject({
      cpuShares: 512,
      cpuQuotaUs: 200_000,
      memoryBytes: 1024 ** 3,
      hugePageBytes: { "2MB": 4_194_304 },
    });
  });

  test("settings: pids, no CFS quota, swap", () => {
    const pod = podOf([{ requests: { memory: "1Mi" }, limits: { cpu: "1" } }]);
    expect(computePodCgroupLimits(pod, { ...SETTINGS, podPidsLimit: 100, cpuCfsQuota: false })).toMatchObject({
      pids: 100,
      cpuQuotaUs: -1,
    });
    expect(computePodCgroupLimits(pod, { ...SETTINGS, memorySwap: "LimitedSwap" })).not.toHaveProperty("swapBytes");
  });
});

test("huge pages by the kernel's names", () => {
  expect(["hugepages-2Mi", "hugepages-1Gi", "hugepages-64Ki"].map(toHugePageSizeName)).toEqual(["2MB", "1GB", "64KB"]);
});

test("weights of the QoS classes", () => {
  const pods = [
    podOf([{ requests: { cpu: "500m" } }]),
    podOf([{ requests: { cpu: "250m" } }]),
    podOf([same({ cpu: "1", memory: "1Mi" })]),
    podOf([{}]),
  ];
  expect(computeQosCgroups(pods, { cpuMillis: 2000, memoryBytes: 1024, pids: 100 })).toEqual([
    { name: ["kubepods"], limits: { cpuShares: 2048, memoryBytes: 1024, pids: 100 } },
    { name: ["kubepods", "burstable"], limits: { cpuShares: 768 } },
    { name: ["kubepods", "besteffort"], limits: { cpuShares: 2 } },
  ]);
});

describe("files", () => {
  const limits = {
    cpuShares: 1638,
    cpuPeriodUs: 100_000,
    cpuQuotaUs: 160_000,
    memoryBytes: 1000,
    swapBytes: 0,
    pids: -1,
    hugePageBytes: { "2MB": 5 },
  };
  const linesOf = (writes: { file: string; value: string }[]) => writes.map(({ file, value }) => `${file} ${value}`);

  test("cgroup v1", () => {
    expect(linesOf(toCgroupV1Writes(limits))).toEqual([
      "cpu.shares 1638",
      "cpu.cfs_period_us 100000",
      "cpu.cfs_quota_us 160000",
      "memory.limit_in_bytes 1000",
      "pids.max max",
      "hugetlb.2MB.limit_in_bytes 5",
    ]);
    expect(linesOf(toCgroupV1Writes({ cpuQuotaUs: -1, memoryBytes: -1 }))).toEqual([
      "cpu.cfs_quota_us -1",
      "memory.limit_in_bytes -1",
    ]);
  });

  test("cgroup v2", () => {
    expect(linesOf(toCgroupV2Writes(limits))).toEqual([
      "cpu.weight 63",
      "cpu.max 160000 100000",
      "memory.max 1000",
      "memory.swap.max 0",
      "pids.max max",
      "hugetlb.2MB.max 5",
    ]);
    expect(linesOf(toCgroupV2Writes({ cpuShares: 2, cpuQuotaUs: -1, memoryBytes: -1 }))).toEqual([
      "cpu.weight 1",
      "cpu.max max 100000",
      "memory.max max",
    ]);
    expect(linesOf(toCgroupV2Writes({ cpuShares: 262_144 }))).toEqual(["cpu.weight 10000"]);
  });
});

describe("systemd", () => {
  const bounds = { memoryBytes: 1000, swapBytes: 0, pids: 7 };
  const limits = { cpuShares: 1024, cpuQuotaUs: 155_555, cpuPeriodUs: 100_000, ...bounds };

  test("properties of a slice on cgroup v2", () => {
    expect(toSliceProperties(limits, 2).join(" ")).toBe(
      "CPUWeight=39 CPUQuota=156% MemoryMax=1000 MemorySwapMax=0 TasksMax=7",
    );
  });

  test("properties of a slice on cgroup v1", () => {
    expect(toSliceProperties(limits, 1)).toEqual(["CPUShares=1024", "CPUQuota=156%", "MemoryLimit=1000", "TasksMax=7"]);
  });

  test("no bounds", () => {
    const properties = toSliceProperties({ cpuQuotaUs: -1, memoryBytes: -1, pids: -1 }, 2);
    expect(properties).toEqual(["CPUQuota=", "MemoryMax=infinity", "TasksMax=infinity"]);
  });

  test("a plan names the slice only under systemd", () => {
    const name = toPodCgroupName("u-1", "Burstable");
    const planOf = (driver: "cgroupfs" | "systemd") =>
      toCgroupPlan(name, limits, { driver, cgroupVersion: 2, cgroupRoot: "" });
    const slice = "kubepods-burstable-podu_1.slice";
    expect(planOf("systemd")).toMatchObject({ path: `${BURSTABLE_SLICE}/${slice}`, slice: { name: slice } });
    expect(planOf("cgroupfs")).toMatchObject({ path: "/kubepods/burstable/podu-1" });
    expect(planOf("cgroupfs")).not.toHaveProperty("slice");
  });
});

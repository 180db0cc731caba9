import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type CgroupHierarchy, PodCgroups, type PodCgroupsOptions } from "../../../src/base/host/pod-cgroups.ts";
import { type CgroupLimits, toCgroupPlan, toPodCgroupName } from "../../../src/plan/pod-cgroup.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();

const LIMITS: CgroupLimits = {
  cpuShares: 512,
  cpuPeriodUs: 100_000,
  cpuQuotaUs: 50_000,
  memoryBytes: 1000,
  swapBytes: 0,
  pids: 7,
};
const UNBOUNDED: CgroupLimits = { cpuShares: 2, cpuPeriodUs: 100_000, cpuQuotaUs: -1, memoryBytes: -1, pids: -1 };
const NAME = toPodCgroupName("u", "Burstable");
const PATH = "kubepods/burstable/podu";

const planOf = (limits: CgroupLimits, driver: "cgroupfs" | "systemd" = "cgroupfs", cgroupVersion: 1 | 2 = 1) =>
  toCgroupPlan(NAME, limits, { driver, cgroupVersion, cgroupRoot: "" });

/** A directory that looks like cgroups which exist already: a plain directory does not get files from the kernel. */
function fakeHierarchy(version: 1 | 2, controllers: string[], files: string[]): CgroupHierarchy {
  const mountPoint = tempDir();
  mkdirSync(join(mountPoint, PATH), { recursive: true });
  for (const file of files) writeFileSync(join(mountPoint, PATH, file), "");
  return { version, mountPoint, root: "/", controllers };
}

const V1_FILES = ["cpu.shares", "cpu.cfs_period_us", "cpu.cfs_quota_us"];
const V2_FILES = ["cpu.weight", "cpu.max", "memory.max", "memory.swap.max", "pids.max"];

function cgroups(hierarchies: CgroupHierarchy[], over: Partial<PodCgroupsOptions> = {}) {
  const log = new RecordingLogger();
  const commands: string[] = [];
  const systemctl = async (args: readonly string[]) => void commands.push(args.join(" "));
  return {
    log,
    commands,
    podCgroups: new PodCgroups({ hierarchies, cgroupVersion: () => 1, log, systemctl, ...over }),
  };
}

const readIn = ({ mountPoint }: CgroupHierarchy, file: string) => readFileSync(join(mountPoint, PATH, file), "utf8");

describe("cgroup v1", () => {
  test("each file goes to the hierarchy of its controller", async () => {
    const cpu = fakeHierarchy(1, ["cpu", "cpuacct"], V1_FILES);
    const memory = fakeHierarchy(1, ["memory"], ["memory.limit_in_bytes"]);
    const pids = fakeHierarchy(1, ["pids"], ["pids.max"]);
    await cgroups([cpu, memory, pids]).podCgroups.ensure(planOf(LIMITS));
    expect(readIn(cpu, "cpu.shares")).toBe("512");
    expect(readIn(cpu, "cpu.cfs_quota_us")).toBe("50000");
    expect(readIn(memory, "memory.limit_in_bytes")).toBe("1000");
    expect(readIn(pids, "pids.max")).toBe("7");
  });

  test("the cgroup is created with its parents", async () => {
    const cpu: CgroupHierarchy = { version: 1, mountPoint: tempDir(), root: "/", controllers: ["cpu"] };
    await cgroups([cpu]).podCgroups.ensure(planOf({ cpuShares: 2 }));
    expect(existsSync(join(cpu.mountPoint, PATH))).toBe(true);
  });

  test("a bound that the kernel has no file for is an error", async () => {
    const cpu = fakeHierarchy(1, ["cpu"], V1_FILES);
    const ensured = cgroups([cpu]).podCgroups.ensure(planOf(LIMITS));
    await expect(ensured).rejects.toThrow(
      'Cannot set memory.limit_in_bytes of cgroup "/kubepods/burstable/podu" to 1000',
    );
  });

  test("no bound needs no file", async () => {
    const { podCgroups, log } = cgroups([fakeHierarchy(1, ["cpu"], ["cpu.shares"])]);
    await podCgroups.ensure(planOf(UNBOUNDED));
    await podCgroups.ensure(planOf(UNBOUNDED));
    // cpu.cfs_period_us, cpu.cfs_quota_us, memory.limit_in_bytes, pids.max: each written once.
    expect(log.lines).toHaveLength(4);
  });

  test("a mount of a part of the hierarchy represents that part", async () => {
    const mountPoint = tempDir();
    mkdirSync(join(mountPoint, "burstable/podu"), { recursive: true });
    writeFileSync(join(mountPoint, "burstable/podu/cpu.shares"), "");
    const part: CgroupHierarchy = { version: 1, mountPoint, root: "/kubepods", controllers: ["cpu"] };
    await cgroups([part]).podCgroups.ensure(planOf({ cpuShares: 2 }));
    expect(readFileSync(join(mountPoint, "burstable/podu/cpu.shares"), "utf8")).toBe("2");
  });
});

describe("cgroup v2", () => {
  test("all files are in the one hierarchy, controllers are enabled for children", async () => {
    const unified = fakeHierarchy(2, [], V2_FILES);
    writeFileSync(join(unified.mountPoint, "cgroup.subtree_control"), "");
    await cgroups([unified], { cgroupVersion: () => 2 }).podCgroups.ensure(planOf(LIMITS, "cgroupfs", 2));
    expect(V2_FILES.map((file) => readIn(unified, file))).toEqual(["20", "50000 100000", "1000", "0", "7"]);
    expect(readFileSync(join(unified.mountPoint, "cgroup.subtree_control"), "utf8")).toStartWith("+");
  });

  test("in hybrid mode the v2 hierarchy bounds nothing", async () => {
    const cpu = fakeHierarchy(1, ["cpu"], V1_FILES);
    const unified = fakeHierarchy(2, [], V2_FILES);
    await cgroups([unified, cpu]).podCgroups.ensure(planOf(UNBOUNDED));
    expect(readIn(cpu, "cpu.shares")).toBe("2");
    expect(readIn(unified, "cpu.weight")).toBe("");
  });
});

describe("systemd", () => {
  test("systemd is reported the bounds of its slice", async () => {
    const { podCgroups, commands } = cgroups([], { cgroupVersion: () => 2 });
    await podCgroups.ensure(planOf(LIMITS, "systemd", 2));
    expect(commands).toEqual([
      "set-property --runtime kubepods-burstable-podu.slice CPUWeight=20 CPUQuota=50% MemoryMax=1000 MemorySwapMax=0 TasksMax=7",
    ]);
  });

  test("when it refuses, the bounds do not hold", async () => {
    const systemctl = async () => Promise.reject(new Error("no bus"));
    const ensured = cgroups([], { systemctl }).podCgroups.ensure(planOf(LIMITS, "systemd"));
    await expect(ensured).rejects.toThrow(
      /Cannot set CPUShares=512 .* of "kubepods-burstable-podu.slice": Error: no bus/,
    );
  });
});

describe("removal", () => {
  const emptyHierarchy = (): CgroupHierarchy => fakeHierarchy(1, ["devices"], []);

  test("from every hierarchy, also those the engine made; again is fine", async () => {
    const hierarchies = [emptyHierarchy(), emptyHierarchy()];
    mkdirSync(join(hierarchies[0]!.mountPoint, PATH, "leftover"));
    const { podCgroups } = cgroups(hierarchies);
    expect(podCgroups.exists(`/${PATH}`)).toBe(true);
    expect(await podCgroups.remove(`/${PATH}`)).toBe(true);
    expect(podCgroups.exists(`/${PATH}`)).toBe(false);
    expect(await podCgroups.remove(`/${PATH}`)).toBe(true);
    expect(existsSync(join(hierarchies[0]!.mountPoint, "kubepods/burstable"))).toBe(true);
  });

  test("of what a removed container left running: its processes are killed, those of others live", async () => {
    const hierarchy = emptyHierarchy();
    const [left, below, other] = Array.from(["removed", "removed/below", "other"], (name) => {
      const child = Bun.spawn(["sleep", "1000"]);
      const directory = join(hierarchy.mountPoint, PATH, name);
      mkdirSync(directory);
      // The kernel writes 0 for a process of another PID namespace.
      writeFileSync(join(directory, "cgroup.procs"), `0\n${child.pid}\n`);
      return child;
    });
    const { podCgroups } = cgroups([hierarchy]);
    podCgroups.kill(`/${PATH}/removed`);
    podCgroups.kill(`/${PATH}/none`);
    await Promise.all([left!.exited, below!.exited]);
    expect([left!.signalCode, below!.signalCode, other!.killed]).toEqual(["SIGKILL", "SIGKILL", false]);
    other!.kill();
  });

  test("not while something is inside", async () => {
    const busy = emptyHierarchy();
    // A file keeps a plain directory from being removed, as a process does a cgroup.
    writeFileSync(join(busy.mountPoint, PATH, "process"), "");
    const other = emptyHierarchy();
    const { podCgroups } = cgroups([busy, other]);
    expect(await podCgroups.remove(`/${PATH}`)).toBe(false);
    expect(existsSync(join(busy.mountPoint, PATH, "process"))).toBe(true);
    expect(existsSync(join(other.mountPoint, PATH))).toBe(false);
  });

  const SLICE = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu.slice";
  const NAME_OF_SLICE = "kubepods-burstable-podu.slice";

  /** A v2 tree with the pod's slice, and the directory in which systemd keeps its settings. */
  function sliceTree() {
    const unified = fakeHierarchy(2, [], []);
    const sliceSettingsDirectory = tempDir();
    mkdirSync(join(unified.mountPoint, SLICE, "docker-1.scope"), { recursive: true });
    mkdirSync(join(sliceSettingsDirectory, `${NAME_OF_SLICE}.d`));
    writeFileSync(join(sliceSettingsDirectory, `${NAME_OF_SLICE}.d`, "50-CPUWeight.conf"), "[Slice]\n");
    return { unified, sliceSettingsDirectory, over: { cgroupVersion: () => 2 as const, sliceSettingsDirectory } };
  }

  test("a slice is stopped and its settings are forgotten, once", async () => {
    const { unified, sliceSettingsDirectory, over } = sliceTree();
    const { podCgroups, commands } = cgroups([unified], over);
    expect(await podCgroups.remove(`/${SLICE}`)).toBe(true);
    expect(await podCgroups.remove(`/${SLICE}`)).toBe(true);
    expect(commands).toEqual([`stop ${NAME_OF_SLICE}`]);
    expect(readdirSync(sliceSettingsDirectory)).toEqual([]);
    expect(podCgroups.exists(`/${SLICE}`)).toBe(false);
  });

  test("a slice with a process in it is not stopped: that would end it", async () => {
    const { unified, sliceSettingsDirectory, over } = sliceTree();
    writeFileSync(join(unified.mountPoint, SLICE, "docker-1.scope", "cgroup.procs"), "1234\n");
    const { podCgroups, commands } = cgroups([unified], over);
    expect(await podCgroups.remove(`/${SLICE}`)).toBe(false);
    expect(commands).toEqual([]);
    expect(readdirSync(sliceSettingsDirectory)).toEqual([`${NAME_OF_SLICE}.d`]);
  });

  test("a slice that is wanted again is set up when its removal is over", async () => {
    const { unified, over } = sliceTree();
    const stopped = Promise.withResolvers<void>();
    const commands: string[] = [];
    const systemctl = async ([verb = ""]: readonly string[]) => {
      commands.push(verb);
      if (verb === "stop") await stopped.promise;
    };
    const { podCgroups } = cgroups([unified], { ...over, systemctl });
    const removal = podCgroups.remove(`/${SLICE}`);
    const ensured = podCgroups.ensure(planOf({ cpuShares: 2 }, "systemd", 2));
    expect(commands).toEqual(["stop"]);
    stopped.resolve();
    await Promise.all([removal, ensured]);
    expect(commands).toEqual(["stop", "set-property"]);
  });
});

import { afterAll, describe, expect, test } from "bun:test";
import { accessSync, constants, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PodCgroups } from "../../src/base/host/pod-cgroups.ts";
import { toCgroupPlan, toPodCgroupName } from "../../src/plan/pod-cgroup.ts";
import { type CgroupMount, parseCgroupMounts } from "../../src/stats/cgroups/cgroup-layout.ts";
import { RecordingLogger } from "../support/recording-logger.ts";

const MOUNTS = parseCgroupMounts(readFileSync("/proc/self/mountinfo", "utf8"));
const MEMORY = MOUNTS.find(({ version, controllers }) => version === 2 || controllers.includes("memory"));
const CGROUP_VERSION = MEMORY?.version ?? 2;

function isWritable(mount: CgroupMount | undefined): boolean {
  try {
    accessSync(mount?.mountPoint ?? "/nowhere", constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

const canWrite = process.getuid?.() === 0 && isWritable(MEMORY);
if (!canWrite) console.warn('SKIPPED "cgroups of this kernel": no cgroup hierarchy that this user may write to');

describe.skipIf(!canWrite)("cgroups of this kernel", () => {
  const cgroupRoot = `/kubelet-ts-test-${process.pid}`;
  const podCgroups = new PodCgroups({
    hierarchies: MOUNTS,
    cgroupVersion: () => CGROUP_VERSION,
    log: new RecordingLogger(),
    systemctl: () => Promise.reject(new Error("not under systemd")),
  });
  const plan = toCgroupPlan(
    toPodCgroupName("u1", "Burstable"),
    { cpuShares: 512, cpuPeriodUs: 100_000, cpuQuotaUs: 50_000, memoryBytes: 64 * 1024 * 1024, pids: 50 },
    { driver: "cgroupfs", cgroupVersion: CGROUP_VERSION, cgroupRoot },
  );
  const memoryDirectory = join(MEMORY?.mountPoint ?? "", plan.path);
  const limitFile = join(memoryDirectory, CGROUP_VERSION === 1 ? "memory.limit_in_bytes" : "memory.max");

  afterAll(async () => {
    await podCgroups.remove(cgroupRoot);
  });

  test("bounds are in force, can be changed, and the cgroup goes when it is empty", async () => {
    await podCgroups.ensure(plan);
    expect(readFileSync(limitFile, "utf8").trim()).toBe(String(64 * 1024 * 1024));

    const lifted = { ...plan, v1Writes: [], v2Writes: [] };
    await podCgroups.ensure(lifted);
    expect(readFileSync(limitFile, "utf8").trim()).toBe(String(64 * 1024 * 1024));

    const child = Bun.spawn(["sleep", "60"]);
    try {
      writeFileSync(join(memoryDirectory, "cgroup.procs"), String(child.pid));
      expect(await podCgroups.remove(plan.path)).toBe(false);
      expect(child.exitCode).toBeNull();
    } finally {
      child.kill("SIGKILL");
      await child.exited;
    }
    expect(await podCgroups.remove(plan.path)).toBe(true);
    expect(existsSync(memoryDirectory)).toBe(false);
    expect(podCgroups.exists(plan.path)).toBe(false);
  });
});

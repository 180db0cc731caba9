import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PodCgroups } from "../../src/base/host/pod-cgroups.ts";
import { LABEL } from "../../src/docker/labels.ts";
import { toCgroupPlan, toPodCgroupName } from "../../src/plan/pod-cgroup.ts";
import { parseCgroupMounts } from "../../src/stats/cgroups/cgroup-layout.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { sleeper } from "../support/manifests.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { isRoot } from "../support/temp-dir.ts";
import { type TestNode, toParentPath } from "../support/test-node.ts";

const MOUNTS = parseCgroupMounts(readFileSync("/proc/self/mountinfo", "utf8"));

/** A file of a cgroup on this machine, by its name on cgroup v1 or v2; undefined where this test cannot see it. */
function readCgroup(parent: string, v1: { controller: string; file: string }, v2File: string): string | undefined {
  const mount = MOUNTS.find(({ version, controllers }) => version === 2 || controllers.includes(v1.controller));
  if (!mount) return undefined;
  const path = join(mount.mountPoint, toParentPath(parent), mount.version === 1 ? v1.file : v2File);
  return existsSync(path) ? readFileSync(path, "utf8").trim() : undefined;
}

const readMemoryLimit = (parent: string) =>
  readCgroup(parent, { controller: "memory", file: "memory.limit_in_bytes" }, "memory.max");

const manifest = (resources: object, podResources?: object) =>
  sleeper("resize", { resources }, podResources && { resources: podResources });

const MI = 1024 * 1024;

interface Applied {
  Memory: number;
  CpuShares: number;
  CpuQuota: number;
  CgroupParent: string;
}

const appliedTo = async (node: TestNode, id: string) =>
  (await node.docker.inspectContainerRaw(id)).HostConfig as unknown as Applied;

describeWithEngine("an edit of resources changes the running container", () => {
  test("cpu and memory, up and down; the pod's cgroup follows", async () => {
    const node = testNode();
    node.writeManifest(
      "pod.yaml",
      manifest({ requests: { cpu: "100m", memory: "16Mi" }, limits: { cpu: "500m", memory: "64Mi" } }),
    );
    await node.start();
    const { Id } = await node.runningContainer("app");
    const { CgroupParent } = await appliedTo(node, Id);
    expect(readMemoryLimit(CgroupParent) ?? String(64 * MI)).toBe(String(64 * MI));

    for (const [cpu, memory] of [
      ["800m", "128Mi"],
      ["300m", "32Mi"],
    ] as const) {
      const bytes = Number.parseInt(memory, 10) * MI;
      node.writeManifest("pod.yaml", manifest({ requests: { cpu: "200m", memory: "16Mi" }, limits: { cpu, memory } }));
      const applied = await node.until(`a limit of ${memory}`, async () => {
        const now = await appliedTo(node, Id);
        return now.Memory === bytes && now;
      });
      expect(applied).toMatchObject({ CpuShares: 204, CpuQuota: Number.parseInt(cpu, 10) * 100 });
      if (readMemoryLimit(CgroupParent) !== undefined) {
        await node.until("the pod's bound", () => readMemoryLimit(CgroupParent) === String(bytes));
      }
    }

    node.writeManifest("pod.yaml", manifest({ requests: { cpu: "200m", memory: "16Mi" }, limits: { memory: "32Mi" } }));
    await node.until("no cpu limit", async () => (await appliedTo(node, Id)).CpuQuota <= 0);
    expect(await node.containerIds()).toEqual([Id]);
    expect((await node.listAll()).length).toBe(2);
  });

  test("resources of the pod bound its cgroup, and an edit of them restarts nothing", async () => {
    const node = testNode();
    const requests = { memory: "16Mi" };
    node.writeManifest("pod.yaml", manifest({}, { requests, limits: { memory: "64Mi" } }));
    await node.start();
    const { Id, Labels } = await node.runningContainer("app");
    const { CgroupParent } = await appliedTo(node, Id);
    expect(CgroupParent).toMatch(new RegExp(`burstable[/-]pod${Labels[LABEL.podUid]}(\\.slice)?$`));
    if (readMemoryLimit(CgroupParent) === undefined) return;
    expect(readMemoryLimit(CgroupParent)).toBe(String(64 * MI));
    node.writeManifest("pod.yaml", manifest({}, { requests, limits: { memory: "96Mi" } }));
    await node.until("the new bound", () => readMemoryLimit(CgroupParent) === String(96 * MI));
    expect(await node.containerIds()).toEqual([Id]);
    node.removeManifest("pod.yaml");
    await node.until("the cgroup to go", () => readMemoryLimit(CgroupParent) === undefined);
    // For a slice systemd keeps its own settings, which outlive the cgroup.
    await node.until("its settings to go", () => !existsSync(`/run/systemd/system.control/${CgroupParent}.d`));
  });
});

const MEMORY = MOUNTS.find(({ version, controllers }) => version === 2 || controllers.includes("memory"));
const CGROUP_VERSION = MEMORY?.version ?? 2;

// In a container the hierarchies may be there and not be ours.
const canWrite = isRoot && MEMORY !== undefined && Bun.spawnSync(["test", "-w", MEMORY.mountPoint]).success;
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
    { cpuShares: 512, cpuPeriodUs: 100_000, cpuQuotaUs: 50_000, memoryBytes: 64 * MI, pids: 50 },
    { driver: "cgroupfs", cgroupVersion: CGROUP_VERSION, cgroupRoot },
  );
  const memoryDirectory = join(MEMORY?.mountPoint ?? "", plan.path);
  const limitFile = join(memoryDirectory, CGROUP_VERSION === 1 ? "memory.limit_in_bytes" : "memory.max");

  afterAll(async () => {
    await podCgroups.remove(cgroupRoot);
  });

  test("bounds are in force, can be changed, and the cgroup goes when it is empty", async () => {
    await podCgroups.ensure(plan);
    expect(readFileSync(limitFile, "utf8").trim()).toBe(String(64 * MI));

    const lifted = { ...plan, v1Writes: [], v2Writes: [] };
    await podCgroups.ensure(lifted);
    expect(readFileSync(limitFile, "utf8").trim()).toBe(String(64 * MI));

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

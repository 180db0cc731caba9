import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Summary } from "../../../src/base/api/stats-summary.ts";
import { CgroupReader } from "../../../src/stats/cgroups/cgroup-reader.ts";
import { describeWithEngine, testNode } from "../../support/engine.ts";
import { podSpec, shell, sleeper } from "../../support/manifests.ts";
import type { TestNode } from "../../support/test-node.ts";
import { SLOWNESS } from "../../support/until.ts";

/** Burns half a CPU, holds 100 MB of memory and has written 50 MB to its own layer and 20 MB to a volume. */
const WRITES =
  "dd if=/dev/zero of=/held/x bs=1M count=100; dd if=/dev/zero of=/layer bs=1M count=50; dd if=/dev/zero of=/data/x bs=1M count=20";
const volumes = [
  { name: "held", emptyDir: { medium: "Memory" } },
  { name: "data", emptyDir: {} },
];
const busy = podSpec({
  ...shell(`${WRITES}; sync; echo ready; while :; do :; done`),
  resources: { limits: { cpu: "500m", memory: "300Mi" } },
  volumeMounts: volumes.map(({ name }) => ({ name, mountPath: `/${name}` })),
});
const IDLE = { name: "idle", command: ["sleep", "3600"] };
const BUSY = sleeper("busy", {}, { volumes, containers: [...busy.containers, ...podSpec(IDLE).containers] });

const MB = 2 ** 20;

/** A rate is that of the last ten seconds. */
const RATE_WINDOW_MS = 11_000;

const summaryOf = (node: TestNode) => node.readJson<Summary>("/stats/summary");

const within = (value: number | undefined, wanted: number, share: number) => {
  expect(value).toBeGreaterThanOrEqual(wanted * (1 - share));
  expect(value).toBeLessThanOrEqual(wanted * (1 + share));
};

describeWithEngine("statistics of real containers", () => {
  test("agree with the kernel's files and with what was written", async () => {
    const node = testNode();
    node.writeManifest("busy.json", BUSY);
    await node.start(["--volume-stats-agg-period=1s"]);
    const app = await node.runningContainer("app");
    await node.until("the container to have written", async () => (await node.logs(app.Id)).includes("ready"));
    const { State } = (await node.docker.inspectContainerRaw(app.Id)) as { State: { Pid: number } };
    const reader = new CgroupReader();
    const cgroup = reader.ofProcess(State.Pid)!;
    const fromKernel = () => ({
      atMs: performance.now(),
      ...reader.read(cgroup, "all", { hasQuota: true, kind: "container" })!,
    });
    const waitedSeconds = () => readWaitedSeconds(reader.ofProcess(State.Pid)!.unified?.path);
    const waitedBefore = waitedSeconds();
    const before = fromKernel();
    await summaryOf(node);
    const startedAt = Date.now();
    const summary = await node.until("the window of a rate, and disk usage", async () => {
      await Bun.sleep(1000);
      const seen = await summaryOf(node);
      const app = seen.pods[0]?.containers?.find(({ name }) => name === "app");
      const hasWindow = Date.parse(app?.cpu?.time ?? "") - startedAt >= RATE_WINDOW_MS;
      return hasWindow && app?.rootfs && seen.pods[0]?.volume?.length === 2 && seen;
    });
    const kernel = fromKernel();
    const memoryStat = readFileSync(join(reader.ofProcess(State.Pid)!.memory!.path, "memory.stat"), "utf8");
    const heldBytes = Number(/^(?:total_)?shmem (\d+)$/m.exec(memoryStat)?.[1] ?? 100 * MB);

    const [pod] = summary.pods;
    const container = pod!.containers!.find(({ name }) => name === "app")!;
    // On a machine with little to spare it gets less than the half it is allowed.
    const seconds = (kernel.atMs - before.atMs) / 1000;
    const nanoCores = (kernel.cpu.usageNanoseconds - before.cpu.usageNanoseconds) / seconds;
    // The two windows are not the same one, which counts where the machine is slow and has other work.
    within(container.cpu!.usageNanoCores, nanoCores, SLOWNESS > 1 ? 0.25 : 0.05);
    expect(container.cpu!.usageNanoCores).toBeLessThan(5.25e8);
    within(container.cpu!.usageCoreNanoSeconds, kernel.cpu.usageNanoseconds, 0.1);
    within(container.memory!.usageBytes, kernel.memory.usageBytes!, 0.02);
    // Files in a tmpfs cannot be reclaimed: it stays in the working set. More than the volume in
    // memory it is where the machine keeps its disk there (a live system).
    expect(heldBytes).toBeGreaterThanOrEqual(100 * MB);
    expect(container.memory!.workingSetBytes).toBeGreaterThan(heldBytes);
    expect(container.memory!.workingSetBytes).toBeLessThan(heldBytes + 15 * MB);
    within(container.memory!.availableBytes! + container.memory!.workingSetBytes!, 300 * MB, 0);
    within(container.rootfs!.usedBytes, 50 * MB, 0.01);
    const volume = (name: string) => pod!.volume!.find((candidate) => candidate.name === name)!;
    within(volume("data").usedBytes, 20 * MB, 0.01);
    within(volume("held").usedBytes, 100 * MB, 0.01);
    expect(container.logs!.usedBytes).toBeGreaterThan(0);
    within(pod!["ephemeral-storage"]!.usedBytes, 70 * MB, 0.02);
    expect(pod!.cpu!.usageCoreNanoSeconds).toBeGreaterThan(container.cpu!.usageCoreNanoSeconds!);
    expect(pod!.process_stats!.process_count).toBe(2);

    const metrics = await node.read("/metrics/cadvisor");
    const sample = (name: string, labels: string) =>
      Number(
        metrics
          .split("\n")
          .find((line) => line.startsWith(`${name}{${labels}`))
          ?.split("} ")[1]
          ?.split(" ")[0],
      );
    within(sample("container_memory_usage_bytes", 'container="app"'), kernel.memory.usageBytes!, 0.02);
    // How often depends on how much the machine had to spare.
    const throttled = sample("container_cpu_cfs_throttled_periods_total", 'container="app"');
    expect(throttled).toBeWithin(kernel.cpu.throttledPeriods!, fromKernel().cpu.throttledPeriods! + 1);
    expect(sample("container_spec_cpu_quota", 'container="app"')).toBe(50_000);
    expect(sample("container_network_receive_bytes_total", 'container="POD"')).toBeGreaterThanOrEqual(0);
    if (waitedBefore === undefined) return console.info("This kernel reports no pressure: not compared");
    const waited = sample("container_pressure_cpu_waiting_seconds_total", 'container="app"');
    expect(waited).toBeWithin(waitedBefore, waitedSeconds()! + 1e-6);
  });

  test("a container that dies is left out at once, its successor is there", async () => {
    const node = testNode();
    node.writeManifest("mortal.json", sleeper("mortal", IDLE));
    await node.start();
    const first = await node.runningContainer("idle");
    const idsIn = async () => {
      const text = await node.read("/metrics/cadvisor");
      return [...text.matchAll(/^container_memory_rss\{container="idle",id="[^"]*([0-9a-f]{64})/gm)].map(
        ([, id]) => id!,
      );
    };
    await node.until("its metrics", async () => (await idsIn()).includes(first.Id));
    await node.docker.killContainer(first.Id, "SIGKILL");
    const second = await node.successorOf("idle", first.Id);
    await node.until("its successor's metrics", async () => {
      const ids = await idsIn();
      return ids.length === 1 && ids[0] === second.Id;
    });
  });
});

/** How long tasks of this cgroup waited for a CPU, by the kernel's own file; undefined where it has none. */
function readWaitedSeconds(directory: string | undefined): number | undefined {
  const path = join(directory ?? "", "cpu.pressure");
  if (!existsSync(path)) return undefined;
  return Number(/^some .* total=(\d+)$/m.exec(readFileSync(path, "utf8"))?.[1]) / 1e6;
}

import { expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import type { CgroupPlan } from "../../src/base/model/cgroup-plan.ts";
import type { KubeletOptions } from "../../src/config/option-table.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";
import { type CgroupWriter, PodCgroupManager } from "../../src/kubelet/pod-cgroup-manager.ts";
import { aPod, ENGINE, type Json, NODE } from "../docker/mapping-requests.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { RecordingLogger } from "../support/recording-logger.ts";

class FakeCgroups implements CgroupWriter {
  readonly calls: string[] = [];
  failure: string | undefined;
  readonly busy = new Set<string>();

  async ensure({ path, v1Writes }: CgroupPlan): Promise<void> {
    if (this.failure) throw new Error(this.failure);
    this.calls.push(`${path} ${v1Writes.find(({ file }) => file === "cpu.shares")?.value}`);
  }

  async remove(path: string): Promise<boolean> {
    this.calls.push(`remove ${path}`);
    return !this.busy.has(path);
  }

  kill(path: string): void {
    this.calls.push(`kill ${path}`);
  }
}

function setUp(options: Partial<KubeletOptions> = {}, onNodeBounded?: () => void) {
  const cgroups = new FakeCgroups();
  const log = new RecordingLogger();
  const pods: Pod[] = [];
  const clock = new FakeClock();
  const owner = { isUs: true };
  const deps = {
    clock,
    cgroups,
    engine: () => ENGINE,
    node: () => NODE,
    pods: () => [...pods],
    ownsQosCgroups: async () => owner.isUs,
    options: { ...DEFAULT_KUBELET_OPTIONS, ...options },
    logger: log,
  };
  const manager = new PodCgroupManager(deps, onNodeBounded);
  return { owner, cgroups, clock, log, pods, manager, signal: new AbortController().signal };
}

const podWith = (uid: string, resources: Json = {}, spec: Json = {}) =>
  aPod({ metadata: { uid }, spec, container: { resources } });

test("what runs in the cgroup of a removed container is killed, and nothing else of its pod", () => {
  const { cgroups, manager } = setUp();
  manager.endContainer("a", "c1");
  expect(cgroups.calls).toEqual([
    "kill /kubepods/poda/c1",
    "kill /kubepods/burstable/poda/c1",
    "kill /kubepods/besteffort/poda/c1",
  ]);
  const none = setUp({ cgroupsPerQos: false });
  none.manager.endContainer("a", "c1");
  expect(none.cgroups.calls).toEqual([]);
});

test("the QoS classes are weighed, and again only when that changes", async () => {
  const { cgroups, pods, manager } = setUp();
  const one = podWith("a", { requests: { cpu: "500m" } });
  pods.push(one);
  await manager.ensure(one);
  expect(cgroups.calls.splice(0)).toEqual([
    "/kubepods 2048",
    "/kubepods/burstable 512",
    "/kubepods/besteffort 2",
    "/kubepods/burstable/poda 512",
  ]);
  await manager.ensure(one);
  expect(cgroups.calls.splice(0)).toEqual(["/kubepods/burstable/poda 512"]);
  pods.push(podWith("b", { requests: { cpu: "1" } }));
  await manager.ensure(pods[1]!);
  expect(cgroups.calls).toEqual(["/kubepods/burstable 1536", "/kubepods/burstable/podb 1024"]);
});

test("the cgroups of QoS classes are left to another kubelet of the machine, and taken over after it", async () => {
  const { owner, cgroups, manager } = setUp();
  owner.isUs = false;
  const pod = podWith("a", { requests: { cpu: "500m" } });
  await manager.ensure(pod);
  expect(cgroups.calls.splice(0)).toEqual(["/kubepods/burstable/poda 512"]);
  owner.isUs = true;
  await manager.ensure(pod);
  expect(cgroups.calls).toContain("/kubepods 2048");
});

test("a pod that is gone leaves no cgroup of any class; one in use goes a moment later", async () => {
  const { cgroups, clock, manager, signal } = setUp();
  cgroups.busy.add("/kubepods/burstable/poda");
  const removal = manager.remove("a", signal);
  expect(cgroups.calls.splice(0)).toEqual([
    "remove /kubepods/poda",
    "remove /kubepods/burstable/poda",
    "remove /kubepods/besteffort/poda",
  ]);
  await clock.advance(40);
  cgroups.busy.clear();
  await clock.advance(20);
  await removal;
  expect(cgroups.calls.splice(0)).toEqual(["remove /kubepods/burstable/poda"]);
  await manager.remove("b", signal);
  expect(cgroups.calls).not.toContain("remove /kubepods/burstable/poda");
  expect(clock.pendingTimers).toBe(0);
});

test("one that is in use for long delays no other, and goes when it is free", async () => {
  const { cgroups, clock, manager, signal } = setUp();
  cgroups.busy.add("/kubepods/burstable/poda");
  const removal = manager.remove("a", signal);
  await clock.advance(1_100);
  await removal;
  await clock.advance(120_000);
  cgroups.busy.clear();
  cgroups.calls.splice(0);
  await clock.advance(60_000);
  expect(cgroups.calls).toEqual(["remove /kubepods/burstable/poda"]);
  expect(clock.pendingTimers).toBe(0);
});

test("a pod that came back keeps its cgroup", async () => {
  const { cgroups, clock, manager, signal } = setUp();
  cgroups.busy.add("/kubepods/besteffort/poda");
  const removal = manager.remove("a", signal);
  await manager.ensure(podWith("a"));
  cgroups.calls.splice(0);
  await clock.advance(60_000);
  await removal;
  expect(cgroups.calls).not.toContain("remove /kubepods/besteffort/poda");
});

test("where cgroups cannot be written, pods run bounded by their containers, with one warning", async () => {
  const { cgroups, log, manager } = setUp();
  cgroups.failure = "EROFS";
  await manager.ensure(podWith("a", { limits: { memory: "10Mi" } }));
  await manager.ensure(podWith("b"));
  expect(log.lines).toEqual(["warn Cgroups of pods cannot be written; limits hold for each container"]);
});

test.each<[string, Partial<KubeletOptions>, Pod]>([
  ["resources of the pod", {}, podWith("a", {}, { resources: { limits: { memory: "1Gi" } } })],
  ["huge pages", {}, podWith("a", { limits: { memory: "1Mi", "hugepages-2Mi": "2Mi" } })],
  ["--pod-max-pids", { podPidsLimit: 10 }, podWith("a")],
])("%s hold or the pod does not start", async (_, options, pod) => {
  const { cgroups, manager } = setUp(options);
  cgroups.failure = "EROFS";
  await expect(manager.ensure(pod)).rejects.toThrow("failed to bound the pod as a whole: EROFS");
});

test("--cgroups-per-qos=false has no cgroups of kubelet-ts", async () => {
  const { cgroups, manager, signal } = setUp({ cgroupsPerQos: false });
  await manager.ensure(podWith("a"));
  await manager.remove("a", signal);
  expect(cgroups.calls).toEqual([]);
});

test("it is reported once that the cgroup of all pods is bounded, and not by a kubelet that does not set it", async () => {
  let reports = 0;
  const { owner, pods, manager } = setUp({}, () => reports++);
  owner.isUs = false;
  const pod = podWith("a", { requests: { cpu: "500m" } });
  pods.push(pod);
  await manager.ensure(pod);
  expect(reports).toBe(0);
  owner.isUs = true;
  await manager.ensure(pod);
  pods.push(podWith("b", { requests: { cpu: "1" } }));
  await manager.ensure(pods[1]!);
  expect(reports).toBe(1);
});

test("before a container starts again its pod has the bounds of an edit, written only when they changed", async () => {
  const { cgroups, manager, signal } = setUp();
  await manager.ensure(podWith("a", { requests: { cpu: "500m" } }));
  cgroups.calls.splice(0);
  await manager.ensureChanged(podWith("a", { requests: { cpu: "500m" } }));
  expect(cgroups.calls).toEqual([]);
  await manager.ensureChanged(podWith("a", { requests: { cpu: "250m" } }));
  expect(cgroups.calls.splice(0)).toEqual(["/kubepods/burstable/poda 256"]);
  await manager.remove("a", signal);
  cgroups.calls.splice(0);
  await manager.ensureChanged(podWith("a", { requests: { cpu: "250m" } }));
  expect(cgroups.calls).toEqual(["/kubepods/burstable/poda 256"]);
});

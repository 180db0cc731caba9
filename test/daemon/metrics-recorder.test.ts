import { expect, test } from "bun:test";
import type { CgroupPlan } from "../../src/base/model/cgroup-plan.ts";
import { MetricsRecorder } from "../../src/daemon/metrics-recorder.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { KubeletWorld, named } from "../support/kubelet-world.ts";
import { samplesOf } from "../support/metrics.ts";

test("changes of cgroups are timed; one that was not there is not destroyed", async () => {
  const clock = new FakeClock();
  const work = new MetricsRecorder("node1", clock);
  const plan: CgroupPlan = { path: "/kubepods/pod1", v1Writes: [], v2Writes: [] };
  const cgroups = work.timeCgroups({ ensure: async () => {}, remove: async () => true, kill: () => {} });
  await cgroups.ensure(plan);
  await cgroups.ensure(plan);
  await cgroups.remove("/kubepods/burstable/pod1");
  await cgroups.remove(plan.path);
  const samples = samplesOf(work.kubelet.cgroupManagerDuration);
  expect(samples.filter((sample) => sample.startsWith("_count"))).toEqual([
    '_count{operation_type="create"} 1',
    '_count{operation_type="update"} 1',
    '_count{operation_type="destroy"} 1',
  ]);
});

test("volumes are counted by plugin, as wanted and as made ready", async () => {
  const world = new KubeletWorld();
  const work = new MetricsRecorder("node1", world.clock);
  work.watch(world.kubelet);
  const volumes = [
    { name: "a", emptyDir: {} },
    { name: "b", hostPath: { path: "/tmp" } },
    { name: "c", emptyDir: {} },
  ];
  world.rejections.set("uid-refused", { reason: "OutOfcpu", message: "" });
  await world.started(named("web", { volumes } as never), named("refused", { volumes } as never));
  work.collect();
  expect(samplesOf(work.kubelet.volumeTotal).sort()).toEqual([
    '{plugin_name="kubernetes.io/empty-dir",state="actual_state_of_world"} 2',
    '{plugin_name="kubernetes.io/empty-dir",state="desired_state_of_world"} 4',
    '{plugin_name="kubernetes.io/host-path",state="actual_state_of_world"} 1',
    '{plugin_name="kubernetes.io/host-path",state="desired_state_of_world"} 2',
  ]);
});

test("counts of probes go with their pod", async () => {
  const world = new KubeletWorld();
  const work = new MetricsRecorder("node1", world.clock);
  work.watch(world.kubelet);
  await world.started(named("web"), named("api"));
  for (const name of ["web", "api"])
    work.countProbe({ uid: `uid-${name}`, name, namespace: "default" }, "app", "liveness", {
      result: "success",
    } as never);
  world.want(named("api"));
  await world.clock.advance(60_000);
  const [samples = []] = work.probeMetrics.map(samplesOf);
  expect(samples.map((sample) => /pod_uid="([^"]+)"/.exec(sample)?.[1])).toEqual(["uid-api"]);
});

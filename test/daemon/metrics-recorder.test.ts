import { expect, test } from "bun:test";
import type { CgroupPlan } from "../../src/base/model/cgroup-plan.ts";
import { MetricsRecorder } from "../../src/daemon/metrics-recorder.ts";
import { metricsText } from "../../src/stats/metrics/metric.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { KubeletWorld, named } from "../support/kubelet-world.ts";

/** Lines of this metric that say something. */
const linesOf = (work: MetricsRecorder, name: string) =>
  metricsText(work.collect(), "prometheus")
    .split("\n")
    .filter((line) => line.startsWith(name) && !/_bucket|_sum/.test(line));

test("changes of cgroups are timed; one that was not there is not destroyed", async () => {
  const clock = new FakeClock();
  const work = new MetricsRecorder("node1", clock);
  const plan: CgroupPlan = { path: "/kubepods/pod1", v1Writes: [], v2Writes: [] };
  const cgroups = work.timeCgroups({ ensure: async () => {}, remove: async () => true });
  await cgroups.ensure(plan);
  await cgroups.ensure(plan);
  await cgroups.remove("/kubepods/burstable/pod1");
  await cgroups.remove(plan.path);
  expect(linesOf(work, "kubelet_cgroup_manager_duration_seconds")).toEqual([
    'kubelet_cgroup_manager_duration_seconds_count{operation_type="create"} 1',
    'kubelet_cgroup_manager_duration_seconds_count{operation_type="update"} 1',
    'kubelet_cgroup_manager_duration_seconds_count{operation_type="destroy"} 1',
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
  expect(linesOf(work, "volume_manager_total_volumes").sort()).toEqual([
    'volume_manager_total_volumes{plugin_name="kubernetes.io/empty-dir",state="actual_state_of_world"} 2',
    'volume_manager_total_volumes{plugin_name="kubernetes.io/empty-dir",state="desired_state_of_world"} 4',
    'volume_manager_total_volumes{plugin_name="kubernetes.io/host-path",state="actual_state_of_world"} 1',
    'volume_manager_total_volumes{plugin_name="kubernetes.io/host-path",state="desired_state_of_world"} 2',
  ]);
});

test("what a pod worker and a volume took", () => {
  const work = new MetricsRecorder("node1", new FakeClock());
  work.pods.added(2, 20);
  work.pods.worked("create", 1500);
  work.pods.started(1600);
  work.countVolume({ name: "a", emptyDir: {} } as never, 3, false);
  work.countVolume({ name: "a", secret: { secretName: "x" } } as never, 3, true);
  const text = metricsText(work.collect(), "prometheus");
  for (const line of [
    'kubelet_containers_per_pod_count_bucket{le="2"} 1',
    "kubelet_pod_worker_start_duration_seconds_sum 0.02",
    'kubelet_pod_worker_duration_seconds_sum{operation_type="create"} 1.5',
    "kubelet_pod_start_duration_seconds_sum 1.6",
    'storage_operation_duration_seconds_count{operation_name="volume_mount",volume_plugin="kubernetes.io/empty-dir"} 1',
    'storage_operation_errors_total{operation_name="volume_mount",volume_plugin="kubernetes.io/secret"} 1',
  ]) {
    expect(text).toContain(`${line}\n`);
  }
});

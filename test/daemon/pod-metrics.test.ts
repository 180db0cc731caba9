import { expect, test } from "bun:test";
import type { PodStatus } from "../../src/base/api/pod.ts";
import { imageUpdateFamilies, podFamilies } from "../../src/daemon/pod-metrics.ts";
import type { MetricFamily } from "../../src/stats/metrics/metrics-registry.ts";
import { aPod } from "../support/builders.ts";

const samplesOf = (families: readonly MetricFamily[]) =>
  Object.fromEntries(
    families.map((family) => [
      family.name,
      Array.from(
        family.samples as Iterable<{ labelValues: readonly string[]; value: number }>,
        ({ labelValues, value }) => [...labelValues, value].join(" "),
      ),
    ]),
  );

const pod = (name: string, status: Partial<PodStatus>) => ({
  ...aPod({}, { name, namespace: "shop" }),
  status: status as PodStatus,
});

test("readiness, restarts, waits and rollbacks of pods", () => {
  const samples = samplesOf(
    podFamilies([
      pod("ready", { phase: "Running", conditions: [{ type: "Ready", status: "True" }] }),
      pod("waits", { phase: "Pending", conditions: [{ type: "DependenciesMet", status: "False" }] }),
      pod("back", { phase: "Running", conditions: [{ type: "ManifestLive", status: "False", reason: "RolledBack" }] }),
      pod("paused", { conditions: [{ type: "ManifestLive", status: "False", reason: "RolloutPaused" }] }),
      pod("done", { phase: "Succeeded", containerStatuses: [{ name: "app", restartCount: 3 } as never] }),
    ]),
  );
  expect(samples).toEqual({
    kubelet_ts_pod_ready: ["shop ready 1", "shop waits 0", "shop back 0", "shop paused 0"],
    kubelet_ts_container_restarts_total: ["shop done app 3"],
    kubelet_ts_pod_waits_for_dependency: ["shop waits 1"],
    kubelet_ts_pod_rolled_back: ["shop back 1"],
  });
});

test("images that are kept up to date by state", () => {
  const report = {
    owner: "shop/Deployment/web",
    image: "web:1",
    state: "held",
    rejected: [],
    message: "",
    isBusy: false,
  };
  expect(samplesOf(imageUpdateFamilies([report as never]))).toEqual({
    kubelet_ts_image_update_state: ["shop Deployment/web web:1 held 1"],
  });
});

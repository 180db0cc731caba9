import { timed } from "../base/concurrency/timed.ts";
import type { Clock } from "../base/model/clock.ts";
import type { ConfigurationStatus } from "../base/model/configuration.ts";
import type { ProbeKind, ProbeOutcome } from "../base/model/prober.ts";
import type { Kubelet } from "../kubelet/kubelet.ts";
import type { CgroupWriter } from "../kubelet/pod-cgroup-manager.ts";
import {
  type KubeletMetrics,
  toKubeletMetrics,
  toProbeMetric,
  volumePluginOf,
} from "../stats/metrics/kubelet-metrics.ts";
import type { Metric } from "../stats/metrics/metric.ts";
import { buildInfo } from "./version.ts";

/** Counts the kubelet's operations under upstream's names, for /metrics and /metrics/probes. */
export class MetricsRecorder {
  readonly kubelet: KubeletMetrics;
  readonly #probes = toProbeMetric();
  /** All of /metrics/probes but the start of the process. */
  readonly probeMetrics: readonly Metric[] = [this.#probes];
  readonly #clock: Clock;
  #watched: Kubelet | undefined;

  constructor(nodeName: string, clock: Clock) {
    this.#clock = clock;
    this.kubelet = toKubeletMetrics({ name: nodeName, build: buildInfo });
  }

  /** Whose pods are counted as running, at each scrape. Source: the prober deletes the counts of a pod with its workers. */
  watch(kubelet: Kubelet): void {
    this.#watched = kubelet;
    kubelet.podsGone.add((uid) => this.#probes.forget("pod_uid", uid));
  }

  /** The counted metrics, for /metrics. @param configuration undefined without configuration files */
  collect(configuration?: ConfigurationStatus): Metric[] {
    this.kubelet.nodeConfigError.set(configuration?.error === undefined ? 0 : 1);
    const states = new Map([["running", 0]]);
    let pods = 0;
    for (const { snapshot } of this.#watched?.workers.values() ?? []) {
      if (snapshot.sandboxes[0]?.state === "ready") pods++;
      for (const { state } of snapshot.containers) states.set(state, (states.get(state) ?? 0) + 1);
    }
    this.kubelet.runningPods.set(pods);
    this.#countVolumes();
    this.kubelet.runningContainers.clear();
    for (const [state, count] of states) this.kubelet.runningContainers.set(count, [state]);
    return Object.values(this.kubelet);
  }

  #countVolumes(): void {
    const { volumeTotal } = this.kubelet;
    volumeTotal.clear();
    for (const { pod } of this.#watched?.desiredPods ?? []) {
      const isSetUp = this.#watched?.workers.get(pod.metadata.uid ?? "")?.snapshot.sandboxes[0]?.state === "ready";
      for (const volume of pod.spec.volumes ?? []) {
        const plugin = volumePluginOf(volume);
        volumeTotal.add(1, [plugin, "desired_state_of_world"]);
        if (isSetUp) volumeTotal.add(1, [plugin, "actual_state_of_world"]);
      }
    }
  }

  /** The same cgroups, with every change of them timed. */
  timeCgroups(cgroups: CgroupWriter): CgroupWriter {
    const known = new Set<string>();
    const run = <T>(operation: string, work: () => Promise<T>): Promise<T> =>
      timed(this.#clock, work, (durationMs, failed) => {
        if (!failed) this.kubelet.cgroupManagerDuration.observe(durationMs / 1000, [operation]);
      });
    return {
      ensure: async (plan) => {
        await run(known.has(plan.path) ? "update" : "create", () => cgroups.ensure(plan));
        known.add(plan.path);
      },
      remove: async (path) => {
        // Called for every path where it might be.
        if (!known.has(path)) return await cgroups.remove(path);
        const isGone = await run("destroy", () => cgroups.remove(path));
        if (isGone) known.delete(path);
        return isGone;
      },
      kill: (path) => cgroups.kill(path),
    };
  }

  countProbe(
    pod: { uid: string; name: string; namespace: string },
    container: string,
    kind: ProbeKind,
    { result }: ProbeOutcome,
  ): void {
    const word = result === "failure" ? "failed" : result === "unknown" ? "unknown" : "successful";
    const type = `${kind.charAt(0).toUpperCase()}${kind.slice(1)}`;
    this.#probes.inc([container, pod.namespace, pod.name, pod.uid, type, word]);
  }
}

import type { Kubelet } from "../kubelet/kubelet.ts";
import type { Clock } from "../model/clock.ts";
import type { ProbeKind, ProbeOutcome } from "../model/prober.ts";
import { type KubeletMetrics, registerKubeletMetrics, registerProbeMetrics } from "../stats/kubelet-metrics.ts";
import { type MetricFamily, MetricsRegistry } from "../stats/metrics-registry.ts";
import { buildInfo } from "./version.ts";

/** What the kubelet does, counted under upstream's names; shown on /metrics and /metrics/probes. */
export class CountedWork {
  readonly kubelet: KubeletMetrics;
  readonly probeRegistry = new MetricsRegistry();
  readonly #registry = new MetricsRegistry();
  readonly #probes = registerProbeMetrics(this.probeRegistry);
  readonly #clock: Clock;
  #watched: Kubelet | undefined;
  #lastRelistMs: number | undefined;

  constructor(nodeName: string, clock: Clock) {
    this.#clock = clock;
    this.kubelet = registerKubeletMetrics(this.#registry, { name: nodeName, build: buildInfo });
  }

  /** Whose pods are counted as running, at each scrape. */
  watch(kubelet: Kubelet): void {
    this.#watched = kubelet;
  }

  /** All families of /metrics but those of the process. */
  collect(): MetricFamily[] {
    const states = new Map([["running", 0]]);
    let pods = 0;
    for (const { snapshot } of this.#watched?.workers() ?? []) {
      if (snapshot.sandboxes[0]?.state === "ready") pods++;
      for (const { state } of snapshot.containers) states.set(state, (states.get(state) ?? 0) + 1);
    }
    this.kubelet.runningPods.set(pods);
    this.kubelet.runningContainers.clear();
    for (const [state, count] of states) this.kubelet.runningContainers.set(count, [state]);
    return this.#registry.collect();
  }

  /** One step at the engine; `operation` is CRI's word for it. */
  readonly countOperation = (operation: string, durationMs: number, failed: boolean): void => {
    this.kubelet.runtimeOperations.inc([operation]);
    this.kubelet.runtimeOperationDuration.observe(durationMs / 1000, [operation]);
    if (failed) this.kubelet.runtimeOperationErrors.inc([operation]);
    if (operation === "run_podsandbox") {
      this.kubelet.runPodSandboxDuration.observe(durationMs / 1000, [""]);
      if (failed) this.kubelet.runPodSandboxErrors.inc([""]);
      else this.kubelet.startedPods.inc();
    }
    if (operation === "start_container" && !failed) this.kubelet.startedContainers.inc();
  };

  readonly countRelist = (durationMs: number): void => {
    const nowMs = this.#clock.monotonicMs();
    this.kubelet.plegRelistDuration.observe(durationMs / 1000);
    if (this.#lastRelistMs !== undefined) this.kubelet.plegRelistInterval.observe((nowMs - this.#lastRelistMs) / 1000);
    this.#lastRelistMs = nowMs;
    this.kubelet.plegLastSeen.set(this.#clock.now().getTime() / 1000);
  };

  countProbe(
    pod: { uid: string; name: string; namespace: string },
    container: string,
    kind: ProbeKind,
    { result }: ProbeOutcome,
  ): void {
    const word = result === "failure" ? "failed" : result === "unknown" ? "unknown" : "successful";
    const type = `${kind.charAt(0).toUpperCase()}${kind.slice(1)}`;
    this.#probes.probes.inc([container, pod.namespace, pod.name, pod.uid, type, word]);
  }
}

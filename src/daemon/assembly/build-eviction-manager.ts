import type { Clock } from "../../base/model/clock.ts";
import type { KubeletOptions } from "../../base/model/kubelet-options.ts";
import type { Logger } from "../../base/model/logger.ts";
import type { EventRecorder } from "../../base/model/pod-event.ts";
import { EvictionManager } from "../../kubelet/eviction/eviction-manager.ts";
import { DiskUsage } from "../../stats/disk-usage.ts";
import type { NodeStats } from "../../stats/node-stats.ts";
import type { PodFacts } from "../../stats/pod-facts.ts";
import type { AssembledKubelet } from "./assembled-kubelet.ts";
import { diskDirectories, toPodDiskUsages, toPodUsages } from "./pod-usage.ts";

/** Evictions need disk usage even when its statistics are off (`--volume-stats-agg-period=0s`). */
const DEFAULT_DISK_PERIOD_MS = 60_000;

interface EvictionInput {
  parts: Pick<AssembledKubelet, "kubelet" | "imageGc" | "context">;
  options: KubeletOptions;
  stats: NodeStats;
  podFacts: () => readonly PodFacts[];
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
}

/** The eviction manager with the measurements of this node. */
export function buildEvictionManager({
  parts: { kubelet, imageGc, context },
  options,
  stats,
  podFacts,
  clock,
  logger,
  recorder,
}: EvictionInput): EvictionManager {
  // Not shared with the statistics: only pods with limits are measured while no resource is short.
  const disk = new DiskUsage(clock, options.volumeStatsAggPeriodMs || DEFAULT_DISK_PERIOD_MS, context.background.slot);
  return new EvictionManager({
    clock,
    logger,
    recorder,
    kubelet,
    readSignals: () => stats.signals(),
    refreshSignals: () => stats.refreshCapacities(),
    readUsage: () => toPodUsages(stats.sample("all")),
    askDisk: (uids) => {
      const pods = podFacts().filter(({ uid }) => uids.has(uid));
      return toPodDiskUsages(pods, disk.ask(diskDirectories(pods)));
    },
    diskSettled: () => disk.settled(),
    reclaimImages: (signal) => imageGc.reclaim(signal),
    // Read at each use: these options may change while the kubelet runs.
    settings: {
      get hard() {
        return options.evictionHard;
      },
      get soft() {
        return options.evictionSoft;
      },
      get softGraceMs() {
        return options.evictionSoftGracePeriodMs;
      },
      get minimumReclaim() {
        return options.evictionMinimumReclaim;
      },
      get transitionMs() {
        return options.evictionPressureTransitionMs;
      },
    },
    maxPodGraceSeconds: options.evictionMaxPodGracePeriodSeconds,
    onThresholdMet: (resource) =>
      recorder.record(
        { kind: "Node", uid: context.node.name, name: context.node.name, namespace: "default" },
        { type: "Warning", reason: "EvictionThresholdMet", message: `Attempting to reclaim ${resource}` },
      ),
    onEvict: (signal) => context.metrics.kubelet.evictions.inc([signal]),
  });
}

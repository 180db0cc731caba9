import type { PodUID } from "../../base/model/pod.ts";
import { EvictionManager } from "../../kubelet/eviction/eviction-manager.ts";
import type { PodDiskUsage, PodUsage } from "../../plan/eviction.ts";
import type { KubeletView } from "../../server/view.ts";
import { containerDirectories, type DirectoryUsage, DiskUsage, podDirectories } from "../../stats/disk-usage.ts";
import type { NodeStats } from "../../stats/node-stats.ts";
import type { PodFacts } from "../../stats/pod-facts.ts";
import type { NodeSample } from "../../stats/sampler.ts";
import type { AssembledKubelet } from "./assemble-kubelet.ts";
import { liveOptions } from "./node-context.ts";

/** Evictions need disk usage even when its statistics are off (`--volume-stats-agg-period=0s`). */
const DEFAULT_DISK_PERIOD_MS = 60_000;

/** The eviction manager with the measurements of this node. */
export function buildEvictionManager(parts: AssembledKubelet, view: KubeletView, stats: NodeStats): EvictionManager {
  const { kubelet, imageGc, context } = parts;
  const { options, clock } = context;
  // Not shared with the statistics: only pods with limits are measured while no resource is short.
  const disk = new DiskUsage(clock, options.volumeStatsAggPeriodMs || DEFAULT_DISK_PERIOD_MS, context.background.slot);
  return new EvictionManager({
    ...context,
    kubelet,
    usage: {
      readSignals: () => stats.signals(),
      refreshSignals: () => stats.refreshCapacities(),
      readPods: () => toPodUsages(stats.sampler.sample("all")),
      askDisk: (uids) => {
        const pods = view.podFacts().filter(({ uid }) => uids.has(uid));
        return toPodDiskUsages(pods, disk.ask(podDirectories(pods, ({ ephemeral }) => ephemeral)));
      },
      diskSettled: () => disk.settled(),
      reclaimImages: (signal) => imageGc.reclaim(signal),
    },
    settings: liveOptions(options, {
      hard: "evictionHard",
      soft: "evictionSoft",
      softGraceMs: "evictionSoftGracePeriodMs",
      minimumReclaim: "evictionMinimumReclaim",
      transitionMs: "evictionPressureTransitionMs",
      maxPodGraceSeconds: "evictionMaxPodGracePeriodSeconds",
    }),
    nodeName: context.node.name,
  });
}

/** Memory and processes by pod, of one sample. Pure. */
function toPodUsages({ pods }: Pick<NodeSample, "pods">): Map<PodUID, PodUsage> {
  return new Map(
    pods.map(({ facts, cgroup, containers }): [PodUID, PodUsage] => [
      facts.uid,
      {
        memoryBytes: new Map(
          containers.map((one) => [one.facts.name, one.cgroup.stats.memory.workingSetBytes ?? 0] as const),
        ),
        processes: cgroup?.stats.pids?.current ?? 0,
      },
    ]),
  );
}

/** Disk usage by pod. What was measured before the pod was made (an earlier life of it) does not count. Pure. */
function toPodDiskUsages(
  pods: readonly PodFacts[],
  measured: ReadonlyMap<string, DirectoryUsage>,
): Map<PodUID, PodDiskUsage> {
  return new Map(
    pods.map(({ uid, sandbox, containers, volumes }): [PodUID, PodDiskUsage] => {
      const usageOf = (path: string) => {
        const usage = measured.get(path);
        return usage && usage.at >= sandbox.createdAt ? usage : undefined;
      };
      const bytesOf = (paths: string[]) => paths.reduce((sum, path) => sum + (usageOf(path)?.usedBytes ?? 0), 0);
      return [
        uid,
        {
          containers: new Map(containers.map((one) => [one.name, bytesOf(containerDirectories(one))] as const)),
          volumes: new Map(
            volumes.map(({ name, path, ephemeral }) => {
              const { usedBytes = 0, inodesUsed = 0 } = usageOf(path) ?? {};
              return [name, { usedBytes, inodes: inodesUsed, ephemeral }] as const;
            }),
          ),
        },
      ];
    }),
  );
}

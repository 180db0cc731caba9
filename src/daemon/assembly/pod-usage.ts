import type { PodUID } from "../../base/model/identity.ts";
import type { PodDiskUsage, PodUsage } from "../../plan/eviction.ts";
import type { DirectoryUsage } from "../../stats/disk-usage.ts";
import type { NodeSample } from "../../stats/node-sample.ts";
import type { PodFacts } from "../../stats/pod-facts.ts";
import { containerDirectories } from "../../stats/summary.ts";

/** Memory and processes by pod, of one sample. Pure. */
export function toPodUsages({ pods }: Pick<NodeSample, "pods">): Map<PodUID, PodUsage> {
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

/** Directories whose size decides whether a pod uses more of the disk than it may. */
export const diskDirectories = (pods: readonly PodFacts[]): string[] =>
  pods.flatMap(({ containers, volumes }) => [
    ...containers.flatMap(containerDirectories),
    ...volumes.filter(({ ephemeral }) => ephemeral).map(({ path }) => path),
  ]);

/** Disk usage by pod. What was measured before the pod was made (an earlier life of it) does not count. Pure. */
export function toPodDiskUsages(
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

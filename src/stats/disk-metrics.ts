import type { DirectoryUsage } from "./disk-usage.ts";
import { type MetricFamily, MetricsRegistry } from "./metrics/metrics-registry.ts";
import type { PodFacts } from "./pod-facts.ts";
import { logDirectory } from "./summary.ts";

/**
 * The families of `/metrics` about disk usage: container logs, and volumes behind a claim. Directories that were not scanned yet are
 * missing. Source: kubelet's log and volume stats collectors.
 */
export function diskFamilies(pods: readonly PodFacts[], disk: ReadonlyMap<string, DirectoryUsage>): MetricFamily[] {
  const registry = new MetricsRegistry();
  const logs = registry.gauge(
    "kubelet_container_log_filesystem_used_bytes",
    "[ALPHA] Bytes used by the container's logs on the filesystem.",
    ["uid", "namespace", "pod", "container"],
  );
  const volume = (name: string, help: string) =>
    registry.gauge(`kubelet_volume_stats_${name}`, `[ALPHA] ${help}`, ["namespace", "persistentvolumeclaim"]);
  const available = volume("available_bytes", "Number of available bytes in the volume");
  const capacity = volume("capacity_bytes", "Capacity in bytes of the volume");
  const inodes = volume("inodes", "Maximum number of inodes in the volume");
  const inodesFree = volume("inodes_free", "Number of free inodes in the volume");
  const inodesUsed = volume("inodes_used", "Number of used inodes in the volume");
  const used = volume("used_bytes", "Number of used bytes in the volume");
  for (const pod of pods) {
    for (const container of pod.containers) {
      const found = disk.get(logDirectory(container));
      if (found) logs.set(found.usedBytes, [pod.uid, pod.namespace, pod.name, container.name]);
    }
    for (const { path, pvcName } of pod.volumes) {
      const found = disk.get(path);
      if (!found || pvcName === undefined) continue;
      const labels = [pod.namespace, pvcName];
      used.set(found.usedBytes, labels);
      if (found.inodesUsed !== undefined) inodesUsed.set(found.inodesUsed, labels);
      if (!found.fs) continue;
      available.set(found.fs.availableBytes, labels);
      capacity.set(found.fs.capacityBytes, labels);
      inodes.set(found.fs.inodes, labels);
      inodesFree.set(found.fs.inodesFree, labels);
    }
  }
  return registry.collect();
}

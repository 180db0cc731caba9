import type { DiskCounters, InterfaceCounters } from "../../base/host/proc.ts";
import type { BlockIoStats, PressureLine } from "../cgroups/cgroup-stats.ts";
import type { FsCapacity } from "../disk-usage.ts";
import { escapeLabelValue } from "../metrics/prometheus-text.ts";
import type { CgroupSample, ContainerSample } from "../node-sample.ts";
import { logDirectory } from "../summary.ts";
import {
  type Add,
  type AddSample,
  type Entity,
  inSeconds,
  MICRO,
  type OwnLabels,
  plain,
  type Write,
} from "./cadvisor-entity.ts";
import type { CadvisorFacts } from "./cadvisor-facts.ts";

/** A sample for each device: of the node its file systems, of a container the engine's one and the disks it used. */
export function addFilesystemFamilies(add: Add, facts: CadvisorFacts): void {
  const { engineFs, filesystems, disk, machine } = facts;
  const owns = new Map<string, OwnLabels>();
  const line = (entity: Entity, device: string, value: number, addSample: AddSample) => {
    let own = owns.get(device);
    if (!own) {
      own = { head: `device="${escapeLabelValue(device)}",` };
      owns.set(device, own);
    }
    addSample(entity.labels, value, own);
  };
  /** Sizes. */
  const size =
    (ofFs: (capacity: FsCapacity) => number, ofContainer: (container: ContainerSample) => number | undefined): Write =>
    (entity, addSample) => {
      if (entity.isRoot) for (const fs of filesystems) line(entity, fs.device, ofFs(fs.capacity), addSample);
      const value = entity.container && ofContainer(entity.container);
      if (engineFs && value !== undefined) line(entity, engineFs.device, value, addSample);
    };
  const deviceOf = ({ major, minor }: BlockIoStats) =>
    `/dev/${machine.disk_map[`${major}:${minor}`]?.name ?? `${major}:${minor}`}`;
  /** Counters of disks; what the kernel does not count per cgroup is 0 for a container, as upstream. */
  const counter =
    (ofDisk: (counters: DiskCounters) => number, ofCgroup?: (io: BlockIoStats) => number): Write =>
    (entity, addSample) => {
      if (entity.isRoot) {
        for (const { device, counters } of filesystems)
          line(entity, device, counters ? ofDisk(counters) : 0, addSample);
      }
      if (!entity.container) return;
      let isEngineFsDone = false;
      if (ofCgroup) {
        for (const io of entity.cgroup.stats.blockIo) {
          const device = deviceOf(io);
          line(entity, device, ofCgroup(io), addSample);
          isEngineFsDone ||= device === engineFs?.device;
        }
      }
      if (engineFs && !isEngineFsDone) line(entity, engineFs.device, 0, addSample);
    };
  const ofEngineFs = (value: (capacity: FsCapacity) => number) => () => engineFs && value(engineFs.capacity);
  const usage = ({ facts: container }: ContainerSample) => {
    const parts = [disk.get(container.writableLayerPath), disk.get(logDirectory(container))];
    const known = parts.filter((part) => part !== undefined);
    return known.length === 0 ? undefined : known.reduce((sum, { usedBytes }) => sum + usedBytes, 0);
  };
  const seconds = (milliseconds: number) => milliseconds / 1000;

  add(
    "gauge",
    "container_fs_inodes_free",
    "Number of available Inodes",
    size(
      (fs) => fs.inodesFree,
      ofEngineFs((fs) => fs.inodesFree),
    ),
  );
  add(
    "gauge",
    "container_fs_inodes_total",
    "Number of Inodes",
    size(
      (fs) => fs.inodes,
      ofEngineFs((fs) => fs.inodes),
    ),
  );
  add(
    "gauge",
    "container_fs_io_current",
    "Number of I/Os currently in progress",
    counter((d) => d.inProgress),
  );
  add(
    "counter",
    "container_fs_io_time_seconds_total",
    "Cumulative count of seconds spent doing I/Os",
    counter((d) => seconds(d.ioMilliseconds)),
  );
  add(
    "counter",
    "container_fs_io_time_weighted_seconds_total",
    "Cumulative weighted I/O time in seconds",
    counter((d) => seconds(d.weightedIoMilliseconds)),
  );
  add(
    "gauge",
    "container_fs_limit_bytes",
    "Number of bytes that can be consumed by the container on this filesystem.",
    size(
      (fs) => fs.capacityBytes,
      ofEngineFs((fs) => fs.capacityBytes),
    ),
  );
  add(
    "counter",
    "container_fs_read_seconds_total",
    "Cumulative count of seconds spent reading",
    counter((d) => seconds(d.readMilliseconds)),
  );
  add(
    "counter",
    "container_fs_reads_bytes_total",
    "Cumulative count of bytes read",
    counter(
      (d) => d.sectorsRead * 512,
      (io) => io.readBytes,
    ),
  );
  add(
    "counter",
    "container_fs_reads_merged_total",
    "Cumulative count of reads merged",
    counter((d) => d.readsMerged),
  );
  add(
    "counter",
    "container_fs_reads_total",
    "Cumulative count of reads completed",
    counter(
      (d) => d.reads,
      (io) => io.reads,
    ),
  );
  add(
    "counter",
    "container_fs_sector_reads_total",
    "Cumulative count of sector reads completed",
    counter((d) => d.sectorsRead),
  );
  add(
    "counter",
    "container_fs_sector_writes_total",
    "Cumulative count of sector writes completed",
    counter((d) => d.sectorsWritten),
  );
  add(
    "gauge",
    "container_fs_usage_bytes",
    "Number of bytes that are consumed by the container on this filesystem.",
    size((fs) => fs.usedBytes, usage),
  );
  add(
    "counter",
    "container_fs_write_seconds_total",
    "Cumulative count of seconds spent writing",
    counter((d) => seconds(d.writeMilliseconds)),
  );
  add(
    "counter",
    "container_fs_writes_bytes_total",
    "Cumulative count of bytes written",
    counter(
      (d) => d.sectorsWritten * 512,
      (io) => io.writeBytes,
    ),
  );
  add(
    "counter",
    "container_fs_writes_merged_total",
    "Cumulative count of writes merged",
    counter((d) => d.writesMerged),
  );
  add(
    "counter",
    "container_fs_writes_total",
    "Cumulative count of writes completed",
    counter(
      (d) => d.writes,
      (io) => io.writes,
    ),
  );
}

export function addHugetlbFamilies(add: Add): void {
  const each =
    (value: (stats: CgroupSample["stats"]["hugetlb"][number]) => number | undefined): Write =>
    ({ cgroup, labels }, addSample) => {
      for (const stats of cgroup.stats.hugetlb) {
        const number = value(stats);
        if (number === undefined) continue;
        // `pagesize` comes between `namespace` and `pod`, but the order of labels means nothing.
        addSample(labels, number, { tail: `,pagesize="${toPageSizeName(stats.pageSizeBytes)}"` });
      }
    };
  add(
    "counter",
    "container_hugetlb_failcnt",
    "Number of hugepage usage hits limits",
    each((stats) => stats.failCount),
  );
  add(
    "gauge",
    "container_hugetlb_max_usage_bytes",
    "Maximum hugepage usages recorded in bytes",
    each((stats) => stats.maxUsageBytes),
  );
  add(
    "gauge",
    "container_hugetlb_usage_bytes",
    "Current hugepage usage in bytes",
    each((stats) => stats.usageBytes),
  );
}

const toPageSizeName = (bytes: number) =>
  bytes >= 2 ** 30 ? `${bytes / 2 ** 30}GB` : bytes >= 2 ** 20 ? `${bytes / 2 ** 20}MB` : `${bytes / 2 ** 10}KB`;

export function addNetworkFamilies(add: Add): void {
  const owns = new Map<string, OwnLabels>();
  const each =
    (value: (counters: InterfaceCounters) => number): Write =>
    ({ interfaces, labels }, addSample) => {
      for (const counters of interfaces) {
        let own = owns.get(counters.name);
        if (!own) {
          own = { middle: `interface="${escapeLabelValue(counters.name)}",` };
          owns.set(counters.name, own);
        }
        addSample(labels, value(counters), own);
      }
    };
  add(
    "counter",
    "container_network_receive_bytes_total",
    "Cumulative count of bytes received",
    each((i) => i.rxBytes),
  );
  add(
    "counter",
    "container_network_receive_errors_total",
    "Cumulative count of errors encountered while receiving",
    each((i) => i.rxErrors),
  );
  add(
    "counter",
    "container_network_receive_packets_dropped_total",
    "Cumulative count of packets dropped while receiving",
    each((i) => i.rxDropped),
  );
  add(
    "counter",
    "container_network_receive_packets_total",
    "Cumulative count of packets received",
    each((i) => i.rxPackets),
  );
  add(
    "counter",
    "container_network_transmit_bytes_total",
    "Cumulative count of bytes transmitted",
    each((i) => i.txBytes),
  );
  add(
    "counter",
    "container_network_transmit_errors_total",
    "Cumulative count of errors encountered while transmitting",
    each((i) => i.txErrors),
  );
  add(
    "counter",
    "container_network_transmit_packets_dropped_total",
    "Cumulative count of packets dropped while transmitting",
    each((i) => i.txDropped),
  );
  add(
    "counter",
    "container_network_transmit_packets_total",
    "Cumulative count of packets transmitted",
    each((i) => i.txPackets),
  );
}

/** Source: cAdvisor 0.51; `waiting` is the kernel's `some`, `stalled` its `full`. */
export function addPressureFamilies(add: Add): void {
  for (const resource of ["cpu", "io", "memory"] as const) {
    const label = { cpu: "CPU", io: "IO", memory: "memory" }[resource];
    const total = (line: PressureLine | undefined) => inSeconds(line?.totalMicroseconds, MICRO);
    add(
      "counter",
      `container_pressure_${resource}_stalled_seconds_total`,
      `Total time duration no tasks in the container could make progress due to ${label} congestion.`,
      plain((e) => total(e.cgroup.stats.pressure?.[resource]?.full)),
    );
    add(
      "counter",
      `container_pressure_${resource}_waiting_seconds_total`,
      `Total time duration tasks in the container have waited due to ${label} congestion.`,
      plain((e) => total(e.cgroup.stats.pressure?.[resource]?.some)),
    );
  }
}

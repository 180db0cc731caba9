import type { MachineInfo } from "../api/machine-info.ts";
import type { PressureLine } from "./cgroup-stats.ts";
import type { DirectoryUsage, FsCapacity } from "./disk-usage.ts";
import type { DiskCounters, InterfaceCounters } from "./proc.ts";
import { endOfText, escapeLabelValue, familyHeader, labelText, type TextFormat } from "./prometheus-text.ts";
import type { CgroupSample, ContainerSample, NodeSample } from "./sampler.ts";
import { logDirectory } from "./summary.ts";

/** What `/metrics/cadvisor` shows beside the sample. */
export interface CadvisorFacts {
  machine: MachineInfo;
  engineVersion: string;
  kernelVersion: string;
  /** e.g. `Debian GNU/Linux 12 (bookworm)`. */
  osVersion: string;
  /** By directory, of the last scan. */
  disk: ReadonlyMap<string, DirectoryUsage>;
  /** The engine's file system and its device, e.g. `/dev/vda`; undefined when it cannot be asked. */
  engineFs: { device: string; capacity: FsCapacity } | undefined;
  filesystems: readonly NodeFilesystem[];
}

/** One file system of the node with the counters of its disk. */
export interface NodeFilesystem {
  device: string;
  mountPoint: string;
  capacity: FsCapacity;
  counters: DiskCounters | undefined;
}

/** One cgroup with its labels rendered, in the three pieces between which other labels stand in alphabetical order. */
interface Entity {
  /** `{container="…",` */
  head: string;
  /** `id="…",image="…",` */
  middle: string;
  /** `name="…",namespace="…",pod="…"` */
  tail: string;
  cgroup: CgroupSample;
  startSeconds: number;
  /** undefined for a cgroup that is not a container. */
  container: ContainerSample | undefined;
  interfaces: readonly InterfaceCounters[];
  isRoot: boolean;
}

interface Output {
  text: string;
  /** ` <time>` behind a value, or "". */
  stamp: string;
}

/** Writes the samples of one family for one cgroup. */
type Write = (entity: Entity, output: Output, name: string) => void;

interface Family {
  name: string;
  help: string;
  type: "counter" | "gauge";
  /** Samples carry the time they were taken. */
  stamped: boolean;
  write: Write;
}

/**
 * `/metrics/cadvisor`: names, labels, types and units as kubelet 1.20 (oracle 95), and a few that newer ones have
 * (bytes of block I/O, OOM kills, pressure).
 */
export function cadvisorText(sample: NodeSample, facts: CadvisorFacts, format: TextFormat): string {
  const entities = toEntities(sample);
  const milliseconds = sample.at.getTime();
  const stamp = ` ${format === "openmetrics" ? milliseconds / 1000 : milliseconds}`;
  const output: Output = { text: versionText(facts, format), stamp };
  for (const family of containerFamilies(sample, facts)) {
    const before = output.text;
    output.stamp = family.stamped ? stamp : "";
    output.text = "";
    for (const entity of entities) family.write(entity, output, family.name);
    const samples = output.text;
    output.text = samples ? before + familyHeader(family.name, family.help, family.type, format) + samples : before;
  }
  return output.text + machineText(facts.machine, format) + endOfText(format);
}

function toEntities(sample: NodeSample): Entity[] {
  const entities: Entity[] = [];
  const add = (cgroup: CgroupSample, labels: EntityLabels, rest: Partial<Entity> = {}) =>
    entities.push({
      ...renderLabels(cgroup.path, labels),
      cgroup,
      startSeconds: cgroup.createdAt.getTime() / 1000,
      container: undefined,
      interfaces: [],
      isRoot: false,
      ...rest,
    });
  if (sample.root) add(sample.root, NO_LABELS, { isRoot: true, interfaces: sample.interfaces });
  for (const group of [sample.kubepods, ...sample.groups]) if (group) add(group, NO_LABELS);
  for (const pod of sample.pods) {
    const { name, namespace } = pod.facts;
    if (pod.cgroup) add(pod.cgroup, { ...NO_LABELS, namespace, pod: name });
    for (const container of [pod.sandbox, ...pod.containers]) {
      if (!container) continue;
      const { facts } = container;
      const isSandbox = container === pod.sandbox;
      const labels = { container: isSandbox ? "POD" : facts.name, image: facts.image, name: facts.dockerName };
      add(
        container.cgroup,
        { ...labels, namespace, pod: name },
        { container, startSeconds: facts.startedAt.getTime() / 1000, interfaces: isSandbox ? pod.interfaces : [] },
      );
    }
  }
  return entities;
}

interface EntityLabels {
  container: string;
  image: string;
  name: string;
  namespace: string;
  pod: string;
}

const NO_LABELS: EntityLabels = { container: "", image: "", name: "", namespace: "", pod: "" };

function renderLabels(id: string, labels: EntityLabels): Pick<Entity, "head" | "middle" | "tail"> {
  const escaped = (value: string) => escapeLabelValue(value);
  return {
    head: `{container="${escaped(labels.container)}",`,
    middle: `id="${escaped(id)}",image="${escaped(labels.image)}",`,
    tail: `name="${escaped(labels.name)}",namespace="${escaped(labels.namespace)}",pod="${escaped(labels.pod)}"`,
  };
}

/** One sample without further labels; nothing when the value is not known. */
function plain(value: (entity: Entity) => number | undefined): Write {
  return (entity, output, name) => {
    const number = value(entity);
    if (number === undefined) return;
    output.text += `${name}${entity.head}${entity.middle}${entity.tail}} ${number}${output.stamp}\n`;
  };
}

const NANO = 1e9;
const MICRO = 1e6;
const inSeconds = (value: number | undefined, perSecond: number) =>
  value === undefined ? undefined : value / perSecond;

/** The families in the order of their names. */
function containerFamilies(sample: NodeSample, facts: CadvisorFacts): Family[] {
  const seenSeconds = Math.floor(sample.at.getTime() / 1000);
  const families: Family[] = [];
  const add = (type: Family["type"], name: string, help: string, write: Write, stamped = true) =>
    families.push({ name, help, type, stamped, write });
  const cpu = (entity: Entity) => entity.cgroup.stats.cpu;
  const memory = (entity: Entity) => entity.cgroup.stats.memory;
  const spec = (entity: Entity) => entity.cgroup.spec;
  const throttled = (value: (entity: Entity) => number | undefined) =>
    plain((entity) => (spec(entity).cpuQuotaMicroseconds === undefined ? undefined : value(entity)));

  add(
    "counter",
    "container_cpu_cfs_periods_total",
    "Number of elapsed enforcement period intervals.",
    throttled((e) => cpu(e).periods),
  );
  add(
    "counter",
    "container_cpu_cfs_throttled_periods_total",
    "Number of throttled period intervals.",
    throttled((e) => cpu(e).throttledPeriods),
  );
  add(
    "counter",
    "container_cpu_cfs_throttled_seconds_total",
    "Total time duration the container has been throttled.",
    throttled((e) => inSeconds(cpu(e).throttledNanoseconds, NANO)),
  );
  add(
    "gauge",
    "container_cpu_load_average_10s",
    "Value of container cpu load average over the last 10 seconds.",
    plain((e) => Math.round(e.cgroup.loadAverage * 1000)),
  );
  add(
    "counter",
    "container_cpu_system_seconds_total",
    "Cumulative system cpu time consumed in seconds.",
    plain((e) => inSeconds(cpu(e).systemNanoseconds, NANO)),
  );
  add("counter", "container_cpu_usage_seconds_total", "Cumulative cpu time consumed in seconds.", (e, output, name) => {
    output.text += `${name}${e.head}cpu="total",${e.middle}${e.tail}} ${cpu(e).usageNanoseconds / NANO}${output.stamp}\n`;
  });
  add(
    "counter",
    "container_cpu_user_seconds_total",
    "Cumulative user cpu time consumed in seconds.",
    plain((e) => inSeconds(cpu(e).userNanoseconds, NANO)),
  );
  add(
    "gauge",
    "container_file_descriptors",
    "Number of open file descriptors for the container.",
    plain((e) => e.cgroup.processes?.fds),
  );
  addFilesystemFamilies(add, facts);
  addHugetlbFamilies(add);
  add(
    "gauge",
    "container_last_seen",
    "Last time a container was seen by the exporter",
    plain(() => seenSeconds),
  );
  add(
    "gauge",
    "container_memory_cache",
    "Number of bytes of page cache memory.",
    plain((e) => memory(e).cacheBytes),
  );
  add(
    "counter",
    "container_memory_failcnt",
    "Number of memory usage hits limits",
    plain((e) => memory(e).failCount),
  );
  add("counter", "container_memory_failures_total", "Cumulative count of memory allocation failures.", memoryFailures);
  add(
    "gauge",
    "container_memory_mapped_file",
    "Size of memory mapped files in bytes.",
    plain((e) => memory(e).mappedFileBytes),
  );
  add(
    "gauge",
    "container_memory_max_usage_bytes",
    "Maximum memory usage recorded in bytes",
    plain((e) => memory(e).maxUsageBytes),
  );
  add(
    "gauge",
    "container_memory_rss",
    "Size of RSS in bytes.",
    plain((e) => memory(e).rssBytes),
  );
  add(
    "gauge",
    "container_memory_swap",
    "Container swap usage in bytes.",
    plain((e) => memory(e).swapBytes),
  );
  add(
    "gauge",
    "container_memory_usage_bytes",
    "Current memory usage in bytes, including all memory regardless of when it was accessed",
    plain((e) => memory(e).usageBytes),
  );
  add(
    "gauge",
    "container_memory_working_set_bytes",
    "Current working set in bytes.",
    plain((e) => memory(e).workingSetBytes),
  );
  addNetworkFamilies(add);
  add(
    "counter",
    "container_oom_events_total",
    "Count of out of memory events observed for the container",
    plain((e) => memory(e).oomKills),
  );
  addPressureFamilies(add);
  add(
    "gauge",
    "container_processes",
    "Number of processes running inside the container.",
    plain((e) => (e.isRoot ? undefined : e.cgroup.stats.processIds.length)),
  );
  families.push({
    name: "container_scrape_error",
    help: "1 if there was an error while getting container metrics, 0 otherwise",
    type: "gauge",
    stamped: false,
    write: (e, output, name) => {
      if (e.isRoot) output.text += `${name} 0\n`;
    },
  });
  add(
    "gauge",
    "container_sockets",
    "Number of open sockets for the container.",
    plain((e) => e.cgroup.processes?.sockets),
  );
  add(
    "gauge",
    "container_spec_cpu_period",
    "CPU period of the container.",
    plain((e) => spec(e).cpuPeriodMicroseconds),
    false,
  );
  add(
    "gauge",
    "container_spec_cpu_quota",
    "CPU quota of the container.",
    plain((e) => spec(e).cpuQuotaMicroseconds),
    false,
  );
  add(
    "gauge",
    "container_spec_cpu_shares",
    "CPU share of the container.",
    plain((e) => spec(e).cpuShares),
    false,
  );
  // Without a limit these are 0, as upstream; rules divide by them and leave 0 out.
  add(
    "gauge",
    "container_spec_memory_limit_bytes",
    "Memory limit for the container.",
    plain((e) => spec(e).memoryLimitBytes ?? 0),
    false,
  );
  add(
    "gauge",
    "container_spec_memory_reservation_limit_bytes",
    "Memory reservation limit for the container.",
    plain((e) => spec(e).memoryReservationBytes ?? 0),
    false,
  );
  add(
    "gauge",
    "container_spec_memory_swap_limit_bytes",
    "Memory swap limit for the container.",
    plain((e) => spec(e).swapLimitBytes ?? 0),
    false,
  );
  add(
    "gauge",
    "container_start_time_seconds",
    "Start time of the container since unix epoch in seconds.",
    plain((e) => e.startSeconds),
    false,
  );
  add("gauge", "container_tasks_state", "Number of tasks in given state", taskStates);
  add(
    "gauge",
    "container_threads",
    "Number of threads running inside the container",
    plain((e) => e.cgroup.stats.pids?.current),
  );
  add(
    "gauge",
    "container_threads_max",
    "Maximum number of threads allowed inside the container, infinity if value is zero",
    plain((e) => (e.cgroup.stats.pids ? (spec(e).pidsMax ?? 0) : undefined)),
  );
  add(
    "gauge",
    "container_ulimits_soft",
    "Soft ulimit values for the container root process. Unlimited if -1, except priority and nice",
    (e, output, name) => {
      const limit = e.cgroup.openFilesLimit;
      if (!limit) return;
      output.text += `${name}${e.head}${e.middle}${e.tail},ulimit="max_open_files"} ${limit.soft}${output.stamp}\n`;
    },
  );
  return families;
}

type Add = (type: Family["type"], name: string, help: string, write: Write) => void;

const memoryFailures: Write = ({ cgroup, head, middle, tail }, output, name) => {
  const { memory } = cgroup.stats;
  for (const [failure, scope, value] of [
    ["pgfault", "container", memory.pageFaults],
    ["pgfault", "hierarchy", memory.hierarchicalPageFaults],
    ["pgmajfault", "container", memory.majorPageFaults],
    ["pgmajfault", "hierarchy", memory.hierarchicalMajorPageFaults],
  ] as const) {
    output.text += `${name}${head}failure_type="${failure}",${middle}${tail},scope="${scope}"} ${value}${output.stamp}\n`;
  }
};

const taskStates: Write = ({ cgroup, head, middle, tail }, output, name) => {
  const { processes } = cgroup;
  if (!processes) return;
  for (const [state, value] of [
    ["iowaiting", 0], // The kernel tells of no such state; upstream has the label.
    ["running", processes.running],
    ["sleeping", processes.sleeping],
    ["stopped", processes.stopped],
    ["uninterruptible", processes.uninterruptible],
  ] as const) {
    output.text += `${name}${head}${middle}${tail},state="${state}"} ${value}${output.stamp}\n`;
  }
};

/** A sample for each device: of the node its file systems, of a container the engine's one and the disks it used. */
function addFilesystemFamilies(add: Add, facts: CadvisorFacts): void {
  const { engineFs, filesystems, disk, machine } = facts;
  const line = (entity: Entity, device: string, value: number, output: Output, name: string) => {
    output.text += `${name}${entity.head}device="${escapeLabelValue(device)}",${entity.middle}${entity.tail}} ${value}${output.stamp}\n`;
  };
  /** Sizes. */
  const size =
    (ofFs: (capacity: FsCapacity) => number, ofContainer: (container: ContainerSample) => number | undefined): Write =>
    (entity, output, name) => {
      if (entity.isRoot) for (const fs of filesystems) line(entity, fs.device, ofFs(fs.capacity), output, name);
      const value = entity.container && ofContainer(entity.container);
      if (engineFs && value !== undefined) line(entity, engineFs.device, value, output, name);
    };
  /** Counters of disks; what the kernel does not count per cgroup is 0 for a container, as upstream. */
  const counter =
    (ofDisk: (counters: DiskCounters) => number, ofCgroup?: BlockValue): Write =>
    (entity, output, name) => {
      if (entity.isRoot) {
        for (const { device, counters } of filesystems) {
          line(entity, device, counters ? ofDisk(counters) : 0, output, name);
        }
      }
      if (!entity.container) return;
      const { blockIo } = entity.cgroup.stats;
      let isEngineFsDone = false;
      for (const io of ofCgroup ? blockIo : []) {
        const device = `/dev/${machine.disk_map[`${io.major}:${io.minor}`]?.name ?? `${io.major}:${io.minor}`}`;
        line(entity, device, ofCgroup!(io), output, name);
        isEngineFsDone ||= device === engineFs?.device;
      }
      if (engineFs && !isEngineFsDone) line(entity, engineFs.device, 0, output, name);
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

type BlockValue = (io: CgroupSample["stats"]["blockIo"][number]) => number;

function addHugetlbFamilies(add: Add): void {
  const each =
    (value: (stats: CgroupSample["stats"]["hugetlb"][number]) => number | undefined): Write =>
    ({ cgroup, head, middle, tail }, output, name) => {
      for (const stats of cgroup.stats.hugetlb) {
        const number = value(stats);
        if (number === undefined) continue;
        const pagesize = `pagesize="${toPageSizeName(stats.pageSizeBytes)}"`;
        // `pagesize` comes between `namespace` and `pod`, but the order of labels means nothing.
        output.text += `${name}${head}${middle}${tail},${pagesize}} ${number}${output.stamp}\n`;
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

function addNetworkFamilies(add: Add): void {
  const each =
    (value: (counters: InterfaceCounters) => number): Write =>
    ({ interfaces, head, middle, tail }, output, name) => {
      for (const counters of interfaces) {
        const device = `interface="${escapeLabelValue(counters.name)}",`;
        output.text += `${name}${head}${middle}${device}${tail}} ${value(counters)}${output.stamp}\n`;
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

/** Source: cAdvisor 0.51; `waiting` is the kernel's `some`, `stalled` its `full`. [M25] */
function addPressureFamilies(add: Add): void {
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

function versionText({ engineVersion, kernelVersion, osVersion }: CadvisorFacts, format: TextFormat): string {
  const help =
    "A metric with a constant '1' value labeled by kernel version, OS version, docker version, cadvisor version & cadvisor revision.";
  const labels = labelText(
    ["cadvisorRevision", "cadvisorVersion", "dockerVersion", "kernelVersion", "osVersion"],
    ["", "", engineVersion, kernelVersion, osVersion],
  );
  return `${familyHeader("cadvisor_version_info", help, "gauge", format)}cadvisor_version_info${labels} 1\n`;
}

function machineText(machine: MachineInfo, format: TextFormat): string {
  const names = ["boot_id", "machine_id", "system_uuid"];
  const values = [machine.boot_id, machine.machine_id, machine.system_uuid];
  const gauge = (name: string, help: string, samples: readonly (readonly [string, number])[]) =>
    familyHeader(name, help, "gauge", format) +
    samples.map(([labels, value]) => `${name}${labels} ${value}\n`).join("");
  const labels = labelText(names, values);
  const nvm = (mode: string) => labelText([...names, "mode"], [...values, mode]);
  return [
    gauge("machine_cpu_cores", "Number of logical CPU cores.", [[labels, machine.num_cores]]),
    gauge("machine_cpu_physical_cores", "Number of physical CPU cores.", [[labels, machine.num_physical_cores]]),
    gauge("machine_cpu_sockets", "Number of CPU sockets.", [[labels, machine.num_sockets]]),
    gauge("machine_memory_bytes", "Amount of memory installed on the machine.", [[labels, machine.memory_capacity]]),
    gauge("machine_nvm_avg_power_budget_watts", "NVM power budget.", [[labels, machine.nvm.avg_power_budget]]),
    gauge("machine_nvm_capacity", "NVM capacity value labeled by NVM mode (memory mode or app direct mode).", [
      [nvm("app_direct_mode"), machine.nvm["app direct_mode_capacity"]],
      [nvm("memory_mode"), machine.nvm.memory_mode_capacity],
    ]),
    gauge("machine_scrape_error", "1 if there was an error while getting machine metrics, 0 otherwise.", [["", 0]]),
  ].join("");
}

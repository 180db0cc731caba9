import type { DiskCounters, InterfaceCounters } from "../../base/host/proc.ts";
import type { BlockIoStats, HugetlbStats } from "../cgroups/cgroup-figures.ts";
import type { FsCapacity } from "../disk-usage.ts";
import { label, labelText, type Metric, metricsOf } from "../metrics/metric.ts";
import {
  type ContainerSample,
  logDirectory,
  type MeasuredCgroup,
  measuredCgroups,
  type NodeSample,
} from "../sampler.ts";
import type { CadvisorFacts, MachineInfo } from "./cadvisor-facts.ts";

/**
 * The metrics of `/metrics/cadvisor` in the order of their names: names, labels, types and units of kubelet 1.20, and
 * bytes of block I/O, OOM kills and pressure as newer ones have them.
 */
export const cadvisorMetrics = (sample: NodeSample, facts: CadvisorFacts): Metric[] =>
  [versionMetric(facts), ...containerMetrics(sample, facts), ...machineMetrics(facts.machine)].sort((a, b) =>
    a.name < b.name ? -1 : 1,
  );

/** One cgroup with its labels as text, in pieces: a metric's own labels come between them, in the order of their names. */
interface Entity extends MeasuredCgroup {
  /** `{container="…",` */
  head: string;
  /** `id="…",image="…",` */
  middle: string;
  /** `name="…",namespace="…",pod="…"` */
  tail: string;
  /** All labels of a metric without own ones. */
  labels: string;
}

function toEntity(measured: MeasuredCgroup): Entity {
  const { cgroup, container, isSandbox, pod } = measured;
  const head = `{${label("container", isSandbox ? "POD" : container?.facts.name)},`;
  const middle = `${label("id", cgroup.path)},${label("image", container?.facts.image)},`;
  const tail = `${label("name", container?.facts.dockerName)},${label("namespace", pod?.facts.namespace)},${label("pod", pod?.facts.name)}`;
  return { ...measured, head, middle, tail, labels: `${head}${middle}${tail}}` };
}

/** Adds a sample of an entity. @param own labels of the metric, each with its comma: before, between and after the entity's */
type AddOf = (entity: Entity, value: number, own: { before?: string; between?: string; after?: string }) => void;

function containerMetrics(sample: NodeSample, facts: CadvisorFacts): Metric[] {
  const { at } = sample;
  const entities = measuredCgroups(sample).map(toEntity);
  const labels = (entity: Entity) => entity.labels;
  const timed = metricsOf(entities, labels, at);
  type Value = (entity: Entity) => number | undefined;
  const gauge = (name: string, help: string, value: Value) => timed("gauge", `container_${name}`, help, value);
  const counter = (name: string, help: string, value: Value) => timed("counter", `container_${name}`, help, value);
  const untimed = metricsOf(entities, labels);
  const spec = (name: string, help: string, value: (spec: Entity["cgroup"]["spec"]) => number | undefined) =>
    untimed("gauge", `container_spec_${name}`, help, (e) => value(e.cgroup.spec));
  /** Samples with labels of their own. */
  const many = (type: "counter" | "gauge", name: string, help: string, write: (e: Entity, add: AddOf) => void) => ({
    type,
    name: `container_${name}`,
    help,
    at,
    write: (add: Parameters<Metric["write"]>[0]) => {
      for (const entity of entities) {
        write(entity, ({ head, middle, tail }, value, { before = "", between = "", after = "" }) =>
          add(`${head}${before}${middle}${between}${tail}${after}}`, value),
        );
      }
    },
  });

  return [
    counter("cpu_cfs_periods_total", "Number of elapsed enforcement period intervals.", (e) => throttling(e)?.periods),
    counter(
      "cpu_cfs_throttled_periods_total",
      "Number of throttled period intervals.",
      (e) => throttling(e)?.throttledPeriods,
    ),
    counter("cpu_cfs_throttled_seconds_total", "Total time duration the container has been throttled.", (e) =>
      divided(throttling(e)?.throttledNanoseconds, NANO),
    ),
    gauge("cpu_load_average_10s", "Value of container cpu load average over the last 10 seconds.", (e) =>
      Math.round(e.cgroup.loadAverage * 1000),
    ),
    counter("cpu_system_seconds_total", "Cumulative system cpu time consumed in seconds.", (e) =>
      divided(cpu(e).systemNanoseconds, NANO),
    ),
    many("counter", "cpu_usage_seconds_total", "Cumulative cpu time consumed in seconds.", (e, add) =>
      add(e, cpu(e).usageNanoseconds / NANO, { before: 'cpu="total",' }),
    ),
    counter("cpu_user_seconds_total", "Cumulative user cpu time consumed in seconds.", (e) =>
      divided(cpu(e).userNanoseconds, NANO),
    ),
    gauge("file_descriptors", "Number of open file descriptors for the container.", (e) => e.cgroup.processes?.fds),
    ...CAPACITIES.map(([name, help, key]) =>
      many("gauge", `fs_${name}`, help, (e, add) => addCapacity(e, facts, key, add)),
    ),
    ...DISK_COUNTERS.map(([type, name, help, key, divisor, ofCgroup]) =>
      many(type, `fs_${name}`, help, (e, add) => addDiskCounter(e, facts, { key, divisor, ofCgroup }, add)),
    ),
    ...HUGETLB.map(([type, name, help, key]) =>
      many(type, `hugetlb_${name}`, help, (e, add) => {
        for (const stats of e.cgroup.stats.hugetlb) {
          const value = stats[key];
          // `pagesize` comes between `namespace` and `pod`, but the order of labels means nothing.
          const own = { after: `,pagesize="${toPageSizeName(stats.pageSizeBytes)}"` };
          if (value !== undefined) add(e, value, own);
        }
      }),
    ),
    gauge("last_seen", "Last time a container was seen by the exporter", () => Math.floor(at.getTime() / 1000)),
    gauge("memory_cache", "Number of bytes of page cache memory.", (e) => memory(e).cacheBytes),
    counter("memory_failcnt", "Number of memory usage hits limits", (e) => memory(e).failCount),
    many("counter", "memory_failures_total", "Cumulative count of memory allocation failures.", (e, add) => {
      for (const [type, scope, key] of FAULTS) {
        const value = memory(e)[key];
        const own = { before: `failure_type="${type}",`, after: `,scope="${scope}"` };
        if (value !== undefined) add(e, value, own);
      }
    }),
    gauge("memory_mapped_file", "Size of memory mapped files in bytes.", (e) => memory(e).mappedFileBytes),
    gauge("memory_max_usage_bytes", "Maximum memory usage recorded in bytes", (e) => memory(e).maxUsageBytes),
    gauge("memory_rss", "Size of RSS in bytes.", (e) => memory(e).rssBytes),
    gauge("memory_swap", "Container swap usage in bytes.", (e) => memory(e).swapBytes),
    gauge(
      "memory_usage_bytes",
      "Current memory usage in bytes, including all memory regardless of when it was accessed",
      (e) => memory(e).usageBytes,
    ),
    gauge("memory_working_set_bytes", "Current working set in bytes.", (e) => memory(e).workingSetBytes),
    ...NETWORK.map(([name, help, key]) =>
      many("counter", `network_${name}_total`, `Cumulative count of ${help}`, (e, add) => {
        for (const counters of e.interfaces) {
          add(e, counters[key], { between: `${label("interface", counters.name)},` });
        }
      }),
    ),
    counter("oom_events_total", "Count of out of memory events observed for the container", (e) => memory(e).oomKills),
    ...PRESSURE.flatMap(([resource, word]) => [
      counter(
        `pressure_${resource}_stalled_seconds_total`,
        `Total time duration no tasks in the container could make progress due to ${word} congestion.`,
        (e) => divided(e.cgroup.stats.pressure?.[resource]?.full?.totalMicroseconds, MICRO),
      ),
      counter(
        `pressure_${resource}_waiting_seconds_total`,
        `Total time duration tasks in the container have waited due to ${word} congestion.`,
        (e) => divided(e.cgroup.stats.pressure?.[resource]?.some.totalMicroseconds, MICRO),
      ),
    ]),
    gauge("processes", "Number of processes running inside the container.", (e) =>
      e.isRoot ? undefined : e.cgroup.stats.processIds.length,
    ),
    metricsOf(sample.root ? [0] : [], () => "")(
      "gauge",
      "container_scrape_error",
      "1 if there was an error while getting container metrics, 0 otherwise",
      (error) => error,
    ),
    gauge("sockets", "Number of open sockets for the container.", (e) => e.cgroup.processes?.sockets),
    spec("cpu_period", "CPU period of the container.", (limits) => limits.cpuPeriodMicroseconds),
    spec("cpu_quota", "CPU quota of the container.", (limits) => limits.cpuQuotaMicroseconds),
    spec("cpu_shares", "CPU share of the container.", (limits) => limits.cpuShares),
    // Without a limit these are 0, as upstream; rules divide by them and skip 0.
    spec("memory_limit_bytes", "Memory limit for the container.", (limits) => limits.memoryLimitBytes ?? 0),
    spec(
      "memory_reservation_limit_bytes",
      "Memory reservation limit for the container.",
      (limits) => limits.memoryReservationBytes ?? 0,
    ),
    spec("memory_swap_limit_bytes", "Memory swap limit for the container.", (limits) => limits.swapLimitBytes ?? 0),
    untimed(
      "gauge",
      "container_start_time_seconds",
      "Start time of the container since unix epoch in seconds.",
      (e) => (e.container?.facts.startedAt ?? e.cgroup.createdAt).getTime() / 1000,
    ),
    many("gauge", "tasks_state", "Number of tasks in given state", (e, add) => {
      const { processes } = e.cgroup;
      // The kernel has no state `iowaiting`; upstream has the label.
      for (const state of TASK_STATES) {
        if (processes) add(e, state === "iowaiting" ? 0 : processes[state], { after: `,state="${state}"` });
      }
    }),
    gauge("threads", "Number of threads running inside the container", (e) => e.cgroup.stats.pids?.current),
    gauge("threads_max", "Maximum number of threads allowed inside the container, infinity if value is zero", (e) =>
      e.cgroup.stats.pids ? (e.cgroup.spec.pidsMax ?? 0) : undefined,
    ),
    many(
      "gauge",
      "ulimits_soft",
      "Soft ulimit values for the container root process. Unlimited if -1, except priority and nice",
      (e, add) => {
        const limit = e.cgroup.openFilesLimit;
        if (limit && e.container) add(e, limit.soft, { after: ',ulimit="max_open_files"' });
      },
    ),
  ];
}

const NANO = 1e9;
const MICRO = 1e6;
const divided = (value: number | undefined, divisor: number) => (value === undefined ? undefined : value / divisor);

const cpu = ({ cgroup }: Entity) => cgroup.stats.cpu;
const memory = ({ cgroup }: Entity) => cgroup.stats.memory;
/** Only what has a quota is throttled. */
const throttling = (e: Entity) => (e.cgroup.spec.cpuQuotaMicroseconds === undefined ? undefined : cpu(e));

const FAULTS = [
  ["pgfault", "container", "pageFaults"],
  ["pgfault", "hierarchy", "hierarchicalPageFaults"],
  ["pgmajfault", "container", "majorPageFaults"],
  ["pgmajfault", "hierarchy", "hierarchicalMajorPageFaults"],
] as const;

const TASK_STATES = ["iowaiting", "running", "sleeping", "stopped", "uninterruptible"] as const;

/** Source: cAdvisor 0.51; `waiting` is the kernel's `some`, `stalled` its `full`. */
const PRESSURE = [
  ["cpu", "CPU"],
  ["io", "IO"],
  ["memory", "memory"],
] as const;

const NETWORK: readonly (readonly [name: string, help: string, key: Exclude<keyof InterfaceCounters, "name">])[] = [
  ["receive_bytes", "bytes received", "rxBytes"],
  ["receive_errors", "errors encountered while receiving", "rxErrors"],
  ["receive_packets_dropped", "packets dropped while receiving", "rxDropped"],
  ["receive_packets", "packets received", "rxPackets"],
  ["transmit_bytes", "bytes transmitted", "txBytes"],
  ["transmit_errors", "errors encountered while transmitting", "txErrors"],
  ["transmit_packets_dropped", "packets dropped while transmitting", "txDropped"],
  ["transmit_packets", "packets transmitted", "txPackets"],
];

const HUGETLB: readonly (readonly ["counter" | "gauge", name: string, help: string, key: keyof HugetlbStats])[] = [
  ["counter", "failcnt", "Number of hugepage usage hits limits", "failCount"],
  ["gauge", "max_usage_bytes", "Maximum hugepage usages recorded in bytes", "maxUsageBytes"],
  ["gauge", "usage_bytes", "Current hugepage usage in bytes", "usageBytes"],
];

const toPageSizeName = (bytes: number) =>
  bytes >= 2 ** 30 ? `${bytes / 2 ** 30}GB` : bytes >= 2 ** 20 ? `${bytes / 2 ** 20}MB` : `${bytes / 2 ** 10}KB`;

const CAPACITIES: readonly (readonly [name: string, help: string, key: keyof FsCapacity])[] = [
  ["inodes_free", "Number of available Inodes", "inodesFree"],
  ["inodes_total", "Number of Inodes", "inodes"],
  ["limit_bytes", "Number of bytes that can be consumed by the container on this filesystem.", "capacityBytes"],
  ["usage_bytes", "Number of bytes that are consumed by the container on this filesystem.", "usedBytes"],
];

/** The node has a sample for each of its file systems, a container one for the engine's. */
function addCapacity(entity: Entity, facts: CadvisorFacts, key: keyof FsCapacity, add: AddOf): void {
  const { engineFs, filesystems } = facts;
  if (entity.isRoot) for (const { device, capacity } of filesystems) add(entity, capacity[key], ofDevice(device));
  if (!entity.container || !engineFs) return;
  const value = key === "usedBytes" ? usedBytes(entity.container, facts) : engineFs.capacity[key];
  if (value !== undefined) add(entity, value, ofDevice(engineFs.device));
}

const ofDevice = (device: string) => ({ before: `${label("device", device)},` });

function usedBytes({ facts: container }: ContainerSample, { disk }: CadvisorFacts): number | undefined {
  const known = [disk.get(container.writableLayerPath), disk.get(logDirectory(container))].filter((part) => !!part);
  return known.length === 0 ? undefined : known.reduce((sum, part) => sum + part.usedBytes, 0);
}

type DiskCounterKey = Exclude<keyof DiskCounters, "name">;
/** `divisor`: how many units of the kernel's are one of the metric's. `ofCgroup`: what the kernel counts per cgroup. */
type DiskCounterRow = readonly [
  type: "counter" | "gauge",
  name: string,
  help: string,
  key: DiskCounterKey,
  divisor: number,
  ofCgroup?: keyof BlockIoStats,
];

const MILLI = 1000;
/** Sectors in a byte. */
const SECTORS = 1 / 512;

const DISK_COUNTERS: readonly DiskCounterRow[] = [
  ["gauge", "io_current", "Number of I/Os currently in progress", "inProgress", 1],
  ["counter", "io_time_seconds_total", "Cumulative count of seconds spent doing I/Os", "ioMilliseconds", MILLI],
  [
    "counter",
    "io_time_weighted_seconds_total",
    "Cumulative weighted I/O time in seconds",
    "weightedIoMilliseconds",
    MILLI,
  ],
  ["counter", "read_seconds_total", "Cumulative count of seconds spent reading", "readMilliseconds", MILLI],
  ["counter", "reads_bytes_total", "Cumulative count of bytes read", "sectorsRead", SECTORS, "readBytes"],
  ["counter", "reads_merged_total", "Cumulative count of reads merged", "readsMerged", 1],
  ["counter", "reads_total", "Cumulative count of reads completed", "reads", 1, "reads"],
  ["counter", "sector_reads_total", "Cumulative count of sector reads completed", "sectorsRead", 1],
  ["counter", "sector_writes_total", "Cumulative count of sector writes completed", "sectorsWritten", 1],
  ["counter", "write_seconds_total", "Cumulative count of seconds spent writing", "writeMilliseconds", MILLI],
  ["counter", "writes_bytes_total", "Cumulative count of bytes written", "sectorsWritten", SECTORS, "writeBytes"],
  ["counter", "writes_merged_total", "Cumulative count of writes merged", "writesMerged", 1],
  ["counter", "writes_total", "Cumulative count of writes completed", "writes", 1, "writes"],
];

/** The node has a sample for each disk of its file systems, a container one for each disk it used, 0 where nothing is counted. */
function addDiskCounter(
  entity: Entity,
  { engineFs, filesystems, machine }: CadvisorFacts,
  { key, divisor, ofCgroup }: { key: DiskCounterKey; divisor: number; ofCgroup: keyof BlockIoStats | undefined },
  add: AddOf,
): void {
  if (entity.isRoot) {
    for (const { device, counters } of filesystems) add(entity, (counters?.[key] ?? 0) / divisor, ofDevice(device));
  }
  if (!entity.container) return;
  let isEngineFsDone = false;
  for (const io of ofCgroup ? entity.cgroup.stats.blockIo : []) {
    const id = `${io.major}:${io.minor}`;
    const device = `/dev/${machine.disk_map[id]?.name ?? id}`;
    add(entity, io[ofCgroup!], ofDevice(device));
    isEngineFsDone ||= device === engineFs?.device;
  }
  if (engineFs && !isEngineFsDone) add(entity, 0, ofDevice(engineFs.device));
}

function versionMetric({ engineVersion, kernelVersion, osVersion }: CadvisorFacts): Metric {
  const names = ["cadvisorRevision", "cadvisorVersion", "dockerVersion", "kernelVersion", "osVersion"];
  return metricsOf([["", "", engineVersion, kernelVersion, osVersion]], (values) => labelText(names, values))(
    "gauge",
    "cadvisor_version_info",
    "A metric with a constant '1' value labeled by kernel version, OS version, docker version, cadvisor version & cadvisor revision.",
    () => 1,
  );
}

function machineMetrics(machine: MachineInfo): Metric[] {
  const names = ["boot_id", "machine_id", "system_uuid"];
  const values = [machine.boot_id, machine.machine_id, machine.system_uuid];
  const ofMachine = metricsOf([machine], () => labelText(names, values));
  const gauge = (name: string, help: string, value: number) => ofMachine("gauge", `machine_${name}`, help, () => value);
  const modes = [
    ["app_direct_mode", machine.nvm["app direct_mode_capacity"]],
    ["memory_mode", machine.nvm.memory_mode_capacity],
  ] as const;
  return [
    gauge("cpu_cores", "Number of logical CPU cores.", machine.num_cores),
    gauge("cpu_physical_cores", "Number of physical CPU cores.", machine.num_physical_cores),
    gauge("cpu_sockets", "Number of CPU sockets.", machine.num_sockets),
    gauge("memory_bytes", "Amount of memory installed on the machine.", machine.memory_capacity),
    gauge("nvm_avg_power_budget_watts", "NVM power budget.", machine.nvm.avg_power_budget),
    metricsOf(modes, ([mode]) => labelText([...names, "mode"], [...values, mode]))(
      "gauge",
      "machine_nvm_capacity",
      "NVM capacity value labeled by NVM mode (memory mode or app direct mode).",
      ([, bytes]) => bytes,
    ),
    metricsOf([0], () => "")(
      "gauge",
      "machine_scrape_error",
      "1 if there was an error while getting machine metrics, 0 otherwise.",
      (error) => error,
    ),
  ];
}

import type { ProcessCounts } from "../../base/host/proc.ts";
import type { MemoryStats } from "../cgroups/cgroup-stats.ts";
import type { NodeSample } from "../node-sample.ts";
import {
  addFilesystemFamilies,
  addHugetlbFamilies,
  addNetworkFamilies,
  addPressureFamilies,
} from "./cadvisor-device-families.ts";
import {
  type Entity,
  type Family,
  inSeconds,
  NANO,
  type OwnLabels,
  plain,
  WITHOUT_LABELS,
  type Write,
} from "./cadvisor-entity.ts";
import type { CadvisorFacts } from "./cadvisor-facts.ts";

/** The families in the order of their names. */
export function containerFamilies(sample: NodeSample, facts: CadvisorFacts): Family[] {
  const seenSeconds = Math.floor(sample.at.getTime() / 1000);
  const families: Family[] = [];
  const add = (type: Family["type"], name: string, help: string, write: Write, hasTimestamp = true) =>
    families.push({ name, help, type, hasTimestamp, write });
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
  add("counter", "container_cpu_usage_seconds_total", "Cumulative cpu time consumed in seconds.", (e, addSample) =>
    addSample(e.labels, cpu(e).usageNanoseconds / NANO, ALL_CPUS),
  );
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
    hasTimestamp: false,
    write: (e, addSample) => {
      if (e.isRoot) addSample(WITHOUT_LABELS, 0);
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
  // Without a limit these are 0, as upstream; rules divide by them and skip 0.
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
    (e, addSample) => {
      const limit = e.cgroup.openFilesLimit;
      if (limit && e.container) addSample(e.labels, limit.soft, OPEN_FILES);
    },
  );
  return families;
}

const ALL_CPUS: OwnLabels = { head: 'cpu="total",' };
const OPEN_FILES: OwnLabels = { tail: ',ulimit="max_open_files"' };

const failures = (failure: string, scope: string): OwnLabels => ({
  head: `failure_type="${failure}",`,
  tail: `,scope="${scope}"`,
});
const FAILURES: readonly (readonly [OwnLabels, (memory: MemoryStats) => number | undefined])[] = [
  [failures("pgfault", "container"), (memory) => memory.pageFaults],
  [failures("pgfault", "hierarchy"), (memory) => memory.hierarchicalPageFaults],
  [failures("pgmajfault", "container"), (memory) => memory.majorPageFaults],
  [failures("pgmajfault", "hierarchy"), (memory) => memory.hierarchicalMajorPageFaults],
];

const memoryFailures: Write = ({ cgroup, labels }, addSample) => {
  for (const [own, ofMemory] of FAILURES) {
    const value = ofMemory(cgroup.stats.memory);
    if (value !== undefined) addSample(labels, value, own);
  }
};

const state = (name: string): OwnLabels => ({ tail: `,state="${name}"` });
const STATES: readonly (readonly [OwnLabels, (processes: ProcessCounts) => number])[] = [
  [state("iowaiting"), () => 0], // The kernel has no such state; upstream has the label.
  [state("running"), (processes) => processes.running],
  [state("sleeping"), (processes) => processes.sleeping],
  [state("stopped"), (processes) => processes.stopped],
  [state("uninterruptible"), (processes) => processes.uninterruptible],
];

const taskStates: Write = ({ cgroup, labels }, addSample) => {
  const { processes } = cgroup;
  if (!processes) return;
  for (const [own, ofProcesses] of STATES) addSample(labels, ofProcesses(processes), own);
};

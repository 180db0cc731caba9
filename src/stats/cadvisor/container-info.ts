import type { InterfaceCounters } from "../../base/host/proc.ts";
import { logDirectory, type MeasuredCgroup } from "../sampler.ts";
import { withoutUndefined } from "../summary.ts";
import type { CadvisorFacts } from "./cadvisor-facts.ts";

/** Response about one cgroup, as cAdvisor's API 1.x and the kubelet's `/stats/` give it. */
export interface ContainerInfo {
  /** Docker's id; absent for a cgroup that is not a container. */
  id?: string;
  name: string;
  aliases?: string[];
  namespace?: string;
  /** Directly below; absent when there are none. */
  subcontainers?: { name: string }[];
  spec: object;
  /** Oldest first. */
  stats: object[];
}

/** @param measured the same cgroup at one or more instants, oldest first. */
export function toContainerInfo(
  measured: readonly MeasuredCgroup[],
  subcontainers: readonly string[],
  facts: CadvisorFacts,
): ContainerInfo {
  const latest = measured.at(-1)!;
  const { container } = latest;
  return {
    ...(container && { id: container.facts.id }),
    name: latest.cgroup.path,
    ...(container && { aliases: [container.facts.dockerName, container.facts.id], namespace: "docker" }),
    ...(subcontainers.length > 0 && { subcontainers: subcontainers.map((name) => ({ name })) }),
    spec: containerSpec(latest, facts),
    stats: measured.map((at) => containerStats(at, facts)),
  };
}

/** Greatest whole number of pages: what v1 calls "no limit". */
const UNLIMITED_BYTES = 2 ** 63 - 4096;

function containerSpec(measured: MeasuredCgroup, facts: CadvisorFacts): object {
  const { container, cgroup, isRoot } = measured;
  const { spec } = cgroup;
  return {
    creation_time: (container?.facts.createdAt ?? cgroup.createdAt).toISOString(),
    ...(container && { labels: shownLabels(container.facts.labels) }),
    has_cpu: true,
    cpu: withoutUndefined({
      limit: spec.cpuShares,
      max_limit: 0,
      mask: spec.cpuMask,
      quota: spec.cpuQuotaMicroseconds,
      period: spec.cpuPeriodMicroseconds,
    }),
    has_memory: true,
    memory: withoutUndefined({
      limit: spec.memoryLimitBytes ?? (isRoot ? facts.machine.memory_capacity : UNLIMITED_BYTES),
      reservation: spec.memoryReservationBytes ?? UNLIMITED_BYTES,
      swap_limit: spec.swapLimitBytes,
    }),
    has_hugetlb: cgroup.stats.hugetlb.length > 0,
    has_network: measured.interfaces.length > 0,
    has_processes: !isRoot,
    processes: withoutUndefined({ limit: spec.pidsMax }),
    has_filesystem: isRoot || container !== undefined,
    has_diskio: true,
    has_custom_metrics: false,
    ...(container && { image: container.facts.image }),
  };
}

/** Labels hold annotations, and one annotation a copy of the manifest with its environment values. */
function shownLabels(labels: Readonly<Record<string, string>>): Record<string, string> {
  const shown = Object.entries(labels).filter(([name]) => !name.endsWith("last-applied-configuration"));
  return Object.fromEntries(shown.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function containerStats(measured: MeasuredCgroup, facts: CadvisorFacts): object {
  return {
    timestamp: measured.at.toISOString(),
    cpu: cpuStats(measured),
    diskio: diskIo(measured, facts),
    memory: memoryStats(measured),
    ...(measured.cgroup.stats.hugetlb.length > 0 && { hugetlb: hugetlb(measured) }),
    network: { ...networkStats(measured.interfaces), ...NO_TCP_STATS },
    ...filesystems(measured, facts),
    task_stats: { ...renamed(TASKS, measured.cgroup.processes), nr_io_wait: 0 },
    processes: processes(measured),
    resctrl: {},
  };
}

function cpuStats({ cgroup }: MeasuredCgroup) {
  const known = withoutUndefined(cgroup.stats.cpu);
  return {
    usage: renamed({ total: "usageNanoseconds", user: "userNanoseconds", system: "systemNanoseconds" }, known),
    cfs: renamed(
      { periods: "periods", throttled_periods: "throttledPeriods", throttled_time: "throttledNanoseconds" },
      known,
    ),
    schedstat: { run_time: 0, runqueue_time: 0, run_periods: 0 },
    load_average: Math.round(cgroup.loadAverage * 1000),
  };
}

function diskIo({ cgroup }: MeasuredCgroup, { machine }: CadvisorFacts): object {
  const { blockIo } = cgroup.stats;
  if (blockIo.length === 0) return {};
  const devices = (stats: (io: (typeof blockIo)[number]) => Record<string, number>) =>
    blockIo.map((io) => {
      const name = machine.disk_map[`${io.major}:${io.minor}`]?.name;
      return { device: name ? `/dev/${name}` : "", major: io.major, minor: io.minor, stats: stats(io) };
    });
  return {
    io_service_bytes: devices((io) => operations(io.readBytes, io.writeBytes)),
    io_serviced: devices((io) => operations(io.reads, io.writes)),
  };
}

const operations = (read: number, write: number) => ({ Read: read, Total: read + write, Write: write });

/** Members by their names in cAdvisor's API; always whole, as clients expect: 0 for what is not known. */
const renamed = <K extends string>(
  names: Readonly<Record<string, K>>,
  values: Partial<Record<K, number>> | undefined,
) => Object.fromEntries(Object.entries(names).map(([name, key]) => [name, values?.[key] ?? 0]));

const MEMORY = {
  usage: "usageBytes",
  max_usage: "maxUsageBytes",
  cache: "cacheBytes",
  rss: "rssBytes",
  swap: "swapBytes",
  mapped_file: "mappedFileBytes",
  working_set: "workingSetBytes",
  failcnt: "failCount",
} as const;

function memoryStats({ cgroup }: MeasuredCgroup): object {
  const memory = withoutUndefined(cgroup.stats.memory);
  const faults = { pgfault: "pageFaults", pgmajfault: "majorPageFaults" } as const;
  const ofAll = { pgfault: "hierarchicalPageFaults", pgmajfault: "hierarchicalMajorPageFaults" } as const;
  return {
    ...renamed(MEMORY, memory),
    container_data: { ...renamed(faults, memory), numa_stats: {} },
    hierarchical_data: { ...renamed(ofAll, memory), numa_stats: {} },
  };
}

function hugetlb({ cgroup }: MeasuredCgroup): object {
  return Object.fromEntries(
    cgroup.stats.hugetlb.map(({ pageSizeBytes, usageBytes, maxUsageBytes, failCount }) => [
      `${pageSizeBytes / 1024}KB`,
      { usage: usageBytes, max_usage: maxUsageBytes ?? 0, failcnt: failCount },
    ]),
  );
}

const INTERFACE = {
  rx_bytes: "rxBytes",
  rx_packets: "rxPackets",
  rx_errors: "rxErrors",
  rx_dropped: "rxDropped",
  tx_bytes: "txBytes",
  tx_packets: "txPackets",
  tx_errors: "txErrors",
  tx_dropped: "txDropped",
} as const;

/** The first interface represents the whole; a cgroup without a network of its own shows zeros. */
function networkStats(interfaces: readonly InterfaceCounters[]): object {
  const all = interfaces.map((counters) => ({ name: counters.name, ...renamed(INTERFACE, counters) }));
  return { ...(all[0] ?? { name: "", ...renamed(INTERFACE, undefined) }), ...(all.length > 0 && { interfaces: all }) };
}

function containerDisk({ container }: MeasuredCgroup, { disk }: CadvisorFacts) {
  if (!container) return undefined;
  const layer = disk.get(container.facts.writableLayerPath);
  const log = disk.get(logDirectory(container.facts));
  if (!layer && !log) return undefined;
  const baseBytes = layer?.usedBytes ?? 0;
  return { baseBytes, totalBytes: baseBytes + (log?.usedBytes ?? 0), inodes: layer?.inodesUsed ?? 0 };
}

function filesystems(measured: MeasuredCgroup, facts: CadvisorFacts): { filesystem?: object[] } {
  if (measured.isRoot) {
    const filesystem = facts.filesystems.map(({ device, capacity, counters }) => ({
      ...NO_FILESYSTEM,
      device,
      capacity: capacity.capacityBytes,
      usage: capacity.usedBytes,
      available: capacity.availableBytes,
      has_inodes: capacity.inodes > 0,
      inodes: capacity.inodes,
      inodes_free: capacity.inodesFree,
      ...renamed(DISK, counters),
    }));
    return { filesystem };
  }
  const used = containerDisk(measured, facts);
  if (!used || !facts.engineFs) return {};
  const { device, capacity } = facts.engineFs;
  const { totalBytes: usage, baseBytes: base_usage, inodes } = used;
  return { filesystem: [{ ...NO_FILESYSTEM, device, capacity: capacity.capacityBytes, usage, base_usage, inodes }] };
}

const DISK = {
  reads_completed: "reads",
  reads_merged: "readsMerged",
  sectors_read: "sectorsRead",
  read_time: "readMilliseconds",
  writes_completed: "writes",
  writes_merged: "writesMerged",
  sectors_written: "sectorsWritten",
  write_time: "writeMilliseconds",
  io_in_progress: "inProgress",
  io_time: "ioMilliseconds",
  weighted_io_time: "weightedIoMilliseconds",
} as const;

const NO_FILESYSTEM = {
  device: "",
  type: "vfs",
  capacity: 0,
  usage: 0,
  base_usage: 0,
  available: 0,
  has_inodes: false,
  inodes: 0,
  inodes_free: 0,
  ...renamed(DISK, undefined),
};

const TASKS = {
  nr_sleeping: "sleeping",
  nr_running: "running",
  nr_stopped: "stopped",
  nr_uninterruptible: "uninterruptible",
} as const;

function processes({ cgroup }: MeasuredCgroup): object {
  const { stats, openFilesLimit, spec } = cgroup;
  return withoutUndefined({
    process_count: stats.processIds.length,
    fd_count: cgroup.processes?.fds ?? 0,
    socket_count: cgroup.processes?.sockets ?? 0,
    threads_current: stats.pids?.current,
    threads_max: spec.pidsMax,
    ulimits: openFilesLimit && [
      { name: "max_open_files", soft_limit: openFilesLimit.soft, hard_limit: openFilesLimit.hard },
    ],
  });
}

const zeros = (names: string): Readonly<Record<string, 0>> =>
  Object.fromEntries(names.split(/\s+/).map((name) => [name, 0 as const]));

const TCP = zeros("Established SynSent SynRecv FinWait1 FinWait2 TimeWait Close CloseWait LastAck Listen Closing");
const UDP = zeros("Listen Dropped RxQueued TxQueued");

/** Connection counters. The kubelet switches them off, so they are always 0, but clients expect them. */
const NO_TCP_STATS = {
  tcp: TCP,
  tcp6: TCP,
  udp: UDP,
  udp6: UDP,
  tcp_advanced: zeros(
    `RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs
    RetransSegs InErrs OutRsts InCsumErrors EmbryonicRsts SyncookiesSent SyncookiesRecv SyncookiesFailed PruneCalled
    RcvPruned OfoPruned OutOfWindowIcmps LockDroppedIcmps TW TWRecycled TWKilled TCPTimeWaitOverflow TCPTimeouts
    TCPSpuriousRTOs TCPLossProbes TCPLossProbeRecovery TCPRenoRecoveryFail TCPSackRecoveryFail TCPRenoFailures
    TCPSackFailures TCPLossFailures DelayedACKs DelayedACKLocked DelayedACKLost ListenOverflows ListenDrops
    TCPHPHits TCPPureAcks TCPHPAcks TCPRenoRecovery TCPSackRecovery TCPSACKReneging TCPFACKReorder TCPSACKReorder
    TCPRenoReorder TCPTSReorder TCPFullUndo TCPPartialUndo TCPDSACKUndo TCPLossUndo TCPFastRetrans
    TCPSlowStartRetrans TCPLostRetransmit TCPRetransFail TCPRcvCollapsed TCPDSACKOldSent TCPDSACKOfoSent
    TCPDSACKRecv TCPDSACKOfoRecv TCPAbortOnData TCPAbortOnClose TCPAbortOnMemory TCPAbortOnTimeout TCPAbortOnLinger
    TCPAbortFailed TCPMemoryPressures TCPMemoryPressuresChrono TCPSACKDiscard TCPDSACKIgnoredOld
    TCPDSACKIgnoredNoUndo TCPMD5NotFound TCPMD5Unexpected TCPMD5Failure TCPSackShifted TCPSackMerged
    TCPSackShiftFallback TCPBacklogDrop PFMemallocDrop TCPMinTTLDrop TCPDeferAcceptDrop IPReversePathFilter
    TCPReqQFullDoCookies TCPReqQFullDrop TCPFastOpenActive TCPFastOpenActiveFail TCPFastOpenPassive
    TCPFastOpenPassiveFail TCPFastOpenListenOverflow TCPFastOpenCookieReqd TCPSynRetrans TCPOrigDataSent PAWSActive
    PAWSEstab`,
  ),
};

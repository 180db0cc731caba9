import { namesIfReadable } from "../../base/files/bounded-read.ts";
import { parseBootTimeSeconds, parseOpenFilesLimit } from "../../base/host/proc.ts";
import { readText } from "../cgroups/open-file-reader.ts";
import { type Metric, metricsOf } from "./metric.ts";

interface ProcessUsage {
  cpuSeconds: number;
  /** After the machine started. */
  startedAfterBootSeconds: number;
  virtualBytes: number;
  /** In pages. */
  residentPages: number;
}

/** The kernel's clock ticks as user space sees them, on every architecture Docker runs on. */
const TICKS_PER_SECOND = 100;
const PAGE_BYTES = 4096;

/** undefined when the line is not one. */
export function parseProcessUsage(stat: string): ProcessUsage | undefined {
  // Fields count from behind the command, which may hold spaces; the first one there is number 3.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const field = (number: number) => Number(fields[number - 3]);
  const usage = {
    cpuSeconds: (field(14) + field(15)) / TICKS_PER_SECOND,
    startedAfterBootSeconds: field(22) / TICKS_PER_SECOND,
    virtualBytes: field(23),
    residentPages: field(24),
  };
  return Object.values(usage).some(Number.isNaN) ? undefined : usage;
}

const processMetric = metricsOf([process], () => "");
const START_TIME_HELP = "Start time of the process since unix epoch in seconds.";

/** `process_*`, measured at each scrape. Source: Prometheus' process collector. */
export function processMetrics(procRoot = "/proc"): Metric[] {
  const usage = parseProcessUsage(readText(`${procRoot}/self/stat`) ?? "");
  const limits = readText(`${procRoot}/self/limits`) ?? "";
  const gauge = (name: string, help: string, value: number | undefined) =>
    processMetric("gauge", name, help, () => value);
  return [
    processMetric(
      "counter",
      "process_cpu_seconds_total",
      "Total user and system CPU time spent in seconds.",
      () => usage?.cpuSeconds,
    ),
    gauge("process_resident_memory_bytes", "Resident memory size in bytes.", residentBytes(procRoot, usage)),
    gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.", usage?.virtualBytes),
    gauge("process_start_time_seconds", START_TIME_HELP, startTimeSeconds(procRoot)),
    gauge("process_max_fds", "Maximum number of open file descriptors.", parseOpenFilesLimit(limits)?.soft),
    gauge("process_open_fds", "Number of open file descriptors.", namesIfReadable(`${procRoot}/self/fd`).length),
    gauge(
      "process_virtual_memory_max_bytes",
      "Maximum amount of virtual memory available in bytes.",
      addressSpaceLimit(limits),
    ),
  ];
}

/** `/metrics/probes` shows this in addition to the probes, as the kubelet does. */
export const processStartMetric = (procRoot = "/proc"): Metric =>
  processMetric("gauge", "process_start_time_seconds", `[ALPHA] ${START_TIME_HELP}`, () => startTimeSeconds(procRoot));

function startTimeSeconds(proc: string): number | undefined {
  const usage = parseProcessUsage(readText(`${proc}/self/stat`) ?? "");
  const bootSeconds = parseBootTimeSeconds(readText(`${proc}/stat`) ?? "");
  return usage && bootSeconds !== undefined ? bootSeconds + usage.startedAfterBootSeconds : undefined;
}

// `stat` counts pages of a size only known to the C library; `status` says it in kB.
function residentBytes(proc: string, usage: ProcessUsage | undefined): number | undefined {
  const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(readText(`${proc}/self/status`) ?? "")?.[1];
  return kilobytes && usage ? Number(kilobytes) * 1024 : usage && usage.residentPages * PAGE_BYTES;
}

/** -1 is "unlimited". */
function addressSpaceLimit(limits: string): number | undefined {
  const text = /^Max address space\s+(\S+)/m.exec(limits)?.[1];
  return text === "unlimited" ? -1 : text === undefined ? undefined : Number(text);
}

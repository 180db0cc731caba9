import { parseBootTimeSeconds, parseOpenFilesLimit } from "../../base/host/proc.ts";
import { readNames, readText } from "../cgroups/read-text.ts";
import { type MetricFamily, MetricsRegistry } from "./metrics-registry.ts";

/** Usage of a process, from `/proc/<pid>/stat`. */
interface ProcessUsage {
  /** User and system time. */
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

/** `process_*`, measured when collected. Source: Prometheus' process collector. */
export class ProcessMetrics {
  readonly #proc: string;

  constructor(procRoot = "/proc") {
    this.#proc = procRoot;
  }

  collect(): MetricFamily[] {
    const usage = parseProcessUsage(readText(`${this.#proc}/self/stat`) ?? "");
    const limits = readText(`${this.#proc}/self/limits`) ?? "";
    const registry = new MetricsRegistry();
    const gauge = (name: string, help: string, value: number | undefined) => {
      if (value !== undefined) registry.gauge(name, help).set(value);
    };
    if (usage) {
      const cpu = registry.counter("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.");
      cpu.inc([], usage.cpuSeconds);
      gauge("process_resident_memory_bytes", "Resident memory size in bytes.", residentBytes(this.#proc, usage));
      gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.", usage.virtualBytes);
    }
    gauge("process_start_time_seconds", START_TIME_HELP, startTimeSeconds(this.#proc, usage));
    gauge("process_max_fds", "Maximum number of open file descriptors.", parseOpenFilesLimit(limits)?.soft);
    gauge("process_open_fds", "Number of open file descriptors.", readNames(`${this.#proc}/self/fd`).length);
    const addressSpace = /^Max address space\s+(\S+)/m.exec(limits)?.[1];
    const mostVirtual = addressSpace === "unlimited" ? -1 : Number(addressSpace ?? Number.NaN);
    if (!Number.isNaN(mostVirtual)) {
      gauge("process_virtual_memory_max_bytes", "Maximum amount of virtual memory available in bytes.", mostVirtual);
    }
    return registry.collect();
  }
}

/** `/metrics/probes` shows this in addition to the probes, as the kubelet does. */
export function processStartFamily(procRoot = "/proc"): MetricFamily[] {
  const registry = new MetricsRegistry();
  const seconds = startTimeSeconds(procRoot, parseProcessUsage(readText(`${procRoot}/self/stat`) ?? ""));
  if (seconds !== undefined) registry.gauge("process_start_time_seconds", `[ALPHA] ${START_TIME_HELP}`).set(seconds);
  return registry.collect();
}

const START_TIME_HELP = "Start time of the process since unix epoch in seconds.";

function startTimeSeconds(proc: string, usage: ProcessUsage | undefined): number | undefined {
  const bootSeconds = parseBootTimeSeconds(readText(`${proc}/stat`) ?? "");
  return usage && bootSeconds !== undefined ? bootSeconds + usage.startedAfterBootSeconds : undefined;
}

// `stat` counts pages of a size only known to the C library; `status` says it in kB.
function residentBytes(proc: string, usage: ProcessUsage): number {
  const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(readText(`${proc}/self/status`) ?? "")?.[1];
  return kilobytes ? Number(kilobytes) * 1024 : usage.residentPages * PAGE_BYTES;
}

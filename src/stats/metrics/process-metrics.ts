import { namesIfReadable } from "../../base/files/whole-file.ts";
import { meminfoBytes, parseOpenFilesLimit } from "../../base/host/proc.ts";
import { readText } from "../cgroups/kernel-files.ts";
import { type Metric, metricsOf } from "./metric.ts";

const processMetric = metricsOf([process], () => "");
const START_TIME = "process_start_time_seconds";
const START_TIME_HELP = "Start time of the process since unix epoch in seconds.";
const startTimeSeconds = () => performance.timeOrigin / 1000;

/** `process_*`, measured at each scrape. Source: Prometheus' process collector. */
export function processMetrics(): Metric[] {
  const limits = readText("/proc/self/limits") ?? "";
  const status = readText("/proc/self/status") ?? "";
  const { user, system } = process.cpuUsage();
  const gauge = (name: string, help: string, value: number | undefined) =>
    processMetric("gauge", name, help, () => value);
  return [
    processMetric(
      "counter",
      "process_cpu_seconds_total",
      "Total user and system CPU time spent in seconds.",
      () => (user + system) / 1e6,
    ),
    gauge("process_resident_memory_bytes", "Resident memory size in bytes.", meminfoBytes(status, "VmRSS")),
    gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.", meminfoBytes(status, "VmSize")),
    gauge(START_TIME, START_TIME_HELP, startTimeSeconds()),
    gauge("process_max_fds", "Maximum number of open file descriptors.", parseOpenFilesLimit(limits)?.soft),
    gauge("process_open_fds", "Number of open file descriptors.", namesIfReadable("/proc/self/fd").length),
    gauge(
      "process_virtual_memory_max_bytes",
      "Maximum amount of virtual memory available in bytes.",
      addressSpaceLimit(limits),
    ),
  ];
}

/** `/metrics/probes` shows this in addition to the probes, as the kubelet does. */
export const processStartMetric = (): Metric =>
  processMetric("gauge", START_TIME, `[ALPHA] ${START_TIME_HELP}`, startTimeSeconds);

/** -1 is "unlimited". */
function addressSpaceLimit(limits: string): number | undefined {
  const text = /^Max address space\s+(\S+)/m.exec(limits)?.[1];
  return text === "unlimited" ? -1 : text === undefined ? undefined : Number(text);
}

import { type MeasuredCgroup, measuredCgroups } from "./measured-cgroup.ts";
import { endOfText, familyHeader, labelText, type TextFormat, timestampText } from "./metrics/prometheus-text.ts";
import type { NodeSample } from "./node-sample.ts";

/**
 * `/metrics/resource`: CPU and memory of node, pods and containers. Source: kubelet 1.20; start times and swap of newer ones.
 * @param disabled names of metrics that are left out
 */
export function resourceText(sample: NodeSample, format: TextFormat, disabled: readonly string[] = []): string {
  const timestamp = timestampText(sample.at, format);
  const all = measuredCgroups(sample);
  const node = all.filter(({ isRoot }) => isRoot);
  const pods = all.filter(({ pod, container }) => pod && !container);
  const containers = all.filter(({ container, isSandbox }) => container && !isSandbox);
  const alpha = (text: string) => `[ALPHA] ${text}`;
  const family = (
    type: "counter" | "gauge",
    name: string,
    help: string,
    rows: readonly MeasuredCgroup[],
    value: (row: MeasuredCgroup) => number | undefined,
  ) => {
    if (disabled.includes(name)) return "";
    let samples = "";
    for (const row of rows) {
      const number = value(row);
      if (number !== undefined) samples += `${name}${labelsOf(row)} ${number} ${timestamp}\n`;
    }
    return samples ? familyHeader(name, alpha(help), type, format) + samples : "";
  };
  const cpuSeconds = ({ cgroup }: MeasuredCgroup) => cgroup.stats.cpu.usageNanoseconds / 1e9;
  const workingSet = ({ cgroup }: MeasuredCgroup) => cgroup.stats.memory.workingSetBytes;
  const swap = ({ cgroup }: MeasuredCgroup) => cgroup.stats.memory.swapBytes;
  const text = [
    family(
      "counter",
      "container_cpu_usage_seconds_total",
      "Cumulative cpu time consumed by the container in core-seconds",
      containers,
      cpuSeconds,
    ),
    family(
      "gauge",
      "container_memory_working_set_bytes",
      "Current working set of the container in bytes",
      containers,
      workingSet,
    ),
    family(
      "gauge",
      "container_start_time_seconds",
      "Start time of the container since unix epoch in seconds",
      containers,
      ({ container }) => container && container.facts.startedAt.getTime() / 1000,
    ),
    family(
      "gauge",
      "container_swap_usage_bytes",
      "Current amount of the container swap usage in bytes. Reported only on non-windows systems",
      containers,
      swap,
    ),
    family(
      "counter",
      "node_cpu_usage_seconds_total",
      "Cumulative cpu time consumed by the node in core-seconds",
      node,
      cpuSeconds,
    ),
    family("gauge", "node_memory_working_set_bytes", "Current working set of the node in bytes", node, workingSet),
    family(
      "gauge",
      "node_swap_usage_bytes",
      "Current swap usage of the node in bytes. Reported only on non-windows systems",
      node,
      swap,
    ),
    family(
      "counter",
      "pod_cpu_usage_seconds_total",
      "Cumulative cpu time consumed by the pod in core-seconds",
      pods,
      cpuSeconds,
    ),
    family("gauge", "pod_memory_working_set_bytes", "Current working set of the pod in bytes", pods, workingSet),
    family(
      "gauge",
      "pod_swap_usage_bytes",
      "Current amount of the pod swap usage in bytes. Reported only on non-windows systems",
      pods,
      swap,
    ),
  ].join("");
  const error = `${familyHeader("scrape_error", alpha("1 if there was an error while getting container metrics, 0 otherwise"), "gauge", format)}scrape_error ${sample.root ? 0 : 1}\n`;
  return text + error + endOfText(format);
}

function labelsOf({ pod, container }: MeasuredCgroup): string {
  if (!pod) return "";
  const { namespace, name } = pod.facts;
  if (!container) return labelText(["namespace", "pod"], [namespace, name]);
  return labelText(["container", "namespace", "pod"], [container.facts.name, namespace, name]);
}

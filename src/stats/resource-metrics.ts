import { labelText, type Metric, metricsOf } from "./metrics/metric.ts";
import { type MeasuredCgroup, measuredCgroups, type NodeSample } from "./node-sample.ts";

/** `/metrics/resource`: CPU and memory of node, pods and containers. Source: kubelet 1.20; start times and swap of newer ones. */
export function resourceMetrics(sample: NodeSample): Metric[] {
  const all = measuredCgroups(sample);
  const of = (isOne: (row: MeasuredCgroup) => unknown) => metricsOf(all.filter(isOne), labelsOf, sample.at);
  const container = of((row) => row.container && !row.isSandbox);
  const node = of(({ isRoot }) => isRoot);
  const pod = of((row) => row.pod && !row.container);
  const cpuSeconds = ({ cgroup }: MeasuredCgroup) => cgroup.stats.cpu.usageNanoseconds / 1e9;
  const workingSet = ({ cgroup }: MeasuredCgroup) => cgroup.stats.memory.workingSetBytes;
  const swap = ({ cgroup }: MeasuredCgroup) => cgroup.stats.memory.swapBytes;
  const cpuHelp = (whose: string) => `[ALPHA] Cumulative cpu time consumed by the ${whose} in core-seconds`;
  const memoryHelp = (whose: string) => `[ALPHA] Current working set of the ${whose} in bytes`;
  const swapHelp = (text: string) => `[ALPHA] Current ${text} in bytes. Reported only on non-windows systems`;
  return [
    container("counter", "container_cpu_usage_seconds_total", cpuHelp("container"), cpuSeconds),
    container("gauge", "container_memory_working_set_bytes", memoryHelp("container"), workingSet),
    container(
      "gauge",
      "container_start_time_seconds",
      "[ALPHA] Start time of the container since unix epoch in seconds",
      (row) => row.container && row.container.facts.startedAt.getTime() / 1000,
    ),
    container("gauge", "container_swap_usage_bytes", swapHelp("amount of the container swap usage"), swap),
    node("counter", "node_cpu_usage_seconds_total", cpuHelp("node"), cpuSeconds),
    node("gauge", "node_memory_working_set_bytes", memoryHelp("node"), workingSet),
    node("gauge", "node_swap_usage_bytes", swapHelp("swap usage of the node"), swap),
    pod("counter", "pod_cpu_usage_seconds_total", cpuHelp("pod"), cpuSeconds),
    pod("gauge", "pod_memory_working_set_bytes", memoryHelp("pod"), workingSet),
    pod("gauge", "pod_swap_usage_bytes", swapHelp("amount of the pod swap usage"), swap),
    metricsOf([sample.root ? 0 : 1], () => "")(
      "gauge",
      "scrape_error",
      "[ALPHA] 1 if there was an error while getting container metrics, 0 otherwise",
      (error) => error,
    ),
  ];
}

function labelsOf({ pod, container }: MeasuredCgroup): string {
  if (!pod) return "";
  const { namespace, name } = pod.facts;
  if (!container) return labelText(["namespace", "pod"], [namespace, name]);
  return labelText(["container", "namespace", "pod"], [container.facts.name, namespace, name]);
}

import type { CgroupSample, NodeSample } from "../stats/sampler.ts";
import { endOfText, familyHeader, labelText, stampText, type TextFormat } from "./prometheus-text.ts";

interface Row {
  names: readonly string[];
  values: readonly string[];
  cgroup: CgroupSample;
  startSeconds?: number;
}

/** `/metrics/resource`: CPU and memory of node, pods and containers. Source: kubelet 1.20 (oracle 95), start times and swap of newer ones. */
export function resourceText(sample: NodeSample, format: TextFormat): string {
  const stamp = stampText(sample.at, format);
  const { containers, pods, node } = toRows(sample);
  const alpha = (text: string) => `[ALPHA] ${text}`;
  const family = (
    type: "counter" | "gauge",
    name: string,
    help: string,
    rows: readonly Row[],
    value: (row: Row) => number | undefined,
  ) => {
    let samples = "";
    for (const row of rows) {
      const number = value(row);
      if (number !== undefined) samples += `${name}${labelText(row.names, row.values)} ${number} ${stamp}\n`;
    }
    return samples ? familyHeader(name, alpha(help), type, format) + samples : "";
  };
  const cpuSeconds = ({ cgroup }: Row) => cgroup.stats.cpu.usageNanoseconds / 1e9;
  const workingSet = ({ cgroup }: Row) => cgroup.stats.memory.workingSetBytes;
  const swap = ({ cgroup }: Row) => cgroup.stats.memory.swapBytes;
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
      (row) => row.startSeconds,
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

function toRows({ root, pods }: NodeSample): { containers: Row[]; pods: Row[]; node: Row[] } {
  const rows = {
    containers: [] as Row[],
    pods: [] as Row[],
    node: root ? [{ names: [], values: [], cgroup: root }] : [],
  };
  for (const { facts, cgroup, containers } of pods) {
    const { namespace, name } = facts;
    if (cgroup) rows.pods.push({ names: ["namespace", "pod"], values: [namespace, name], cgroup });
    for (const container of containers) {
      rows.containers.push({
        names: ["container", "namespace", "pod"],
        values: [container.facts.name, namespace, name],
        cgroup: container.cgroup,
        startSeconds: container.facts.startedAt.getTime() / 1000,
      });
    }
  }
  return rows;
}

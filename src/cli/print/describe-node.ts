import { formatSince } from "../../apiserver/printers/age.ts";
import { type NodeInfoField, type NodeObject, nodeRoles } from "../../apiserver/printers/node-row.ts";
import { creationTime } from "../../apiserver/printers/pod-row.ts";
import type { CoreEvent } from "../../base/api/event.ts";
import type { Pod, ResourceList } from "../../base/api/pod.ts";
import { formatBytes, formatMillis, quantityToMilli, quantityToWhole } from "../../base/api/quantity.ts";
import { computePodTotal, cpuMillisOf, hugePageNamesOf } from "../../plan/pod-resources.ts";
import { type DescribeTimes, describeAnnotations, describeEvents, pairs } from "./describe-pod.ts";
import { Description, toCell } from "./text-table.ts";

const SYSTEM_INFO: readonly (readonly [title: string, field: NodeInfoField])[] = [
  ["Machine ID", "machineID"],
  ["System UUID", "systemUUID"],
  ["Boot ID", "bootID"],
  ["Kernel Version", "kernelVersion"],
  ["OS Image", "osImage"],
  ["Operating System", "operatingSystem"],
  ["Architecture", "architecture"],
  ["Container Runtime Version", "containerRuntimeVersion"],
  ["Kubelet Version", "kubeletVersion"],
];

/** `kubelet-ts describe node`, in kubectl's layout. @param pods all of the node. @param events of the node alone */
export function describeNode(
  node: NodeObject,
  pods: readonly Pod[],
  events: readonly CoreEvent[],
  times: DescribeTimes,
): string {
  const { metadata, spec, status } = node;
  const out = new Description();
  out.field(0, "Name", metadata.name);
  out.field(0, "Roles", nodeRoles(node));
  out.list(0, "Labels", pairs(metadata.labels, "="));
  describeAnnotations(out, 0, metadata.annotations ?? {});
  out.field(0, "CreationTimestamp", times.toText(metadata.creationTimestamp));
  out.list(
    0,
    "Taints",
    (spec.taints ?? []).map(({ key, value, effect }) => `${key}${value ? `=${value}` : ""}:${effect}`),
  );
  out.field(0, "Unschedulable", String(spec.unschedulable ?? false));
  out.heading(0, "Conditions");
  out.table(
    ["Type", "Status", "LastHeartbeatTime", "LastTransitionTime", "Reason", "Message"],
    (status.conditions ?? []).map((it) => [
      it.type,
      it.status,
      times.toText(it.lastHeartbeatTime),
      times.toText(it.lastTransitionTime),
      it.reason ?? "",
      toCell(it.message ?? ""),
    ]),
  );
  out.heading(0, "Addresses");
  for (const { type, address } of status.addresses ?? []) out.field(1, type, address);
  out.map(0, "Capacity", status.capacity ?? {});
  out.map(0, "Allocatable", status.allocatable ?? {});
  out.heading(0, "System Info");
  for (const [title, field] of SYSTEM_INFO) out.field(1, title, status.nodeInfo?.[field]);
  describePods(out, pods.filter(isLive), status.allocatable ?? {}, times.now);
  describeEvents(out, events, times.now);
  return out.toString();
}

const isLive = ({ status }: Pod) => status?.phase !== "Succeeded" && status?.phase !== "Failed";

/** One resource of the node. */
interface Share {
  /** All that pods may have. */
  of: number;
  amountIn: (list: ResourceList | undefined) => number;
  toText: (amount: number) => string;
}

/** Requests and limits of all pods. Source: kubectl's `describeNodeResource`. */
function describePods(
  out: Description,
  pods: readonly Pod[],
  allocatable: Readonly<Record<string, string>>,
  now: Date,
): void {
  const share = (name: string): Share => ({
    of: quantityToWhole(allocatable[name] ?? "0"),
    amountIn: (list) => quantityToWhole(list?.[name] ?? "0"),
    toText: formatBytes,
  });
  const cpu: Share = { of: quantityToMilli(allocatable.cpu ?? "0"), amountIn: cpuMillisOf, toText: formatMillis };
  const memory = share("memory");
  const amount = (chosen: readonly Pod[], { of, amountIn, toText }: Share, kind: "requests" | "limits") => {
    const sum = chosen.reduce((total, pod) => total + computePodTotal(pod, kind, amountIn), 0);
    return `${toText(sum)} (${of === 0 ? 0 : Math.floor((sum * 100) / of)}%)`;
  };
  out.field(0, "Non-terminated Pods", `(${pods.length} in total)`);
  out.table(
    ["Namespace", "Name", "CPU Requests", "CPU Limits", "Memory Requests", "Memory Limits", "Age"],
    pods.map((pod) => [
      pod.metadata.namespace ?? "default",
      pod.metadata.name ?? "",
      amount([pod], cpu, "requests"),
      amount([pod], cpu, "limits"),
      amount([pod], memory, "requests"),
      amount([pod], memory, "limits"),
      formatSince(creationTime(pod), now),
    ]),
  );
  out.heading(0, "Allocated resources");
  out.line(1, "(Total limits may be over 100 percent, i.e., overcommitted.)");
  out.table(
    ["Resource", "Requests", "Limits"],
    [
      ["cpu", cpu] as const,
      ["memory", memory] as const,
      ...["ephemeral-storage", ...hugePageNamesOf(allocatable).sort()].map((name) => [name, share(name)] as const),
    ].map(([name, of]) => [name, amount(pods, of, "requests"), amount(pods, of, "limits")]),
  );
}

import type { Condition } from "../../base/api/meta.ts";
import { formatSince, type PrintedColumn } from "./age.ts";

/** The part of the response of `/node` that is read. Source: core/v1 `Node`. */
export interface NodeObject {
  kind: "Node";
  apiVersion: "v1";
  metadata: {
    name: string;
    creationTimestamp?: string | null;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  };
  spec: { unschedulable?: boolean; taints?: { key: string; value?: string; effect: string }[] };
  status: {
    capacity?: Record<string, string>;
    allocatable?: Record<string, string>;
    conditions?: Condition[];
    addresses?: { type: string; address: string }[];
    nodeInfo?: Partial<Record<NodeInfoField, string>>;
  };
}

/** Source: core/v1 `NodeSystemInfo`. */
export type NodeInfoField =
  | "machineID"
  | "systemUUID"
  | "bootID"
  | "kernelVersion"
  | "osImage"
  | "operatingSystem"
  | "architecture"
  | "containerRuntimeVersion"
  | "kubeletVersion";

const ROLE_PREFIX = "node-role.kubernetes.io/";

const addressOf = ({ status }: NodeObject, type: string) =>
  status.addresses?.find((known) => known.type === type)?.address || "<none>";

/** Source: kubectl's `printNode`. */
export const NODE_COLUMNS: readonly PrintedColumn<NodeObject>[] = [
  { name: "Name", cell: ({ metadata }) => metadata.name },
  { name: "Status", cell: nodeStatus },
  { name: "Roles", cell: nodeRoles },
  { name: "Age", cell: ({ metadata }, now) => formatSince(metadata.creationTimestamp, now) },
  { name: "Version", cell: ({ status }) => status.nodeInfo?.kubeletVersion ?? "" },
  { name: "Internal-IP", cell: (node) => addressOf(node, "InternalIP"), isWide: true },
  { name: "External-IP", cell: (node) => addressOf(node, "ExternalIP"), isWide: true },
  { name: "OS-Image", cell: ({ status }) => status.nodeInfo?.osImage || "<unknown>", isWide: true },
  { name: "Kernel-Version", cell: ({ status }) => status.nodeInfo?.kernelVersion || "<unknown>", isWide: true },
  {
    name: "Container-Runtime",
    cell: ({ status }) => status.nodeInfo?.containerRuntimeVersion || "<unknown>",
    isWide: true,
  },
];

/** From labels `node-role.kubernetes.io/<role>`. */
export function nodeRoles({ metadata }: NodeObject): string {
  const roles = Object.keys(metadata.labels ?? {}).flatMap((key) =>
    key.startsWith(ROLE_PREFIX) ? key.slice(ROLE_PREFIX.length) : [],
  );
  return roles.sort().join(",") || "<none>";
}

/** Unlike kubectl's, it names a pressure: no scheduler reports it here. */
function nodeStatus({ spec, status }: NodeObject): string {
  const conditions = status.conditions ?? [];
  const ready = conditions.find(({ type }) => type === "Ready");
  const pressures = conditions.filter((it) => it.type.endsWith("Pressure") && it.status === "True");
  return [
    ready ? (ready.status === "True" ? "Ready" : "NotReady") : "Unknown",
    ...pressures.map(({ type }) => type),
    ...(spec.unschedulable ? ["SchedulingDisabled"] : []),
  ].join(",");
}

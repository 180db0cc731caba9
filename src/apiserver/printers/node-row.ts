import { formatSince } from "./age.ts";

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
    conditions?: NodeConditionObject[];
    addresses?: { type: string; address: string }[];
    nodeInfo?: Partial<Record<NodeInfoField, string>>;
  };
}

/** Source: core/v1 `NodeCondition`. */
interface NodeConditionObject {
  type: string;
  status: string;
  lastHeartbeatTime?: string | null;
  lastTransitionTime?: string | null;
  reason?: string;
  message?: string;
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

export const NODE_COLUMNS = ["NAME", "STATUS", "ROLES", "AGE", "VERSION"] as const;
export const NODE_WIDE_COLUMNS = [
  "INTERNAL-IP",
  "EXTERNAL-IP",
  "OS-IMAGE",
  "KERNEL-VERSION",
  "CONTAINER-RUNTIME",
] as const;

const ROLE_PREFIX = "node-role.kubernetes.io/";

/** The cells below {@link NODE_COLUMNS}, and {@link NODE_WIDE_COLUMNS} when `wide`. Source: kubectl's `printNode`. */
export function toNodeRow(node: NodeObject, now: Date, wide: boolean): string[] {
  const { metadata, status } = node;
  const row = [
    metadata.name,
    nodeStatus(node),
    nodeRoles(node),
    formatSince(metadata.creationTimestamp, now),
    status.nodeInfo?.kubeletVersion ?? "",
  ];
  if (!wide) return row;
  const address = (type: string) => status.addresses?.find((known) => known.type === type)?.address || "<none>";
  const { osImage, kernelVersion, containerRuntimeVersion } = status.nodeInfo ?? {};
  return [
    ...row,
    address("InternalIP"),
    address("ExternalIP"),
    ...[osImage, kernelVersion, containerRuntimeVersion].map((text) => text || "<unknown>"),
  ];
}

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

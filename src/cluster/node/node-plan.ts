import type { Condition } from "../../base/api/meta.ts";
import { UNSCHEDULABLE_TAINT } from "../../base/model/node.ts";
import type { NodeTaint } from "../../base/model/option-values.ts";
import { MACHINE_LABELS } from "../../plan/node-affinity.ts";
import type { ObjectOfApi } from "../client/reflector.ts";

interface NodeStatus {
  conditions?: Condition[];
  addresses?: { type: string; address: string }[];
  nodeInfo?: { bootID?: string };
  capacity?: Record<string, string>;
  allocatable?: Record<string, string>;
  [field: string]: unknown;
}

/** `v1.Node`. */
export interface ApiNode extends ObjectOfApi {
  spec: { taints?: { key: string; value?: string; effect: string }[]; providerID?: string; unschedulable?: boolean };
  status?: NodeStatus;
}

export interface RegistrationSettings {
  cloudProvider: "" | "external";
  providerId: string;
  /** "" where --node-ip was not set. */
  nodeIp: string;
  registerSchedulable: boolean;
  enableControllerAttachDetach: boolean;
  nodeTaints: readonly NodeTaint[];
}

const CLOUD_TAINT = { key: "node.cloudprovider.kubernetes.io/uninitialized", value: "true", effect: "NoSchedule" };
const ATTACH_DETACH = "volumes.kubernetes.io/controller-managed-attach-detach";
const PROVIDED_IP = "alpha.kubernetes.io/provided-node-ip";

/** The node as API servers take it: a configuration that is no ConfigMap makes the whole status invalid. Pure. */
export function toReportedNode({ status, ...node }: ApiNode): ApiNode {
  const { config: _config, ...reported } = status ?? {};
  return { ...node, status: reported };
}

/** The Node object to create. Pure. Source: the kubelet's initialNode. @param node as `/node` shows it */
export function toNewNode(node: ApiNode, settings: RegistrationSettings): ApiNode {
  const { cloudProvider, providerId, registerSchedulable } = settings;
  const taints = [
    ...settings.nodeTaints.map(({ key, value, effect }) => ({ key, ...(value !== "" && { value }), effect })),
    ...(registerSchedulable ? [] : [UNSCHEDULABLE_TAINT]),
    ...(cloudProvider === "external" ? [CLOUD_TAINT] : []),
  ];
  const annotations = annotationsOf(settings);
  return {
    ...node,
    metadata: {
      name: node.metadata.name,
      labels: node.metadata.labels ?? {},
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
    spec: {
      ...(taints.length > 0 && { taints }),
      ...(providerId !== "" && { providerID: providerId }),
      ...(registerSchedulable ? {} : { unschedulable: true }),
    },
  };
}

function annotationsOf(settings: RegistrationSettings): Record<string, string> {
  const { cloudProvider, nodeIp, enableControllerAttachDetach } = settings;
  return {
    ...(enableControllerAttachDetach && { [ATTACH_DETACH]: "true" }),
    ...(cloudProvider === "external" && nodeIp !== "" && { [PROVIDED_IP]: nodeIp }),
  };
}

/**
 * Merge patch for an existing Node: the labels of the machine and the annotations of this kubelet. Labels and taints of
 * the options count only for a new Node, so that an administrator may change them. Source: the kubelet's
 * updateDefaultLabels.
 * @returns undefined when nothing differs
 */
export function computeAdoption(existing: ApiNode, node: ApiNode, settings: RegistrationSettings): object | undefined {
  const labels = Object.entries(node.metadata.labels ?? {}).filter(
    ([name, value]) => MACHINE_LABELS.has(name) && existing.metadata.labels?.[name] !== value,
  );
  const wanted = annotationsOf(settings);
  const annotations: [string, string | null][] = [ATTACH_DETACH, PROVIDED_IP].flatMap((name) => {
    const value = wanted[name] ?? null;
    return (existing.metadata.annotations?.[name] ?? null) === value ? [] : [[name, value] as [string, string | null]];
  });
  const metadata = {
    ...(labels.length > 0 && { labels: Object.fromEntries(labels) }),
    ...(annotations.length > 0 && { annotations: Object.fromEntries(annotations) }),
  };
  return Object.keys(metadata).length === 0 ? undefined : { metadata };
}

/**
 * The status with the extended resources that others have set in the node's capacity; all of them are allocatable. Pure.
 * Source: the kubelet's setter MachineInfo.
 */
export function withExtendedResources(before: NodeStatus | undefined, next: NodeStatus): NodeStatus {
  const { capacity = {}, allocatable = {} } = next;
  const extended = Object.entries(before?.capacity ?? {}).filter(
    ([name]) => name.includes("/") && !Object.hasOwn(capacity, name),
  );
  if (extended.length === 0) return next;
  const others = Object.fromEntries(extended);
  return { ...next, capacity: { ...others, ...capacity }, allocatable: { ...others, ...allocatable } };
}

/** Whether a status has changed, apart from heartbeat times. */
export function isStatusChanged(before: NodeStatus | undefined, next: NodeStatus): boolean {
  if (!before) return true;
  return Object.entries(next).some(([name, value]) =>
    name === "conditions"
      ? (value as Condition[]).some((condition) => isConditionChanged(before.conditions, condition))
      : !Bun.deepEquals(before[name], value) && isKnown(before, name),
  );
}

/** Fields that the API server does not know are dropped by it: they are sent, and never count as a change. */
const isKnown = (before: NodeStatus, name: string) => name in before || !NEWER_FIELDS.has(name);
const NEWER_FIELDS: ReadonlySet<string> = new Set(["features", "runtimeHandlers"]);

function isConditionChanged(known: readonly Condition[] | undefined, next: Condition): boolean {
  const before = known?.find(({ type }) => type === next.type);
  return before?.status !== next.status || before.reason !== next.reason || before.message !== next.message;
}

/**
 * Strategic merge patch of the status: conditions with the times of their transitions as the API server knows them, and
 * other fields only where they differ. Conditions of others stay.
 */
export function computeNodeStatusPatch(before: NodeStatus | undefined, next: NodeStatus): { status: object } {
  const status: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(next)) {
    if (name === "conditions" || Bun.deepEquals(before?.[name], value)) continue;
    // The merge key of addresses is their type, of which there may be two. Source: the kubelet's PatchNodeStatus.
    const isReplaced = name === "addresses" && (before?.addresses?.length ?? 0) > 0;
    status[name] = isReplaced ? [...(value as object[]), { $patch: "replace" }] : value;
  }
  const conditions = (next.conditions ?? []).map((condition) => {
    const known = before?.conditions?.find(({ type }) => type === condition.type);
    return known?.status === condition.status && known.lastTransitionTime
      ? { ...condition, lastTransitionTime: known.lastTransitionTime }
      : condition;
  });
  return { status: { ...status, conditions } };
}

/**
 * Events that a change of conditions calls for. A condition that is new is an event, except Ready, which appears with its
 * first transition. Source: the kubelet's setters of node conditions.
 * @param before undefined: a kubelet that has just registered
 * @returns reasons
 */
export function conditionEvents(before: readonly Condition[] | undefined, next: readonly Condition[] = []): string[] {
  return next.flatMap(({ type, status }) => {
    const known = before?.find((one) => one.type === type)?.status;
    if (known === status || (known === undefined && type === "Ready")) return [];
    return EVENTS[type]?.[status] ?? [];
  });
}

/** Message of the event `Rebooted`; undefined when the machine did not. Source: the kubelet's MachineInfo setter. */
export function findReboot(nodeName: string, before: NodeStatus | undefined, next: NodeStatus): string | undefined {
  const [known, bootId] = [before?.nodeInfo?.bootID, next.nodeInfo?.bootID];
  if (!known || !bootId || known === bootId) return undefined;
  return `Node ${nodeName} has been rebooted, boot id: ${bootId}`;
}

const EVENTS: Readonly<Record<string, Record<string, string>>> = {
  Ready: { True: "NodeReady", False: "NodeNotReady" },
  MemoryPressure: { True: "NodeHasInsufficientMemory", False: "NodeHasSufficientMemory" },
  DiskPressure: { True: "NodeHasDiskPressure", False: "NodeHasNoDiskPressure" },
  PIDPressure: { True: "NodeHasInsufficientPID", False: "NodeHasSufficientPID" },
};

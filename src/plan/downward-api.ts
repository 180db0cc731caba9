import type { Container, ObjectFieldSelector, Pod, ResourceFieldSelector } from "../base/api/pod.ts";
import { quantityToMilli, quantityToWhole } from "../base/api/quantity.ts";
import type { NodeInfo } from "../base/model/node.ts";
import { quoteGo } from "../base/text/quote-go.ts";

/** Reported in place of limits that a container does not set: resources of this node that pods may use. */
export interface NodeAllocatable {
  cpuMillis: number;
  memoryBytes: number;
  ephemeralStorageBytes: number;
}

/** Everything of the machine, for a kubelet that reserves nothing. */
export const toNodeAllocatable = ({ cpuCount, memoryBytes }: NodeInfo): NodeAllocatable => ({
  cpuMillis: cpuCount * 1000,
  memoryBytes,
  ephemeralStorageBytes: 0,
});

/** Facts that only exist once the pod has a sandbox; absent in volumes, where no such field may be asked for. */
interface PodAddresses {
  podIps: readonly string[];
  hostIps: readonly string[];
}

/** A value, or why there is none. */
type DownwardValue = { value: string } | { problem: string };

/** A field as env and downwardAPI files have it; a missing label is "". Source: `podFieldSelectorRuntimeValue`. */
export function resolveFieldRef(selector: ObjectFieldSelector, pod: Pod, addresses?: PodAddresses): DownwardValue {
  const path = selector.fieldPath;
  const keyed = /^metadata\.(labels|annotations)\['(.*)'\]$/s.exec(path);
  if (keyed) {
    const values = keyed[1] === "labels" ? pod.metadata.labels : pod.metadata.annotations;
    return { value: ownValue(values, keyed[2] ?? "") ?? "" };
  }
  const value = POD_FIELDS.get(path)?.(pod) ?? (addresses && ADDRESS_FIELDS.get(path)?.(addresses));
  return value === undefined ? { problem: `unsupported fieldPath: ${path}` } : { value };
}

const POD_FIELDS: ReadonlyMap<string, (pod: Pod) => string> = new Map([
  ["metadata.name", ({ metadata }) => metadata.name ?? ""],
  ["metadata.namespace", ({ metadata }) => metadata.namespace ?? "default"],
  ["metadata.uid", ({ metadata }) => metadata.uid ?? ""],
  ["metadata.labels", ({ metadata }) => formatMap(metadata.labels ?? {})],
  ["metadata.annotations", ({ metadata }) => formatMap(metadata.annotations ?? {})],
  ["spec.nodeName", ({ spec }) => spec.nodeName ?? ""],
  ["spec.serviceAccountName", ({ spec }) => spec.serviceAccountName ?? ""],
]);

const ADDRESS_FIELDS: ReadonlyMap<string, (addresses: PodAddresses) => string> = new Map([
  ["status.hostIP", ({ hostIps }) => hostIps[0] ?? ""],
  ["status.hostIPs", ({ hostIps }) => hostIps.join(",")],
  ["status.podIP", ({ podIps }) => podIps[0] ?? ""],
  ["status.podIPs", ({ podIps }) => podIps.join(",")],
]);

function ownValue(values: Readonly<Record<string, string>> | undefined, key: string): string | undefined {
  return values && Object.hasOwn(values, key) ? values[key] : undefined;
}

/** One `key="value"` per line, sorted by key, the value quoted as Go's `%q` does. Source: upstream's `FormatMap`. */
export function formatMap(values: Readonly<Record<string, string>>): string {
  return Object.keys(values)
    .sort()
    .map((key) => `${key}=${quoteGo(values[key] ?? "")}`)
    .join("\n");
}

/**
 * A request or limit in `divisor`s, rounded up; of a limit that is not set what the node can give. Source:
 * `ExtractContainerResourceValue`.
 * @param container whose `env` asks; undefined in volumes
 */
export function resolveResourceFieldRef(
  selector: ResourceFieldSelector,
  pod: Pod,
  container: Container | undefined,
  allocatable: NodeAllocatable,
): DownwardValue {
  const name = selector.containerName;
  const target = name
    ? [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].find((candidate) => candidate.name === name)
    : container;
  if (!target) return { problem: `container ${name ?? ""} not found` };
  const match = /^(limits|requests)\.(.+)$/.exec(selector.resource);
  const resource = match?.[2] ?? "";
  if (!match || !(resource === "cpu" || resource === "memory" || isStorageLike(resource))) {
    return { problem: `unsupported container resource : ${selector.resource}` };
  }
  const isLimit = match[1] === "limits";
  const list = isLimit ? target.resources.limits : target.resources.requests;
  const toUnits = resource === "cpu" ? quantityToMilli : quantityToWhole;
  let units = toUnits(list?.[resource] ?? "0");
  if (units === 0 && isLimit) units = allocatableOf(resource, allocatable);
  // A divisor of 0, the default, counts as 1.
  const divisor = toUnits(selector.divisor) || toUnits("1");
  return { value: String(Math.ceil(units / divisor)) };
}

const isStorageLike = (resource: string) => resource === "ephemeral-storage" || resource.startsWith("hugepages-");

function allocatableOf(resource: string, allocatable: NodeAllocatable): number {
  if (resource === "cpu") return allocatable.cpuMillis;
  if (resource === "memory") return allocatable.memoryBytes;
  return resource === "ephemeral-storage" ? allocatable.ephemeralStorageBytes : 0;
}

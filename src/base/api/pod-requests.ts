import type { Container, PodSpec } from "./pod.ts";
import { addQuantities, formatQuantity, parseQuantity, ZERO_QUANTITY } from "./quantity.ts";
import type { ResourceList } from "./scalar.ts";

/**
 * Fills in the requests that a pod takes from its limits, and those of the whole pod. Changes the spec in place. Source:
 * `SetDefaults_Pod`, which holds for pods: a stored template keeps what was written, so that a limit can be lowered.
 */
export function fillRequests(spec: PodSpec): void {
  for (const { resources } of [...spec.containers, ...(spec.initContainers ?? [])]) {
    if (!resources.limits) continue;
    resources.requests ??= Object.create(null) as ResourceList;
    for (const [name, limit] of Object.entries(resources.limits)) resources.requests[name] ??= limit;
  }
  const { resources } = spec;
  if (!resources?.limits && !resources?.requests) return;
  const requests: ResourceList = resources.requests ?? Object.create(null);
  for (const [name, sum] of Object.entries(sumContainerRequests(spec))) {
    if (isPodLevelResource(name)) requests[name] ??= sum;
  }
  for (const [name, limit] of Object.entries(resources.limits ?? {})) {
    if (isPodLevelResource(name) && !name.startsWith("hugepages-")) requests[name] ??= limit;
  }
  if (Object.keys(requests).length > 0) resources.requests = requests;
}

/** A copy of a template with the requests that its pods have. */
export function withRequests<T extends { spec: PodSpec }>(template: T): T {
  const copyOf = (container: Container): Container => ({
    ...container,
    resources: structuredClone(container.resources),
  });
  const { containers, initContainers, resources } = template.spec;
  const spec: PodSpec = {
    ...template.spec,
    containers: containers.map(copyOf),
    ...(initContainers && { initContainers: initContainers.map(copyOf) }),
    ...(resources && { resources: structuredClone(resources) }),
  };
  fillRequests(spec);
  return { ...template, spec };
}

/** Resources that can be set for the whole pod. */
const isPodLevelResource = (name: string) => name === "cpu" || name === "memory" || name.startsWith("hugepages-");

/**
 * Requests of all containers of a pod: the maximum of the sum of regular containers and sidecars, and of each init
 * container with the sidecars before it. Source: component-helpers `resource.AggregateContainerRequests`.
 */
export function sumContainerRequests(spec: PodSpec): ResourceList {
  const running = new Map<string, string>();
  const sidecars = new Map<string, string>();
  const initial = new Map<string, string>();
  for (const container of spec.containers) addTo(running, container.resources.requests);
  for (const container of spec.initContainers ?? []) {
    const own = new Map(Object.entries(container.resources.requests ?? {}));
    if (container.restartPolicy === "Always") {
      addTo(running, container.resources.requests);
      addTo(sidecars, container.resources.requests);
      raiseTo(initial, sidecars);
      continue;
    }
    for (const [name, amount] of sidecars) addTo(own, { [name]: amount });
    raiseTo(initial, own);
  }
  raiseTo(running, initial);
  return Object.assign(Object.create(null), Object.fromEntries(running));
}

function addTo(sums: Map<string, string>, list: ResourceList | undefined): void {
  for (const [name, text] of Object.entries(list ?? {})) {
    const before = parseQuantity(sums.get(name) ?? "0") ?? ZERO_QUANTITY;
    sums.set(name, formatQuantity(addQuantities(before, parseQuantity(text) ?? ZERO_QUANTITY)));
  }
}

function raiseTo(sums: Map<string, string>, other: Map<string, string>): void {
  for (const [name, text] of other) {
    const before = parseQuantity(sums.get(name) ?? "0") ?? ZERO_QUANTITY;
    const wanted = parseQuantity(text) ?? ZERO_QUANTITY;
    if (addQuantities(wanted, { ...before, unscaled: -before.unscaled }).unscaled > 0n) sums.set(name, text);
  }
}

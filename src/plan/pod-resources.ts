import type { Container, Pod, ResourceList } from "../base/api/pod.ts";
import { quantityToMilli, quantityToWhole } from "../base/api/quantity.ts";

/** Thousandths of a CPU that a list names; 0 when it does not. */
export const cpuMillisOf = (list: ResourceList | undefined) => quantityToMilli(list?.cpu ?? "0");

/** Bytes of memory that a list names; 0 when it does not. */
export const memoryBytesOf = (list: ResourceList | undefined) => quantityToWhole(list?.memory ?? "0");

/** Names of the huge page sizes in a list, e.g. `hugepages-2Mi`. */
export const hugePageNamesOf = (list: ResourceList | undefined) =>
  Object.keys(list ?? {}).filter((name) => name.startsWith("hugepages-"));

const isRestartable = (container: Container) => container.restartPolicy === "Always";

/**
 * Total of one resource over all containers of a pod: the sum of those that run at the same time, or more while an
 * init container runs together with the sidecars started before it. Resources of the pod itself take precedence, and
 * overhead is added. Source: upstream's PodRequests and PodLimits.
 * @param amountIn e.g. `(list) => cpuMillisOf(list)`.
 */
export function computePodTotal(
  pod: Pod,
  kind: "requests" | "limits",
  amountIn: (list: ResourceList | undefined) => number,
): number {
  const { initContainers = [], containers, resources, overhead } = pod.spec;
  const own = amountIn(resources?.[kind]);
  if (own > 0) return own + amountIn(overhead);

  const needOf = (container: Container) => amountIn(container.resources[kind]);
  let sidecars = 0;
  let highestInit = 0;
  for (const container of initContainers) {
    if (isRestartable(container)) sidecars += needOf(container);
    highestInit = Math.max(highestInit, sidecars + (isRestartable(container) ? 0 : needOf(container)));
  }
  const running = containers.reduce((sum, container) => sum + needOf(container), sidecars);
  const total = Math.max(running, highestInit);
  // A pod without any limit does not get one from its overhead.
  return kind === "limits" && total === 0 ? 0 : total + amountIn(overhead);
}

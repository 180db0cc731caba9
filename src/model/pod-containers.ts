import type { Container, PodSpec } from "../api/pod.ts";

type Containers = Pick<PodSpec, "initContainers" | "containers">;

/** Every container of a pod: init containers, including sidecars, then the others; both in the order of the spec. */
export const containersOf = ({ initContainers = [], containers }: Containers): Container[] => [
  ...initContainers,
  ...containers,
];

/** Names are unique over both lists. */
export const findContainer = (spec: Containers, name: string): Container | undefined =>
  containersOf(spec).find((container) => container.name === name);

import type { Container, ContainerStatus, EphemeralContainer, PodSpec } from "../api/pod.ts";
import type { PodStatus } from "../api/pod-status.ts";

type Containers = Pick<PodSpec, "initContainers" | "containers">;
type AllContainers = Containers & Pick<PodSpec, "ephemeralContainers">;

/** Containers of a manifest: init containers, including sidecars, then the others; both in the order of the spec. */
export const containersOf = ({ initContainers = [], containers }: Containers): Container[] => [
  ...initContainers,
  ...containers,
];

/** A spec with all these containers changed in the same way. */
export const mapContainers = <S extends Containers>(spec: S, change: <C extends Container>(container: C) => C): S => ({
  ...spec,
  containers: spec.containers.map(change),
  ...(spec.initContainers && { initContainers: spec.initContainers.map(change) }),
});

/** Whether Docker adds groups of the image: it does to a user whose group it is not told. */
export const hasImageGroups = (spec: PodSpec): boolean =>
  containersOf(spec).some(
    ({ securityContext }) => (securityContext?.runAsGroup ?? spec.securityContext.runAsGroup) === undefined,
  );

/** Containers of a manifest, then those that were added to the running pod. */
export const allContainersOf = (spec: AllContainers): (Container | EphemeralContainer)[] => [
  ...containersOf(spec),
  ...(spec.ephemeralContainers ?? []),
];

/** Statuses of the containers of a manifest. */
export const statusesOf = (status: Partial<PodStatus> | undefined): ContainerStatus[] => [
  ...(status?.initContainerStatuses ?? []),
  ...(status?.containerStatuses ?? []),
];

/** Those of the containers that were added to the running pod too. */
export const allStatusesOf = (status: Partial<PodStatus> | undefined): ContainerStatus[] => [
  ...statusesOf(status),
  ...(status?.ephemeralContainerStatuses ?? []),
];

/** Names are unique over the three lists. */
export const findContainer = (spec: AllContainers, name: string): Container | EphemeralContainer | undefined =>
  allContainersOf(spec).find((container) => container.name === name);

/** Whether the container was added to the running pod. */
export const isEphemeral = (
  { ephemeralContainers = [] }: Pick<PodSpec, "ephemeralContainers">,
  name: string,
): boolean => ephemeralContainers.some((container) => container.name === name);

/** Path of a container in events: `spec.containers{app}`. */
export function containerFieldPath(spec: AllContainers | undefined, name: string): string {
  const isInit = spec?.initContainers?.some((container) => container.name === name);
  const list = isInit ? "initContainers" : spec && isEphemeral(spec, name) ? "ephemeralContainers" : "containers";
  return `spec.${list}{${name}}`;
}

/** Ports of the machine that a pod wants. */
export const hostPortsOf = (spec: Containers & Pick<PodSpec, "hostNetwork">): number[] =>
  containersOf(spec).flatMap(({ ports = [] }) =>
    ports.flatMap(({ hostPort, containerPort }) => hostPort ?? (spec.hostNetwork ? containerPort : [])),
  );

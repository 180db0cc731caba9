import type { Container, ContainerStatus, EphemeralContainer, Pod, PodSpec, PodStatus, Volume } from "../api/pod.ts";

/** Pod UID: 32 hex digits unless the manifest fixes `metadata.uid`. Names the pod for its whole life. */
export type PodUID = string;

/** `namespace/name`, the name with its node suffix. */
export type PodFullName = `${string}/${string}`;

export function podFullName(meta: { namespace?: string | undefined; name?: string | undefined }): PodFullName {
  return `${meta.namespace ?? "default"}/${meta.name ?? ""}`;
}

export const namespaceOf = ({ metadata }: { metadata: { namespace?: string | undefined } }): string =>
  metadata.namespace ?? "default";

/** Order by namespace, then name. As one text `a/z` would come after `a-b/c`. */
export function compareFullNames(a: string, b: string): number {
  const [namespaceA = "", nameA = ""] = a.split("/");
  const [namespaceB = "", nameB = ""] = b.split("/");
  if (namespaceA !== namespaceB) return namespaceA < namespaceB ? -1 : 1;
  return nameA < nameB ? -1 : nameA > nameB ? 1 : 0;
}

/** Names one pod: in events, labels, links and hooks. */
export interface PodRef {
  uid: PodUID;
  /** With the node suffix. */
  name: string;
  namespace: string;
}

/** Name of a pod without the suffix that a manifest's pod has from its node. */
export function nameWithoutNode({ metadata: { name = "" }, spec: { nodeName } }: Pod): string {
  const suffix = `-${nodeName}`;
  return name.endsWith(suffix) ? name.slice(0, -suffix.length) : name;
}

/** The workload that a pod is one of, as the pod refers to it. */
export const controllerOf = (pod: Pod | undefined) =>
  pod?.metadata.ownerReferences?.find(({ controller }) => controller);

export const podRefOf = ({ metadata }: Pod): PodRef => ({
  uid: metadata.uid ?? "",
  name: metadata.name ?? "",
  namespace: metadata.namespace ?? "default",
});

/** The pod a container belongs to, by its labels; for a container without a manifest. */
export const podRefOfLabels = ({ labels }: { labels: Readonly<Record<string, string>> }): PodRef => ({
  uid: labels["io.kubernetes.pod.uid"] ?? "",
  name: labels["io.kubernetes.pod.name"] ?? "",
  namespace: labels["io.kubernetes.pod.namespace"] ?? "",
});

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

/** Volumes that a container of the pod mounts, or reads an env file from; no others are ever set up. */
export function usedVolumes({ spec }: Pod): Volume[] {
  const used = new Set<string>();
  for (const container of containersOf(spec)) {
    for (const { name } of [...(container.volumeMounts ?? []), ...(container.volumeDevices ?? [])]) used.add(name);
    for (const { valueFrom } of container.env ?? [])
      if (valueFrom?.fileKeyRef) used.add(valueFrom.fileKeyRef.volumeName);
  }
  return (spec.volumes ?? []).filter(({ name }) => used.has(name));
}

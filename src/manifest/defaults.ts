import type { Container, Pod, PodSpec, ResourceRequirements, Volume } from "../base/api/pod.ts";
import { addQuantities, formatQuantity, parseQuantity, roundUpQuantity, ZERO_QUANTITY } from "../base/api/quantity.ts";
import type { ResourceList } from "../base/api/scalar.ts";
import { containersOf } from "../base/model/pod-containers.ts";
import { InvalidImageReferenceError, parseImageReference } from "../base/text/image-reference.ts";

/**
 * Fills in the defaults that depend on other fields; constant defaults are in the schemas and filled in while decoding.
 * Changes the pod in place. Source: `pkg/apis/core/v1/defaults.go`, conversions of the same package.
 */
export function applyPodDefaults(pod: Pod): void {
  const { spec } = pod;
  // The API server replaces a negative period by the shortest one.
  if (spec.terminationGracePeriodSeconds < 0) spec.terminationGracePeriodSeconds = 1;
  const account = spec.serviceAccountName ?? spec.serviceAccount;
  if (account !== undefined) spec.serviceAccountName = spec.serviceAccount = account;
  for (const volume of spec.volumes ?? []) defaultVolume(volume);
  for (const container of containersOf(spec)) {
    defaultContainer(container, spec);
    fillRequestsFromLimits(container.resources);
  }
  for (const container of spec.ephemeralContainers ?? []) defaultContainer(container, spec);
  if (spec.overhead) roundUpToMilli(spec.overhead);
  if (spec.resources) defaultPodResources(spec, spec.resources);
  for (const name of INIT_CONTAINER_ANNOTATIONS) delete pod.metadata.annotations?.[name];
  defaultPodIps(pod);
}

/** Early versions had init containers in annotations; upstream drops these. */
const INIT_CONTAINER_ANNOTATIONS = ["alpha", "beta"].flatMap((stage) => [
  `pod.${stage}.kubernetes.io/init-containers`,
  `pod.${stage}.kubernetes.io/init-container-statuses`,
]);

/** `podIP` is the first of `podIPs`; when they differ it wins. */
function defaultPodIps({ status }: Pod): void {
  if (!status) return;
  if (status.podIP === undefined) {
    const first = status.podIPs?.[0]?.ip;
    if (first !== undefined) status.podIP = first;
  } else if (status.podIPs?.[0]?.ip !== status.podIP) status.podIPs = [{ ip: status.podIP }];
}

function defaultContainer(container: Container, spec: PodSpec): void {
  container.imagePullPolicy ??= defaultPullPolicy(container.image ?? "");
  const { resources } = container;
  if (resources.limits) roundUpToMilli(resources.limits);
  if (resources.requests) roundUpToMilli(resources.requests);
  if (!spec.hostNetwork) return;
  for (const port of container.ports ?? []) if (port.containerPort !== 0) port.hostPort ??= port.containerPort;
}

function fillRequestsFromLimits(resources: ResourceRequirements): void {
  if (!resources.limits) return;
  resources.requests ??= Object.create(null) as ResourceList;
  for (const [name, limit] of Object.entries(resources.limits)) resources.requests[name] ??= limit;
}

/** A volume without any source is an empty directory. */
function defaultVolume(volume: Volume): void {
  if (Object.keys(volume).length === 1) volume.emptyDir = {};
  if (volume.image) volume.image.pullPolicy ??= defaultPullPolicy(volume.image.reference ?? "");
  const claim = volume.ephemeral?.volumeClaimTemplate?.spec.resources;
  if (claim?.limits) roundUpToMilli(claim.limits);
  if (claim?.requests) roundUpToMilli(claim.requests);
}

/** Rounds amounts up to a thousandth, the smallest unit of resources. */
function roundUpToMilli(list: ResourceList): void {
  for (const [name, text] of Object.entries(list)) {
    const quantity = parseQuantity(text);
    if (quantity && quantity.scale < -3) list[name] = formatQuantity(roundUpQuantity(quantity, -3));
  }
}

/** Resources that can be set for the whole pod. */
const isPodLevelResource = (name: string) => name === "cpu" || name === "memory" || name.startsWith("hugepages-");

function defaultPodResources(spec: PodSpec, resources: ResourceRequirements): void {
  if (!resources.limits && !resources.requests) return;
  if (resources.limits) roundUpToMilli(resources.limits);
  const requests: ResourceList = resources.requests ?? Object.create(null);
  roundUpToMilli(requests);
  for (const [name, sum] of Object.entries(sumContainerRequests(spec))) {
    if (isPodLevelResource(name)) requests[name] ??= sum;
  }
  for (const [name, limit] of Object.entries(resources.limits ?? {})) {
    if (isPodLevelResource(name) && !name.startsWith("hugepages-")) requests[name] ??= limit;
  }
  if (Object.keys(requests).length > 0) resources.requests = requests;
}

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

/** `Always` for the tag `latest` and for neither tag nor digest; otherwise, and for malformed names, `IfNotPresent`. */
export function defaultPullPolicy(image: string): "Always" | "IfNotPresent" {
  try {
    return parseImageReference(image).tag === "latest" ? "Always" : "IfNotPresent";
  } catch (error) {
    if (!(error instanceof InvalidImageReferenceError)) throw error;
    return "IfNotPresent";
  }
}

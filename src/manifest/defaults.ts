import type { Container, Pod, PodSpec, Toleration, Volume } from "../base/api/pod.ts";
import { fillRequests } from "../base/api/pod-requests.ts";
import { formatQuantity, parseQuantity, roundUpQuantity } from "../base/api/quantity.ts";
import type { ResourceList } from "../base/api/scalar.ts";
import type { SourceKind } from "../base/model/desired-state.ts";
import { containersOf } from "../base/model/pod.ts";
import { InvalidImageReferenceError, parseImageReference } from "../base/text/image-reference.ts";
import { canonicalJson, hex32 } from "../base/text/json.ts";

/**
 * Fills in the defaults that depend on other fields; constant defaults are in the schemas and filled in while decoding.
 * Changes the pod in place. Source: `pkg/apis/core/v1/defaults.go`, conversions of the same package.
 */
export function applyPodDefaults(pod: Pod): void {
  applyTemplateDefaults(pod);
  fillRequests(pod.spec);
  for (const name of INIT_CONTAINER_ANNOTATIONS) delete pod.metadata.annotations?.[name];
  defaultPodIps(pod);
}

/** As {@link applyPodDefaults}, without the requests: a stored template keeps what was written. Source: `SetDefaults_PodSpec`. */
export function applyTemplateDefaults(pod: Pod): void {
  const { spec } = pod;
  // The API server replaces a negative period by the shortest one.
  if (spec.terminationGracePeriodSeconds < 0) spec.terminationGracePeriodSeconds = 1;
  const account = spec.serviceAccountName ?? spec.serviceAccount;
  if (account !== undefined) spec.serviceAccountName = spec.serviceAccount = account;
  for (const volume of spec.volumes ?? []) defaultVolume(volume);
  for (const container of containersOf(spec)) defaultContainer(container, spec);
  for (const container of spec.ephemeralContainers ?? []) defaultContainer(container, spec);
  if (spec.overhead) roundUpToMilli(spec.overhead);
  if (spec.resources?.limits) roundUpToMilli(spec.resources.limits);
  if (spec.resources?.requests) roundUpToMilli(spec.resources.requests);
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

/** `Always` for the tag `latest` and for neither tag nor digest; otherwise, and for malformed names, `IfNotPresent`. */
function defaultPullPolicy(image: string): "Always" | "IfNotPresent" {
  try {
    return parseImageReference(image).tag === "latest" ? "Always" : "IfNotPresent";
  } catch (error) {
    if (!(error instanceof InvalidImageReferenceError)) throw error;
    return "IfNotPresent";
  }
}

export const CONFIG_HASH_ANNOTATION = "kubernetes.io/config.hash";
export const CONFIG_SOURCE_ANNOTATION = "kubernetes.io/config.source";

/** Whether a pod comes from a file or a URL, not from an API server. Source: the kubelet's IsStaticPod. */
export const isStaticPod = ({ metadata }: Pick<Pod, "metadata">): boolean =>
  metadata.annotations?.[CONFIG_SOURCE_ANNOTATION] !== "api";

/**
 * Hash of a defaulted object before its identity is filled in: 32 hex digits, independent of the order of keys, layout
 * and comments.
 */
export const computeRevision = (object: unknown): string => hex32(canonicalJson(object));

/**
 * Makes a pod a static pod: namespace, name with node suffix, uid, node name, toleration, phase. Changes the pod in
 * place. The uid depends on node, namespace and name and identifies the pod; the hash annotation identifies its
 * revision. Source: `pkg/kubelet/config/common.go`; the hashes differ from upstream's (docs/differences.md).
 */
export function applyIdentity(pod: Pod, options: { nodeName: string; source: SourceKind; revision: string }): void {
  const { metadata, spec } = pod;
  spec.nodeName = options.nodeName;
  pod.status = { ...pod.status, phase: "Pending" };
  metadata.namespace ??= "default";
  if (options.source === "api") return;
  const fixedUid = metadata.uid;
  metadata.name = `${metadata.name ?? ""}-${options.nodeName}`;
  metadata.uid ??= hex32(`${options.nodeName}\n${metadata.namespace}\n${metadata.name}`);
  metadata.annotations ??= Object.create(null) as Record<string, string>;
  metadata.annotations[CONFIG_HASH_ANNOTATION] = fixedUid ?? options.revision;
  if (options.source === "file") tolerateEverything(pod);
}

function tolerateEverything(pod: Pod): void {
  const wanted: Toleration = { operator: "Exists", effect: "NoExecute" };
  pod.spec.tolerations ??= [];
  const { tolerations } = pod.spec;
  const same = tolerations.findIndex(
    (toleration) =>
      toleration.key === undefined &&
      toleration.value === undefined &&
      toleration.operator === wanted.operator &&
      toleration.effect === wanted.effect,
  );
  if (same === -1) tolerations.push(wanted);
  else tolerations[same] = wanted;
}

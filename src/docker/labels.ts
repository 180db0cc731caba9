import { createHash } from "node:crypto";
import { CONTAINER_LABELS_ANNOTATION, imageHealthcheckOf, parseContainerLabels } from "../base/api/annotations.ts";
import type { ContainerPort, Pod } from "../base/api/pod.ts";
import type { ContainerRequest, Owner, SandboxRequest } from "../base/model/container-engine.ts";
import type { ImageHealthcheck } from "../base/model/pod-snapshot.ts";

/** Docker has no annotations: dockershim, and so we, keep them as labels with this prefix. */
export const ANNOTATION_LABEL_PREFIX = "annotation.";

/** Keys of the labels on our containers. The `io.kubernetes` ones are dockershim's; log and metrics tools know them. */
export const LABEL = {
  podName: "io.kubernetes.pod.name",
  podNamespace: "io.kubernetes.pod.namespace",
  podUid: "io.kubernetes.pod.uid",
  containerName: "io.kubernetes.container.name",
  /** `podsandbox` or `container`. */
  type: "io.kubernetes.docker.type",
  sandboxId: "io.kubernetes.sandbox.id",
  logPath: "io.kubernetes.container.logpath",
  containerHash: `${ANNOTATION_LABEL_PREFIX}io.kubernetes.container.hash`,
  restartCount: `${ANNOTATION_LABEL_PREFIX}io.kubernetes.container.restartCount`,
  terminationMessagePath: `${ANNOTATION_LABEL_PREFIX}io.kubernetes.container.terminationMessagePath`,
  terminationMessagePolicy: `${ANNOTATION_LABEL_PREFIX}io.kubernetes.container.terminationMessagePolicy`,
  preStopHandler: `${ANNOTATION_LABEL_PREFIX}io.kubernetes.container.preStopHandler`,
  ports: `${ANNOTATION_LABEL_PREFIX}io.kubernetes.container.ports`,
  terminationGracePeriod: `${ANNOTATION_LABEL_PREFIX}io.kubernetes.pod.terminationGracePeriod`,
  /** The image as the manifest names it: Docker is given an id. */
  image: `${ANNOTATION_LABEL_PREFIX}kubelet-ts.io/image`,
  /** On init containers: their restartPolicy, `Always` for sidecars, else "". Without a kubelet it tells them from the others. */
  initContainer: `${ANNOTATION_LABEL_PREFIX}kubelet-ts.io/init-container`,
  /** Milliseconds. The restart count is not enough: a container also starts again for edits and new sandboxes. */
  backOff: `${ANNOTATION_LABEL_PREFIX}kubelet-ts.io/back-off-ms`,
  /** JSON of the HEALTHCHECK of its image, where the pod makes a probe of it. */
  healthcheck: `${ANNOTATION_LABEL_PREFIX}kubelet-ts.io/healthcheck`,
  sandboxHash: `${ANNOTATION_LABEL_PREFIX}kubelet-ts.io/sandbox.hash`,
  initHash: `${ANNOTATION_LABEL_PREFIX}kubelet-ts.io/init.hash`,
  /** `cni`: plugins make the network of this sandbox, not the engine. */
  networkPlugin: `${ANNOTATION_LABEL_PREFIX}kubelet-ts.io/network-plugin`,
  sandboxAttempt: `${ANNOTATION_LABEL_PREFIX}kubelet-ts.io/sandbox.attempt`,
  /** Ownership: only a container with our value of both is ever stopped or removed. */
  node: "kubelet-ts.io/node",
  root: "kubelet-ts.io/root",
} as const;

/** 16 hex digits. The path counts as it is written, so give it absolute and without a trailing slash. */
export const computeRootHash = (rootDir: string) => createHash("sha256").update(rootDir).digest("hex").slice(0, 16);

export const ownershipLabels = (owner: Owner) => ({ [LABEL.node]: owner.nodeName, [LABEL.root]: owner.rootHash });

/** Values of the `label` filter of `GET /containers/json` and `/events` that match only our containers. */
export const toOwnershipFilter = (owner: Owner) =>
  Object.entries(ownershipLabels(owner)).map(([key, value]) => `${key}=${value}`);

/** true only when both ownership labels are ours. */
export const isOwned = (labels: Readonly<Record<string, string>>, owner: Owner) =>
  labels[LABEL.node] === owner.nodeName && labels[LABEL.root] === owner.rootHash;

const identityLabels = (pod: Pod, containerName: string) => ({
  [LABEL.podName]: pod.metadata.name ?? "",
  [LABEL.podNamespace]: pod.metadata.namespace ?? "default",
  [LABEL.podUid]: pod.metadata.uid ?? "",
  [LABEL.containerName]: containerName,
});

/** The pod's labels and annotations, identity, ownership. Ours win, else a manifest could disown its containers. */
export function toSandboxLabels(
  pod: Pod,
  owner: Owner,
  {
    hash,
    initHash,
    attempt,
    usesNetworkPlugin,
  }: Pick<SandboxRequest, "hash" | "initHash" | "attempt" | "usesNetworkPlugin">,
): Record<string, string> {
  const annotations = Object.entries(pod.metadata.annotations ?? {});
  return {
    ...pod.metadata.labels,
    ...Object.fromEntries(annotations.map(([key, value]) => [ANNOTATION_LABEL_PREFIX + key, value])),
    ...identityLabels(pod, SANDBOX_CONTAINER_NAME),
    [LABEL.type]: "podsandbox",
    [LABEL.sandboxHash]: hash,
    ...(initHash !== undefined && { [LABEL.initHash]: initHash }),
    [LABEL.sandboxAttempt]: String(attempt),
    ...(usesNetworkPlugin && { [LABEL.networkPlugin]: "cni" }),
    ...ownershipLabels(owner),
  };
}

// The key order and the absence of zero values are those of Go's JSON, which tools compare as text.
const toPortJson = ({ name, hostPort, containerPort, protocol, hostIP }: ContainerPort) => ({
  ...(name && { name }),
  ...(hostPort && { hostPort }),
  containerPort,
  ...(protocol && { protocol }),
  ...(hostIP && { hostIP }),
});

interface ContainerLabelInput
  extends Pick<ContainerRequest, "pod" | "container" | "sandboxId" | "hash" | "restartCount" | "backOffMs"> {
  owner: Owner;
  image?: { healthcheck?: ImageHealthcheck | undefined };
  /** "" when there are no log links. */
  logPath: string;
}

/** Labels of a container: what is needed to stop it properly without its manifest, identity, ownership. */
export function toContainerLabels(input: ContainerLabelInput): Record<string, string> {
  const { pod, container } = input;
  const { terminationGracePeriodSeconds } = pod.spec;
  const { preStop } = container.lifecycle ?? {};
  const init = pod.spec.initContainers?.find(({ name }) => name === container.name);
  return {
    ...parseContainerLabels(pod.metadata.annotations?.[CONTAINER_LABELS_ANNOTATION] ?? ""),
    ...identityLabels(pod, container.name),
    [LABEL.type]: "container",
    [LABEL.sandboxId]: input.sandboxId,
    ...(input.logPath && { [LABEL.logPath]: input.logPath }),
    [LABEL.containerHash]: input.hash,
    [LABEL.restartCount]: String(input.restartCount),
    ...(input.backOffMs !== undefined && { [LABEL.backOff]: String(input.backOffMs) }),
    ...(container.image && { [LABEL.image]: container.image }),
    ...(input.image?.healthcheck &&
      imageHealthcheckOf(pod.metadata, container.name) && {
        [LABEL.healthcheck]: JSON.stringify(input.image?.healthcheck),
      }),
    ...(init && { [LABEL.initContainer]: init.restartPolicy ?? "" }),
    [LABEL.terminationMessagePath]: container.terminationMessagePath,
    [LABEL.terminationMessagePolicy]: container.terminationMessagePolicy,
    ...(terminationGracePeriodSeconds !== undefined && {
      [LABEL.terminationGracePeriod]: String(terminationGracePeriodSeconds),
    }),
    ...(preStop && { [LABEL.preStopHandler]: JSON.stringify(preStop) }),
    ...(container.ports?.length && { [LABEL.ports]: JSON.stringify(container.ports.map(toPortJson)) }),
    ...ownershipLabels(input.owner),
  };
}

/** Name of the sandbox among the containers of its pod. */
const SANDBOX_CONTAINER_NAME = "POD";

// A fixed metadata.uid is free text upstream; Docker allows only these in a name. The label has it unchanged.
const dockerSafe = (part: string) => part.replace(/[^a-zA-Z0-9.-]/g, "-");

/** `k8s_<container>_<pod>_<namespace>_<uid>_<attempt>`. Source: dockershim. */
export function toContainerName(pod: Pod, containerName: string, attempt: number): string {
  const { name = "", namespace = "default", uid = "" } = pod.metadata;
  return ["k8s", containerName, name, namespace, dockerSafe(uid), attempt].join("_");
}

/** `k8s_POD_<pod>_<namespace>_<uid>_<attempt>`. */
export const toSandboxName = (pod: Pod, attempt: number) => toContainerName(pod, SANDBOX_CONTAINER_NAME, attempt);

/**
 * Go expression for the names of all sandboxes of a pod, and of the other pods of its workload: one that is replaced, or has
 * another template, gets another name.
 */
export function toSandboxPattern({ metadata }: Pod): string {
  const { name = "", namespace = "default", generateName = "", labels, ownerReferences } = metadata;
  const stem = ownerReferences?.some(({ controller }) => controller) ? generateName : "";
  const pods = stem && `${stem.replace(`-${labels?.["pod-template-hash"]}-`, "-[^_-]+-")}[^_-]+`;
  return `^k8s_POD_${pods || name}_${namespace}_`.replaceAll(".", "\\.");
}

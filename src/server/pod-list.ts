import { parseFieldSelector, parseLabelSelector, type SelectableFields } from "../base/api/meta.ts";
import type { Container, Pod, Probe } from "../base/api/pod.ts";
import { memoized } from "../base/model/memoized.ts";
import { compareFullNames, mapContainers, podFullName } from "../base/model/pod.ts";
import type { PodFacts } from "../stats/pod-facts.ts";

/** Stands where a value was that the unauthenticated port does not show. */
const REDACTED = "<redacted>";

/**
 * The pod as the unauthenticated port may show it: without literal environment values, without the values of
 * credential headers, and without the annotation kubectl keeps a copy of the whole manifest in. Names, references and
 * everything else stay. Values that come from Secrets are never in a pod object.
 */
export function redactPod(pod: Pod): Pod {
  const { spec, metadata } = pod;
  return {
    ...pod,
    metadata: metadata.annotations ? { ...metadata, annotations: redactAnnotations(metadata.annotations) } : metadata,
    spec: {
      ...mapContainers(spec, redactContainer),
      ...(spec.ephemeralContainers && { ephemeralContainers: spec.ephemeralContainers.map(redactContainer) }),
    },
  };
}

const MANIFEST_COPY = "kubectl.kubernetes.io/last-applied-configuration";

function redactAnnotations(annotations: Record<string, string>): Record<string, string> {
  const names = Object.keys(annotations).filter((name) => name.endsWith(MANIFEST_COPY));
  if (names.length === 0) return annotations;
  return { ...annotations, ...Object.fromEntries(names.map((name) => [name, REDACTED])) };
}

function redactContainer<C extends Container>(container: C): C {
  const redacted = { ...container };
  if (container.env) {
    redacted.env = container.env.map((variable) => (variable.value ? { ...variable, value: REDACTED } : variable));
  }
  redactHeaders(redacted, ["livenessProbe", "readinessProbe", "startupProbe"]);
  if (container.lifecycle) {
    redacted.lifecycle = { ...container.lifecycle };
    redactHeaders(redacted.lifecycle, ["postStart", "preStop"]);
  }
  return redacted;
}

/** Replaces the handlers of these names. */
function redactHeaders<K extends string>(
  owner: Partial<Record<K, Pick<Probe, "httpGet"> | undefined>>,
  names: readonly K[],
): void {
  for (const name of names) {
    const handler = owner[name];
    if (!handler?.httpGet?.httpHeaders) continue;
    const httpHeaders = handler.httpGet.httpHeaders.map((header) =>
      /auth|cookie|token|secret|key|password/i.test(header.name) ? { ...header, value: REDACTED } : header,
    );
    owner[name] = { ...handler, httpGet: { ...handler.httpGet, httpHeaders } };
  }
}

/** Renders lists of pods on demand, a list once while it is the same, and each pod once for each version of its object. */
export class PodListRenderer {
  /** Shows literal environment values. */
  readonly isFull: boolean;
  readonly #item = memoized((pod: Pod) => JSON.stringify(toListItem(this.isFull ? pod : redactPod(pod))));
  /** With the name of exactly these bytes: strong, quoted, as `ETag` and `If-None-Match` carry it. */
  readonly render = memoized((pods: readonly Pod[]) => {
    const body = podListText(pods.toSorted((a, b) => byFullName(a.metadata, b.metadata)).map((pod) => this.#item(pod)));
    return { body: Buffer.from(body), etag: `"${Bun.hash(body).toString(16)}"` };
  });

  constructor(full: boolean) {
    this.isFull = full;
  }
}

function podListText(items: readonly string[]): string {
  const list = items.length === 0 ? "null" : `[${items.join(",")}]`;
  return `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":${list}}`;
}

/** A pod as an item of a list: kind and apiVersion are those of the list; selfLink and creationTimestamp as in the kubelet's. */
function toListItem(pod: Pod): object {
  const { metadata } = pod;
  const { name, namespace = "default", uid } = metadata;
  const selfLink = `/api/v1/namespaces/${namespace}/pods/${name}`;
  return {
    metadata: { name, namespace, selfLink, uid, creationTimestamp: null, ...metadata },
    spec: pod.spec,
    ...("status" in pod && { status: pod.status }),
  };
}

/** `/runningpods/`: the pods that the engine runs, with what it knows of them. */
export function runningPodListText(pods: readonly PodFacts[]): string {
  const items = pods.toSorted(byFullName).map((pod) =>
    JSON.stringify({
      metadata: { name: pod.name, namespace: pod.namespace, uid: pod.uid, creationTimestamp: null },
      spec: { containers: pod.containers.length === 0 ? null : runningContainers(pod) },
      status: {},
    }),
  );
  return podListText(items);
}

const runningContainers = ({ containers }: PodFacts) =>
  containers.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map(({ name, image }) => ({ name, image, resources: {} }));

type Named = Parameters<typeof podFullName>[0];
const byFullName = (a: Named, b: Named): number => compareFullNames(podFullName(a), podFullName(b));

/** Fields that `fieldSelector` may name. Source: core/v1 `Pod`'s selectable fields. */
const SELECTABLE: SelectableFields<Pod> = {
  "metadata.name": ({ metadata }) => metadata.name,
  "metadata.namespace": ({ metadata }) => metadata.namespace ?? "default",
  "metadata.uid": ({ metadata }) => metadata.uid,
  "spec.nodeName": ({ spec }) => spec.nodeName,
  "spec.restartPolicy": ({ spec }) => spec.restartPolicy,
  "spec.schedulerName": ({ spec }) => spec.schedulerName,
  "spec.serviceAccountName": ({ spec }) => spec.serviceAccountName,
  "spec.hostNetwork": ({ spec }) => String(spec.hostNetwork ?? false),
  "status.phase": ({ status }) => status?.phase,
  "status.podIP": ({ status }) => status?.podIP,
};

type PodFilter = (pod: Pod) => boolean;

/** `labelSelector` and `fieldSelector` of a request as one filter; undefined: every pod. */
export function parsePodSelectors(query: URLSearchParams): PodFilter | { problem: string } | undefined {
  const labelText = query.get("labelSelector") ?? "";
  const fieldText = query.get("fieldSelector") ?? "";
  if (labelText === "" && fieldText === "") return undefined;
  const labels = parseLabelSelector(labelText);
  if ("problem" in labels) return labels;
  const fields = parseFieldSelector(fieldText, SELECTABLE);
  if ("problem" in fields) return { problem: `${fields.problem}; known: ${Object.keys(SELECTABLE).join(", ")}` };
  return (pod) => labels(pod.metadata.labels ?? {}) && fields(pod);
}

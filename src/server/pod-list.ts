import { parseFieldSelector, parseLabelSelector, type SelectableFields } from "../base/api/meta.ts";
import type { Pod } from "../base/api/pod.ts";
import { memoized } from "../base/model/memoized.ts";
import { compareFullNames, podFullName } from "../base/model/pod.ts";
import type { PodFacts } from "../stats/pod-facts.ts";
import { redactPod } from "./redact-pod.ts";

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

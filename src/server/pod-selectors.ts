import { parseLabelSelector } from "../base/api/label-selector.ts";
import type { Pod } from "../base/api/pod.ts";

/** Fields that `fieldSelector` may name. Source: core/v1 `Pod`'s selectable fields. */
const SELECTABLE: Readonly<Record<string, (pod: Pod) => string | undefined>> = {
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

/**
 * `labelSelector` and `fieldSelector` of a request as one filter.
 * @returns undefined: every pod; what is wrong as `problem`
 */
export function parsePodSelectors(query: URLSearchParams): PodFilter | { problem: string } | undefined {
  const labelText = query.get("labelSelector") ?? "";
  const fieldText = query.get("fieldSelector") ?? "";
  if (labelText === "" && fieldText === "") return undefined;
  const labels = parseLabelSelector(labelText);
  if ("problem" in labels) return labels;
  const filters: PodFilter[] = [({ metadata }) => labels(metadata.labels ?? {})];
  for (const term of fieldText.split(",").filter((part) => part !== "")) {
    const [, field = "", operator = "", value = ""] = /^([^=!]*)(==|=|!=)(.*)$/.exec(term) ?? [];
    if (operator === "") return { problem: `invalid selector: '${term}'; can't understand it` };
    if (!Object.hasOwn(SELECTABLE, field)) {
      return { problem: `field label not supported: ${field}; known: ${Object.keys(SELECTABLE).join(", ")}` };
    }
    const read = SELECTABLE[field]!;
    filters.push((pod) => ((read(pod) ?? "") === value) === (operator !== "!="));
  }
  return (pod) => filters.every((matches) => matches(pod));
}

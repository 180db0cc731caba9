import { isRecord } from "../base/text/json.ts";
import { badRequest } from "./api-error.ts";
import type { ApiObject } from "./api-object.ts";

/** The `scale` of a workload. Source: autoscaling/v1 `Scale`. */
export function toScale({ metadata, spec, status }: ApiObject): object {
  const { replicas = 1, selector } = (spec ?? {}) as { replicas?: number; selector?: unknown };
  const { replicas: current = 0 } = (status ?? {}) as { replicas?: number };
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata;
  const text = selectorText(selector);
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: replicas === 0 ? {} : { replicas },
    status: { replicas: current, ...(text !== "" && { selector: text }) },
  };
}

/**
 * The workload with the replicas of a Scale.
 * @throws ApiError 400
 */
export function fromScale(live: ApiObject, scale: unknown): ApiObject {
  const spec = isRecord(scale) && isRecord(scale.spec) ? scale.spec : {};
  const replicas = spec.replicas ?? 0;
  if (!Number.isInteger(replicas) || (replicas as number) < 0) {
    throw badRequest("spec.replicas: Invalid value: must be greater than or equal to 0");
  }
  const metadata = isRecord(scale) && isRecord(scale.metadata) ? scale.metadata : {};
  const { resourceVersion } = metadata as { resourceVersion?: string };
  return {
    ...live,
    metadata: { ...live.metadata, resourceVersion },
    spec: { ...(live.spec as object), replicas },
  };
}

function selectorText(selector: unknown): string {
  if (!isRecord(selector)) return "";
  const { matchLabels, matchExpressions } = selector;
  const labels = Object.entries(isRecord(matchLabels) ? matchLabels : {}).map(
    ([key, value]) => `${key}=${String(value)}`,
  );
  const expressions = (Array.isArray(matchExpressions) ? matchExpressions : []).map(
    ({ key, operator, values = [] }: { key: string; operator: string; values?: string[] }) => {
      if (operator === "Exists") return key;
      if (operator === "DoesNotExist") return `!${key}`;
      return `${key} ${operator === "In" ? "in" : "notin"} (${values.join(",")})`;
    },
  );
  return [...labels.sort(), ...expressions].join(",");
}

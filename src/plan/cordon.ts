import type { Toleration } from "../base/api/pod.ts";
import type { DesiredPod } from "../base/model/desired-state.ts";
import { UNSCHEDULABLE_TAINT } from "../base/model/node.ts";
import { controllerOf, type PodUID } from "../base/model/pod.ts";

/**
 * Whether a pod stays Pending because the node is cordoned. Pods of files and URLs never pass a scheduler, and those of
 * DaemonSets tolerate the cordon.
 * @param isSubmitted to the API
 * @param assigned pods that were assigned to the node before
 */
export function isHeldByCordon({ pod }: DesiredPod, isSubmitted: boolean, assigned: readonly PodUID[]): boolean {
  const controller = controllerOf(pod);
  if (!isSubmitted && !controller) return false;
  if (controller?.kind === "DaemonSet" || pod.spec.tolerations?.some(toleratesCordon)) return false;
  return !assigned.includes(pod.metadata.uid ?? "");
}

/** Source: core/v1 `Toleration.ToleratesTaint`. The taint has no value. */
function toleratesCordon({ key = "", effect, operator = "Equal", value = "" }: Toleration): boolean {
  if (effect && effect !== UNSCHEDULABLE_TAINT.effect) return false;
  if (key !== "" && key !== UNSCHEDULABLE_TAINT.key) return false;
  return operator === "Exists" || (key !== "" && value === "");
}

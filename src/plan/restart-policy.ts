import type { Container, PodSpec } from "../base/api/pod.ts";
import { containersOf } from "../base/model/pod.ts";

/** Consequence of a container's exit: `restart-pod` = every container of the pod starts again in place (KEP-5532). */
type RestartDecision = "restart" | "restart-pod" | "leave";

type Policy = "Always" | "OnFailure" | "Never";

/** An init container with `restartPolicy: Always` is a sidecar. */
export const isSidecar = (container: Container) => container.restartPolicy === "Always";

/** The policy in force for one container: its own if it has one, else the pod's. */
function effectivePolicy(spec: PodSpec, container: Container, isInit: boolean): Policy {
  const own = container.restartPolicy as Policy | undefined;
  if (own) return own;
  const policy = (spec.restartPolicy ?? "Always") as Policy;
  // An init container that succeeded is done under every policy of the pod.
  return isInit && policy === "Always" ? "OnFailure" : policy;
}

/** Whether `exitCode` makes the container run again. Rules come first, the first that matches decides. */
export function decideRestart(
  spec: PodSpec,
  container: Container,
  exitCode: number,
  options: { isInit: boolean },
): RestartDecision {
  for (const rule of container.restartPolicyRules ?? []) {
    const values = rule.exitCodes?.values ?? [];
    const listed = values.includes(exitCode);
    const matches = rule.exitCodes?.operator === "NotIn" ? !listed : listed;
    if (matches) return rule.action === "RestartAllContainers" ? "restart-pod" : "restart";
  }
  const policy = effectivePolicy(spec, container, options.isInit);
  if (policy === "Always") return "restart";
  if (policy === "OnFailure") return exitCode === 0 ? "leave" : "restart";
  return "leave";
}

/** Whether a container killed for failing its liveness or startup probe is restarted. */
export function restartsOnFailure(spec: PodSpec, container: Container, isInit: boolean): boolean {
  return effectivePolicy(spec, container, isInit) !== "Never";
}

/** No container of the pod is ever started a second time. */
export const runsOnce = (spec: PodSpec) =>
  spec.restartPolicy === "Never" &&
  containersOf(spec).every(({ restartPolicy, restartPolicyRules }) => !restartPolicy && !restartPolicyRules);

/** Whether exit code 0 settles the container although another exit code would not. */
export function endsOnlyOnSuccess(spec: PodSpec, name: string): boolean {
  const container = containersOf(spec).find((one) => one.name === name);
  const isInit = spec.initContainers?.some((one) => one.name === name) ?? false;
  if (!container || !restartsOnFailure(spec, container, isInit)) return false;
  return decideRestart(spec, container, 0, { isInit }) === "leave";
}

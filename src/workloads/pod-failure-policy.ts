import type { PodFailurePolicyRule } from "../api/job.ts";
import type { PodStatus } from "../api/pod-status.ts";

export type FailureAction = "FailJob" | "FailIndex" | "Ignore" | "Count";

/** The effect of a failed pod on its Job: the action of the first matching rule. Source: batch/v1 `PodFailurePolicy`. */
export function judgePodFailure(rules: readonly PodFailurePolicyRule[], status: PodStatus | undefined): FailureAction {
  const rule = rules.find((candidate) => status && matches(candidate, status));
  return (rule?.action as FailureAction | undefined) ?? "Count";
}

function matches({ onExitCodes, onPodConditions = [] }: PodFailurePolicyRule, status: PodStatus): boolean {
  if (onExitCodes) {
    const { containerName, operator, values = [] } = onExitCodes;
    const statuses = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
    return statuses.some(({ name, state }) => {
      const exitCode = state.terminated?.exitCode ?? 0;
      if (exitCode === 0 || (containerName !== undefined && containerName !== name)) return false;
      return values.includes(exitCode) === (operator === "In");
    });
  }
  return onPodConditions.some(({ type, status: wanted }) =>
    status.conditions?.some((condition) => condition.type === type && condition.status === wanted),
  );
}

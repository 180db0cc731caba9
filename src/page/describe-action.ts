import type { PodRow } from "./pod-row.ts";
import type { ApplyResult, CompareResult } from "./wire.ts";

export type PodAction = "restart" | "delete";

/** Kinds that start another pod in place of one that is deleted. */
const REPLACED = /^(Deployment|ReplicaSet|StatefulSet|DaemonSet) /;

/** The question before an action; without an `action` there is nothing to decide: the text says why. Pure. */
export function describeAction(
  action: PodAction,
  { name, owner, source }: Pick<PodRow, "name" | "owner" | "source">,
): { action: string | undefined; text: string } {
  if (action === "restart") {
    return {
      action: "Restart",
      text: `Restart all containers of ${name}? They are stopped and started again by the kubelet. It does not serve meanwhile, files outside its volumes are lost, and its IP address may change.`,
    };
  }
  if (owner === "" && source !== "submitted" && source !== "") {
    const what = /^https?:/.test(source) ? "manifest" : "file";
    return {
      action: undefined,
      text: `${name} comes from ${source}: to delete it, remove it from that ${what}. The kubelet then stops it.`,
    };
  }
  return {
    action: "Delete",
    text: `Delete ${name}? Its containers are stopped and its emptyDir volumes are lost. ${describeReturn(owner)}`,
  };
}

function describeReturn(owner: string): string {
  if (REPLACED.test(owner)) return `${owner} starts another pod in its place; to end that, scale or delete ${owner}.`;
  if (owner.startsWith("Job ")) return `${owner} starts another pod if it is not complete.`;
  if (owner !== "") return `It belongs to ${owner}.`;
  return "It comes back only if its manifest is applied again.";
}

/** Result of an apply as text: a line for each object, then what was refused. Pure. */
export function describeApplied({ objects, problems }: ApplyResult, isDryRun: boolean): string {
  const note = isDryRun ? " (server dry run)" : "";
  const lines = objects.flatMap(({ reference, outcome, warnings }) => [
    `${reference} ${outcome}${note}`,
    ...warnings.map((warning) => `Warning: ${warning}`),
  ]);
  return [...lines, ...(lines.length > 0 && problems.length > 0 ? [""] : []), ...problems].join("\n");
}

/** Changes of a manifest as text. Pure. */
export function describeChanges({ changes, leftOut, problems }: CompareResult): string {
  if (problems.length > 0) return problems.join("\n");
  if (changes.length === 0) return "No difference: nothing restarts.";
  const text = changes.flatMap(({ subject, lines, effects }) => [
    subject,
    ...lines.map((line) => `  ${line}`),
    ...effects.map((effect) => `  => ${effect}`),
  ]);
  const note = `(${leftOut} characters of changed lines are left out: kubelet-ts diff shows them)`;
  return [...text, ...(leftOut > 0 ? [note] : [])].join("\n");
}

/** The effects of an apply, for the question before it. Pure. @param checked result of the dry run */
export function describePlan(checked: ApplyResult, { changes, problems }: CompareResult): string {
  const objects = describeApplied(checked, true);
  if (problems.length > 0) return `${objects}\n\nWhat restarts is not known: ${problems.join("\n")}`;
  const effects = changes.flatMap(({ subject, effects: own }) => own.map((effect) => `${subject}: ${effect}`));
  return effects.length === 0 ? objects : `${objects}\n\n${effects.join("\n")}`;
}

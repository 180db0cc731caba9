import type { Pod } from "../../api/pod.ts";
import type { FieldPath } from "../field-path.ts";
import { FIELD_SUPPORT, type FieldSupport } from "./field-support.ts";

/** A field that is valid in Kubernetes but has no effect or is not possible on one node without an API server. */
export interface SupportNote {
  code: "unsupported" | "ignored";
  path: FieldPath;
  message: string;
}

/** Rules that produce findings, with split paths. */
const RULES = FIELD_SUPPORT.filter(
  ({ quiet, level, when }) => !quiet && (level !== "partly" || when !== undefined),
).map((support) => ({ support, steps: support.path.split(".") }));

/**
 * Checks a defaulted pod whose identity is not yet filled in.
 * @param path of the pod in its document
 */
export function findUnsupported(pod: Pod, path: FieldPath): SupportNote[] {
  const notes: SupportNote[] = [];
  for (const { support, steps } of RULES) follow(pod, path, steps, 0, support, pod, notes);
  return notes;
}

function follow(
  value: unknown,
  path: FieldPath,
  steps: readonly string[],
  index: number,
  support: FieldSupport,
  pod: Pod,
  notes: SupportNote[],
): void {
  if (value === undefined || value === null) return;
  const step = steps[index];
  if (step === undefined) {
    if (support.when && !support.when(value, pod)) return;
    const refused = support.level === "refused";
    const message = refused ? `cannot be used here: ${support.note}` : `has no effect here: ${support.note}`;
    notes.push({ code: refused ? "unsupported" : "ignored", path, message });
    return;
  }
  const isList = step.endsWith("[]");
  const name = isList ? step.slice(0, -2) : step;
  const child = (value as Record<string, unknown>)[name];
  if (!isList) return follow(child, path.child(name), steps, index + 1, support, pod, notes);
  for (const [position, item] of ((child as unknown[] | undefined) ?? []).entries()) {
    follow(item, path.child(name).index(position), steps, index + 1, support, pod, notes);
  }
}

import type { Pod } from "../../base/api/pod.ts";
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
 * @param isLenient fields without which a pod runs are ignored instead of refused
 */
export function findUnsupported(pod: Pod, path: FieldPath, isLenient: boolean): SupportNote[] {
  const notes: SupportNote[] = [];
  for (const { support, steps } of RULES) {
    const isRefused = support.level === "refused" && !(support.strictOnly && isLenient);
    follow(pod, path, steps, 0, { support, isRefused, pod, notes });
  }
  return notes;
}

interface Search {
  support: FieldSupport;
  isRefused: boolean;
  pod: Pod;
  notes: SupportNote[];
}

function follow(value: unknown, path: FieldPath, steps: readonly string[], index: number, search: Search): void {
  if (value === undefined || value === null) return;
  const step = steps[index];
  if (step === undefined) {
    const { support, isRefused, pod, notes } = search;
    if (support.when && !support.when(value, pod)) return;
    const message = isRefused ? `cannot be used here: ${support.note}` : `has no effect here: ${support.note}`;
    notes.push({ code: isRefused ? "unsupported" : "ignored", path, message });
    return;
  }
  const isList = step.endsWith("[]");
  const name = isList ? step.slice(0, -2) : step;
  const child = (value as Record<string, unknown>)[name];
  if (!isList) return follow(child, path.child(name), steps, index + 1, search);
  for (const [position, item] of ((child as unknown[] | undefined) ?? []).entries()) {
    follow(item, path.child(name).index(position), steps, index + 1, search);
  }
}

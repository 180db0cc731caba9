import type { LabelSelector } from "./meta.ts";

/**
 * Whether labels satisfy a selector. An empty selector matches everything, as `LabelSelectorAsSelector` has it.
 */
export function matchesSelector(selector: LabelSelector, labels: Readonly<Record<string, string>> = {}): boolean {
  const labelOf = (key: string) => (Object.hasOwn(labels, key) ? labels[key] : undefined);
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) if (labelOf(key) !== value) return false;
  return (selector.matchExpressions ?? []).every((requirement) =>
    meetsRequirement(labelOf(requirement.key), requirement),
  );
}

/** The selector of a Service or a ReplicationController is the labels alone. */
export function toLabelSelector(selector: LabelSelector | Readonly<Record<string, string>>): LabelSelector {
  const { matchLabels, matchExpressions } = selector as LabelSelector;
  const isSelector = typeof matchLabels === "object" || Array.isArray(matchExpressions);
  return isSelector ? (selector as LabelSelector) : { matchLabels: selector as Record<string, string> };
}

/** Operators that label selectors and node affinity share. */
export type SetOperator = "In" | "NotIn" | "Exists" | "DoesNotExist";

/** Whether a label meets a requirement. @param value undefined: there is no such label */
export function meetsRequirement(
  value: string | undefined,
  { operator, values = [] }: { operator: SetOperator; values?: readonly string[] | undefined },
): boolean {
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    default:
      return operator satisfies never;
  }
}

import { isRecord } from "../../base/text/json.ts";

/** Labels or a selector of equality as one cell. Source: apimachinery's `FormatLabels`. */
export function formatLabels(labels: unknown): string {
  const entries = isRecord(labels) ? Object.entries(labels) : [];
  const sorted = entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return sorted.length === 0 ? "<none>" : sorted.map(([key, value]) => `${key}=${String(value)}`).join(",");
}

interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

/** Source: meta/v1 `FormatLabelSelector`. */
export function formatLabelSelector(selector: unknown): string {
  if (!isRecord(selector)) return "<none>";
  const { matchLabels = {}, matchExpressions = [] } = selector as LabelSelector;
  const terms = [
    ...Object.entries(matchLabels).map(([key, value]) => ({ key, text: `${key}=${value}` })),
    ...matchExpressions.map(({ key, operator, values = [] }) => ({ key, text: formatTerm(key, operator, values) })),
  ];
  const sorted = terms.sort((a, b) => (a.key < b.key ? -1 : 1));
  return sorted.length === 0 ? "<none>" : sorted.map(({ text }) => text).join(",");
}

function formatTerm(key: string, operator: string, values: readonly string[]): string {
  switch (operator) {
    case "In":
      return `${key} in (${[...values].sort().join(",")})`;
    case "NotIn":
      return `${key} notin (${[...values].sort().join(",")})`;
    case "DoesNotExist":
      return `!${key}`;
    default:
      return key;
  }
}

const ACCESS_MODES: Readonly<Record<string, string>> = {
  ReadWriteOnce: "RWO",
  ReadOnlyMany: "ROX",
  ReadWriteMany: "RWX",
  ReadWriteOncePod: "RWOP",
};

/** Source: core `GetAccessModesAsString`. */
export const formatAccessModes = (modes: unknown): string =>
  (Array.isArray(modes) ? modes : []).map((mode) => ACCESS_MODES[String(mode)] ?? String(mode)).join(",");

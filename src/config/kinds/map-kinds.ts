import { formatQuantity, parseQuantity } from "../../base/api/quantity.ts";
import { isRecord } from "../../base/text/json.ts";
import { boolean } from "./scalar-kinds.ts";
import { quantityToNumber } from "./size-kinds.ts";
import { asText, type Parsed, quote, splitList, type ValueKind } from "./value-kind.ts";

/** A map of `key=value` pairs; in the file a map. @param show value in the syntax of flag and file */
export function mapKind<V>(
  hint: string,
  parse: (key: string, value: unknown) => Parsed<V>,
  show: (value: V) => unknown,
  separator = "=",
): ValueKind<Readonly<Record<string, V>>> {
  const fromEntries = (entries: Iterable<readonly [string, unknown]>): Parsed<Record<string, V>> => {
    const map: Record<string, V> = Object.create(null);
    for (const [key, raw] of entries) {
      const parsed = parse(key, raw);
      if ("problem" in parsed) return { problem: `${key}: ${parsed.problem}` };
      map[key] = parsed.value;
    }
    return { value: { ...map } };
  };
  return {
    hint,
    fromText: (value) => {
      const entries: [string, string][] = [];
      for (const part of splitList(value)) {
        const at = part.indexOf(separator);
        if (at < 1) return { problem: `must be ${hint}, got ${quote(part)}` };
        entries.push([part.slice(0, at).trim(), part.slice(at + separator.length).trim()]);
      }
      return fromEntries(entries);
    },
    fromField: (field) =>
      isRecord(field) ? fromEntries(Object.entries(field)) : { problem: `must be a map, got ${quote(field)}` },
    toField: (value) => Object.fromEntries(Object.entries(value).map(([key, item]) => [key, show(item)])),
    toText: (value) =>
      Object.entries(value)
        .map(([key, item]) => `${key}${separator}${show(item)}`)
        .join(","),
    combine: (earlier, later) => ({ ...earlier, ...later }),
    isMap: true,
  };
}

export const featureGates: ValueKind<Readonly<Record<string, boolean>>> = mapKind(
  "name=true|false,…",
  (_, value) => (typeof value === "boolean" ? { value } : boolean.fromText(asText(value))),
  (value) => value,
);

const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const LABEL_KEY = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

export const labels: ValueKind<Readonly<Record<string, string>>> = mapKind(
  "key=value,…",
  (key, value) => {
    if (!LABEL_KEY.test(key)) return { problem: "is not a label name" };
    const label = typeof value === "string" ? value : undefined;
    if (label === undefined || !LABEL_VALUE.test(label)) return { problem: `not a label value: ${quote(value)}` };
    return { value: label };
  },
  (value) => value,
);

const RESERVABLE = new Set(["cpu", "memory", "ephemeral-storage", "pid"]);

/** Source: kubelet's `--system-reserved`. */
export const reservedResources: ValueKind<Readonly<Record<string, string>>> = mapKind(
  "resource=quantity,…",
  (key, value) => {
    if (!RESERVABLE.has(key)) return { problem: `not one of ${[...RESERVABLE].join(", ")}` };
    const amount = asText(value);
    if (quantityToNumber(amount) === undefined)
      return { problem: `must be a quantity such as 500Mi, got ${quote(value)}` };
    return { value: formatQuantity(parseQuantity(amount)!) };
  },
  (value) => value,
);

import { formatBytes, formatQuantity, parseQuantity } from "../../base/api/quantity.ts";
import type { EvictionSignal, EvictionThreshold } from "../../base/model/option-values.ts";
import { formatDuration } from "../../base/text/duration.ts";
import { isRecord } from "../../base/text/json.ts";
import {
  asText,
  boolean,
  duration,
  type Parsed,
  quantityToNumber,
  quote,
  splitList,
  type ValueKind,
} from "./scalar-kinds.ts";

/** A map of `key=value` pairs; in the file a map. @param show value in the syntax of flag and file */
function mapKind<V>(
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

const EVICTION_SIGNALS: readonly EvictionSignal[] = [
  "memory.available",
  "nodefs.available",
  "nodefs.inodesFree",
  "imagefs.available",
  "imagefs.inodesFree",
  "pid.available",
];
const isSignal = (name: string): name is EvictionSignal => (EVICTION_SIGNALS as readonly string[]).includes(name);
const wrongSignal: Parsed<never> = { problem: `not one of ${EVICTION_SIGNALS.join(", ")}` };

function parseThreshold(signal: string, value: unknown): Parsed<EvictionThreshold> {
  if (!isSignal(signal)) return wrongSignal;
  const amount = asText(value);
  const percent = /^(\d+(?:\.\d+)?)%$/.exec(amount);
  if (percent) {
    const percentage = Number(percent[1]);
    return percentage <= 100
      ? { value: { signal, percentage } }
      : { problem: `must not be over 100%, got ${quote(amount)}` };
  }
  const quantity = quantityToNumber(amount);
  return quantity === undefined
    ? { problem: `must be a quantity such as 100Mi or a percentage such as 10%, got ${quote(value)}` }
    : { value: { signal, quantity } };
}

const showThreshold = (threshold: EvictionThreshold): string =>
  "percentage" in threshold
    ? `${threshold.percentage}%`
    : threshold.signal.endsWith(".available") && threshold.signal !== "pid.available"
      ? formatBytes(threshold.quantity)
      : String(threshold.quantity);

/**
 * Thresholds in the order of their signals. A threshold of 0% or 100% switches its signal off, as upstream.
 * @param separator `<` for thresholds, `=` for the minimum reclaim.
 */
export function thresholds(separator: "<" | "="): ValueKind<readonly EvictionThreshold[]> {
  const map = mapKind(`signal${separator}amount,…`, parseThreshold, showThreshold, separator);
  const toList = (parsed: Parsed<Readonly<Record<string, EvictionThreshold>>>): Parsed<readonly EvictionThreshold[]> =>
    "problem" in parsed ? parsed : { value: Object.values(parsed.value) };
  const toMap = (list: readonly EvictionThreshold[]): Record<string, EvictionThreshold> =>
    Object.fromEntries(list.map((threshold) => [threshold.signal, threshold]));
  return {
    hint: map.hint,
    fromText: (value) => toList(map.fromText(value)),
    fromField: (field) => toList(map.fromField(field)),
    toField: (value) => map.toField(toMap(value)),
    toText: (value) => map.toText(toMap(value)),
    combine: (earlier, later) => Object.values({ ...toMap(earlier), ...toMap(later) }),
    isMap: true,
  };
}

/**
 * As {@link thresholds}; no threshold at all is written as one that is off: an absent or empty map has the defaults when it
 * is read.
 */
export function hardThresholds(): ValueKind<readonly EvictionThreshold[]> {
  const kind = thresholds("<");
  return { ...kind, toField: (value) => (value.length > 0 ? kind.toField(value) : { "memory.available": "0%" }) };
}

export const signalDurations: ValueKind<Readonly<Partial<Record<EvictionSignal, number>>>> = mapKind(
  "signal=duration,…",
  (signal, value) => (isSignal(signal) ? duration().fromText(asText(value)) : wrongSignal),
  formatDuration,
) as ValueKind<Readonly<Partial<Record<EvictionSignal, number>>>>;

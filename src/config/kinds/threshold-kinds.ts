import { formatDuration } from "../../base/api/duration.ts";
import type { EvictionSignal, EvictionThreshold } from "../../base/model/option-values.ts";
import { mapKind } from "./map-kinds.ts";
import { duration } from "./scalar-kinds.ts";
import { formatBytes, quantityToNumber } from "./size-kinds.ts";
import { asText, type Parsed, quote, type ValueKind } from "./value-kind.ts";

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

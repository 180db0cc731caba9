import type { NodeTaint, ShutdownPeriod } from "../../base/model/option-values.ts";
import { isRecord } from "../../base/text/json.ts";
import { asText, type Parsed, quote, splitList, type ValueKind } from "./value-kind.ts";

const TAINT = /^([^=:\s]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)$/;

export const taints: ValueKind<readonly NodeTaint[]> = {
  hint: "key=value:effect,…",
  fromText: (value) => {
    const list: NodeTaint[] = [];
    for (const part of splitList(value)) {
      const match = TAINT.exec(part);
      if (!match) return { problem: `must be key=value:NoSchedule|PreferNoSchedule|NoExecute, got ${quote(part)}` };
      list.push({ key: match[1]!, value: match[2] ?? "", effect: match[3] as NodeTaint["effect"] });
    }
    return { value: list };
  },
  fromField: (field) => {
    if (!Array.isArray(field)) return { problem: "must be a list of taints" };
    const list: NodeTaint[] = [];
    for (const item of field) {
      if (!isRecord(item)) return { problem: "must be a list of taints" };
      const parsed = taints.fromText(`${asText(item.key)}=${asText(item.value)}:${asText(item.effect)}`);
      if ("problem" in parsed) return parsed;
      list.push(...parsed.value);
    }
    return { value: list };
  },
  toField: (value) => value.map((taint) => ({ ...taint })),
  toText: (value) => value.map((taint) => `${taint.key}=${taint.value}:${taint.effect}`).join(","),
  combine: (earlier, later) => [...earlier, ...later],
};

const isWhole = (value: unknown): value is number => typeof value === "number" && Number.isInteger(value);

/** `shutdownGracePeriodByPodPriority`; in one line `priority=seconds,…`. */
export const shutdownPeriods: ValueKind<readonly ShutdownPeriod[]> = {
  hint: "priority=seconds,…",
  fromText: (text) => {
    const pairs = text === "" ? [] : text.split(",").map((item) => item.split("=").map(Number));
    return checkPeriods(pairs.map(([priority, seconds]) => ({ priority, shutdownGracePeriodSeconds: seconds })));
  },
  fromField: (field) => checkPeriods(Array.isArray(field) ? field : [field]),
  toField: (value) => value,
  toText: (value) =>
    value.map(({ priority, shutdownGracePeriodSeconds }) => `${priority}=${shutdownGracePeriodSeconds}`).join(","),
};

function checkPeriods(items: readonly unknown[]): Parsed<readonly ShutdownPeriod[]> {
  const periods: ShutdownPeriod[] = [];
  for (const item of items) {
    const { priority, shutdownGracePeriodSeconds } = isRecord(item) ? item : {};
    if (!isWhole(priority) || !isWhole(shutdownGracePeriodSeconds) || shutdownGracePeriodSeconds < 0) {
      return { problem: `must have a whole priority and shutdownGracePeriodSeconds each, got ${quote(item)}` };
    }
    periods.push({ priority, shutdownGracePeriodSeconds });
  }
  const twice = periods.find(({ priority }, index) => periods.findIndex((it) => it.priority === priority) !== index);
  return twice ? { problem: `has the priority ${twice.priority} twice` } : { value: periods };
}

import { isIP } from "node:net";
import { formatDuration, parseDuration } from "../api/duration.ts";
import { formatQuantity, isNegativeQuantity, parseQuantity, quantityToWhole } from "../api/quantity.ts";
import type {
  EvictionSignal,
  EvictionThreshold,
  NodeTaint,
  SecretHeader,
  ShutdownPeriod,
} from "../model/kubelet-options.ts";
import { maskUrl } from "../text/url.ts";

/** A parsed value, or a problem to be appended to the name of the flag or field. */
export type Parsed<T> = { value: T; warning?: string } | { problem: string };

/** Syntax of one kind of value: on the command line, in the configuration file, in the documentation. */
export interface ValueKind<T> {
  /** Placeholder in help and documentation, e.g. `duration`; "" for booleans, which need no value. */
  hint: string;
  fromText(text: string): Parsed<T>;
  /** Parses a JSON value of the configuration file. */
  fromField(field: unknown): Parsed<T>;
  /** Value shown by `/configz` and `kubelet-ts config`; secrets are masked. */
  toField(value: T): unknown;
  /** Value in the syntax of the flag. */
  toText(value: T): string;
  /** Combines the values of a repeated flag; without it the last one wins. */
  combine?(earlier: T, later: T): T;
  /** Maps of a later configuration file add to earlier ones; other values are replaced. */
  isMap?: boolean;
  choices?: readonly string[];
  completes?: "file" | "directory";
}

const quote = (value: unknown): string => JSON.stringify(value) ?? String(value);

function scalarKind<T extends string | number>(hint: string, fromText: (text: string) => Parsed<T>): ValueKind<T> {
  return {
    hint,
    fromText,
    fromField: (field) =>
      typeof field === "string" ? fromText(field) : { problem: `must be a string, got ${quote(field)}` },
    toField: (value) => value,
    toText: String,
  };
}

export const text: ValueKind<string> = scalarKind("string", (value) => ({ value }));

/** Paths are made absolute by resolve-options.ts, which knows the working directory. */
export const file: ValueKind<string> = { ...text, hint: "file", completes: "file" };
export const directory: ValueKind<string> = { ...text, hint: "directory", completes: "directory" };
export const fileOrDirectory: ValueKind<string> = { ...text, hint: "path", completes: "file" };

/** Absolute path of a cgroup, e.g. `/system.slice`; "" = none. */
export const cgroupPath: ValueKind<string> = scalarKind("string", (value) =>
  value === "" || (value.startsWith("/") && !value.split("/").includes(".."))
    ? { value }
    : { problem: `must be an absolute cgroup path such as /system.slice, got ${quote(value)}` },
);

const TRUE = new Set(["1", "t", "T", "true", "TRUE", "True"]);
const FALSE = new Set(["0", "f", "F", "false", "FALSE", "False"]);

/** Source: Go's `strconv.ParseBool`. */
export const boolean: ValueKind<boolean> = {
  hint: "",
  fromText: (value) => {
    if (TRUE.has(value)) return { value: true };
    if (FALSE.has(value)) return { value: false };
    return { problem: `must be true or false, got ${quote(value)}` };
  },
  fromField: (field) =>
    typeof field === "boolean" ? { value: field } : { problem: `must be true or false, got ${quote(field)}` },
  toField: (value) => value,
  toText: String,
  choices: ["true", "false"],
};

/** A boolean that may be unset, like a Go pointer. */
export const optionalBoolean: ValueKind<boolean | undefined> = {
  ...boolean,
  fromText: (value) => (value === "" ? { value: undefined } : boolean.fromText(value)),
  fromField: (field) => (field === undefined ? { value: undefined } : boolean.fromField(field)),
  toField: (value) => value,
  toText: (value) => (value === undefined ? "" : String(value)),
};

/** @param special meaning of a special value, e.g. "0 = off"; used in the message. */
export function integer(min: number, max: number, special = ""): ValueKind<number> {
  const what = `a whole number from ${min} to ${max}${special ? ` (${special})` : ""}`;
  const check = (value: number, shown: unknown): Parsed<number> =>
    Number.isInteger(value) && value >= min && value <= max
      ? { value }
      : { problem: `must be ${what}, got ${quote(shown)}` };
  return {
    hint: "int",
    fromText: (value) => check(/^[+-]?(\d+|0[xX][\da-fA-F]+)$/.test(value) ? Number(value) : Number.NaN, value),
    fromField: (field) => check(typeof field === "number" ? field : Number.NaN, field),
    toField: (value) => value,
    toText: String,
  };
}

export const port: ValueKind<number> = { ...integer(0, 65535, "0 = off"), hint: "port" };
export const MAX_INT32 = 2_147_483_647;

/** Milliseconds; at least `minMs`. */
export function duration(minMs = 0, maxMs = Number.POSITIVE_INFINITY): ValueKind<number> {
  const limits =
    maxMs === Number.POSITIVE_INFINITY
      ? `at least ${formatDuration(minMs)}`
      : `from ${formatDuration(minMs)} to ${formatDuration(maxMs)}`;
  const kind = scalarKind("duration", (value) => {
    const ms = parseDuration(value);
    if (ms === undefined) return { problem: `must be a duration such as "20s" or "1m30s", got ${quote(value)}` };
    if (ms < minMs || ms > maxMs) return { problem: `must be ${limits}, got ${quote(value)}` };
    return { value: ms };
  });
  return { ...kind, toField: formatDuration, toText: formatDuration };
}

export function oneOf<const T extends string>(...choices: readonly T[]): ValueKind<T> {
  const listed = choices.map((choice) => choice || '""').join(", ");
  const kind = scalarKind<T>(choices.filter(Boolean).join("|"), (value) =>
    choices.includes(value as T) ? { value: value as T } : { problem: `must be one of ${listed}, got ${quote(value)}` },
  );
  return { ...kind, choices: choices.filter(Boolean) };
}

export const ipAddress: ValueKind<string> = scalarKind("IP", (value) =>
  value === "" || isIP(value) ? { value } : { problem: `must be an IP address, got ${quote(value)}` },
);

const splitList = (value: string): string[] =>
  value
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);

/** Comma separated and repeatable; in the file a list (or one string). */
export function listOf(
  hint: string,
  check: (item: string) => string | undefined = () => undefined,
): ValueKind<readonly string[]> {
  const all = (items: readonly string[]): Parsed<readonly string[]> => {
    for (const item of items) {
      const problem = check(item);
      if (problem) return { problem };
    }
    return { value: items };
  };
  return {
    hint,
    fromText: (value) => all(splitList(value)),
    fromField: (field) => {
      if (typeof field === "string") return all(field === "" ? [] : [field]);
      if (Array.isArray(field) && field.every((item) => typeof item === "string")) return all(field);
      return { problem: `must be a list of strings, got ${quote(field)}` };
    },
    toField: (value) => [...value],
    toText: (value) => value.join(","),
    combine: (earlier, later) => [...earlier, ...later],
  };
}

/** Upstream's field is one string; several values are shown as a list. */
const oneOrList = (values: readonly string[]): unknown => (values.length < 2 ? (values[0] ?? "") : [...values]);

/** Paths may contain commas: each flag is one path. */
export const pathList: ValueKind<readonly string[]> = {
  ...listOf("path"),
  toField: oneOrList,
  fromText: (value) => ({ value: value === "" ? [] : [value] }),
  completes: "file",
};

function checkUrl(value: string): string | undefined {
  if (/^unix:\/{0,2}\/[^:]+/i.test(value)) return undefined;
  if (/^https?:\/\//i.test(value) && URL.canParse(value)) return undefined;
  return `must be an http:, https: or unix: URL, got ${quote(maskUrl(value))}`;
}

/** URLs may contain commas: each flag is one URL. */
export const urlList: ValueKind<readonly string[]> = {
  ...listOf("URL", checkUrl),
  fromText: (value) => {
    if (value === "") return { value: [] };
    const problem = checkUrl(value);
    return problem ? { problem } : { value: [value] };
  },
  toField: (value) => oneOrList(value.map(maskUrl)),
  toText: (value) => value.map(maskUrl).join(","),
};

export const ipList: ValueKind<readonly string[]> = listOf("IP", (item) =>
  isIP(item) ? undefined : `must be IP addresses, got ${quote(item)}`,
);

/** Source: kubelet's validation of `allowedUnsafeSysctls`: names, or prefixes that end in `*`. */
export const sysctlPatterns: ValueKind<readonly string[]> = listOf("name,…", (item) =>
  /^[a-z0-9]([-_a-z0-9]*[a-z0-9])?([./][a-z0-9]([-_a-z0-9]*[a-z0-9])?)*([./]?\*|\*)?$/.test(item)
    ? undefined
    : `must be sysctl names or prefixes that end in *, got ${quote(item)}`,
);

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

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const asText = (value: unknown): string =>
  typeof value === "string" ? value : typeof value === "number" ? String(value) : "";

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

/** A quantity rounded up to a whole number; undefined when malformed or negative. */
function quantityToNumber(quantity: string): number | undefined {
  const parsed = parseQuantity(quantity);
  return parsed === undefined || isNegativeQuantity(parsed) ? undefined : quantityToWhole(quantity);
}

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

/** Bytes from a quantity, at least `min`. */
export function byteSize(min: number): ValueKind<number> {
  const fromText = (value: string): Parsed<number> => {
    const bytes = quantityToNumber(value);
    if (bytes === undefined) return { problem: `must be a size such as 10Mi, got ${quote(value)}` };
    return bytes < min ? { problem: `must be at least ${formatBytes(min)}, got ${quote(value)}` } : { value: bytes };
  };
  return {
    hint: "size",
    fromText,
    fromField: (field) => fromText(asText(field)),
    toField: formatBytes,
    toText: formatBytes,
  };
}

export const formatBytes = (bytes: number): string =>
  formatQuantity({ unscaled: BigInt(bytes), scale: 0, format: "BinarySI" });

export const EVICTION_SIGNALS: readonly EvictionSignal[] = [
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

export const signalDurations: ValueKind<Readonly<Partial<Record<EvictionSignal, number>>>> = mapKind(
  "signal=duration,…",
  (signal, value) => (isSignal(signal) ? duration().fromText(asText(value)) : wrongSignal),
  formatDuration,
) as ValueKind<Readonly<Partial<Record<EvictionSignal, number>>>>;

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

function checkHeader(name: string, value: string): string | undefined {
  if (!HEADER_NAME.test(name)) return `is not a header name: ${quote(name)}`;
  // The value is a secret and must not appear in messages.
  if (/[\u0000-\u0008\u000a-\u001f\u007f]/.test(value)) return `the value of ${name} contains a control character`;
  return undefined;
}

/** `name:value`, repeatable; several in one flag when separated by commas, as the kubelet's. Values are secret. */
export const secretHeaders: ValueKind<readonly SecretHeader[]> = {
  hint: "name:value",
  fromText: (flag) => {
    const headers: SecretHeader[] = [];
    // A comma separates headers only when "name:" follows; otherwise it is part of the value (Accept: a, b).
    for (const part of flag.split(/,(?=\s*[!#$%&'*+.^_`|~0-9A-Za-z-]+:)/)) {
      if (part.trim() === "") continue;
      const at = part.indexOf(":");
      if (at < 1) return { problem: "must be name:value" };
      const header = { name: part.slice(0, at).trim(), value: part.slice(at + 1).trim() };
      const problem = checkHeader(header.name, header.value);
      if (problem) return { problem };
      headers.push(header);
    }
    return { value: headers };
  },
  fromField: (field) => {
    if (!isRecord(field)) return { problem: "must be a map of header names to lists of values" };
    const headers: SecretHeader[] = [];
    for (const [name, values] of Object.entries(field)) {
      if (!Array.isArray(values) || !values.every((value) => typeof value === "string")) {
        return { problem: `${name}: must be a list of strings` };
      }
      for (const value of values as string[]) {
        const problem = checkHeader(name, value);
        if (problem) return { problem };
        headers.push({ name, value });
      }
    }
    return { value: headers };
  },
  toField: (headers) => {
    const shown: Record<string, string[]> = {};
    for (const header of headers) {
      shown[header.name] ??= [];
      shown[header.name]!.push(MASK);
    }
    return shown;
  },
  toText: (headers) => headers.map((header) => `${header.name}:${MASK}`).join(","),
  combine: (earlier, later) => [...earlier, ...later],
};

/** Shown instead of secrets. Source: kubelet's masked manifest URL header. */
export const MASK = "<masked>";

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

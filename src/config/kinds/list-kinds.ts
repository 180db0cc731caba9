import { isIP } from "node:net";
import type { NodeTaint, SecretHeader, ShutdownPeriod } from "../../base/model/option-values.ts";
import { parseIpRange } from "../../base/text/ip-range.ts";
import { isRecord } from "../../base/text/json.ts";
import { maskUrl } from "../../base/text/url.ts";
import { asText, type Parsed, quote, splitList, type ValueKind } from "./scalar-kinds.ts";

/** Comma separated and repeatable; in the file a list (or one string). */
export function listOf(
  hint: string,
  check: (item: string) => string | undefined = () => undefined,
): ValueKind<readonly string[]> {
  const all = (items: readonly string[]): Parsed<readonly string[]> => {
    const problem = items.map(check).find(Boolean);
    return problem ? { problem } : { value: items };
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

/** Separated by commas and repeatable. */
export const directoryList: ValueKind<readonly string[]> = { ...listOf("directory,…"), completes: "directory" };

/** URLs may contain commas: each flag is one URL. */
export const urlList: ValueKind<readonly string[]> = {
  ...listOf("URL", checkUrl),
  fromText: (value) => {
    const problem = value === "" ? undefined : checkUrl(value);
    return problem ? { problem } : { value: [value].filter(Boolean) };
  },
  toField: (value) => oneOrList(value.map(maskUrl)),
  toText: (value) => value.map(maskUrl).join(","),
};

export const metricNames: ValueKind<readonly string[]> = listOf("name,…", (item) =>
  /^[a-z_][a-z0-9_]*$/i.test(item) ? undefined : `must be names of metrics, got ${quote(item)}`,
);

export const ipList: ValueKind<readonly string[]> = listOf("IP", (item) =>
  isIP(item) ? undefined : `must be IP addresses, got ${quote(item)}`,
);

export const addressRanges: ValueKind<readonly string[]> = listOf("range,…", (item) =>
  parseIpRange(item) ? undefined : `must be ranges of addresses such as 192.168.1.0/24, got ${quote(item)}`,
);

/** Source: kubelet's validation of `allowedUnsafeSysctls`: names, or prefixes that end in `*`. */
export const sysctlPatterns: ValueKind<readonly string[]> = listOf("name,…", (item) =>
  /^[a-z0-9]([-_a-z0-9]*[a-z0-9])?([./][a-z0-9]([-_a-z0-9]*[a-z0-9])?)*([./]?\*|\*)?$/.test(item)
    ? undefined
    : `must be sysctl names or prefixes that end in *, got ${quote(item)}`,
);

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
  toField: (headers) =>
    Object.fromEntries(headers.map(({ name }) => [name, headers.filter((it) => it.name === name).map(() => MASK)])),
  toText: (headers) => headers.map((header) => `${header.name}:${MASK}`).join(","),
  combine: (earlier, later) => [...earlier, ...later],
};

/** Shown instead of secrets. Source: kubelet's masked manifest URL header. */
const MASK = "<masked>";

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

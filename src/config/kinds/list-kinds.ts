import { isIP } from "node:net";
import { maskUrl } from "../../base/text/url.ts";
import { type Parsed, quote, splitList, type ValueKind } from "./value-kind.ts";

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

/** Separated by commas and repeatable. */
export const directoryList: ValueKind<readonly string[]> = { ...listOf("directory,…"), completes: "directory" };

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

export const metricNames: ValueKind<readonly string[]> = listOf("name,…", (item) =>
  /^[a-z_][a-z0-9_]*$/i.test(item) ? undefined : `must be names of metrics, got ${quote(item)}`,
);

export const ipList: ValueKind<readonly string[]> = listOf("IP", (item) =>
  isIP(item) ? undefined : `must be IP addresses, got ${quote(item)}`,
);

/** Source: kubelet's validation of `allowedUnsafeSysctls`: names, or prefixes that end in `*`. */
export const sysctlPatterns: ValueKind<readonly string[]> = listOf("name,…", (item) =>
  /^[a-z0-9]([-_a-z0-9]*[a-z0-9])?([./][a-z0-9]([-_a-z0-9]*[a-z0-9])?)*([./]?\*|\*)?$/.test(item)
    ? undefined
    : `must be sysctl names or prefixes that end in *, got ${quote(item)}`,
);

import { isIP } from "node:net";
import { parseImageUpdatePolicy } from "../../base/api/annotations.ts";
import { formatBytes, isNegativeQuantity, parseQuantity, quantityToWhole } from "../../base/api/quantity.ts";
import { parseCronSchedule } from "../../base/text/cron-schedule.ts";
import { formatDuration, parseDuration } from "../../base/text/duration.ts";
import { InvalidImageReferenceError, parseImageReference } from "../../base/text/image-reference.ts";
import { parseIpRange } from "../../base/text/ip-range.ts";
import { parseTimeWindow } from "../../base/text/time-window.ts";

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
  toText: (value) => String(value ?? ""),
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

/** `never`, `digest`, `semver:RANGE`. */
export const imageUpdatePolicy = checkedText("never|digest|semver:range", (value) =>
  parseImageUpdatePolicy(value) ? undefined : "must be never, digest, or semver: with a range as in semver:~1.4",
);

/** Name of an image; checked at the start, since each pull of an impossible one would fail. */
export const imageName = checkedText("image", (value) => {
  try {
    parseImageReference(value);
  } catch (error) {
    if (!(error instanceof InvalidImageReferenceError)) throw error;
    return `must be the name of an image, as registry.example.com/team/app:1.0 (${error.message})`;
  }
});

/** As {@link imageName}, or "" for none. */
export const optionalImageName: ValueKind<string> = {
  ...imageName,
  fromText: (value) => (value === "" ? { value } : imageName.fromText(value)),
  fromField: (field) => (field === "" ? { value: "" } : imageName.fromField(field)),
};

/** Smaller ranges would soon be full. */
const MIN_ADDRESSES = 16;

/** A range of addresses for Services, or one of each family; or `none`. Source: kube-apiserver's flag of this name. */
export const addressRange = checkedText("range[,range]|none", (value) => {
  if (value === "" || value === "none") return undefined;
  const ranges = value.split(",").map(parseIpRange);
  const isEach = ranges.every((range) => range && range.size >= MIN_ADDRESSES);
  const families = new Set(ranges.map((range) => range?.family));
  return isEach && families.size === ranges.length
    ? undefined
    : `must be none, a range of at least ${MIN_ADDRESSES} addresses such as 10.96.0.0/16, or one of each family such as 10.96.0.0/16,fd00:96::/112`;
});

/** Two ports, separated by a comma. */
export const portPair = checkedText("port,port", (value) => {
  const [first, second, ...others] = value.split(",").map((text) => (/^\d{1,5}$/.test(text) ? Number(text) : 0));
  const isPort = (port = 0) => port > 0 && port < 65_536;
  return isPort(first) && isPort(second) && first !== second && others.length === 0
    ? undefined
    : "must be two different ports, as 80,443";
});

/** The first and the last port of a range, or none. */
export const optionalPortRange = checkedText("port-port", (value) => {
  const [first = 0, last = 0, ...others] = value.split("-").map((text) => (/^\d{1,5}$/.test(text) ? Number(text) : 0));
  const isRange = first > 0 && first <= last && last < 65_536 && others.length === 0;
  return value === "" || isRange ? undefined : "must be a range of ports, as 30000-32767";
});

/** Five fields of cron or a macro. */
export const cronSchedule = checkedText("cron", (value) => problemOf(parseCronSchedule(value)));

/** `always`, or five fields of cron and a length. */
export const timeWindow = checkedText("window", (value) => problemOf(parseTimeWindow(value)));

const problemOf = (parsed: object) => (parsed as { problem?: string }).problem;

function checkedText(hint: string, check: (text: string) => string | undefined): ValueKind<string> {
  return scalarKind(hint, (value) => {
    const problem = check(value);
    return problem === undefined ? { value } : { problem: `${problem}, got ${quote(value)}` };
  });
}

/** A quantity rounded up to a whole number; undefined when malformed, negative, or too large for a number. */
export function quantityToNumber(quantity: string): number | undefined {
  const parsed = parseQuantity(quantity);
  const whole = parsed === undefined || isNegativeQuantity(parsed) ? undefined : quantityToWhole(quantity);
  return Number.isFinite(whole) ? whole : undefined;
}

/** Bytes from a quantity, at least `min`. */
export function byteSize(min: number): ValueKind<number> {
  const fromText = (value: string): Parsed<number> => {
    const bytes = quantityToNumber(value);
    if (bytes === undefined) return { problem: `must be a size such as 10Mi, got ${quote(value)}` };
    return bytes < min ? { problem: `must be at least ${formatBytes(min)}, got ${quote(value)}` } : { value: bytes };
  };
  const fromField = (field: unknown) => fromText(asText(field));
  return { hint: "size", fromText, fromField, toField: formatBytes, toText: formatBytes };
}

/** A parsed value, or a problem to be appended to the name of the flag or field. */
export type Parsed<T> = { value: T } | { problem: string };

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

/** As JSON, for messages. */
export const quote = (value: unknown): string => JSON.stringify(value) ?? String(value);

/** A kind whose field is the same string as its flag. */
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

/** A string, or a number as one; "" for anything else. */
export const asText = (value: unknown): string =>
  typeof value === "string" ? value : typeof value === "number" ? String(value) : "";

/** The non-empty parts between commas. */
export const splitList = (value: string): string[] =>
  value
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);

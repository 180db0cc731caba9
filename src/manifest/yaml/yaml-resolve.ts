import { TextError } from "./source-node.ts";
import type { YamlScalar } from "./yaml-parser.ts";

/** A resolved scalar. Source: go-yaml v2's `resolve`, which differs from YAML 1.1 and from 1.2. */
type Resolved =
  | { kind: "string"; value: string }
  | { kind: "bool"; value: boolean }
  | { kind: "null" }
  | { kind: "int"; value: bigint | number }
  | { kind: "float"; value: number };

const CORE_TAG = "tag:yaml.org,2002:";

const WORDS = new Map<string, Resolved>();
for (const word of ["y", "yes", "on", "true", "n", "no", "off", "false"]) {
  const value = ["y", "yes", "on", "true"].includes(word);
  for (const form of [word, word[0]!.toUpperCase() + word.slice(1), word.toUpperCase()]) {
    WORDS.set(form, { kind: "bool", value });
  }
}
for (const word of ["", "~", "null", "Null", "NULL"]) WORDS.set(word, { kind: "null" });
for (const word of [".nan", ".NaN", ".NAN"]) WORDS.set(word, { kind: "float", value: Number.NaN });
for (const [sign, value] of [
  ["", 1],
  ["+", 1],
  ["-", -1],
] as const) {
  for (const word of [".inf", ".Inf", ".INF"]) WORDS.set(sign + word, { kind: "float", value: value * Infinity });
}

const SHORT_INT = /^(?:0|-?[1-9][0-9]{0,14})$/;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
const DOT_FLOAT = /^\.[0-9]+(?:[eE][-+]?[0-9]+)?$/;
/** Pattern, prefix for BigInt, and the digits of 64 bits: longer numbers are not integers. */
const INTEGERS: readonly [RegExp, string, number][] = [
  [/^0[xX]([0-9a-fA-F]+)$/, "0x", 16],
  [/^0[bB]([01]+)$/, "0b", 64],
  [/^0[oO]?([0-7]+)$/, "0o", 22],
  [/^([0-9])$/, "", 1],
  [/^([1-9][0-9]*)$/, "", 20],
];
const MAX_UINT64 = 2n ** 64n - 1n;
const MIN_INT64 = -(2n ** 63n);
/** Dates stay strings: go-yaml keeps them for backward compatibility. */
const DATE = /^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}|$)/;

/** Resolves a scalar with its tag. @throws TextError when tag and value do not fit. */
export function resolveScalar(scalar: YamlScalar): Resolved {
  const { tag, value } = scalar;
  if (tag === "") return scalar.implicit ? resolvePlain(value) : { kind: "string", value };
  if (!tag.startsWith(CORE_TAG)) return { kind: "string", value };
  const wanted = tag.slice(CORE_TAG.length);
  if (wanted === "binary") return { kind: "string", value: decodeBase64(scalar) };
  if (!["bool", "int", "float", "null", "timestamp"].includes(wanted)) return { kind: "string", value };
  const resolved: Resolved = resolvePlain(value);
  if (wanted === "float" && resolved.kind === "int") return { kind: "float", value: Number(resolved.value) };
  if (wanted === "timestamp" ? DATE.test(value) : resolved.kind === wanted) return resolved;
  throw new TextError(`the value is tagged !!${wanted}, which it is not`, scalar.start);
}

/** Resolves a scalar without quotes and tag. */
function resolvePlain(text: string): Resolved {
  const word = WORDS.get(text);
  if (word) return word;
  const first = text.charCodeAt(0);
  const digit = first >= 0x30 && first <= 0x39;
  if (first === 0x2e) {
    const value = DOT_FLOAT.test(text) ? Number(text) : Number.NaN;
    return Number.isFinite(value) ? { kind: "float", value } : { kind: "string", value: text };
  }
  if (!digit && first !== 0x2b && first !== 0x2d) return { kind: "string", value: text };
  if (SHORT_INT.test(text)) return { kind: "int", value: Number(text) };
  const plain = text.replaceAll("_", "");
  return resolveInteger(plain) ?? resolveFloat(plain) ?? { kind: "string", value: text };
}

function resolveInteger(plain: string): Resolved | undefined {
  const negative = plain.startsWith("-");
  const digits = negative || plain.startsWith("+") ? plain.slice(1) : plain;
  for (const [pattern, prefix, maxDigits] of INTEGERS) {
    const match = pattern.exec(digits);
    if (!match) continue;
    const significant = withoutLeadingZeros(match[1]!);
    if (significant.length > maxDigits) continue;
    const magnitude = BigInt(prefix + significant);
    const value = negative ? -magnitude : magnitude;
    // go-yaml accepts an explicit plus sign for signed integers only.
    if (value >= MIN_INT64 && value <= (plain.startsWith("+") ? MAX_UINT64 / 2n : MAX_UINT64)) {
      return { kind: "int", value };
    }
  }
  return undefined;
}

/** The last digit is kept, also when it is 0. */
function withoutLeadingZeros(digits: string): string {
  let start = 0;
  while (start < digits.length - 1 && digits.charCodeAt(start) === 0x30) start++;
  return digits.slice(start);
}

function resolveFloat(plain: string): Resolved | undefined {
  if (!FLOAT.test(plain)) return undefined;
  const value = Number(plain);
  return Number.isFinite(value) ? { kind: "float", value } : undefined;
}

function decodeBase64(scalar: YamlScalar): string {
  const text = scalar.value.replace(/[\r\n]/g, "");
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)) {
    throw new TextError("the value is tagged !!binary but is not base64", scalar.start);
  }
  return Buffer.from(text, "base64").toString("utf8");
}

/** A number as Go's encoding/json prints it. */
export function toJsonNumber(value: bigint | number): string {
  return Object.is(value, -0) ? "-0" : String(value);
}

/** A float as a map key: Go prints it with 32 bits of precision, `1.10` as `1.1`. */
export function floatKey(value: number): string {
  const single = Math.fround(value);
  if (!Number.isFinite(single)) return single > 0 ? "+Inf" : "-Inf";
  let precision = 1;
  while (precision < 9 && Math.fround(Number(single.toPrecision(precision))) !== single) precision++;
  const [mantissa, exponentText] = single.toExponential(precision - 1).split("e") as [string, string];
  const exponent = Number(exponentText);
  if (exponent >= -4 && exponent < 6) return String(Number(single.toPrecision(precision)));
  const digits = String(Math.abs(exponent)).padStart(2, "0");
  return `${mantissa}e${exponent < 0 ? "-" : "+"}${digits}`;
}

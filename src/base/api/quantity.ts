/** `resource.Quantity`: a string on the wire, a decimal number of any size here. Source: apimachinery. */
export interface Quantity {
  /** The value is `unscaled × 10^scale`. */
  readonly unscaled: bigint;
  readonly scale: number;
  /** Family of suffixes used in output. */
  readonly format: "DecimalSI" | "BinarySI" | "DecimalExponent";
  /** The source text where upstream prints it unchanged (`5.`, `+1`, `2000Mi`). */
  readonly text?: string | undefined;
}

const DECIMAL_SUFFIXES: Readonly<Record<string, number>> = {
  n: -9, u: -6, m: -3, "": 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18,
}; // biome-ignore format: a table
const BINARY_SUFFIXES: Readonly<Record<string, number>> = { Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 };
const DECIMAL_SUFFIX_OF = new Map(Object.entries(DECIMAL_SUFFIXES).map(([suffix, exponent]) => [exponent, suffix]));
const BINARY_SUFFIX_OF = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

const MAX_INT64 = 2n ** 63n - 1n;
/** The smallest unit upstream keeps: nano. */
const SMALLEST_SCALE = -9;
/** Number of decimal digits that always fit an int64. */
const INT64_DIGITS = 18;
/** Limit of exponents, which bounds memory; upstream has none. */
const MAX_EXPONENT = 10_000;

/** Limit of digits after leading zeros, because conversion to a big integer takes quadratic time; upstream has none. */
const MAX_DIGITS = 1_000;

/** Pattern of upstream's scanner. No two neighbors match the same character, so that matching takes linear time. */
const QUANTITY = /^([+-]?)(\d*)(?:\.(\d*))?((?:[eEinumkKMGTP]+[+-]?\d*)?)$/;

export const ZERO_QUANTITY: Quantity = { unscaled: 0n, scale: 0, format: "DecimalSI" };

/** Upstream's `ParseQuantity`; undefined where that fails. */
export function parseQuantity(text: string): Quantity | undefined {
  if (text === "") return undefined;
  const match = QUANTITY.exec(text);
  if (!match) return undefined;
  const negative = match[1] === "-";
  const whole = withoutLeadingZeros(match[2]!) || "0";
  const fraction = match[3] ?? "";
  if (whole.length + fraction.length > MAX_DIGITS) return undefined;
  const suffix = readSuffix(match[4]!);
  if (!suffix) return undefined;
  return readShort(text, negative, whole, fraction, suffix) ?? readLong(negative, whole, fraction, suffix);
}

function withoutLeadingZeros(digits: string): string {
  let start = 0;
  while (digits.charCodeAt(start) === 0x30) start++;
  return digits.slice(start);
}

interface Suffix {
  base: 2 | 10;
  exponent: number;
  format: Quantity["format"];
}

function readSuffix(suffix: string): Suffix | undefined {
  const decimal = DECIMAL_SUFFIXES[suffix];
  if (decimal !== undefined) return { base: 10, exponent: decimal, format: "DecimalSI" };
  const binary = BINARY_SUFFIXES[suffix];
  if (binary !== undefined) return { base: 2, exponent: binary, format: "BinarySI" };
  if (!/^[eE][+-]?\d+$/.test(suffix)) return undefined;
  const exponent = Number(suffix.slice(1));
  return Math.abs(exponent) > MAX_EXPONENT ? undefined : { base: 10, exponent, format: "DecimalExponent" };
}

/** Upstream's path for numbers that fit an int64: only their text can be kept unchanged. */
function readShort(text: string, negative: boolean, whole: string, fraction: string, suffix: Suffix) {
  const { base, exponent, format } = suffix;
  if (base === 10 && whole.length + fraction.length > INT64_DIGITS) return undefined;
  if (base === 2 && (fraction !== "" || 15 - whole.length - Math.trunc((exponent * 3) / 10) - 1 < 0)) return undefined;
  const scale = (base === 10 ? exponent : 0) - fraction.length;
  if (scale < SMALLEST_SCALE) return undefined;
  const digits = whole + fraction;
  const value = BigInt(digits);
  const unscaled = base === 2 ? value << BigInt(exponent) : value;
  const canonical =
    base === 2 ? (value & 7n) !== 0n : scale % 3 === 0 && !digits.endsWith("000") && !digits.startsWith("0");
  return { unscaled: negative ? -unscaled : unscaled, scale, format, text: canonical ? text : undefined };
}

function readLong(negative: boolean, whole: string, fraction: string, suffix: Suffix): Quantity {
  let unscaled = BigInt(whole + fraction);
  let scale = -fraction.length;
  let format = suffix.format;
  if (suffix.base === 10) scale += suffix.exponent;
  else unscaled <<= BigInt(suffix.exponent);
  if (scale < SMALLEST_SCALE) {
    unscaled = divideUp(unscaled, 10n ** BigInt(SMALLEST_SCALE - scale));
    scale = SMALLEST_SCALE;
  }
  if (format === "BinarySI") {
    const one = 10n ** BigInt(-scale);
    if (unscaled > MAX_INT64 * one) [unscaled, scale] = [MAX_INT64, 0];
    else if (unscaled < one && unscaled > 0n) format = "DecimalSI";
  }
  return { unscaled: negative ? -unscaled : unscaled, scale, format };
}

/** Upstream's canonical string, e.g. `1536Mi` for `1.5Gi`. */
export function formatQuantity(q: Quantity): string {
  if (q.text !== undefined) return q.text;
  if (q.unscaled === 0n) return "0";
  if (q.format === "BinarySI" && (compareToWhole(q, -1024n) <= 0 || compareToWhole(q, 1024n) >= 0)) {
    const whole = wholeOf(q);
    if (whole !== undefined) return formatBinary(whole);
  }
  return formatDecimal(q);
}

/** Bytes, rounded up, with the largest binary unit that divides them: `64Mi`. */
export const formatBytes = (bytes: number): string =>
  formatQuantity({ unscaled: BigInt(Math.ceil(bytes)), scale: 0, format: "BinarySI" });

/** Thousandths, e.g. of CPUs: `250m`, `2`. */
export const formatMillis = (millis: number): string =>
  formatQuantity({ unscaled: BigInt(millis), scale: -3, format: "DecimalSI" });

function formatBinary(whole: bigint): string {
  let step = 0;
  while (whole % 1024n === 0n && step < BINARY_SUFFIX_OF.length - 1) {
    whole /= 1024n;
    step++;
  }
  return `${whole}${BINARY_SUFFIX_OF[step]}`;
}

function formatDecimal(q: Quantity): string {
  let { unscaled, scale } = q;
  while (unscaled % 10n === 0n) {
    unscaled /= 10n;
    scale++;
  }
  const over = ((scale % 3) + 3) % 3;
  unscaled *= 10n ** BigInt(over);
  scale -= over;
  if (q.format === "DecimalExponent") return scale === 0 ? `${unscaled}` : `${unscaled}e${scale}`;
  return `${unscaled}${DECIMAL_SUFFIX_OF.get(scale) ?? ""}`;
}

/** Rounds away from zero to a multiple of `10^scale`, as upstream does with resource lists (`-3`: milli). */
export function roundUpQuantity(q: Quantity, scale: number): Quantity {
  if (q.scale >= scale) return q;
  const unscaled = divideUp(q.unscaled, 10n ** BigInt(scale - q.scale));
  return { unscaled, scale, format: q.format };
}

/** Negative, 0 or positive. */
export function compareQuantities(a: Quantity, b: Quantity): number {
  const scale = Math.min(a.scale, b.scale);
  const difference = a.unscaled * 10n ** BigInt(a.scale - scale) - b.unscaled * 10n ** BigInt(b.scale - scale);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

/** The sum, in the format of the first unless that is zero. */
export function addQuantities(a: Quantity, b: Quantity): Quantity {
  const scale = Math.min(a.scale, b.scale);
  return {
    unscaled: a.unscaled * 10n ** BigInt(a.scale - scale) + b.unscaled * 10n ** BigInt(b.scale - scale),
    scale,
    format: a.unscaled === 0n ? b.format : a.format,
  };
}

export const isNegativeQuantity = (q: Quantity): boolean => q.unscaled < 0n;

/** Whether the value has no fraction, counted in units of `10^scale` (0: whole numbers, -3: whole millis). */
export function isWholeQuantity(q: Quantity, scale = 0): boolean {
  return q.scale >= scale || q.unscaled % 10n ** BigInt(scale - q.scale) === 0n;
}

/** In thousandths, rounded up: `100m` and `0.1` are 100. Beyond 2^53 the nearest double. @throws TypeError */
export const quantityToMilli = (text: string): number => Number(inUnitsOf(text, -3));

/** A whole number, rounded up: `1Ki` is 1024, `1500m` is 2. Beyond 2^53 the nearest double. @throws TypeError */
export const quantityToWhole = (text: string): number => Number(inUnitsOf(text, 0));

function inUnitsOf(text: string, scale: number): bigint {
  const q = parseQuantity(text);
  if (!q) throw new TypeError(`"${text}" is not a quantity`);
  if (q.scale < scale) return divideUp(q.unscaled, 10n ** BigInt(scale - q.scale));
  return q.unscaled * 10n ** BigInt(q.scale - scale);
}

function wholeOf(q: Quantity): bigint | undefined {
  if (q.scale >= 0) return q.unscaled * 10n ** BigInt(q.scale);
  const unit = 10n ** BigInt(-q.scale);
  return q.unscaled % unit === 0n ? q.unscaled / unit : undefined;
}

const compareToWhole = (q: Quantity, whole: bigint) =>
  compareQuantities(q, { unscaled: whole, scale: 0, format: "DecimalSI" });

/** Division that rounds away from zero. */
function divideUp(value: bigint, by: bigint): bigint {
  const quotient = value / by;
  if (quotient * by === value) return quotient;
  return value < 0n ? quotient - 1n : quotient + 1n;
}

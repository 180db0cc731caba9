const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

/** Limit of Go's `time.Duration`, an int64 of nanoseconds. */
const MAX_MS = 9_223_372_036_854;

/** Limit of the text; upstream has none. */
const MAX_CHARACTERS = 1_000;

/**
 * A Go duration: `20s`, `1m0s`, `1.5h`, `-5s`, `0`, in milliseconds; undefined for another text. Source:
 * `time.ParseDuration`.
 */
export function parseDuration(text: string): number | undefined {
  if (text.length > MAX_CHARACTERS) return undefined;
  const match = /^([+-]?)((?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|0)$/.exec(text);
  if (!match) return undefined;
  let ms = 0;
  for (const [, amount, unit] of match[2]!.matchAll(/(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g)) {
    ms += Number(amount) * UNIT_MS[unit!]!;
  }
  if (ms > MAX_MS) return undefined;
  return match[1] === "-" && ms !== 0 ? -ms : ms;
}

/** Milliseconds as Go prints a duration: `20s`, `1m0s`, `1h0m0s`, `1.5s`, `500ms`, `0s`. */
export function formatDuration(ms: number): string {
  if (ms === 0) return "0s";
  const sign = ms < 0 ? "-" : "";
  const size = Math.abs(ms);
  if (size < 1e-3) return `${sign}${round(size * 1e6)}ns`;
  if (size < 1) return `${sign}${round(size * 1e3)}µs`;
  if (size < 1000) return `${sign}${round(size)}ms`;
  const hours = Math.floor(size / 3_600_000);
  const minutes = Math.floor((size % 3_600_000) / 60_000);
  const seconds = `${round((size % 60_000) / 1000)}s`;
  if (hours > 0) return `${sign}${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${sign}${minutes}m${seconds}` : sign + seconds;
}

/** Nine digits at most, which hides rounding errors of binary fractions; never with an exponent. */
const round = (value: number): string => value.toFixed(9).replace(/\.?0+$/, "");

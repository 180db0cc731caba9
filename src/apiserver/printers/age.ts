/** A column of `kubectl get`, for an object of one type. */
export interface PrintedColumn<T> {
  name: string;
  cell: (object: T, now: Date) => string;
  /** Shown with `-o wide` alone. */
  isWide?: true;
}

const SECOND = 1;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

/** Ages up to this limit (seconds) are shown in these units; the smaller unit is left out when it is 0. */
const STEPS: readonly { below: number; unit: [number, string]; rest?: [number, string] }[] = [
  { below: 2 * MINUTE, unit: [SECOND, "s"] },
  { below: 10 * MINUTE, unit: [MINUTE, "m"], rest: [SECOND, "s"] },
  { below: 3 * HOUR, unit: [MINUTE, "m"] },
  { below: 8 * HOUR, unit: [HOUR, "h"], rest: [MINUTE, "m"] },
  { below: 2 * DAY, unit: [HOUR, "h"] },
  { below: 8 * DAY, unit: [DAY, "d"], rest: [HOUR, "h"] },
  { below: 2 * YEAR, unit: [DAY, "d"] },
  { below: 8 * YEAR, unit: [YEAR, "y"], rest: [DAY, "d"] },
  { below: Number.POSITIVE_INFINITY, unit: [YEAR, "y"] },
];

/**
 * An age as kubectl prints it: `43s`, `5m32s`, `12m`, `3h20m`, `2d4h`. Clock differences below two seconds count
 * as 0. Source: apimachinery's `HumanDuration`.
 */
export function formatAge(ms: number): string {
  const seconds = Math.trunc(ms / 1000);
  if (seconds < -1) return "<invalid>";
  const age = Math.max(0, seconds);
  const { unit, rest } = STEPS.find(({ below }) => age < below)!;
  const whole = `${Math.floor(age / unit[0])}${unit[1]}`;
  if (!rest) return whole;
  const left = Math.floor((age % unit[0]) / rest[0]);
  return left === 0 ? whole : `${whole}${left}${rest[1]}`;
}

/** How long ago a time of the API was; `<unknown>` for none. */
export function formatSince(time: string | null | undefined, now: Date): string {
  const date = parseTime(time);
  return date ? formatAge(now.getTime() - date.getTime()) : "<unknown>";
}

/** A time of the API; undefined for none, for Go's zero time and for what is not a time. */
export function parseTime(time: string | null | undefined): Date | undefined {
  const ms = Date.parse(time ?? "");
  return Number.isNaN(ms) || ms <= 0 ? undefined : new Date(ms);
}

const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/**
 * A time as kubectl's descriptions have it: `Sat, 21 Nov 2026 08:26:23 +0000`.
 * @param offsetMinutes east of Greenwich
 */
export function formatLongTime(time: string | null | undefined, offsetMinutes: (at: Date) => number): string {
  const date = parseTime(time);
  if (!date) return "<unknown>";
  const offset = offsetMinutes(date);
  const local = new Date(date.getTime() + offset * 60_000);
  const two = (value: number) => String(value).padStart(2, "0");
  const clock = [local.getUTCHours(), local.getUTCMinutes(), local.getUTCSeconds()].map(two).join(":");
  const day = `${WEEKDAYS[local.getUTCDay()]}, ${two(local.getUTCDate())} ${MONTHS[local.getUTCMonth()]} ${local.getUTCFullYear()}`;
  const size = Math.abs(offset);
  return `${day} ${clock} ${offset < 0 ? "-" : "+"}${two(Math.floor(size / 60))}${two(size % 60)}`;
}

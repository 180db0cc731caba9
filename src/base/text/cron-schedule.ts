import { Cron } from "croner";
import { parseDuration } from "./duration.ts";

/** When a CronJob runs. @param since from which `@every` counts: the last run, or the creation */
export interface CronSchedule {
  /** The first run after a time; undefined when there is none. */
  next(after: Date, since: Date): Date | undefined;
  /** The last run at or before a time; undefined when there is none. */
  latest(until: Date, since: Date): Date | undefined;
}

interface FieldRule {
  name: string;
  min: number;
  max: number;
  /** Names of `min`, `min + 1` and so on. */
  words?: readonly string[];
}

const FIELDS: readonly FieldRule[] = [
  { name: "minute", min: 0, max: 59 },
  { name: "hour", min: 0, max: 23 },
  { name: "day of month", min: 1, max: 31 },
  {
    name: "month",
    min: 1,
    max: 12,
    words: ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
  },
  { name: "day of week", min: 0, max: 6, words: ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];

const MACROS: Readonly<Record<string, string>> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};

/**
 * Five fields or a macro, as robfig/cron `ParseStandard`. Over a change of summer time a run at a fixed hour is neither
 * lost nor doubled; schedules with `*` hours follow the time that passes.
 * @param timeZone IANA name; absent: that of this process
 * @returns what is wrong as `problem`
 */
export function parseCronSchedule(text: string, timeZone?: string): CronSchedule | { problem: string } {
  const trimmed = text.trim();
  if (/^(CRON_)?TZ=/.test(trimmed)) return { problem: "must not name a time zone: set timeZone" };
  const every = /^@every\s+(\S+)$/.exec(trimmed)?.[1];
  if (every !== undefined) return toInterval(every);
  const pattern = trimmed.startsWith("@") ? MACROS[trimmed] : trimmed;
  if (pattern === undefined)
    return { problem: `must be five fields, @every 1h, or one of ${Object.keys(MACROS).join(", ")}` };
  const parts = pattern.split(/\s+/);
  if (parts.length !== 5) {
    const hint = parts.length === 6 ? ": leave out the seconds" : parts[0] === "every" ? `: write @${pattern}` : "";
    return { problem: `must have five fields (minute hour day month weekday), and has ${parts.length}${hint}` };
  }
  const fields: string[] = [];
  for (const [index, part] of parts.entries()) {
    const field = expandField(part, FIELDS[index]!);
    if (typeof field !== "string") return field;
    fields.push(field);
  }
  return toSchedule(fields.join(" "), timeZone);
}

/** Whether a schedule that is read has no time at all, as the 31st of February. */
export function neverComes(text: string, timeZone?: string): boolean {
  const schedule = parseCronSchedule(text, timeZone);
  const start = new Date(0);
  return !("problem" in schedule) && schedule.next(start, start) === undefined;
}

/** Whole seconds, at least one. Source: robfig/cron `Every`. */
function toInterval(text: string): CronSchedule | { problem: string } {
  // Without a sign, and not a bare 0.
  const ms = /^\d.*[smh]$/.test(text) ? parseDuration(text) : undefined;
  if (ms === undefined) return { problem: "@every must have a duration such as 1h30m" };
  const intervalMs = Math.max(1, Math.floor(ms / 1000)) * 1000;
  const runsBefore = (time: Date, since: Date) => Math.floor((time.getTime() - since.getTime()) / intervalMs);
  const runAt = (since: Date, count: number) => new Date(since.getTime() + count * intervalMs);
  return {
    next: (after, since) => runAt(since, Math.max(0, runsBefore(after, since)) + 1),
    latest(until, since) {
      const count = runsBefore(until, since);
      return count > 0 ? runAt(since, count) : undefined;
    },
  };
}

function toSchedule(pattern: string, timeZone: string | undefined): CronSchedule | { problem: string } {
  try {
    const zone = timeZone === undefined ? {} : { timezone: timeZone };
    const cron = new Cron(pattern, { ...zone, paused: true, mode: "5-part", fixedTimeRule: "no-wildcard" });
    return {
      next: (after) => cron.nextRun(after) ?? undefined,
      // A run within the second of the reference counts as one before it.
      latest: (until) => cron.previousRuns(1, new Date(until.getTime() + 1))[0],
    };
  } catch (error) {
    return { problem: (error as Error).message };
  }
}

/** A field as `*` or a list of numbers, so that no extension of the library is read. */
function expandField(text: string, rule: FieldRule): string | { problem: string } {
  const values = new Set<number>();
  for (const part of text.split(",")) {
    const problem = {
      problem: `${rule.name} ${JSON.stringify(part)}: must be ${rule.min}-${rule.max}, *, a range or a step`,
    };
    const match = /^([^/]+)(?:\/(\d+))?$/.exec(part);
    if (!match) return problem;
    const [, range = "", stepText] = match;
    const step = Number(stepText ?? 1);
    const isStar = range === "*" || range === "?";
    if (isStar && step === 1) return "*";
    const bounds = isStar ? [rule.min, rule.max] : range.split("-").map((word) => toNumber(word, rule));
    const [from = Number.NaN, to = stepText === undefined ? from : rule.max] = bounds;
    const isValid = bounds.length <= 2 && from >= rule.min && to <= rule.max && from <= to && step >= 1;
    if (!isValid) return problem;
    for (let value = from; value <= to; value += step) values.add(value);
  }
  return [...values].sort((a, b) => a - b).join(",");
}

function toNumber(word: string, { min, words = [] }: FieldRule): number {
  const index = words.indexOf(word.toLowerCase());
  if (index >= 0) return min + index;
  return /^\d+$/.test(word) ? Number(word) : Number.NaN;
}

/** Whether the platform knows a time zone by this name. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return name !== "" && !/^local$/i.test(name);
  } catch {
    return false;
  }
}

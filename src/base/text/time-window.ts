import { parseCronSchedule } from "./cron-schedule.ts";

/** A recurring span of time, e.g. for maintenance. */
export interface TimeWindow {
  isOpen(at: Date): boolean;
  /** When it opens next; undefined when it never does. */
  nextOpening(after: Date): Date | undefined;
}

const ALWAYS: TimeWindow = { isOpen: () => true, nextOpening: () => undefined };

const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000 } as const;

/** `always`, or a start and a length: `0 2 * * sun +3h`, `30 1 * * * +90m`. @returns what is wrong as `problem` */
export function parseTimeWindow(text: string): TimeWindow | { problem: string } {
  const trimmed = text.trim();
  if (trimmed === "always" || trimmed === "") return ALWAYS;
  const [, start = "", length = ""] = /^(.*\S)\s+\+(\S+)$/.exec(trimmed) ?? [];
  if (start === "") return { problem: `must be five fields of cron and a length, e.g. 0 2 * * sun +3h` };
  const lengthMs = parseLength(length);
  if (lengthMs === undefined)
    return { problem: `the length must be a duration as in +3h or +1h30m (found "+${length}")` };
  if (start.startsWith("@every")) return { problem: "a window must begin at fixed times: @every has none" };
  const cron = parseCronSchedule(start);
  if ("problem" in cron) return cron;
  return {
    isOpen: (at) => {
      const begun = cron.latest(at, at);
      return begun !== undefined && begun.getTime() + lengthMs > at.getTime();
    },
    nextOpening: (after) => cron.next(after, after),
  };
}

/** Milliseconds of `1h30m`; undefined when it is no such text. */
function parseLength(text: string): number | undefined {
  if (!/^(\d+[hms])+$/.test(text)) return undefined;
  let ms = 0;
  for (const [, count, unit] of text.matchAll(/(\d+)([hms])/g)) ms += Number(count) * UNIT_MS[unit as "h" | "m" | "s"];
  return ms > 0 ? ms : undefined;
}

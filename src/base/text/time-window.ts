import { parseCronSchedule } from "./cron-schedule.ts";
import { parseDuration } from "./duration.ts";

/** A recurring span of time, e.g. for maintenance. */
export interface TimeWindow {
  isOpen(at: Date): boolean;
  /** When it opens next; undefined when it never does. */
  nextOpening(after: Date): Date | undefined;
}

const ALWAYS: TimeWindow = { isOpen: () => true, nextOpening: () => undefined };

/** `always`, or a start and a length: `0 2 * * sun +3h`, `30 1 * * * +90m`. @returns what is wrong as `problem` */
export function parseTimeWindow(text: string): TimeWindow | { problem: string } {
  const trimmed = text.trim();
  if (trimmed === "always" || trimmed === "") return ALWAYS;
  const [, start = "", length = ""] = /^(.*\S)\s+\+(\S+)$/.exec(trimmed) ?? [];
  if (start === "") return { problem: `must be five fields of cron and a length, e.g. 0 2 * * sun +3h` };
  const lengthMs = /^(\d+[hms])+$/.test(length) ? parseDuration(length) : undefined;
  if (!lengthMs) return { problem: `the length must be a duration as in +3h or +1h30m (found "+${length}")` };
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

import { isRunHour, type WantedPod, type WantedSchedule } from "./desired.ts";
import type { ModelContainer } from "./engine-model.ts";

const MINUTE_MS = 60_000;
/** A run starts this much after its time at the latest, where nothing is wrong. */
const LONGEST_DELAY_MS = 2 * MINUTE_MS;
/** A last run that is further in the future was recorded by a wrong clock (docs/workloads.md). */
const WRONG_CLOCK_MS = 24 * 60 * MINUTE_MS;

/** One run of one index of a Job, or of a CronJob at one time. */
interface Run {
  app: string;
  version: number;
  /** Scheduled time of a run of a CronJob, since the Epoch. Unit: minutes. */
  minute: number | undefined;
  index: number;
}

/** A time without faults, edits and steps of the clock, by the wall clock. */
export interface QuietTime {
  fromMs: number;
  toMs: number;
}

/**
 * History of the Jobs: indexes that are done, and times at which CronJobs ran. Schedules are computed by a calendar of its
 * own (`Intl`, minute by minute).
 */
export class JobHistory {
  readonly #done = new Set<string>();
  /** Minutes of the Epoch at which a CronJob ran, by app. */
  readonly #ran = new Map<string, Set<number>>();
  /** Runs of a wrong clock, by app and minute: they may be repeated, and need not be. */
  readonly #forgotten = new Set<string>();

  /** @param schedule of a CronJob. @returns what is wrong with it */
  noteStart(run: Run, schedule: WantedSchedule | undefined): string | undefined {
    if (this.#done.has(keyOf(run))) return `${textOf(run)} runs again, although it is done`;
    if (run.minute === undefined) return undefined;
    if (schedule && !isScheduled(schedule, run.minute)) return `${textOf(run)} runs, which its schedule does not have`;
    this.#ran.set(run.app, (this.#ran.get(run.app) ?? new Set()).add(run.minute));
    return undefined;
  }

  noteSuccess(run: Run): void {
    this.#done.add(keyOf(run));
  }

  /** The clock was set. A CronJob whose last run is far in the future goes on from now. */
  noteClock(wallMs: number): void {
    const now = Math.floor(wallMs / MINUTE_MS);
    for (const [app, minutes] of this.#ran) {
      if ((Math.max(...minutes) - now) * MINUTE_MS <= WRONG_CLOCK_MS) continue;
      for (const minute of minutes) if (minute > now) this.#forgotten.add(`${app} ${minute}`);
      this.#ran.set(app, new Set([...minutes].filter((minute) => minute <= now)));
      for (const key of this.#done)
        if (Number(key.split(" ")[2]) > now && key.startsWith(`${app} `)) this.#done.delete(key);
    }
  }

  /** @returns the first index of a Job that is not done; undefined when it is complete */
  findUnfinished({ app, job, containers }: WantedPod): number | undefined {
    const version = containers[0]?.version ?? 0;
    for (let index = 0; index < (job?.completions ?? 0); index++) {
      if (!this.#done.has(keyOf({ app, version, minute: undefined, index }))) return index;
    }
    return undefined;
  }

  /** Compares the runs of a CronJob within a quiet time with its calendar. @returns a run that is missing */
  findMissedRun(app: string, schedule: WantedSchedule, { fromMs, toMs }: QuietTime): string | undefined {
    const ran = this.#ran.get(app) ?? new Set();
    for (let minute = Math.ceil(fromMs / MINUTE_MS); minute * MINUTE_MS <= toMs - LONGEST_DELAY_MS; minute++) {
      if (!isScheduled(schedule, minute) || ran.has(minute) || this.#forgotten.has(`${app} ${minute}`)) continue;
      // After a step back of the clock, of a day at most, the times that it passes again are settled.
      const isSettled = [...ran].some((other) => other > minute && (other - minute) * MINUTE_MS <= WRONG_CLOCK_MS);
      if (!isSettled) return `${app} did not run at ${new Date(minute * MINUTE_MS).toISOString()}`;
    }
    return undefined;
  }
}

const keyOf = ({ app, version, minute, index }: Run) => `${app} ${version} ${minute} ${index}`;

const textOf = ({ app, minute, index }: Run) =>
  minute === undefined ? `index ${index} of Job ${app}` : `${app} of ${new Date(minute * MINUTE_MS).toISOString()}`;

/** The run that a container belongs to; undefined for a container of something else, or of an older manifest of another kind. */
export function runOf(container: ModelContainer, podName: string, wanted: WantedPod, version: number): Run | undefined {
  const index = container.body.Env?.find((text) => text.startsWith("JOB_COMPLETION_INDEX="))?.split("=")[1];
  const isMain = wanted.containers.some(({ name }) => name === container.labels["io.kubernetes.container.name"]);
  if (!wanted.job || index === undefined || !isMain) return undefined;
  // `web7-29921887-0-tqwhb` of a CronJob, `web7-0-tqwhb` of a Job.
  const minute = wanted.job.schedule ? Number(podName.split("-")[1]) : undefined;
  return { app: wanted.app, version, minute, index: Number(index) };
}

/** Whether a schedule has this minute. A time that summer time skips counts as the first minute after the gap. */
export function isScheduled({ minute, hour, timeZone }: WantedSchedule, epochMinute: number): boolean {
  // Zones differ by quarters of an hour; a gap ends with one.
  const inQuarter = epochMinute % QUARTER;
  if (inQuarter !== 0 && inQuarter !== minute % QUARTER) return false;
  const now = minuteOfDay(timeZone, epochMinute);
  if (hour === undefined) return now % 60 === minute && isRunHour(minute, Math.floor(now / 60));
  const wanted = hour * 60 + minute;
  // The first of two equal times counts: an hour ago it was not the same hour.
  if (now === wanted) return minuteOfDay(timeZone, epochMinute - 60) !== wanted;
  const before = minuteOfDay(timeZone, epochMinute - 1);
  return now > before + 1 && wanted > before && wanted < now;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** Clocks change at the quarters of an hour only. Unit: minutes. */
const QUARTER = 15;
const QUARTERS_KEPT = 10_000;
/** Minute of the day at the beginning of a quarter. */
const quarters = new Map<string, number>();

/** Local time as minutes since midnight. */
function minuteOfDay(timeZone: string, epochMinute: number): number {
  const quarter = Math.floor(epochMinute / QUARTER);
  const key = `${timeZone} ${quarter}`;
  let start = quarters.get(key);
  if (start === undefined) {
    start = readLocalTime(timeZone, quarter * QUARTER);
    if (quarters.size >= QUARTERS_KEPT) quarters.clear();
    quarters.set(key, start);
  }
  return (start + epochMinute - quarter * QUARTER) % (24 * 60);
}

function readLocalTime(timeZone: string, epochMinute: number): number {
  const format =
    formats.get(timeZone) ??
    new Intl.DateTimeFormat("en-GB", { timeZone, hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  formats.set(timeZone, format);
  const [hour = 0, minute = 0] = format
    .format(epochMinute * MINUTE_MS)
    .split(":")
    .map(Number);
  return hour * 60 + minute;
}

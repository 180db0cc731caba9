import type { ImageUpdateSettings } from "../../plan/image-update-settings.ts";
import type { ImageUpdateRecord } from "../../plan/image-updates.ts";

/** How often the file that blocks an update is checked while the update waits. */
const LOCK_PERIOD_MS = 60_000;

/** The next regular look-up, with a random delay. @param delayMs draws one */
export function nextCheckAt(
  { schedule }: Pick<ImageUpdateSettings, "schedule">,
  now: Date,
  delayMs: () => number,
): Date | undefined {
  const regular = schedule.next(now, now);
  return regular && new Date(regular.getTime() + delayMs());
}

/** Whether the stored time of the next look-up holds no longer: there is none, or the schedule or the clock has changed. */
export function isCheckStale(
  record: ImageUpdateRecord,
  { schedule, scheduleText }: Pick<ImageUpdateSettings, "schedule" | "scheduleText">,
  now: Date,
  maxDelayMs: number,
): boolean {
  if (!record.current || record.error !== undefined) return false;
  if (record.schedule !== scheduleText || record.nextCheckAt === undefined) return true;
  const regular = schedule.next(now, now);
  return regular !== undefined && new Date(record.nextCheckAt).getTime() > regular.getTime() + maxDelayMs;
}

/** Times after which an image without a trial may have a next step. Unit: milliseconds. @param isHeld updates are kept off */
export function stepDelaysMs(
  record: ImageUpdateRecord,
  { lock, window }: Pick<ImageUpdateSettings, "lock" | "window">,
  now: Date,
  isHeld: boolean,
): number[] {
  const until = (date: Date | undefined) => (date ? [date.getTime() - now.getTime()] : []);
  const check = until(record.nextCheckAt === undefined ? undefined : new Date(record.nextCheckAt));
  if (!record.candidate?.isPulled) return check;
  if (isHeld) return lock === undefined ? check : [...check, LOCK_PERIOD_MS];
  return [...check, ...until(window.nextOpening(now))];
}

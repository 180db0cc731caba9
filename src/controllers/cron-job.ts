import type { CronJob } from "../base/api/job.ts";
import { toApiTime } from "../base/text/api-time.ts";
import { type CronSchedule, parseCronSchedule } from "../base/text/cron-schedule.ts";
import { CLOCK_IS_SET_MS, type Draft } from "./controller.ts";
import type { ChildJobRecord, CronRecord, JobRecord } from "./workload-records.ts";

/** The state of one of its Jobs; undefined before it is reconciled. */
export type JobLookup = (name: string) => JobRecord | undefined;

/** A last run this far in the future was recorded by a wrong clock; after a smaller step back the controller waits. */
const WRONG_CLOCK_MS = 24 * 3_600_000;

/** The next Jobs of a CronJob. Source: `pkg/controller/cronjob/cronjob_controllerv2.go`. */
export const reconcileCronJob = (draft: Draft, spec: CronJob["spec"], jobOf: JobLookup): void =>
  new CronRun(draft, spec, jobOf).step();

class CronRun {
  readonly #draft: Draft;
  readonly #spec: CronJob["spec"];
  readonly #jobOf: JobLookup;
  readonly #cron: CronRecord;

  constructor(draft: Draft, spec: CronJob["spec"], jobOf: JobLookup) {
    this.#draft = draft;
    this.#spec = spec;
    this.#jobOf = jobOf;
    const { cron } = draft.record;
    this.#cron = cron ? { ...cron, jobs: [...cron.jobs] } : { notBefore: draft.nowText, schedule: "", jobs: [] };
    draft.record.cron = this.#cron;
  }

  step(): void {
    const { schedule: text, timeZone, suspend } = this.#spec;
    this.#noteEnds();
    this.#limitHistory();
    const schedule = parseCronSchedule(text, timeZone);
    if ("problem" in schedule) return;
    const zoned = `${timeZone ?? ""} ${text}`;
    // A changed schedule does not catch up on times before the change.
    if (this.#draft.isEdited && this.#cron.schedule !== zoned && this.#cron.schedule !== "")
      this.#cron.notBefore = this.#draft.nowText;
    this.#cron.schedule = zoned;
    if (suspend) return;
    this.#run(schedule);
  }

  #run(schedule: CronSchedule): void {
    const now = this.#draft.world.now;
    const earliestMs = this.#earliestMs(now.getTime());
    if (earliestMs === undefined) {
      this.#draft.holdsUntilMs = CLOCK_IS_SET_MS;
      return;
    }
    const earliest = new Date(earliestMs);
    const due = schedule.latest(now, earliest);
    if (due && due.getTime() > earliestMs) this.#start(due, now.getTime());
    const next = schedule.next(now, earliest);
    if (next) this.#draft.holdsUntilMs = next.getTime();
  }

  /** Runs up to this time are settled; undefined while the clock is implausible. */
  #earliestMs(nowMs: number): number | undefined {
    const times = [this.#cron.notBefore, this.#cron.lastScheduleTime].map((text) => Date.parse(text ?? ""));
    const lastMs = Math.max(...times.filter((ms) => !Number.isNaN(ms)));
    if (nowMs < CLOCK_IS_SET_MS && lastMs >= CLOCK_IS_SET_MS) return undefined;
    if (nowMs >= CLOCK_IS_SET_MS && lastMs < CLOCK_IS_SET_MS) {
      // From 1970 to the true time: nothing was missed.
      this.#cron.notBefore = this.#draft.nowText;
      return nowMs;
    }
    if (lastMs - nowMs > WRONG_CLOCK_MS) {
      this.#draft.recordEvent("UnexpectedJob", "the last run is in the future: the clock was wrong", "Warning");
      this.#cron.notBefore = this.#draft.nowText;
      delete this.#cron.lastScheduleTime;
      return nowMs;
    }
    return lastMs;
  }

  #start(due: Date, nowMs: number): void {
    const { startingDeadlineSeconds, concurrencyPolicy } = this.#spec;
    const dueText = toApiTime(due);
    const miss = (...event: Parameters<Draft["recordEvent"]>) => {
      if (this.#cron.missed !== dueText) this.#draft.recordEvent(...event);
      this.#cron.missed = dueText;
    };
    if (startingDeadlineSeconds !== undefined && due.getTime() + startingDeadlineSeconds * 1000 < nowMs) {
      return miss("MissSchedule", `Missed scheduled time to start a job: ${dueText}`, "Warning");
    }
    const active = this.#cron.jobs.filter(({ name }) => this.#jobOf(name)?.finished === undefined);
    if (concurrencyPolicy === "Forbid" && active.length > 0) {
      const message = "Not starting job because prior execution is running and concurrency policy is Forbid";
      return miss("JobAlreadyActive", message);
    }
    if (concurrencyPolicy === "Replace") for (const job of active) this.#delete(job);
    const name = `${this.#draft.name}-${Math.floor(due.getTime() / 60_000)}`;
    this.#cron.lastScheduleTime = dueText;
    delete this.#cron.missed;
    if (this.#cron.jobs.some((job) => job.name === name)) return;
    const { metadata, spec } = this.#spec.jobTemplate;
    this.#cron.jobs.push({ name, scheduledAt: dueText, template: { metadata, spec } });
    this.#draft.recordEvent("SuccessfulCreate", `Created job ${name}`);
  }

  #delete(job: ChildJobRecord): void {
    this.#cron.jobs = this.#cron.jobs.filter((other) => other !== job);
    this.#draft.recordEvent("SuccessfulDelete", `Deleted job ${job.name}`);
  }

  #noteEnds(): void {
    this.#cron.jobs = this.#cron.jobs.map((job) => {
      const finished = this.#jobOf(job.name)?.finished;
      if (!finished || job.isSeen) return job;
      if (finished.type === "Complete") this.#cron.lastSuccessfulTime = finished.at;
      this.#draft.recordEvent("SawCompletedJob", `Saw completed job: ${job.name}, status: ${finished.type}`);
      return { ...job, isSeen: true };
    });
  }

  /** Deletes the oldest finished Jobs. */
  #limitHistory(): void {
    for (const [type, limit] of [
      ["Complete", this.#spec.successfulJobsHistoryLimit],
      ["Failed", this.#spec.failedJobsHistoryLimit],
    ] as const) {
      const finished = this.#cron.jobs.filter(({ name }) => this.#jobOf(name)?.finished?.type === type);
      for (const job of finished.slice(0, Math.max(0, finished.length - limit))) this.#delete(job);
    }
    for (const job of this.#cron.jobs) if (this.#jobOf(job.name)?.isExpired) this.#delete(job);
  }
}

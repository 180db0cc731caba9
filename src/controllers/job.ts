import type { CronJob, JobSpec, PodFailurePolicyRule } from "../base/api/job.ts";
import type { PodStatus } from "../base/api/pod.ts";
import { backOffMs } from "../base/model/back-off.ts";
import { statusesOf } from "../base/model/pod.ts";
import { toApiTime } from "../base/text/api-time.ts";
import { type CronSchedule, parseCronSchedule } from "../base/text/cron-schedule.ts";
import { CLOCK_IS_SET_MS, type Draft } from "./controller.ts";
import type { ChildJobRecord, CronRecord, JobRecord, JobState, PodRecord, RevisionRecord } from "./workload-records.ts";

/** First pause after a failure, and the longest one. Source: 1.20, `DefaultJobBackOff`, `MaxJobBackOff`. */
const BACK_OFF_MS = { first: 10_000, longest: 360_000 };

/** The next state of a Job. Source: `pkg/controller/job/job_controller.go`; fields after 1.20 as of 1.31. */
export function reconcileJob(draft: Draft, spec: JobSpec, before: JobState | undefined): JobState {
  const run = new JobRun(draft, spec, before);
  run.step();
  return run.state;
}

class JobRun {
  readonly #draft: Draft;
  readonly #spec: JobSpec;
  readonly #job: JobRecord;
  readonly #revision: RevisionRecord;
  readonly state: JobState;

  constructor(draft: Draft, spec: JobSpec, state: JobState | undefined) {
    this.#draft = draft;
    this.#spec = spec;
    this.state = { ...(state ?? { kind: "Job" }) };
    const { record } = draft;
    const shape = JSON.stringify([spec.completions, spec.completionMode]);
    const found = draft.findRevision(spec.template);
    // The template of a Job cannot be edited: another one is another run.
    if (record.job && (!found || record.job.shape !== shape)) this.#startOver();
    record.job = record.job ? { ...record.job } : { shape };
    this.#job = record.job;
    this.#revision = found ?? draft.addRevision(spec.template, "as-owner");
    draft.limitHistory(0, [this.#revision.hash]);
  }

  #startOver(): void {
    const { record } = this.#draft;
    for (const pod of record.pods) this.#draft.remove(pod);
    delete record.job;
    delete this.state.startedMs;
    delete this.state.lastFailureMs;
    delete this.state.finishedMs;
    this.#draft.recordEvent("Replaced", "the template was edited: the Job runs again from the start");
  }

  get #isIndexed(): boolean {
    return this.#spec.completionMode === "Indexed";
  }
  /** undefined: a work queue, finished by the first success. */
  get #completions(): number | undefined {
    const { completions, parallelism } = this.#spec;
    return completions ?? (parallelism === undefined ? 1 : undefined);
  }
  get #parallelism(): number {
    return this.#spec.parallelism ?? 1;
  }

  step(): void {
    if (this.#job.finished) return this.#expire();
    this.#noteEnds();
    if (this.#spec.suspend) return this.#suspend();
    this.#startClock();
    const verdict = this.#judge();
    if (verdict) return this.#finish(verdict.type, verdict.reason, verdict.message);
    this.#fitPods();
  }

  #pods(): PodRecord[] {
    return this.#draft.livePods();
  }
  #active(): PodRecord[] {
    return this.#pods().filter(({ ended }) => !ended);
  }
  #succeeded(): PodRecord[] {
    return this.#pods().filter(({ ended }) => ended?.phase === "Succeeded");
  }
  #failed(): PodRecord[] {
    return this.#pods().filter(({ ended }) => ended?.phase === "Failed" && !ended.isIgnored);
  }

  /** Records how pods ended: their containers may be gone at the next reconciliation. */
  #noteEnds(): void {
    for (const pod of this.#active()) {
      const { phase, status } = this.#draft.world.pod(pod.uid);
      if (phase !== "Succeeded" && phase !== "Failed") continue;
      // Refused, evicted or stopped with the node: the kubelet runs it when the node admits it again.
      const hasRun = (status?.containerStatuses?.length ?? 0) > 0;
      const isInterrupted = status?.reason === "Terminated" || status?.reason === "NodeShutdown";
      if (phase === "Failed" && (!hasRun || isInterrupted)) continue;
      const action = phase === "Failed" ? judgePodFailure(this.#spec.podFailurePolicy?.rules ?? [], status) : "Count";
      pod.ended = { phase, at: this.#draft.nowText };
      if (action === "Ignore") pod.ended.isIgnored = true;
      if (action === "FailJob") pod.ended.failsJob = true;
      if (action === "FailIndex") pod.ended.failsIndex = true;
      if (phase === "Failed") this.state.lastFailureMs = this.#draft.world.nowMs;
    }
  }

  #suspend(): void {
    delete this.#job.startTime;
    delete this.state.startedMs;
    for (const pod of this.#active()) this.#draft.remove(pod);
    if (!this.#job.isSuspended) this.#draft.recordEvent("Suspended", "Job suspended");
    this.#job.isSuspended = true;
  }

  #startClock(): void {
    if (this.#job.isSuspended) this.#draft.recordEvent("Resumed", "Job resumed");
    delete this.#job.isSuspended;
    this.#job.startTime ??= this.#draft.nowText;
    this.state.startedMs ??= this.#draft.world.nowMs - this.#elapsedMs(this.#job.startTime);
  }

  /** Elapsed time by the wall clock, for events before this process started; 0 when the clock was set since then. */
  #elapsedMs(since: string): number {
    const sinceMs = Date.parse(since);
    const nowMs = this.#draft.world.now.getTime();
    return sinceMs < CLOCK_IS_SET_MS && nowMs >= CLOCK_IS_SET_MS ? 0 : Math.max(0, nowMs - sinceMs);
  }

  #judge(): { type: "Complete" | "Failed"; reason?: string; message?: string } | undefined {
    return this.#judgeFailure() ?? (this.#isComplete() ? { type: "Complete" } : undefined);
  }

  #judgeFailure(): { type: "Failed"; reason: string; message: string } | undefined {
    const fail = (reason: string, message: string) => ({ type: "Failed" as const, reason, message });
    const fatal = this.#pods().find(({ ended }) => ended?.failsJob);
    if (fatal) return fail("PodFailurePolicy", `Pod ${fatal.name} failed as a FailJob rule of podFailurePolicy says`);
    const { backoffLimit, backoffLimitPerIndex } = this.#spec;
    const limit = backoffLimit ?? (backoffLimitPerIndex === undefined ? 6 : 2147483647);
    if (this.#failed().length > limit || this.#hasTooManyRestarts(limit)) {
      return fail("BackoffLimitExceeded", "Job has reached the specified backoff limit");
    }
    if (this.#hasTimedOut()) return fail("DeadlineExceeded", "Job was active longer than specified deadline");
    const failedIndexes = this.#failedIndexes();
    const { maxFailedIndexes } = this.#spec;
    if (maxFailedIndexes !== undefined && failedIndexes.size > maxFailedIndexes) {
      return fail("MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes");
    }
    const done = new Set([...this.#succeeded().map(({ index }) => index), ...failedIndexes]);
    if (failedIndexes.size > 0 && done.size >= (this.#completions ?? 0)) {
      return fail("FailedIndexes", "Job has failed indexes");
    }
    return undefined;
  }

  /** Source: `pastBackoffLimitOnFailure`. */
  #hasTooManyRestarts(limit: number): boolean {
    if (this.#spec.template.spec.restartPolicy !== "OnFailure") return false;
    let restarts = 0;
    for (const { uid } of this.#active()) {
      const { status } = this.#draft.world.pod(uid);
      for (const { restartCount } of statusesOf(status)) restarts += restartCount;
    }
    return limit === 0 ? restarts > 0 : restarts >= limit;
  }

  #hasTimedOut(): boolean {
    const { activeDeadlineSeconds } = this.#spec;
    if (activeDeadlineSeconds === undefined) return false;
    return this.#draft.isPast(this.state.startedMs! + activeDeadlineSeconds * 1000);
  }

  /** Failed indexes of an indexed Job with a limit for each index. */
  #failedIndexes(): Set<number> {
    const limit = this.#spec.backoffLimitPerIndex;
    if (limit === undefined) return new Set();
    const failed = this.#failed();
    const indexes = new Set(failed.map(({ index }) => index!));
    return new Set(
      [...indexes].filter((index) => {
        const ends = failed.filter((pod) => pod.index === index);
        return ends.length > limit || ends.some(({ ended }) => ended?.failsIndex);
      }),
    );
  }

  #isComplete(): boolean {
    const completions = this.#completions;
    if (completions === undefined) return this.#succeeded().length > 0 && this.#active().length === 0;
    if (this.#isIndexed) return new Set(this.#succeeded().map(({ index }) => index)).size >= completions;
    return this.#succeeded().length >= completions;
  }

  #finish(type: "Complete" | "Failed", reason?: string, message?: string): void {
    const { nowText, world } = this.#draft;
    const active = this.#active();
    for (const pod of active) this.#draft.remove(pod);
    const why = { ...(reason && { reason }), ...(message && { message }) };
    const stopped = type === "Failed" && active.length > 0 && { stopped: active.length };
    this.#job.finished = { type, at: nowText, ...why, ...stopped };
    this.state.finishedMs = world.nowMs;
    if (type === "Complete") this.#draft.recordEvent("Completed", "Job completed");
    else this.#draft.recordEvent(reason ?? "Failed", message ?? "Job failed", "Warning");
    this.#expire();
  }

  /** `ttlSecondsAfterFinished`: the pods go; what is remembered keeps the manifest from running it again. */
  #expire(): void {
    const { ttlSecondsAfterFinished } = this.#spec;
    const { finished } = this.#job;
    if (ttlSecondsAfterFinished === undefined || !finished || this.#job.isExpired) return;
    this.state.finishedMs ??= this.#draft.world.nowMs - this.#elapsedMs(finished.at);
    if (!this.#draft.isPast(this.state.finishedMs + ttlSecondsAfterFinished * 1000)) return;
    const failed = this.#pods().filter(({ ended }) => ended?.phase === "Failed").length;
    this.#job.expired = { succeeded: this.#succeeded().length, failed };
    for (const pod of this.#pods()) this.#draft.remove(pod);
    this.#job.isExpired = true;
  }

  #fitPods(): void {
    const active = this.#active();
    const completions = this.#completions;
    const succeeded = this.#succeeded().length;
    const isDraining = completions === undefined && succeeded > 0;
    let wanted = Math.min(this.#parallelism, completions === undefined ? this.#parallelism : completions - succeeded);
    if (isDraining) wanted = Math.min(wanted, active.length);
    this.#draft.deleteSurplus(active, wanted);
    const missing = this.#draft.fitting(wanted - active.length, active.length);
    if (missing === 0) return;
    if (this.#isIndexed) return this.#makeIndexed(active, missing);
    const ends = this.#pods().filter(({ ended }) => ended && !ended.isIgnored);
    const failures = ends.length - 1 - ends.findLastIndex(({ ended }) => ended!.phase === "Succeeded");
    if (!this.#isBackingOff(failures)) {
      for (let left = missing; left > 0; left--) this.#draft.createPod(this.#revision);
    }
  }

  #makeIndexed(active: readonly PodRecord[], missing: number): void {
    const taken = new Set([...active, ...this.#succeeded()].map(({ index }) => index));
    const failedIndexes = this.#failedIndexes();
    const failed = this.#failed();
    let left = missing;
    for (let index = 0; index < (this.#completions ?? 0) && left > 0; index++) {
      if (taken.has(index) || failedIndexes.has(index)) continue;
      if (this.#isBackingOff(failed.filter((pod) => pod.index === index).length)) continue;
      this.#draft.createPod(this.#revision, `${this.#draft.name}-${index}`).index = index;
      left--;
    }
  }

  /** Pods that fail are replaced after 10 s, 20 s, 40 s and so on, up to six minutes. */
  #isBackingOff(failures: number): boolean {
    if (failures === 0) return false;
    const { world, nowText } = this.#draft;
    const times = this.#failed().map(({ ended }) => ended!.at);
    this.state.lastFailureMs ??= world.nowMs - this.#elapsedMs(times.sort().at(-1) ?? nowText);
    return !this.#draft.isPast(this.state.lastFailureMs + backOffMs(failures - 1, BACK_OFF_MS));
  }
}

type FailureAction = "FailJob" | "FailIndex" | "Ignore" | "Count";

/** The effect of a failed pod on its Job: the action of the first matching rule. Source: batch/v1 `PodFailurePolicy`. */
function judgePodFailure(rules: readonly PodFailurePolicyRule[], status: PodStatus | undefined): FailureAction {
  const rule = rules.find((candidate) => status && matches(candidate, status));
  return (rule?.action as FailureAction | undefined) ?? "Count";
}

function matches({ onExitCodes, onPodConditions = [] }: PodFailurePolicyRule, status: PodStatus): boolean {
  if (onExitCodes) {
    const { containerName, operator, values = [] } = onExitCodes;
    return statusesOf(status).some(({ name, state }) => {
      const exitCode = state.terminated?.exitCode ?? 0;
      if (exitCode === 0 || (containerName !== undefined && containerName !== name)) return false;
      return values.includes(exitCode) === (operator === "In");
    });
  }
  return onPodConditions.some(({ type, status: wanted }) =>
    status.conditions?.some((condition) => condition.type === type && condition.status === wanted),
  );
}

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

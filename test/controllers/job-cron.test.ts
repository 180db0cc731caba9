import { describe, expect, test } from "bun:test";
import { type CronSchedule, parseCronSchedule } from "../../src/base/text/cron-schedule.ts";
import type { JobRecord } from "../../src/controllers/workload-records.ts";
import { manifest, podTemplate, WorkloadWorld } from "./workload-world.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const cronJob = (spec: object = {}) =>
  manifest(
    "CronJob",
    { name: "tick" },
    {
      schedule: "0 * * * *",
      timeZone: "Etc/UTC",
      jobTemplate: { spec: { template: podTemplate("busybox:1", { restartPolicy: "Never" }) } },
      ...spec,
    },
  );

const finished = (type: "Complete" | "Failed"): JobRecord => ({ shape: "", finished: { type, at: "" } });

/** Runs a pass when the last decision no longer holds, and ends each Job at once. */
class CronWorld extends WorkloadWorld {
  /** Scheduled time of each Job, in the order they were created. */
  readonly runs: string[] = [];
  passes = 0;

  override reconcile(): void {
    super.reconcile();
    this.passes++;
    for (const { name, scheduledAt } of this.record!.cron!.jobs) {
      if (this.jobs.has(name)) continue;
      this.jobs.set(name, finished("Complete"));
      this.runs.push(scheduledAt);
    }
  }

  async run(ms: number): Promise<void> {
    const endMs = this.clock.monotonicMs() + ms;
    while (this.clock.monotonicMs() < endMs) {
      const leftMs = endMs - this.clock.monotonicMs();
      const untilMs = this.holdsUntilMs ?? Number.POSITIVE_INFINITY;
      await this.clock.advance(Math.min(leftMs, untilMs - this.clock.now().getTime()));
      this.reconcile();
    }
  }
}

const started = (spec: object = {}, at = "2026-01-01T00:30:00Z") => {
  const world = new CronWorld(cronJob(spec));
  world.clock.jump(at);
  world.reconcile();
  return world;
};

/** Hours to run for, hours that pass while nothing runs, or a time to which the clock is set. */
type Step = number | { asleep: number } | string;

interface Course {
  when: string;
  spec?: object;
  at?: string;
  steps: Step[];
  /** Times of the runs, of 2026-01-01 where there is no date. */
  want: string[];
  events?: string[];
}

test.each<Course>([
  { when: "each hour, and not before the first", steps: [3], want: ["01:00", "02:00", "03:00"] },
  { when: "after an interruption: the newest missed, once", steps: [1, { asleep: 5 }], want: ["01:00", "06:00"] },
  {
    when: "after an interruption: none beyond startingDeadlineSeconds",
    spec: { startingDeadlineSeconds: 600 },
    steps: [{ asleep: 2 }],
    want: [],
    events: ["MissSchedule"],
  },
  {
    when: "a clock an hour back: none is doubled",
    steps: [3, "2026-01-01T02:35:00Z", 2],
    want: ["01:00", "02:00", "03:00", "04:00"],
  },
  {
    when: "a clock an hour ahead loses none",
    steps: [1, "2026-01-01T02:20:00Z", 1],
    want: ["01:00", "02:00", "03:00"],
  },
  {
    when: "a clock in 1970 at boot: none until the time is known, then what was missed",
    steps: [1, "1970-01-01T00:00:10Z", 2, "2026-01-01T04:10:00Z", 1 / 60],
    want: ["01:00", "04:00"],
  },
  {
    when: "a new CronJob in 1970: what lies before the true time was not missed",
    at: "1970-01-01T00:10:00Z",
    steps: ["2026-01-01T04:10:00Z", 1],
    want: ["05:00"],
  },
  {
    when: "a clock that was years ahead: the schedule continues",
    at: "2031-01-01T00:30:00Z",
    steps: [1, "2026-01-01T00:30:00Z", 1],
    want: ["2031-01-01T01:00", "01:00"],
  },
  { when: "suspended: none", spec: { suspend: true }, steps: [3], want: [] },
  {
    when: "@every: from the creation of the CronJob, then from each run",
    spec: { schedule: "@every 1h30m" },
    at: "2026-01-01T00:10:00Z",
    steps: [4],
    want: ["01:40", "03:10"],
  },
  {
    when: "@every after an interruption: the newest of the missed",
    spec: { schedule: "@every 1h" },
    at: "2026-01-01T00:10:00Z",
    steps: ["2026-01-01T05:30:00Z"],
    want: ["05:10"],
  },
])("runs: $when", async ({ spec, at, steps, want, events }) => {
  const world = started(spec, at);
  for (const step of steps) {
    if (typeof step === "number") {
      await world.run(step * HOUR_MS);
      continue;
    }
    if (typeof step === "string") world.clock.jump(step);
    else await world.clock.advance(step.asleep * HOUR_MS + 1);
    world.controllerState = undefined;
    world.reconcile();
    world.reconcile();
  }
  expect(world.runs).toEqual(want.map((time) => `${time.includes("T") ? time : `2026-01-01T${time}`}:00Z`));
  if (events) expect(world.events.map(({ reason }) => reason)).toEqual(events);
});

test("a Job is named by the minute of its run", async () => {
  const world = started();
  await world.run(HOUR_MS);
  expect(world.record!.cron!.jobs.map(({ name }) => name)).toEqual([`tick-${Date.UTC(2026, 0, 1, 1) / 60_000}`]);
});

test("a suspended CronJob asks for no reconciliation", () => {
  expect(started({ suspend: true }).holdsUntilMs).toBeUndefined();
});

test.each([
  [10, "daily at 02:30 in Berlin", "30 2 * * *", "Europe/Berlin", 3652],
  [3, "daily at 02:30 in New York", "30 2 * * *", "America/New_York", 1096],
  [3, "daily at 00:00 where midnight is skipped", "0 0 * * *", "America/Santiago", 1096],
  [3, "each twelve hours by a step", "0 */12 * * *", "Europe/Berlin", 2192],
  [10, "monthly", "@monthly", "Australia/Lord_Howe", 120],
])(
  "%i years: %s: none is lost and none is doubled",
  async (years, what, schedule, timeZone, count) => {
    const world = started({ schedule, timeZone }, "2025-12-31T12:00:00Z");
    for (let year = 0; year < years; year++) {
      const isLeap = (2026 + year) % 4 === 0;
      await world.run((isLeap ? 366 : 365) * DAY_MS);
      // Our own restart in between.
      world.controllerState = undefined;
      world.record = JSON.parse(JSON.stringify(world.record));
    }
    expect(world.runs).toHaveLength(count);
    expect(new Set(world.runs).size).toBe(world.runs.length);
    const dayOf = (text: string) =>
      new Intl.DateTimeFormat("en-CA", { timeZone, dateStyle: "short" }).format(new Date(text));
    if (what.startsWith("daily")) expect(new Set(world.runs.map(dayOf)).size).toBe(world.runs.length);
  },
  60_000,
);

test("another schedule does not make up for the time before it was written", () => {
  const world = started();
  world.apply(cronJob({ schedule: "15 * * * *" }));
  expect(world.runs).toEqual([]);
});

test.each([
  ["@every 1s", 1000],
  ["@every 0s", 1000],
  ["@every 1.5h", 5_400_000],
  ["@every 1m30s500ms", 90_000],
])("@every: %s", (text, ms) => {
  const since = new Date("2026-01-01T00:00:30Z");
  const schedule = parseCronSchedule(text) as CronSchedule;
  expect(schedule.next(since, since)!.getTime() - since.getTime()).toBe(ms);
  expect(schedule.latest(since, since)).toBeUndefined();
});

describe("schedules, as robfig/cron reads them", () => {
  test.each([
    ["*/15 * * * *", "2026-01-01T00:15:00Z"],
    ["5 4 * * sun", "2026-01-04T04:05:00Z"],
    ["0 0 13 * 5", "2026-01-02T00:00:00Z"],
    ["0 12 1-7 JAN *", "2026-01-01T12:00:00Z"],
    ["10/20 3 * * *", "2026-01-01T03:10:00Z"],
    ["@weekly", "2026-01-04T00:00:00Z"],
    ["0 0 ? * *", "2026-01-02T00:00:00Z"],
  ])("%s", (text, want) => {
    const schedule = parseCronSchedule(text, "Etc/UTC") as CronSchedule;
    const since = new Date("2026-01-01T00:00:00Z");
    expect(schedule.next(since, since)).toEqual(new Date(want));
    expect(schedule.latest(new Date(want), since)).toEqual(new Date(want));
    expect(schedule.latest(new Date(Date.parse(want) - 1), since)?.getTime()).toBeLessThan(Date.parse(want));
  });

  test.each([
    "",
    "* * * *",
    "60 * * * *",
    "* * * * 7",
    "* * L * *",
    "@every",
    "@every x",
    "@every -1h",
    "TZ=UTC * * * * *",
    "@reboot",
    "*/0 * * * *",
    "5-1 * * * *",
  ])("%p is refused", (text) => {
    expect(parseCronSchedule(text)).toHaveProperty("problem");
  });

  test("an interval without its sign is told how to be written", () =>
    expect(parseCronSchedule("every 5m")).toEqual({ problem: expect.stringMatching(/has 2: write @every 5m$/) }));
});

import { describe, expect, test } from "bun:test";
import { type CronSchedule, parseCronSchedule } from "../../src/base/text/cron-schedule.ts";
import type { JobRecord } from "../../src/controllers/workload-record.ts";
import { podTemplate, WorkloadWorld } from "./workload-world.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const cronJob = (spec: object = {}) => ({
  apiVersion: "batch/v1",
  kind: "CronJob",
  metadata: { name: "tick" },
  spec: {
    schedule: "0 * * * *",
    timeZone: "Etc/UTC",
    jobTemplate: { spec: { template: podTemplate("busybox:1", { restartPolicy: "Never" }) } },
    ...spec,
  },
});

const finished = (type: "Complete" | "Failed"): JobRecord => ({ shape: "", finished: { type, at: "" } });

/** Runs a pass whenever the controller asks for one, and ends each Job at once. */
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

  /** @param isLazy without waking each minute, which a clock that does not jump has no need of */
  async run(ms: number): Promise<void> {
    const endMs = this.clock.monotonicMs() + ms;
    while (this.clock.monotonicMs() < endMs) {
      const leftMs = endMs - this.clock.monotonicMs();
      await this.clock.advance(Math.min(leftMs, this.wakeInMs ?? leftMs));
      this.reconcile();
    }
  }

  /** As {@link run}, but from run to run: years in little time. */
  async runSparsely(ms: number, schedule: CronSchedule): Promise<void> {
    const endMs = this.clock.monotonicMs() + ms;
    for (;;) {
      const next = schedule.next(this.clock.now(), this.clock.now())!;
      const waitMs = next.getTime() - this.clock.now().getTime();
      const leftMs = endMs - this.clock.monotonicMs();
      await this.clock.advance(Math.min(waitMs, leftMs));
      this.reconcile();
      if (waitMs >= leftMs) return;
    }
  }
}

const started = (spec: object = {}, at = "2026-01-01T00:30:00Z") => {
  const world = new CronWorld(cronJob(spec));
  world.clock.jump(at);
  world.reconcile();
  return world;
};

test("a run each hour, and none before the first", async () => {
  const world = started();
  await world.run(3 * HOUR_MS);
  expect(world.runs).toEqual(["2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z", "2026-01-01T03:00:00Z"]);
});

test("a Job is named by the minute of its run", async () => {
  const world = started();
  await world.run(HOUR_MS);
  expect(world.record!.cron!.jobs.map(({ name }) => name)).toEqual([`tick-${Date.UTC(2026, 0, 1, 1) / 60_000}`]);
});

describe("ten years", () => {
  test.each([
    ["daily at 02:30 in Berlin", "30 2 * * *", "Europe/Berlin", 3653],
    ["daily at 02:30 in New York", "30 2 * * *", "America/New_York", 3653],
    ["daily at 00:00 where midnight is skipped", "0 0 * * *", "America/Santiago", 3653],
    ["each twelve hours by a step", "0 */12 * * *", "Europe/Berlin", 2 * 3652 + 1],
    ["monthly", "@monthly", "Australia/Lord_Howe", 121],
  ])(
    "%s: none is lost and none is doubled",
    async (_what, schedule, timeZone, count) => {
      const world = started({ schedule, timeZone }, "2025-12-31T12:00:00Z");
      const parsed = parseCronSchedule(schedule, timeZone) as CronSchedule;
      for (let year = 0; year < 10; year++) {
        const isLeap = (2026 + year) % 4 === 0;
        await world.runSparsely((isLeap ? 366 : 365) * DAY_MS, parsed);
        // Our own restart in between.
        world.controllerState = undefined;
        world.record = JSON.parse(JSON.stringify(world.record));
      }
      expect(world.runs).toHaveLength(count - 1);
      expect(new Set(world.runs).size).toBe(world.runs.length);
      const dayOf = (text: string) =>
        new Intl.DateTimeFormat("en-CA", { timeZone, dateStyle: "short" }).format(new Date(text));
      if (count === 3653) expect(new Set(world.runs.map(dayOf)).size).toBe(world.runs.length);
    },
    60_000,
  );
});

describe("while nothing ran", () => {
  test("the newest of the missed runs is made up for, once", async () => {
    const world = started();
    await world.run(HOUR_MS);
    await world.clock.advance(5 * HOUR_MS + 1);
    world.reconcile();
    world.reconcile();
    expect(world.runs).toEqual(["2026-01-01T01:00:00Z", "2026-01-01T06:00:00Z"]);
  });

  test("but not beyond startingDeadlineSeconds", async () => {
    const world = started({ startingDeadlineSeconds: 600 });
    await world.clock.advance(2 * HOUR_MS);
    world.reconcile();
    world.reconcile();
    expect(world.runs).toEqual([]);
    expect(world.events.filter(({ reason }) => reason === "MissSchedule")).toHaveLength(1);
  });
});

describe("a clock that jumps", () => {
  test("an hour back: no run is doubled", async () => {
    const world = started();
    await world.run(3 * HOUR_MS);
    world.clock.jump("2026-01-01T02:35:00Z");
    world.reconcile();
    await world.run(2 * HOUR_MS);
    expect(world.runs.slice(3)).toEqual(["2026-01-01T04:00:00Z"]);
  });

  test("an hour ahead: no run is lost", async () => {
    const world = started();
    await world.run(HOUR_MS);
    world.clock.jump("2026-01-01T02:20:00Z");
    await world.run(HOUR_MS);
    expect(world.runs).toEqual(["2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z", "2026-01-01T03:00:00Z"]);
  });

  test("to 1970 at boot, and back: nothing runs until the time is known, and then what was missed", async () => {
    const world = started();
    await world.run(HOUR_MS);
    world.clock.jump("1970-01-01T00:00:10Z");
    world.controllerState = undefined;
    world.reconcile();
    await world.run(2 * HOUR_MS);
    expect(world.runs).toHaveLength(1);
    world.clock.jump("2026-01-01T04:10:00Z");
    await world.run(60_000);
    expect(world.runs).toEqual(["2026-01-01T01:00:00Z", "2026-01-01T04:00:00Z"]);
  });

  test("from 1970 to the true time with a new CronJob: what lies between was not missed", async () => {
    const world = started({}, "1970-01-01T00:10:00Z");
    world.clock.jump("2026-01-01T04:10:00Z");
    await world.run(60_000);
    expect(world.runs).toEqual([]);
    await world.run(HOUR_MS);
    expect(world.runs).toEqual(["2026-01-01T05:00:00Z"]);
  });

  test("back from years ahead: the schedule continues", async () => {
    const world = started({}, "2031-01-01T00:30:00Z");
    await world.run(HOUR_MS);
    world.clock.jump("2026-01-01T00:30:00Z");
    world.reconcile();
    await world.run(HOUR_MS);
    expect(world.runs.at(-1)).toBe("2026-01-01T01:00:00Z");
  });
});

describe("concurrencyPolicy", () => {
  const running = async (concurrencyPolicy: string) => {
    const world = started({ concurrencyPolicy });
    await world.run(HOUR_MS);
    const [first] = world.record!.cron!.jobs;
    world.jobs.set(first!.name, { shape: "" });
    await world.run(HOUR_MS);
    return { world, first: first! };
  };
  const names = (world: CronWorld) => world.record!.cron!.jobs.map(({ name }) => name);

  test("Allow starts another", async () => {
    const { world } = await running("Allow");
    expect(names(world)).toHaveLength(2);
  });

  test("Forbid waits, and starts it when the one before has finished", async () => {
    const { world, first } = await running("Forbid");
    expect(names(world)).toEqual([first.name]);
    expect(world.events.filter(({ reason }) => reason === "JobAlreadyActive")).toHaveLength(1);
    world.jobs.set(first.name, finished("Complete"));
    world.reconcile();
    expect(names(world)).toHaveLength(2);
  });

  test("Replace ends the one before", async () => {
    const { world, first } = await running("Replace");
    expect(names(world)).toHaveLength(1);
    expect(names(world)).not.toContain(first.name);
  });
});

test("history limits", async () => {
  const world = started({ successfulJobsHistoryLimit: 2 });
  await world.run(6 * HOUR_MS);
  expect(world.record!.cron!.jobs.length).toBeLessThanOrEqual(3);
  world.reconcile();
  expect(world.record!.cron!.jobs.map(({ scheduledAt }) => scheduledAt)).toEqual(world.runs.slice(-2));
});

test("suspend starts nothing", async () => {
  const world = started({ suspend: true });
  await world.run(3 * HOUR_MS);
  expect(world.runs).toEqual([]);
  expect(world.wakeInMs).toBeUndefined();
});

test("another schedule does not make up for the time before it was written", () => {
  const world = started();
  world.apply(cronJob({ schedule: "15 * * * *" }));
  expect(world.runs).toEqual([]);
});

describe("@every", () => {
  test("counts from the creation of the CronJob, then from each run", async () => {
    const world = started({ schedule: "@every 1h30m" }, "2026-01-01T00:10:00Z");
    await world.run(4 * HOUR_MS);
    expect(world.runs).toEqual(["2026-01-01T01:40:00Z", "2026-01-01T03:10:00Z"]);
  });

  test("makes up for the newest of the runs that an interruption missed", () => {
    const world = started({ schedule: "@every 1h" }, "2026-01-01T00:10:00Z");
    world.clock.jump("2026-01-01T05:30:00Z");
    world.reconcile();
    expect(world.runs).toEqual(["2026-01-01T05:10:00Z"]);
  });

  test.each([
    ["@every 1s", 1000],
    ["@every 0s", 1000],
    ["@every 1.5h", 5_400_000],
    ["@every 1m30s500ms", 90_000],
  ])("%s", (text, ms) => {
    const since = new Date("2026-01-01T00:00:30Z");
    const schedule = parseCronSchedule(text) as CronSchedule;
    expect(schedule.next(since, since)!.getTime() - since.getTime()).toBe(ms);
    expect(schedule.latest(since, since)).toBeUndefined();
  });
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
});

import { expect, test } from "bun:test";
import type { WorkloadEvent } from "../../src/controllers/controller.ts";
import type { JobRecord } from "../../src/controllers/workload-records.ts";
import { manifest, readScenarios, WorkloadWorld } from "./workload-world.ts";

interface Step {
  /** `minute`, `end`; anything else is an edit of the spec. */
  do: string;
  spec?: unknown;
}

/** Minutes count from the one in which the CronJob was created. */
interface State {
  did: string;
  /** `<minute> active`, `<minute> Complete`, `<minute> Failed` */
  jobs: string[];
  active: number[];
  lastScheduleTime?: number;
  events: string[];
}

interface Scenario {
  name: string;
  spec: Record<string, unknown>;
  steps: Step[];
  states: State[];
}

const scenarios = readScenarios<Scenario>("cron-job-steps.jsonl.gz");

const START = Date.parse("2026-03-01T10:00:00Z");
const MINUTE_MS = 60_000;
const minuteOf = (time: string) => (Date.parse(time) - START) / MINUTE_MS;

/** A CronJob that was created 20 seconds after a full minute. */
class Replay extends WorkloadWorld {
  readonly #spec: Record<string, unknown>;
  #shownEvents = 0;

  constructor(spec: Record<string, unknown>) {
    super(Replay.manifest(spec));
    this.#spec = spec;
    this.clock.jump(new Date(START + 20_000));
  }

  static manifest(spec: Record<string, unknown>): object {
    return manifest("CronJob", { name: "tick" }, { timeZone: "Etc/UTC", ...spec });
  }

  async take({ do: what, spec }: Step): Promise<void> {
    if (what === "minute") {
      const nowMs = this.clock.now().getTime();
      await this.clock.advance(MINUTE_MS - (nowMs % MINUTE_MS) + 1000);
    } else if (what === "end") {
      const oldest = this.record!.cron!.jobs.find(({ name }) => !this.jobs.get(name)?.finished)!;
      const type = spec === "Succeeded" ? "Complete" : "Failed";
      const at = this.clock.now().toISOString();
      this.jobs.set(oldest.name, { shape: "", finished: { type, at } } as JobRecord);
    } else {
      Object.assign(this.#spec, spec);
      return this.apply(Replay.manifest(this.#spec));
    }
    this.reconcile();
    // The first pass may enable a second one.
    this.reconcile();
  }

  /** In the form of the recording. */
  state(): Omit<State, "did"> {
    const { jobs, lastScheduleTime } = this.record!.cron!;
    const shown = jobs.map((job) => ({ ...job, minute: minuteOf(job.scheduledAt) }));
    const typeOf = (name: string) => this.jobs.get(name)?.finished?.type ?? "active";
    const events = this.events.slice(this.#shownEvents).map((event) => this.#show(event));
    this.#shownEvents = this.events.length;
    return {
      jobs: shown.map(({ name, minute }) => `${minute} ${typeOf(name)}`).sort(),
      active: shown.filter(({ isSeen }) => !isSeen).map(({ minute }) => minute),
      ...(lastScheduleTime !== undefined && { lastScheduleTime: minuteOf(lastScheduleTime) }),
      events,
    };
  }

  #show({ reason, message }: WorkloadEvent): string {
    const text = message.replace(/tick-(\d+)/g, (_, minute) => `tick-${Number(minute) - START / MINUTE_MS}`);
    return `${reason}: ${text.replace(/\d{4}-\d\d-\d\dT\S+$/, "TIME")}`;
  }
}

test.each(scenarios.map((scenario) => [scenario.name, scenario] as const))(
  "a CronJob taken through the steps of a real controller manager has the same Jobs: %s",
  async (_, { spec, steps, states }) => {
    const replay = new Replay(structuredClone(spec));
    replay.reconcile();
    expect({ did: "create", ...replay.state() }).toEqual(states[0]!);
    for (const [index, step] of steps.entries()) {
      await replay.take(step);
      const wanted = states[index + 1]!;
      expect({ did: wanted.did, ...replay.state() }).toEqual(wanted);
    }
  },
);

import { ACTIONS, CLUSTER_ACTIONS, DRAINS, EXCHANGES, LONGEST_FAULT_MS, Scene } from "./actions.ts";
import type { WantedPod } from "./desired.ts";
import { Rules, Violation } from "./rules.ts";
import { SeededRandom } from "./seeded-random.ts";
import { EARLIER } from "./simulated-modules.ts";
import { DAY_MS, isNode, World } from "./world.ts";

export interface SimulationSettings {
  seed: number;
  days: number;
  pods: number;
  /** Only these actions of the schedule happen, by their numbers; undefined: all. */
  only?: ReadonlySet<number> | undefined;
  /** A planted mistake, by the name of its patch in `mutants/`. */
  mutant?: string | undefined;
  trace?: ((line: string) => void) | undefined;
  /** Called with the result where the program never rests: it is to end this process. */
  onBusy?: ((result: SimulationResult) => void) | undefined;
}

export interface SimulationResult {
  hash: string;
  /** Actions of the schedule, by their numbers, in the order of their times. */
  actions: { number: number; day: number; name: string }[];
  requests: number;
  processes: number;
  failure?: { rule: string; message: string; at: string; day: number; steps: string[] };
}

interface Planned {
  number: number;
  atMs: number;
  name: string;
  seed: number;
}

const HOUR_MS = 3_600_000;
/** Actions of a day end with time enough for everything to come to rest before the day ends. */
const ACTIVE_MS = DAY_MS - 4 * 60 * 60_000 - LONGEST_FAULT_MS;

/** Actions of the evenings, one each, long after the last fault: for the rules that ask for calm. */
const EVENINGS = ["roll out", "roll out", "edit values", "become unhealthy", "become unready"];
/** Before the end of the day. */
const EVENING_MS = 175 * 60_000;

const ALL_ACTIONS = { ...ACTIONS, ...CLUSTER_ACTIONS, ...DRAINS, ...EXCHANGES };

/** Machines with clients that cordon and drain the node. */
const isDrained = (seed: number): boolean => seed % 8 === 7;

/**
 * Half of the machines know half of the actions, each twice as often: what most actions repair, or end, shows where there are
 * few (swarm testing: Groce et al., ISSTA 2012).
 */
function chooseActions(seed: number): [string, (typeof ALL_ACTIONS)[string]][] {
  const random = new SeededRandom(seed ^ 0x5a3);
  // The name of a node of a cluster is in its credentials.
  const own = isNode(seed)
    ? Object.entries({ ...ACTIONS, ...CLUSTER_ACTIONS }).filter(([name]) => name !== "rename the node")
    : Object.entries({ ...ACTIONS, ...(isDrained(seed) && DRAINS) });
  const all = [...own, ...(EARLIER === undefined ? [] : Object.entries(EXCHANGES))];
  return seed % 4 < 2 ? all : all.filter(([name]) => name === "add a pod" || random.chance(0.5));
}

/** The actions on the machine, day by day; the schedule of a seed is the same whatever of it takes place. */
function* schedule(seed: number, days: number): Generator<Planned> {
  const random = new SeededRandom(seed ^ 0xac7);
  // Each name as often as it weighs.
  const names = chooseActions(seed).flatMap(([name, { weight }]) => Array.from({ length: weight }, () => name));
  let number = 0;
  for (let day = 0; day < days; day++) {
    // Quiet days and bad ones.
    const count = random.chance(0.25) ? 0 : random.chance(0.2) ? random.whole(6, 14) : random.whole(1, 5);
    const burstMs = random.between(0, ACTIVE_MS);
    const planned: Planned[] = [];
    for (let index = 0; index < count; index++) {
      const name = random.pick(names);
      // Faults seldom come alone.
      const inDayMs = random.chance(0.5)
        ? Math.min(ACTIVE_MS, burstMs + random.between(0, 120_000))
        : random.between(0, ACTIVE_MS);
      planned.push({
        number: number++,
        atMs: day * DAY_MS + 60_000 + inDayMs,
        name,
        seed: Math.floor(random.next() * 2 ** 32),
      });
    }
    yield* planned.sort((a, b) => a.atMs - b.atMs);
  }
}

/** Before the first machine replaces it. */
const { setImmediate: realImmediate } = globalThis;

/** Lives the days of a seed on a machine of its own. One at a time: the clocks of the process are the machine's. */
export async function simulate({
  seed,
  days,
  pods,
  only,
  mutant,
  trace,
  onBusy,
}: SimulationSettings): Promise<SimulationResult> {
  const world = new World(seed);
  world.onStep = trace;
  await world.load(mutant);
  const wanted = new Map<string, WantedPod>();
  const rules = new Rules(world, wanted);
  const scene = new Scene(world, rules, wanted, pods);
  const random = new SeededRandom(seed ^ 0xf11e);
  world.onUnexpectedEnd = () => world.time.after(5_000, () => scene.startProcess());
  // Where the disk cannot keep the new name, the node has it from a later start on.
  world.onRename = () => rules.excuseAll();
  world.engine.addForeign("theirs");
  const actions: SimulationResult["actions"] = [];
  const resultOf = (violation: Violation | undefined): SimulationResult => {
    const unexpected = world.errors[0];
    const failure = violation ?? (unexpected === undefined ? undefined : new Violation("unexpected error", unexpected));
    return {
      hash: world.hash,
      actions,
      requests: world.wire.requests,
      processes: world.processes,
      ...(failure && {
        failure: {
          rule: failure.rule,
          message: failure.message,
          at: world.now,
          day: Math.floor(world.time.nowMs / DAY_MS),
          steps: world.steps.slice(-200),
        },
      }),
    };
  };
  world.time.onBusy = () => onBusy?.(resultOf(new Violation("busy", "the program does not rest, and no time passes")));
  while (wanted.size < Math.max(1, Math.floor(pods * 0.7))) scene.addPod(random);
  scene.startProcess();
  const act = (when: string, name: string, chances: SeededRandom) => {
    world.note(`--- ${when}: ${name}`);
    if (ALL_ACTIONS[name]?.isFault) rules.noteFault();
    ALL_ACTIONS[name]?.run(scene, chances);
  };
  for (const { number, atMs, name, seed: own } of schedule(seed, days)) {
    if (only && !only.has(number)) continue;
    actions.push({ number, day: Math.floor(atMs / DAY_MS), name });
    world.time.at(atMs, () => act(`${number}`, name, new SeededRandom(own)));
  }
  for (let day = 0; day < days && !rules.violation; day++) {
    world.time.at((day + 1) * DAY_MS - EVENING_MS, () => act("evening", random.pick(EVENINGS), random));
    world.time.at((day + 1) * DAY_MS - 2 * 3_600_000, () => rules.beginRest());
    if (world.hasApi) {
      world.time.at(day * DAY_MS, () => rules.watchers.beginDay(day));
      for (let hour = 0; hour < 24; hour++) {
        world.time.at(day * DAY_MS + hour * HOUR_MS, () => void rules.watchers.compare());
      }
      world.time.at((day + 1) * DAY_MS - 60_000, () => void rules.api.look());
    }
    world.time.runTo((day + 1) * DAY_MS - 1, () => rules.violation !== undefined);
    // Errors that uncaught are reported between two turns of the real loop.
    await new Promise<void>((resolve) => realImmediate(resolve));
    if (!rules.violation) rules.checkAtRest();
  }
  return resultOf(rules.violation);
}

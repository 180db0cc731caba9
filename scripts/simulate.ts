/**
 * `npm run simulate`: lives days of machines in simulated time, some of them one after the other in a process.
 *
 *     npm run simulate -- --seed=7 --days=365 --pods=30            one machine; --trace tells its story
 *     npm run simulate -- --seeds=1-20 --days=60 --pods=8          many machines, on all cores
 *     npm run simulate -- --mutants                                plants the mistakes of test/simulation/mutants, one at a time
 *     npm run simulate -- --mutants die-ignored cron-in-utc        only these
 *     KUBELET_TS_SIMULATE_EARLIER=DIR npm run simulate -- …        with upgrades from the version in DIR, and back
 *     npm run simulate -- --years=1000                             a thousand machine-years, resumed where they were broken off
 *
 * A failure prints the seed, the virtual time, the last 200 steps, and the fewest actions that still fail.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Life, type Lived, live } from "../test/simulation/live.ts";
import { listMutants } from "../test/simulation/simulated-modules.ts";

const MAIN = join(import.meta.dir, "../test/simulation/main.ts");
/** Seeds of `--years` that are done. */
const PROGRESS = join(import.meta.dir, "../node_modules/.cache/simulated-years.json");
/** Machines that look for a planted mistake. */
const MUTANT_SEEDS = 20;
const MUTANT_DAYS = 20;
/** Shrinking stops after this many runs. */
const MAX_SHRINK_RUNS = 60;

const liveOne = async (seed: number, life: Life): Promise<Lived> => (await live([seed], life).next()).value as Lived;

/** Leaves out actions as long as the same rule is broken. @returns the run with the fewest */
async function shrink(life: Life, failed: Lived): Promise<Lived> {
  let best = failed;
  let runs = 0;
  for (
    let size = Math.ceil(best.actions.length / 2);
    size >= 1 && runs < MAX_SHRINK_RUNS;
    size = size === 1 ? 0 : Math.ceil(size / 2)
  ) {
    for (let start = 0; start < best.actions.length && runs < MAX_SHRINK_RUNS; ) {
      const numbers = best.actions.map(({ number }) => number);
      const only = numbers.filter((_, index) => index < start || index >= start + size);
      runs++;
      const tried = await liveOne(failed.seed, { ...life, days: (best.failure?.day ?? 0) + 1, only });
      if (tried.failure?.rule === best.failure?.rule) best = keepUntil(tried);
      else start += size;
    }
  }
  return best;
}

/** Lives of machines with a planted mistake, until one of them shows it. @returns the exit code */
async function plantMistakes(jobs: number, wanted: readonly string[]): Promise<number> {
  const waiting = listMutants().filter((name) => wanted.length === 0 || wanted.includes(name));
  let missed = 0;
  const worker = async () => {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      let found: Lived | undefined;
      let years = 0;
      const seeds = Array.from({ length: MUTANT_SEEDS }, (_, index) => index + 1);
      for await (const lived of live(seeds, { days: MUTANT_DAYS, pods: 8, mutant })) {
        years += ((lived.failure?.day ?? MUTANT_DAYS) + 1) / 365;
        if (lived.failure) found = lived;
        if (found) break;
      }
      if (!found) missed++;
      const how = found ? `found after ${years.toFixed(2)} years: ${found.failure?.message}` : "NOT FOUND";
      process.stdout.write(`${mutant}: ${how}\n`);
    }
  };
  await Promise.all(Array.from({ length: jobs }, worker));
  process.stdout.write(`${missed} mistakes were not found\n`);
  return missed > 0 ? 1 : 0;
}

/** The actions after the failure do not matter. */
function keepUntil(lived: Lived): Lived {
  const day = lived.failure?.day ?? Number.POSITIVE_INFINITY;
  return { ...lived, actions: lived.actions.filter((action) => action.day <= day) };
}

async function report(life: Life, failed: Lived): Promise<void> {
  const shortest = await shrink(life, keepUntil(failed));
  const { failure, actions } = shortest;
  const only = actions.map(({ number }) => number).join(",");
  process.stdout.write(`${failure?.steps.join("\n")}\n\n`);
  process.stdout.write(`seed ${failed.seed} fails at ${failure?.at}: ${failure?.message}\n`);
  process.stdout.write(
    `actions: ${actions.map(({ number, day, name }) => `${number} (day ${day}) ${name}`).join("; ")}\n`,
  );
  process.stdout.write(
    `again: npm run simulate -- --seed=${failed.seed} --days=${(failure?.day ?? 0) + 1} --pods=${life.pods} --only=${only} --trace\n`,
  );
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: "string" },
    seeds: { type: "string" },
    years: { type: "string" },
    days: { type: "string", default: "365" },
    pods: { type: "string", default: "30" },
    only: { type: "string" },
    trace: { type: "boolean", default: false },
    mutants: { type: "boolean", default: false },
    jobs: { type: "string", default: String(availableParallelism()) },
  },
});

const days = Number(values.days);
const pods = Number(values.pods);

if (values.trace || values.only !== undefined) {
  const args = [`--seed=${values.seed ?? 1}`, `--days=${days}`, `--pods=${pods}`];
  if (values.only !== undefined) args.push(`--only=${values.only}`);
  if (values.trace) args.push("--trace");
  const child = Bun.spawn([process.execPath, MAIN, ...args], { stdout: "inherit", stderr: "inherit" });
  process.exit(await child.exited);
}

if (values.mutants) process.exit(await plantMistakes(Number(values.jobs), positionals));

const [from = 1, to = from] = (values.seeds ?? values.seed ?? `1-${values.years ?? 1}`).split("-").map(Number);
const isResumable = values.years !== undefined;
const done = new Set<number>(isResumable && existsSync(PROGRESS) ? JSON.parse(readFileSync(PROGRESS, "utf8")) : []);
const waiting = Array.from({ length: to - from + 1 }, (_, index) => from + index).filter((seed) => !done.has(seed));
const startMs = Date.now();
let lived = 0;
let failures = 0;
let requests = 0;

/** Machines that a worker takes at a time. */
const BATCH = 8;

const worker = async () => {
  for (let seeds = waiting.splice(0, BATCH); seeds.length > 0; seeds = waiting.splice(0, BATCH)) {
    try {
      for await (const result of live(seeds, { days, pods })) await take(result);
    } catch (error) {
      failures++;
      process.stdout.write(`${(error as Error).message}\n`);
    }
  }
};

async function take(result: Lived): Promise<void> {
  const { seed } = result;
  lived++;
  requests += result.requests;
  if (result.failure) {
    failures++;
    await report({ days, pods }, result);
  } else {
    done.add(seed);
    if (isResumable) writeFileSync(PROGRESS, JSON.stringify([...done]));
  }
  const minutes = ((Date.now() - startMs) / 60_000).toFixed(1);
  const progress = isResumable || process.stdout.isTTY ? `; ${done.size} of ${to - from + 1} done, ${minutes} min` : "";
  process.stdout.write(`seed ${seed}: hash ${result.hash}, ${result.seconds.toFixed(1)} s${progress}\n`);
}

await Promise.all(Array.from({ length: Number(values.jobs) }, worker));
const years = ((lived * days) / 365).toFixed(1);
process.stdout.write(`${years} machine-years, ${requests} requests, ${failures} failures\n`);
if (isResumable && failures === 0 && waiting.length === 0) rmSync(PROGRESS, { force: true });
process.exit(failures > 0 ? 1 : 0);

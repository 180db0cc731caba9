/**
 * `npm test`: everything that must hold, on a machine with nothing but Node, npm and git. Sets up what is missing, then types,
 * lint, words and unit tests at the same time, simulated machines, and integration tests against a real engine: first those
 * that share the machine, several files at a time, then the two of test/integration/serial, which need it for themselves. The last line is `N passed, N failed`; a
 * check that fails counts as one failed.
 *
 * `npm run test:unit -- FILE…` runs only unit tests, `npm run test:long` those of test/long: random edits and kills,
 * growth over thousands of events.
 */
import { runOnEngine } from "./run-on-engine.mjs";
import { TestRun } from "./test-run.mjs";
import { ensureTestTools } from "./test-tools.mjs";
import { buildBinary } from "./workspace.mjs";

/** One `bun test` that takes longer hangs. */
const RUN_LIMIT_MS = 30 * 60_000;

/** Files of unit tests that run at the same time: two leave a fifth of two cores idle. */
const UNIT_AT_A_TIME = 3;

/** Files of integration tests that run at the same time: with five, two cores are idle for 2 % of the time. */
const AT_A_TIME = 5;

/** The longest file starts first, so that none of them runs alone in the end. `--update-timings` of bun writes the file. */
const TIMINGS = "--timings=test/integration/timings.json";

/** Tests of one file that run at the same time, where the file allows it. */
const CONCURRENT = ["--max-concurrency=6"];

/** Each machine lives in a process of its own. */
const SIMULATION = ["--no-orphans", "--max-concurrency=2", "test/simulation/"];

/** Folders of test/ whose tests are not unit tests. */
const NO_UNIT_TESTS = ["integration", "long", "real-cluster", "simulation", "vm"];

const ignoring = (folders) => folders.flatMap((folder) => ["--path-ignore-patterns", `test/${folder}/**`]);

const [lane] = process.argv.slice(2);
const run = new TestRun();

await runOnEngine(run, async () => {
  if (await ensureTestTools()) {
    // A test that would be skipped without an engine or a tool fails; `test.only` and new snapshots are refused.
    process.env.CI ??= "1";
  }
  await buildBinary();
  run.stopIfInterrupted();
  const limits = { limitMs: RUN_LIMIT_MS };
  if (lane === "long") {
    await run.bunTest("Long tests", ["--no-orphans", "--parallel=2", "test/long/"], limits);
    const env = { KUBELET_TS_SIMULATE_SEEDS: "20", KUBELET_TS_SIMULATE_DAYS: "20" };
    await run.bunTest("Many simulated machines", SIMULATION, { ...limits, env });
    return;
  }
  await Promise.all([
    run.checks({
      // Several checkers resolve the same types once each: one takes two thirds of the CPU time.
      Types: ["tsc", "--noEmit", "--checkers", "1"],
      "Types of the page": ["tsc", "--noEmit", "-p", "src/page"],
      "Format and lint": ["biome", "check", "."],
      Words: ["node", "scripts/lint-words.mjs"],
    }),
    run.bunTest(
      "Unit tests",
      ["--only-failures", "--timeout=60000", `--parallel=${UNIT_AT_A_TIME}`, ...ignoring(NO_UNIT_TESTS)],
      limits,
    ),
  ]);
  await run.bunTest("Simulated machines", SIMULATION, limits);
  await run.bunTest(
    "Integration tests, against a real engine",
    [
      "--no-orphans",
      `--parallel=${AT_A_TIME}`,
      TIMINGS,
      ...CONCURRENT,
      ...ignoring(["integration/serial"]),
      "test/integration/",
    ],
    limits,
  );
  await run.bunTest(
    "Integration tests that need the machine for themselves",
    ["--no-orphans", "--parallel=2", "test/integration/serial/"],
    limits,
  );
});

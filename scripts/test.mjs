/**
 * `npm test`: everything that must hold, on a machine with nothing but Node, npm and git. Sets up what is missing, then
 * type check, lint, unit tests and integration tests against a real engine. The last line is `N passed, N failed`; a type
 * error or a finding of the linter counts as one failed.
 */
import { runOnEngine } from "./run-on-engine.mjs";
import { TestRun } from "./test-run.mjs";
import { ensureTestTools } from "./test-tools.mjs";
import { buildBinary } from "./workspace.mjs";

/** One `bun test` that takes longer hangs: a machine with two busy processors needs a quarter of an hour. */
const RUN_LIMIT_MS = 30 * 60_000;

const UNIT_TESTS = [
  "--only-failures",
  "--timeout=60000",
  "--path-ignore-patterns",
  "test/integration/**",
  "--path-ignore-patterns",
  "test/real-cluster/**",
  "--path-ignore-patterns",
  "test/vm/**",
];

const run = new TestRun();

await runOnEngine(run, async () => {
  if (await ensureTestTools()) {
    // A test that would be skipped without an engine or a tool fails; `test.only` and new snapshots are refused.
    process.env.CI ??= "1";
  }
  await buildBinary();
  run.stopIfInterrupted();
  await run.check("Type check", "tsc", ["--noEmit"]);
  await run.check("Format and lint", "biome", ["check", "."]);
  await run.bunTest("Unit tests", UNIT_TESTS, { limitMs: RUN_LIMIT_MS });
  await run.bunTest("Integration tests, against a real engine", ["--no-orphans", "test/integration/"], {
    limitMs: RUN_LIMIT_MS,
  });
});

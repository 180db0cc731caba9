/**
 * `npm test`: everything that must hold, on a machine with nothing but Node, npm and git. Sets up what is missing, then
 * type check, lint, unit tests and integration tests against a real engine. The last line is `N passed, N failed`; a type
 * error or a finding of the linter counts as one failed.
 */
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureEngine, stopOwnEngine } from "./engine.mjs";
import { EXAMPLE_IMAGES, TEST_IMAGES } from "./image-recipes.mjs";
import { ensureImages } from "./images.mjs";
import { runCommand } from "./run-command.mjs";
import { CannotGoOn, green, heading, red, sayDuration, step } from "./say.mjs";
import { sweepTestRun } from "./test-sweep.mjs";
import { ensureTestTools } from "./test-tools.mjs";
import { buildBinary, ensurePackages, ROOT, toolEnv } from "./workspace.mjs";

/** One `bun test` that takes longer hangs: a machine with two busy processors needs a quarter of an hour. */
const RUN_LIMIT_MS = 30 * 60_000;

const runId = Math.random().toString(36).slice(2, 8).padEnd(6, "0");
// Temporary files of tests go here. The name is short: the path of a Unix socket has 108 bytes.
const scratch = mkdtempSync(join(tmpdir(), "ktt-"));
// Tests of users without root have to get through to what is theirs.
chmodSync(scratch, 0o711);
const total = { passed: 0, failed: 0 };
/** @type {{ name: string, ok: boolean, detail: string }[]} */
const sections = [];
/** @type {import("./engine.mjs").Engine | undefined} */
let engine;
const interruption = new AbortController();

function stopIfInterrupted() {
  if (interruption.signal.aborted) throw new CannotGoOn(`Ended by ${interruption.signal.reason}.`);
}

function conclude(name, ok, detail) {
  sections.push({ name, ok, detail });
  step(ok ? "ok" : red("FAILED"), `${name}: ${detail}`);
}

async function check(name, command, args) {
  heading(name);
  const started = performance.now();
  const { code } = await runCommand(command, args, {
    cwd: ROOT,
    env: toolEnv(),
    show: true,
    signal: interruption.signal,
  });
  stopIfInterrupted();
  if (code !== 0) total.failed += 1;
  conclude(name, code === 0, code === 0 ? sayDuration(performance.now() - started) : `exit code ${code}`);
}

/** Counts of the report of a run; undefined when it was never written, as when the run was killed. */
function readReport(file) {
  try {
    const [head] = /<testsuites\b[^>]*>/.exec(readFileSync(file, "utf8")) ?? [];
    const count = (name) => Number(new RegExp(`\\b${name}="(\\d+)"`).exec(head ?? "")?.[1] ?? Number.NaN);
    const report = { tests: count("tests"), failures: count("failures"), skipped: count("skipped") };
    return Object.values(report).some(Number.isNaN) ? undefined : report;
  } catch {
    return undefined;
  }
}

async function bunTest(name, args) {
  heading(name);
  const started = performance.now();
  const file = join(scratch, `${sections.length}.xml`);
  const { code } = await runCommand("bun", ["test", "--reporter=junit", `--reporter-outfile=${file}`, ...args], {
    cwd: ROOT,
    env: { ...toolEnv(), KUBELET_TS_TEST_RUN: runId, TMPDIR: scratch },
    show: true,
    timeoutMs: RUN_LIMIT_MS,
    signal: interruption.signal,
  });
  stopIfInterrupted();
  const report = readReport(file);
  const executed = report ? report.tests - report.skipped : 0;
  const passed = report ? executed - report.failures : 0;
  // A run can fail outside its tests: an error while a file is loaded, a throw after the last test, a kill.
  const failed = Math.max(report?.failures ?? 0, code === 0 && executed > 0 ? 0 : 1);
  total.passed += passed;
  total.failed += failed;
  const skipped = report?.skipped ? `, ${report.skipped} skipped` : "";
  const why =
    executed === 0 ? " (no test was executed)" : report?.failures === 0 && failed > 0 ? ` (exit code ${code})` : "";
  const time = sayDuration(performance.now() - started);
  conclude(name, failed === 0, `${passed} passed, ${failed} failed${why}${skipped} in ${time}`);
}

async function setUp() {
  heading("Set-up");
  await ensurePackages();
  engine = await ensureEngine();
  await ensureImages(engine.endpoint, [...EXAMPLE_IMAGES, ...TEST_IMAGES]);
  if (await ensureTestTools()) {
    // A test that would be skipped for want of an engine or a tool fails; `test.only` and new snapshots are refused.
    process.env.CI ??= "1";
  }
  await buildBinary();
}

async function tearDown() {
  if (!engine) return rmSync(scratch, { recursive: true, force: true });
  const left = await sweepTestRun(engine.endpoint, runId, scratch);
  if (left > 0) step("clean-up", `removed ${left} containers that tests had left`);
  if (engine.startedHere && (await stopOwnEngine())) step("engine", "stopped the dockerd that was started here");
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => interruption.abort(signal));

try {
  await setUp();
  stopIfInterrupted();
  await check("Type check", "tsc", ["--noEmit"]);
  await check("Format and lint", "biome", ["check", "."]);
  await bunTest("Unit tests", ["--only-failures", "--timeout=60000", "--path-ignore-patterns", "test/integration/**"]);
  await bunTest("Integration tests, against a real engine", ["--no-orphans", "test/integration/"]);
} catch (error) {
  total.failed += 1;
  console.error(`\n${red("error")}  ${error instanceof CannotGoOn ? error.message : (error?.stack ?? error)}`);
}
try {
  await tearDown();
} catch (error) {
  total.failed += 1;
  console.error(`\n${red("error")}  cleaning up: ${error?.message ?? error}`);
}

heading("Summary");
for (const { name, ok, detail } of sections)
  console.log(`  ${ok ? green("ok    ") : red("FAILED")}  ${name}: ${detail}`);
console.log(`\n${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1;

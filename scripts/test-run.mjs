/** One run of tests: its sections, its counts and its closing line `N passed, N failed`. */
import { chmodSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "./run-command.mjs";
import { CannotGoOn, green, heading, red, sayDuration, step } from "./say.mjs";
import { sweepTestRun } from "./test-sweep.mjs";
import { ROOT, toolEnv } from "./workspace.mjs";

export class TestRun {
  /** Part of the names of everything that the tests of this run make. */
  id = Math.random().toString(36).slice(2, 8).padEnd(6, "0");
  // The name is short: the path of a Unix socket has 108 bytes.
  #scratch = mkdtempSync(join(tmpdir(), "ktt-"));
  #total = { passed: 0, failed: 0 };
  /** @type {{ name: string, ok: boolean, detail: string }[]} */
  #sections = [];
  #interruption = new AbortController();

  constructor() {
    // Tests of users without root must reach their files.
    chmodSync(this.#scratch, 0o711);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => this.#interruption.abort(signal));
  }

  stopIfInterrupted() {
    if (this.#interruption.signal.aborted) throw new CannotGoOn(`Ended by ${this.#interruption.signal.reason}.`);
  }

  /** A program whose exit code is the result; it counts only when it fails. */
  async check(name, command, args) {
    heading(name);
    const started = performance.now();
    const { code } = await runCommand(command, args, {
      cwd: ROOT,
      env: toolEnv(),
      show: true,
      signal: this.#interruption.signal,
    });
    this.stopIfInterrupted();
    if (code !== 0) this.#total.failed += 1;
    this.#conclude(name, code === 0, code === 0 ? sayDuration(performance.now() - started) : `exit code ${code}`);
  }

  /**
   * `bun test` with these arguments; its tests are counted. A test that fails runs once more, because machines stall; bun
   * marks it with "(attempt 2)".
   * @param {string} name
   * @param {readonly string[]} args
   * @param {{ limitMs: number, env?: Record<string, string> }} options
   */
  async bunTest(name, args, { limitMs, env = {} }) {
    heading(name);
    const started = performance.now();
    const file = join(this.#scratch, `${this.#sections.length}.xml`);
    const { code } = await runCommand(
      "bun",
      ["test", "--retry=1", "--reporter=junit", `--reporter-outfile=${file}`, ...args],
      {
        cwd: ROOT,
        env: { ...toolEnv(), KUBELET_TS_TEST_RUN: this.id, TMPDIR: this.#scratch, ...env },
        show: true,
        timeoutMs: limitMs,
        signal: this.#interruption.signal,
      },
    );
    this.stopIfInterrupted();
    const report = readReport(file);
    const executed = report ? report.tests - report.skipped : 0;
    const passed = report ? executed - report.failures : 0;
    // A run can fail outside its tests: an error while a file is loaded, a throw after the last test, a kill.
    const failed = Math.max(report?.failures ?? 0, code === 0 && executed > 0 ? 0 : 1);
    this.#total.passed += passed;
    this.#total.failed += failed;
    const skipped = report?.skipped ? `, ${report.skipped} skipped` : "";
    const why =
      executed === 0 ? " (no test was executed)" : report?.failures === 0 && failed > 0 ? ` (exit code ${code})` : "";
    const time = sayDuration(performance.now() - started);
    this.#conclude(name, failed === 0, `${passed} passed, ${failed} failed${why}${skipped} in ${time}`);
  }

  /** Counts as one failure. */
  fail(error, doing = "") {
    this.#total.failed += 1;
    console.error(
      `\n${red("error")}  ${doing}${error instanceof CannotGoOn ? error.message : (error?.stack ?? error)}`,
    );
  }

  /** Removes what the tests of this run left. @param {import("./engine-api.mjs").Endpoint | undefined} endpoint */
  async sweep(endpoint) {
    const left = await sweepTestRun(endpoint, this.id, this.#scratch);
    if (left > 0) step("clean-up", `removed ${left} containers that tests had left`);
  }

  /** Prints the summary with the closing line and sets the exit code. */
  summarize() {
    heading("Summary");
    for (const { name, ok, detail } of this.#sections)
      console.log(`  ${ok ? green("ok    ") : red("FAILED")}  ${name}: ${detail}`);
    const { passed, failed } = this.#total;
    console.log(`\n${passed} passed, ${failed} failed`);
    process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
  }

  #conclude(name, ok, detail) {
    this.#sections.push({ name, ok, detail });
    step(ok ? "ok" : red("FAILED"), `${name}: ${detail}`);
  }
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

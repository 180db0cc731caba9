/** One run of tests: its sections, its counts and its closing line `N passed, N failed`. */
import { chmodSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { runCommand } from "./run-command.mjs";
import { CannotContinue, green, heading, red, sayDuration, step } from "./say.mjs";
import { sweepTestRun } from "./test-sweep.mjs";
import { ROOT, toolEnv } from "./workspace.mjs";

/** Files of one run that may be executed twice. With more, the machine or the change is at fault. */
const MAX_RETRIED_FILES = 2;

/** Tests that the summary lists by their time. */
const SLOWEST_SHOWN = 20;

/** How many times longer than usual the tests wait when they are executed again. */
const RETRY_SLOWNESS = "3";

/** Lines of a failure that the summary repeats. */
const MAX_FAILURE_LINES = 60;

export class TestRun {
  /** Part of the names of everything that the tests of this run make. */
  id = Math.random().toString(36).slice(2, 8).padEnd(6, "0");
  // The name is short: the path of a Unix socket has 108 bytes.
  #scratch = mkdtempSync(join(tmpdir(), "ktt-"));
  #total = { passed: 0, failed: 0 };
  /** @type {{ name: string, ok: boolean, detail: string }[]} */
  #sections = [];
  #interruption = new AbortController();
  #reports = 0;
  /** Output of the tests that failed. @type {string[]} */
  #failures = [];
  /** @type {{ seconds: number, file: string, name: string }[]} */
  #times = [];
  /** @type {string[]} */
  #executedTwice = [];

  constructor() {
    // Tests of users without root must reach their files.
    chmodSync(this.#scratch, 0o711);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => this.#interruption.abort(signal));
  }

  stopIfInterrupted() {
    if (this.#interruption.signal.aborted) throw new CannotContinue(`Ended by ${this.#interruption.signal.reason}.`);
  }

  /**
   * Programs that run at the same time; the output of those that fail is shown. One that fails counts as one failed.
   * @param {Record<string, readonly [command: string, ...args: string[]]>} programs by name
   */
  async checks(programs) {
    heading("Checks");
    const started = performance.now();
    const checkOne = async ([name, [command, ...args]]) => {
      const options = { cwd: ROOT, env: toolEnv(), signal: this.#interruption.signal };
      const { code, stdout, stderr } = await runCommand(command, args, options);
      if (code !== 0) {
        this.#total.failed += 1;
        console.log(`${stdout}${stderr}`.trimEnd());
      }
      this.#conclude(name, code === 0, code === 0 ? sayDuration(performance.now() - started) : `exit code ${code}`);
    };
    await Promise.all(Object.entries(programs).map(checkOne));
    this.stopIfInterrupted();
  }

  /**
   * `bun test` with these arguments; its tests are counted. Files with a failure are executed once more, alone and with more
   * patience, because machines stall: what fails again has failed.
   * @param {string} name
   * @param {readonly string[]} args
   * @param {{ limitMs: number, env?: Record<string, string> }} options
   */
  async bunTest(name, args, { limitMs, env = {} }) {
    heading(name);
    const started = performance.now();
    const first = await this.#bunTestOnce(args, { limitMs, env });
    const files = first.report && first.failed > 0 ? first.files : [];
    let { failed } = first;
    let retried = "";
    if (files.length > 0 && this.#executedTwice.length + files.length <= MAX_RETRIED_FILES) {
      this.#executedTwice.push(...files);
      heading(`${name}: once more, ${files.join(" ")}`);
      const flags = args.filter((arg) => arg.startsWith("--no-orphans") || arg.startsWith("--timeout"));
      const again = await this.#bunTestOnce([...flags, ...files.map((file) => `./${file}`)], {
        limitMs,
        env: { KUBELET_TS_TEST_SLOWNESS: RETRY_SLOWNESS, ...env },
      });
      failed = again.failed;
      retried = `, ${files.length} files executed twice`;
      this.#failures.push(...again.failures);
    } else this.#failures.push(...first.failures);
    const executed = first.report ? first.report.tests - first.report.skipped : 0;
    const passed = Math.max(0, executed - failed);
    this.#total.passed += passed;
    this.#total.failed += failed;
    this.#times.push(...(first.report?.times ?? []));
    const skipped = first.report?.skipped ? `, ${first.report.skipped} skipped` : "";
    const why = executed === 0 ? " (no test was executed)" : "";
    const time = sayDuration(performance.now() - started);
    this.#conclude(name, failed === 0, `${passed} passed, ${failed} failed${why}${skipped}${retried} in ${time}`);
  }

  /** One run of `bun test`, shown while it continues. */
  async #bunTestOnce(args, { limitMs, env }) {
    this.#reports += 1;
    const file = join(this.#scratch, `${this.#reports}.xml`);
    const { code, stdout, stderr } = await runCommand(
      "bun",
      ["test", "--reporter=junit", `--reporter-outfile=${file}`, ...args],
      {
        cwd: ROOT,
        env: {
          ...toolEnv(),
          ...(process.stdout.isTTY ? { FORCE_COLOR: "1" } : {}),
          KUBELET_TS_TEST_RUN: this.id,
          TMPDIR: this.#scratch,
          ...env,
        },
        show: "and keep",
        timeoutMs: limitMs,
        signal: this.#interruption.signal,
      },
    );
    this.stopIfInterrupted();
    const report = readReport(file);
    const executed = report ? report.tests - report.skipped : 0;
    // A run can fail outside its tests: an error while a file is loaded, a throw after the last test, a kill.
    const failed = Math.max(report?.failures ?? 0, code === 0 && executed > 0 ? 0 : 1);
    return { report, failed, ...findFailures(`${stdout}${stderr}`) };
  }

  /** Counts as one failure. */
  fail(error, doing = "") {
    this.#total.failed += 1;
    console.error(
      `\n${red("error")}  ${doing}${error instanceof CannotContinue ? error.message : (error?.stack ?? error)}`,
    );
  }

  /** Removes what the tests of this run left. @param {import("./engine-api.mjs").Endpoint | undefined} endpoint */
  async sweep(endpoint) {
    const left = await sweepTestRun(endpoint, this.id, this.#scratch);
    if (left > 0) step("clean-up", `removed ${left} containers that tests had left`);
  }

  /** Prints the summary with the closing line and sets the exit code. */
  summarize() {
    if (this.#failures.length > 0) {
      heading("Failures");
      for (const failure of this.#failures) console.log(failure);
    }
    const slowest = this.#times.sort((a, b) => b.seconds - a.seconds).slice(0, SLOWEST_SHOWN);
    if (slowest.length > 0) heading("The slowest tests");
    for (const { seconds, file, name } of slowest)
      console.log(`  ${seconds.toFixed(1).padStart(6)} s  ${file}: ${name}`);
    heading("Summary");
    for (const { name, ok, detail } of this.#sections)
      console.log(`  ${ok ? green("ok    ") : red("FAILED")}  ${name}: ${detail}`);
    for (const file of this.#executedTwice) console.log(`  executed twice: ${file}`);
    const { passed, failed } = this.#total;
    console.log(`\n${passed} passed, ${failed} failed`);
    process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
  }

  #conclude(name, ok, detail) {
    this.#sections.push({ name, ok, detail });
    step(ok ? "ok" : red("FAILED"), `${name}: ${detail}`);
  }
}

/**
 * Finds the failures in the output of `bun test`: the files that have one, and for each the lines up to it.
 * @param {string} output
 * @returns {{ files: string[], failures: string[] }}
 */
export function findFailures(output) {
  const files = new Set();
  const failures = [];
  let file = "";
  let lines = [];
  for (const line of stripVTControlCharacters(output).split("\n")) {
    // bun lists the failed tests again at the end.
    if (/^\d+ tests? (failed|skipped):$/.test(line)) break;
    const header = /^(\S+\.test\.tsx?):$/.exec(line);
    if (header) file = header[1];
    if (header || line.startsWith("(pass)") || line.startsWith("(skip)")) {
      lines = [];
      continue;
    }
    lines.push(line);
    const isUnhandled = line.startsWith("# Unhandled error");
    if (!line.startsWith("(fail)") && !isUnhandled) continue;
    if (file !== "") files.add(file);
    if (isUnhandled) continue;
    failures.push([`${file}:`, ...lines.slice(-MAX_FAILURE_LINES)].join("\n"));
    lines = [];
  }
  return { files: [...files], failures };
}

/** Counts and times of the report of a run; undefined when it was never written, as when the run was killed. */
function readReport(file) {
  try {
    const text = readFileSync(file, "utf8");
    const [head] = /<testsuites\b[^>]*>/.exec(text) ?? [];
    const count = (name) => Number(new RegExp(`\\b${name}="(\\d+)"`).exec(head ?? "")?.[1] ?? Number.NaN);
    const report = { tests: count("tests"), failures: count("failures"), skipped: count("skipped") };
    return Object.values(report).some(Number.isNaN) ? undefined : { ...report, times: readTimes(text) };
  } catch {
    return undefined;
  }
}

/** @returns {{ seconds: number, file: string, name: string }[]} */
const readTimes = (report) =>
  Array.from(
    report.matchAll(/<testcase name="([^"]*)"[^>]* time="([^"]*)" file="([^"]*)"/g),
    ([, name, time, file]) => ({
      seconds: Number(time),
      file,
      name,
    }),
  );

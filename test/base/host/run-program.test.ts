import { expect, test } from "bun:test";
import { runProgram } from "../../../src/base/host/run-program.ts";

const LIMITS = { timeoutMs: 60_000, maxBytes: 65_536 };
const sh = (script: string) => ["/bin/sh", "-c", script];

test("exit code, stdout and stderr are returned; a failure is not an error", async () => {
  expect(await runProgram(sh("echo out; echo err >&2; exit 3"), LIMITS)).toEqual({
    exitCode: 3,
    stdout: "out\n",
    stderr: "err\n",
  });
});

test("stdin holds the input, or nothing; env is added to our own", async () => {
  const argv = sh('cat; echo "$EXTRA"; test -n "$PATH"');
  expect(await runProgram(argv, { ...LIMITS, input: "text\n", env: { EXTRA: "more" } })).toMatchObject({
    exitCode: 0,
    stdout: "text\nmore\n",
  });
  expect((await runProgram(argv, LIMITS)).stdout).toBe("\n");
});

test.each([
  ["too slow", sh("exec sleep 600"), { ...LIMITS, timeoutMs: 50 }],
  ["too much output", ["yes"], { ...LIMITS, maxBytes: 1000 }],
])("a program is killed: %s", async (_, argv, limits) => {
  const limit = `it took longer than ${limits.timeoutMs / 1000} s or wrote more than ${limits.maxBytes} bytes`;
  await expect(runProgram(argv, limits)).rejects.toThrow(`${argv[0]} was killed: ${limit}`);
});

test("what a program started and left behind is not waited for, however the program ends", async () => {
  const startMs = performance.now();
  const { signal } = new AbortController();
  const runs = await Promise.allSettled([
    runProgram(sh("sleep 20 & echo '{}'"), { ...LIMITS, signal }),
    runProgram(sh("sleep 20; true"), { ...LIMITS, timeoutMs: 50 }),
    runProgram(sh("sleep 20; true"), { ...LIMITS, signal: AbortSignal.timeout(50) }),
  ]);
  expect(runs.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
  expect(runs[0]).toMatchObject({ value: { exitCode: 0, stdout: "{}\n" } });
  expect(performance.now() - startMs).toBeLessThan(15_000);
});

test("a program that does not exist is named", async () => {
  await expect(runProgram(["no-such-program"], LIMITS)).rejects.toThrow("no-such-program was not found in PATH");
  await expect(runProgram(["/nonexistent/program"], LIMITS)).rejects.toThrow("/nonexistent/program cannot be run");
});

test("the signal kills it, and its reason is thrown", async () => {
  const controller = new AbortController();
  const run = runProgram(sh("exec sleep 600"), { ...LIMITS, signal: controller.signal });
  controller.abort(new Error("enough"));
  await expect(run).rejects.toThrow("enough");
  await expect(runProgram(["true"], { ...LIMITS, signal: controller.signal })).rejects.toThrow("enough");
});

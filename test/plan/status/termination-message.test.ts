import { describe, expect, test } from "bun:test";
import { type TerminationMessageInput, toTerminationMessage } from "../../../src/plan/status/termination-message.ts";

const noLog = () => Promise.reject(new Error("the log must not be read"));
const message = (input: Partial<TerminationMessageInput>) =>
  toTerminationMessage({ policy: "File", exitCode: 1, file: undefined, readLog: noLog, containerCount: 1, ...input });

describe("the file", () => {
  test.each([
    { when: "is the message", given: { file: "disk full\n" }, want: "disk full\n" },
    { when: "is empty", given: { file: "" }, want: "" },
    { when: "is not there", given: {}, want: "" },
    { when: "goes before the log", given: { policy: "FallbackToLogsOnError", file: "disk full" }, want: "disk full" },
    { when: "is empty after success", given: { policy: "FallbackToLogsOnError", exitCode: 0, file: "" }, want: "" },
  ] as const)("$when", async ({ given, want }) => {
    expect(await message(given)).toBe(want);
  });

  test("is cut to its last 4 KiB, on whole characters", async () => {
    expect(await message({ file: `begin${"x".repeat(4096)}` })).toBe("x".repeat(4096));
    const cut = await message({ file: `${"ü".repeat(2100)}!` });
    expect(cut).toBe(`${"ü".repeat(2047)}!`);
  });
});

describe("the log", () => {
  const fallback = (log: string, given: Partial<TerminationMessageInput> = {}) =>
    message({ policy: "FallbackToLogsOnError", readLog: async () => log, ...given });

  test("replaces an empty or missing file after an error", async () => {
    expect(await fallback("panic\n")).toBe("panic\n");
    expect(await fallback("panic\n", { file: "" })).toBe("panic\n");
  });

  test("gives its last 80 lines", async () => {
    const lines = Array.from({ length: 100 }, (_, n) => `line ${n}`);
    expect(await fallback(`${lines.join("\n")}\n`)).toBe(`${lines.slice(20).join("\n")}\n`);
    expect(await fallback(lines.join("\n"))).toBe(lines.slice(20).join("\n"));
  });

  test("gives its last 2 KiB", async () => {
    expect(await fallback(`begin${"y".repeat(2048)}`)).toBe("y".repeat(2048));
  });

  test("that cannot be read is reported", async () => {
    const readLog = () => Promise.reject(new Error("no such container"));
    expect(await message({ policy: "FallbackToLogsOnError", readLog })).toBe(
      "Error on reading termination message from logs: no such container",
    );
  });
});

test.each([
  { containerCount: 3, want: 4096 },
  { containerCount: 4, want: 3072 },
  { containerCount: 12, want: 1024 },
])("$containerCount containers share 12 KiB: $want bytes each", async ({ containerCount, want }) => {
  expect((await message({ file: "z".repeat(5000), containerCount })).length).toBe(want);
});

test("a share is cut on whole characters too", async () => {
  expect(await message({ file: "ü".repeat(700), containerCount: 11 })).toBe("ü".repeat(558));
});

import { describe, expect, test } from "bun:test";
import { fuzz } from "./fuzz-target.ts";
import { TARGETS } from "./targets.ts";

/** The same inputs in every run; `npm run fuzz` tries others, and longer ones. */
const OPTIONS = { seed: 1, maxLength: 16_384 };

describe("parsers stay within their budgets of CPU time and memory", () => {
  test.each(TARGETS.map((target) => ({ name: target.name, target })))("$name", async ({ target }) => {
    const failures = await fuzz(target, { iterations: target.iterations ?? 150, ...OPTIONS });
    expect(failures.map(({ reason, input }) => ({ reason, input: input.slice(0, 2000) }))).toEqual([]);
  });
});

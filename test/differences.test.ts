import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Rows of every table of docs/differences.md, without heads: the cells as they stand. */
const rows = readFileSync(join(import.meta.dir, "../docs/differences.md"), "utf8")
  .split("\n")
  .filter(
    (line, at, lines) => line.startsWith("| ") && !line.startsWith("| ---") && !lines[at + 1]?.startsWith("| ---"),
  )
  .map((line) => line.slice(2, -2).split(" | "));

/** The first cell of each row, and the files of `test/` that test the row, without `.test.ts`. */
const entries = readFileSync(join(import.meta.dir, "fixtures/difference-tests.txt"), "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => line.split(" => "))
  .map(([difference = "", tests = ""]) => ({ difference, tests: tests.split(", ") }));

test("there are rows, and no cell is empty", () => {
  expect(rows.length).toBeGreaterThan(60);
  expect(rows.filter((cells) => cells.length < 2 || cells.some((cell) => cell.trim() === ""))).toEqual([]);
});

test("each row has a line in fixtures/difference-tests.txt, and each line a row", () => {
  const named = entries.map(({ difference }) => difference).toSorted();
  expect(rows.map(([difference = ""]) => difference).toSorted()).toEqual(named);
});

test("each line names tests that exist", () => {
  const missing = entries.flatMap(({ difference, tests }) =>
    tests
      .filter((name) => !existsSync(join(import.meta.dir, `${name}.test.ts`)))
      .map((name) => `${difference}: there is no test/${name}.test.ts`),
  );
  expect(missing).toEqual([]);
});

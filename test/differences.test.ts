import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "..");
const DOC = "docs/differences.md";

/** Rows of every table, without heads: the cells as they stand. */
const rows = readFileSync(join(ROOT, DOC), "utf8")
  .split("\n")
  .filter((line) => line.startsWith("| ") && !line.startsWith("| ---") && !line.endsWith("| Test |"))
  .map((line) => line.slice(2, -2).split(" | "));

test("there are rows, all of four cells, none empty", () => {
  expect(rows.length).toBeGreaterThan(60);
  expect(rows.filter((cells) => cells.length !== 4 || cells.some((cell) => cell.trim() === ""))).toEqual([]);
});

test("each row names its tests, and they are there", () => {
  const wrong = rows.flatMap(([difference, , , tests = ""]) => {
    const paths = [...tests.matchAll(/`([^`]+)`/g)].map(([, path = ""]) => path);
    if (paths.length === 0) return [`${difference}: no test`];
    return paths
      .filter((path) => !path.endsWith(".test.ts") || !existsSync(join(ROOT, path)))
      .map((path) => `${difference}: there is no ${path}`);
  });
  expect(wrong).toEqual([]);
});

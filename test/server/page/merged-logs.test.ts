import { expect, test } from "bun:test";
import { mergeLogs } from "../../../src/server/page/merged-logs.ts";

async function* chunksOf(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text);
}

async function allOf(...logs: Parameters<typeof mergeLogs>[0]): Promise<string[]> {
  let text = "";
  for await (const piece of mergeLogs(logs)) text += piece;
  return text.split("\n").slice(0, -1);
}

test("lines keep their log's name and order, wherever the chunks end", async () => {
  const lines = await allOf(
    { name: "a", chunks: chunksOf("one\ntw", "o\n", "thr", "ee") },
    { name: "b", chunks: chunksOf("\tx\n\n") },
    { name: "c", chunks: chunksOf() },
  );
  expect(lines.filter((line) => line.startsWith("a"))).toEqual(["a\tone", "a\ttwo", "a\tthree"]);
  expect(lines.filter((line) => line.startsWith("b"))).toEqual(["b\t\tx", "b\t"]);
  expect(lines.length).toBe(5);
});

test("a log that is silent does not delay the others", async () => {
  const silent = { [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}) }) };
  const merged = mergeLogs([
    { name: "silent", chunks: silent },
    { name: "a", chunks: chunksOf("1\n", "2\n") },
  ]);
  expect([(await merged.next()).value, (await merged.next()).value]).toEqual(["a\t1\n", "a\t2\n"]);
});

test("a line without end is sent in pieces", async () => {
  const lines = await allOf({ name: "a", chunks: chunksOf("x".repeat(300_000), "y\n") });
  expect(lines.map((line) => line.length)).toEqual([300_002, 3]);
});

import { expect, test } from "bun:test";
import type { ProcessSession } from "../../../src/base/model/container-access.ts";
import { logWhile, mergeLogs, shellWhile } from "../../../src/server/page/page-streams.ts";

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

const bytes = (text: string) => Buffer.from(text);

test("a log ends with the session", async () => {
  let isAllowed = true;
  async function* lines() {
    yield bytes("a");
    isAllowed = false;
    yield bytes("b");
  }
  const read: string[] = [];
  for await (const chunk of logWhile(lines(), () => isAllowed)) read.push(Buffer.from(chunk).toString());
  expect(read).toEqual(["a"]);
});

function aShell(output: ProcessSession["output"]) {
  const written: string[] = [];
  let closes = 0;
  const session: ProcessSession = {
    output,
    write: async (data) => void written.push(Buffer.from(data).toString()),
    endInput: () => {},
    resize: async () => {},
    exitCode: async () => 0,
    close: async () => void closes++,
  };
  return { session, written, closes: () => closes };
}

test("a shell takes no input after its session has expired: its process is killed", async () => {
  let isAllowed = true;
  const { session, written, closes } = aShell((async function* () {})());
  const shell = shellWhile(session, () => isAllowed);
  await shell.write(bytes("ls"));
  isAllowed = false;
  await shell.write(bytes("rm"));
  expect({ written, closes: closes() }).toEqual({ written: ["ls"], closes: 1 });
});

test("a shell shows no output after its session has expired, and says why it ends", async () => {
  let isAllowed = true;
  const { session } = aShell(
    (async function* () {
      yield { stream: "stdout" as const, data: bytes("a") };
      isAllowed = false;
      yield { stream: "stdout" as const, data: bytes("b") };
    })(),
  );
  const shown: string[] = [];
  const read = async () => {
    for await (const { data } of shellWhile(session, () => isAllowed).output) shown.push(Buffer.from(data).toString());
  };
  expect(await read().catch((error) => error.message)).toMatch(/session of the page has expired/);
  expect(shown).toEqual(["a"]);
});

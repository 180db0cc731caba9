import { expect, test } from "bun:test";
import type { ProcessSession } from "../../../src/base/model/container-access.ts";
import { logWhile, nameLines, PacedSocket, shellWhile } from "../../../src/server/page/page-routes.ts";
import { FakeClock } from "../../support/fake-clock.ts";

async function* chunksOf(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text);
}

async function linesOf(chunks: AsyncIterable<Uint8Array>): Promise<string[]> {
  const pieces = await Array.fromAsync(nameLines("a", chunks));
  return pieces.join("").split("\n").slice(0, -1);
}

test.each([
  [
    ["one\ntw", "o\n", "thr", "ee"],
    ["a\tone", "a\ttwo", "a\tthree"],
  ],
  [["\tx\n\n"], ["a\t\tx", "a\t"]],
  [[], []],
])("lines have the name of their log, wherever the chunks end: %p", async (chunks, lines) => {
  expect(await linesOf(chunksOf(...chunks))).toEqual(lines);
});

test("a line without end is sent in pieces", async () => {
  const lines = await linesOf(chunksOf("x".repeat(300_000), "y\n"));
  expect(lines.map((line) => line.length)).toEqual([300_002, 3]);
});

test("a reader that acknowledges nothing gets a megabyte, and the rest as it reads; lines are gathered", async () => {
  const gone = new AbortController();
  const clock = new FakeClock();
  const acknowledgements = Promise.withResolvers<Buffer>();
  const sent: number[] = [];
  const socket = new PacedSocket(
    {
      gone: gone.signal,
      send: async ({ length }) => void sent.push(length / 1024),
      messages: async function* () {
        yield await acknowledgements.promise;
        await new Promise((resolve) => gone.signal.addEventListener("abort", resolve));
      },
    },
    clock,
  );
  const all = (async () => {
    for (let count = 0; count < 64; count++) await socket.write(Buffer.alloc(64 * 1024));
  })();
  await clock.advance(20);
  expect(sent).toEqual([17 * 64]);
  acknowledgements.resolve(Buffer.from(String(10 * 64 * 1024)));
  await clock.advance(20);
  expect(sent).toEqual([17 * 64, 10 * 64]);
  gone.abort();
  await all;
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

import { expect, test } from "bun:test";
import {
  linesOf,
  partsOfList,
  readBoundedStream,
  readOutput,
  StreamTooLongError,
} from "../../../src/base/files/bounded-stream.ts";

let isClosed = false;
async function* endless() {
  try {
    for (;;) yield Buffer.alloc(1024, "x");
  } finally {
    isClosed = true;
  }
}

test("a stream within the limit is read whole, also where a character is split", async () => {
  const bytes = Buffer.from("grün");
  async function* halves() {
    yield bytes.subarray(0, 3);
    yield bytes.subarray(3);
  }
  expect(await readBoundedStream(halves(), 5)).toBe("grün");
  expect(await readBoundedStream(null, 5)).toBe("");
});

test("a stream without end is closed at the limit", async () => {
  await expect(readBoundedStream(endless(), 4096)).rejects.toThrow(StreamTooLongError);
  expect(isClosed).toBe(true);
});

test("of the error output of a program the beginning is kept, and all of it is read", async () => {
  const child = Bun.spawn(["sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' e >&2; exit 3"], { stderr: "pipe" });
  expect((await readOutput(child.stderr)).length).toBe(64 * 1024);
  expect(await child.exited).toBe(3);
});

test("a line without end is refused at the limit, lines before it are not", async () => {
  isClosed = false;
  async function* stream() {
    yield Buffer.from("a\nbb\nc");
    yield* endless();
  }
  const lines: string[] = [];
  const read = async () => {
    for await (const line of linesOf(stream(), 5000)) lines.push(line);
  };
  await expect(read()).rejects.toThrow("a line is longer than 5000 characters");
  expect(isClosed).toBe(true);
  expect(lines).toEqual(["a", "bb"]);
});

test.each([1, 5, 1000])("a list in chunks of %d bytes is lists of all its items, none is too long", async (size) => {
  const list = JSON.stringify(Array.from({ length: 50 }, (_, Id) => ({ Id, text: "x".repeat(20 * Id) })));
  const chunks = async function* () {
    for (let at = 0; at < list.length; at += size) yield Buffer.from(list.slice(at, at + size));
  };
  const ids: number[] = [];
  for await (const part of partsOfList(chunks(), ["[", '},{"Id":', "]"], 1e6))
    ids.push(...JSON.parse(part).map(({ Id }: { Id: number }) => Id));
  expect(ids).toEqual(Array.from({ length: 50 }, (_, Id) => Id));
});

test("a list that is one endless item ends with an error", async () => {
  const endless = async function* () {
    for (;;) yield Buffer.from("[[[[".repeat(16_384));
  };
  const read = async () => (await partsOfList(endless(), ["[", '},{"Id":', "]"], 1e9).next()).value;
  await expect(read()).rejects.toThrow("not a list, or an item is too long");
});

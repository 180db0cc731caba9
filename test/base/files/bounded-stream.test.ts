import { expect, test } from "bun:test";
import { linesOf, readBoundedStream, readOutput, StreamTooLongError } from "../../../src/base/files/bounded-stream.ts";

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

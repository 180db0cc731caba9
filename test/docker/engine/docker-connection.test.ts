import { expect, test } from "bun:test";
import { demultiplex, jsonLines, rawOutput } from "../../../src/docker/engine/docker-connection.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

function frame(stream: number, payload: string): Uint8Array {
  const data = bytes(payload);
  const whole = new Uint8Array(8 + data.length);
  whole[0] = stream;
  new DataView(whole.buffer).setUint32(4, data.length);
  whole.set(data, 8);
  return whole;
}

/** The same bytes, cut into pieces of `size`. */
async function* pieces(whole: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < whole.length; at += size) yield whole.slice(at, at + size);
}

async function collect(source: AsyncIterable<{ stream: string; data: Uint8Array }>): Promise<Record<string, string>> {
  const seen: Record<string, string> = {};
  const decoder = new TextDecoder();
  for await (const { stream, data } of source) seen[stream] = (seen[stream] ?? "") + decoder.decode(data);
  return seen;
}

const LOG = Buffer.concat([frame(1, "one\n"), frame(2, "bad\n"), frame(1, ""), frame(1, "two"), frame(3, "engine\n")]);

test.each([1, 2, 3, 7, 8, 9, 1000])("frames are found however they are cut (%d bytes)", async (size) => {
  expect(await collect(demultiplex(pieces(LOG, size)))).toEqual({ stdout: "one\ntwo", stderr: "bad\nengine\n" });
});

test("frames of one stream that arrive together are one piece of at most 32 KiB", async () => {
  const log = Buffer.concat([...Array.from({ length: 100 }, () => frame(1, "a line\n")), frame(2, "x".repeat(32_768))]);
  const sizes = (await Array.fromAsync(demultiplex(pieces(log, 1e6)))).map(({ stream, data }) => [stream, data.length]);
  expect(sizes).toEqual([
    ["stdout", 700],
    ["stderr", 32_768],
  ]);
});

test("what is not a frame is an error, not output", async () => {
  await expect(collect(demultiplex(pieces(bytes("plain terminal text"), 100)))).rejects.toThrow(
    "not a multiplexed stream",
  );
});

test("a stream that ends inside a frame yields the partial frame", async () => {
  expect(await collect(demultiplex(pieces(LOG.subarray(0, 10), 4)))).toEqual({ stdout: "on" });
});

test("raw output is stdout", async () => {
  expect(await collect(rawOutput(pieces(bytes("a\r\nb"), 2)))).toEqual({ stdout: "a\r\nb" });
});

test.each([1, 3, 1000])("lines of JSON are found however they are cut (%d bytes)", async (size) => {
  const text = '{"a":"é"}\r\n\n{"b":2}\n{"last":true}';
  const lines: string[] = [];
  for await (const line of jsonLines(pieces(bytes(text), size))) lines.push(line);
  expect(lines).toEqual(['{"a":"é"}', '{"b":2}', '{"last":true}']);
});

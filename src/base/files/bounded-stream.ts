import type { Writable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";

/** A stream that is longer than its reader accepts. */
export class StreamTooLongError extends Error {}

type Chunks = AsyncIterable<Uint8Array> | null | undefined;

/** The UTF-8 text of a whole stream; "" when there is none. @throws StreamTooLongError, after closing it */
export const readBoundedStream = async (stream: Chunks, maxBytes: number): Promise<string> =>
  (await readBoundedBytesOf(stream, maxBytes)).toString("utf8");

/** As {@link readBoundedStream}, as bytes. */
export async function readBoundedBytesOf(stream: Chunks, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream ?? []) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new StreamTooLongError(`is longer than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  const [first] = chunks;
  return first && chunks.length === 1
    ? Buffer.from(first.buffer, first.byteOffset, first.length)
    : Buffer.concat(chunks);
}

/**
 * Lines of UTF-8 text without their ends, as they arrive; the last one may have had none.
 * @param isCut a line of more than `maxCharacters` comes in pieces
 * @throws StreamTooLongError for such a line otherwise
 */
export async function* linesOf(stream: Chunks, maxCharacters: number, isCut = false): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream ?? []) {
    const [first = "", ...others] = decoder.decode(chunk, { stream: true }).split("\n");
    rest += first;
    for (const line of others) {
      yield rest;
      rest = line;
    }
    if (rest.length <= maxCharacters) continue;
    if (!isCut) throw new StreamTooLongError(`a line is longer than ${maxCharacters} characters`);
    yield rest;
    rest = "";
  }
  rest += decoder.decode();
  if (rest !== "") yield rest;
}

/** Longest part of a list that does not end with an item, as one that is written otherwise. */
const MAX_PART_CHARACTERS = 4 * 1024 * 1024;

/**
 * A list of JSON as lists of some of its items, as they arrive, in turns of the event loop; a short one may be written otherwise.
 * @param form what precedes a first item, stands between two (its quotes would be escaped in a string), and follows a last one
 * @throws StreamTooLongError
 */
export async function* partsOfList(stream: Chunks, [open, between, close]: readonly string[], maxBytes: number) {
  const decoder = new TextDecoder();
  /** Never searched: each time it would be copied into one text. */
  let begun = "";
  /** The text after it: an end that may begin the separator of two items. */
  let recent = "";
  const seam = between!.length - 1;
  let bytes = 0;
  for await (const chunk of stream ?? []) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new StreamTooLongError(`more than ${maxBytes} bytes`);
    const both = recent + decoder.decode(chunk, { stream: true });
    const end = both.lastIndexOf(between!);
    if (end !== -1) {
      yield `${begun}${both.slice(0, end)}}${close}`;
      [begun, recent] = ["", `${open}${both.slice(end + 2)}`];
    } else [begun, recent] = [begun + both.slice(0, -seam), both.slice(-seam)];
    if (begun.length > MAX_PART_CHARACTERS) throw new StreamTooLongError("not a list, or an item is too long");
    await nextTurn();
  }
  yield begun + recent;
}

/** Bytes kept of the output of a program. */
const MAX_OUTPUT_BYTES = 64 * 1024;

/** The beginning of what a program writes. The rest is read and dropped, so that the program is not delayed. */
export async function readOutput(stream: Chunks): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream ?? []) {
    if (bytes < MAX_OUTPUT_BYTES) chunks.push(chunk.subarray(0, MAX_OUTPUT_BYTES - bytes));
    bytes += chunk.length;
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Resolves when more may be written, also when the stream no longer takes data. */
export function writeTo(stream: Writable, data: Uint8Array | string): Promise<void> {
  if (!stream.writable || stream.write(data)) return Promise.resolve();
  const { promise, resolve } = Promise.withResolvers<void>();
  stream.on("drain", resolve).on("close", resolve);
  return promise.finally(() => stream.off("drain", resolve).off("close", resolve));
}

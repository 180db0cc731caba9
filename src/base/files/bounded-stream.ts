/** A stream that is longer than its reader accepts. */
export class StreamTooLongError extends Error {
  override readonly name = "StreamTooLongError";
}

/** The UTF-8 text of a whole stream; "" when there is none. @throws StreamTooLongError, after closing it */
export async function readBoundedStream(
  stream: AsyncIterable<Uint8Array> | null | undefined,
  maxBytes: number,
): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream ?? []) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new StreamTooLongError(`is longer than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Bytes kept of the output of a program. */
const MAX_OUTPUT_BYTES = 64 * 1024;

/** The beginning of what a program writes. The rest is read and dropped, so that the program is not delayed. */
export async function readOutput(stream: AsyncIterable<Uint8Array> | null | undefined): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream ?? []) {
    if (bytes < MAX_OUTPUT_BYTES) chunks.push(chunk.subarray(0, MAX_OUTPUT_BYTES - bytes));
    bytes += chunk.length;
  }
  return Buffer.concat(chunks).toString("utf8");
}

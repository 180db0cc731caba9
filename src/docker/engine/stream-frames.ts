/** One piece of a container's output. A chunk is not a line. */
export interface OutputChunk {
  stream: "stdout" | "stderr";
  data: Uint8Array;
}

const HEADER_BYTES = 8;

/**
 * Takes Docker's multiplexed stream apart: frames of `[stream, 0, 0, 0, length]` and payload, yielded as it arrives.
 * @throws Error for a header that is none: the container has a TTY
 */
export async function* demultiplex(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<OutputChunk> {
  const header = new Uint8Array(HEADER_BYTES);
  let headerFill = 0;
  let payloadLeft = 0;
  let stream: OutputChunk["stream"] = "stdout";
  for await (const chunk of chunks) {
    let at = 0;
    while (at < chunk.length) {
      if (payloadLeft > 0) {
        const end = Math.min(chunk.length, at + payloadLeft);
        payloadLeft -= end - at;
        yield { stream, data: chunk.subarray(at, end) };
        at = end;
        continue;
      }
      const take = Math.min(HEADER_BYTES - headerFill, chunk.length - at);
      header.set(chunk.subarray(at, at + take), headerFill);
      headerFill += take;
      at += take;
      if (headerFill < HEADER_BYTES) break;
      headerFill = 0;
      const [kind = 0, pad1, pad2, pad3] = header;
      if (kind > 3 || pad1 !== 0 || pad2 !== 0 || pad3 !== 0) throw new Error("not a multiplexed stream");
      // 3 is the engine's own error text; it belongs to what the reader should see as stderr.
      stream = kind >= 2 ? "stderr" : "stdout";
      payloadLeft = new DataView(header.buffer).getUint32(4);
    }
  }
}

/** A TTY's raw stream: everything is stdout. */
export async function* rawOutput(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<OutputChunk> {
  for await (const data of chunks) yield { stream: "stdout", data };
}

const MAX_LINE_BYTES = 16 * 1024 * 1024;

/** Lines of JSON, without the line end and empty lines. @throws Error for one over 16 MiB: the server is not Docker */
export async function* jsonLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks) {
    rest += decoder.decode(chunk, { stream: true });
    let from = 0;
    for (let at = rest.indexOf("\n"); at >= 0; at = rest.indexOf("\n", from)) {
      const line = rest.slice(from, at).trim();
      from = at + 1;
      if (line !== "") yield line;
    }
    rest = rest.slice(from);
    if (rest.length > MAX_LINE_BYTES) throw new Error("a line of more than 16 MiB");
  }
  const last = (rest + decoder.decode()).trim();
  if (last !== "") yield last;
}

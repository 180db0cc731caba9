/** A longer line is sent in pieces. Unit: UTF-16 code units. */
const MAX_LINE_CHARS = 256 * 1024;

/**
 * Lines of several logs as one stream, each as `name<TAB>line`, in the order in which they come: browsers open only six
 * connections to a server. Ends when all logs have ended.
 */
export async function* mergeLogs(
  logs: readonly { name: string; chunks: AsyncIterable<Uint8Array> }[],
): AsyncGenerator<string> {
  const sources = logs.map(({ name, chunks }) => {
    const lines = toLines(chunks)[Symbol.asyncIterator]();
    const read = () => lines.next().then((result) => ({ source, result }));
    const source = { name, lines, read };
    return source;
  });
  const waiting = new Map(sources.map((source) => [source, source.read()]));
  while (waiting.size > 0) {
    const { source, result } = await Promise.race(waiting.values());
    if (result.done) waiting.delete(source);
    else {
      waiting.set(source, source.read());
      yield result.value.map((line) => `${source.name}\t${line}\n`).join("");
    }
  }
}

/** Complete lines of each chunk; never an empty list. */
async function* toLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string[]> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > MAX_LINE_CHARS) {
      lines.push(rest);
      rest = "";
    }
    if (lines.length > 0) yield lines;
  }
  if (rest !== "") yield [rest];
}

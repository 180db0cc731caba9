/** A longer line is sent in pieces. Unit: UTF-16 code units. */
const MAX_LINE_CHARS = 256 * 1024;

/**
 * Lines of several logs as one stream, each as `name<TAB>line`, in the order in which they come: browsers open only six
 * connections to a server. Ends when all logs have ended.
 */
export async function* mergeLogs(
  logs: readonly { name: string; chunks: AsyncIterable<Uint8Array> }[],
): AsyncGenerator<string> {
  // Not Promise.race: each call would stay with the promise of a log that is silent, for as long as that is.
  const arrived: (() => { name: string; next: () => void; result: IteratorResult<string[]> })[] = [];
  let wake = () => {};
  for (const { name, chunks } of logs) {
    const lines = toLines(chunks);
    const next = () => {
      const arrive = (take: (typeof arrived)[number]) => {
        arrived.push(take);
        wake();
      };
      lines.next().then(
        (result) => arrive(() => ({ name, next, result })),
        (error) =>
          arrive(() => {
            throw error;
          }),
      );
    };
    next();
  }
  for (let open = logs.length; open > 0; ) {
    const take = arrived.shift();
    if (!take) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      continue;
    }
    const { name, next, result } = take();
    if (result.done) open--;
    else {
      next();
      yield result.value.map((line) => `${name}\t${line}\n`).join("");
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

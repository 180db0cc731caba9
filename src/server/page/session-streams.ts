import type { ProcessSession } from "../../base/model/container-access.ts";

const EXPIRED = "the session of the page has expired";

/** Ends at the first data after the session has expired. @param isAllowed asked before each chunk */
export async function* logWhile<T>(chunks: AsyncIterable<T>, isAllowed: () => boolean): AsyncGenerator<T> {
  for await (const chunk of chunks) {
    if (!isAllowed()) return;
    yield chunk;
  }
}

/** Ends at the first input or output after the session of the page has expired; the process is killed then. */
export function shellWhile(session: ProcessSession, isAllowed: () => boolean): ProcessSession {
  let hasExpired = false;
  async function* output(): ProcessSession["output"] {
    for await (const chunk of session.output) {
      hasExpired ||= !isAllowed();
      if (hasExpired) break;
      yield chunk;
    }
    if (hasExpired) throw new Error(EXPIRED);
  }
  return {
    output: output(),
    write: async (data) => {
      hasExpired ||= !isAllowed();
      await (hasExpired ? session.close() : session.write(data));
    },
    endInput: () => session.endInput(),
    resize: (size) => session.resize(size),
    exitCode: () => session.exitCode(),
    close: () => session.close(),
  };
}

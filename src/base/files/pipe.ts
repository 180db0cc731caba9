import { once } from "node:events";
import { createReadStream, type ReadStream, statSync } from "node:fs";
import { unlessFailed } from "../text/error-message.ts";

const OPEN_TIMEOUT_MS = 10_000;

/** Whether the path is a pipe, e.g. from `<(generate)`. */
export const isPipe = (path: string): boolean => unlessFailed(() => statSync(path))?.isFIFO() === true;

/** Opens a pipe for reading. @throws Error when no program opens it for writing in time */
export async function openPipe(path: string, timeoutMs = OPEN_TIMEOUT_MS): Promise<ReadStream> {
  const stream = createReadStream(path);
  const isOpen = await Promise.race([once(stream, "open"), Bun.sleep(timeoutMs).then(() => undefined)]);
  if (isOpen) return stream;
  throw new Error(`is a pipe that no program opened for ${timeoutMs / 1000} s`);
}

import { writeSync } from "node:fs";

/** The pipe was closed at its other end (`| head -1`): this is not an error. */
export class BrokenPipeError extends Error {}

/** The exit code by which a shell reports a process that SIGPIPE has ended. */
export const BROKEN_PIPE_EXIT = 141;

/** Writes everything before it returns: a pipe takes only part of a large buffer. @throws BrokenPipeError */
export function writeAll(fd: number, data: string | Uint8Array): void {
  let bytes = typeof data === "string" ? Buffer.from(data, "utf8") : data;
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(writeSync(fd, bytes));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EPIPE") throw new BrokenPipeError("the reader has closed the pipe");
      if (code !== "EAGAIN") throw error;
      Bun.sleepSync(1);
    }
  }
}

/** Writes a text for users. Errors (a full disk, a closed pipe) are ignored: there is no other place to report them. */
export function writeStderr(text: string): void {
  try {
    process.stderr.write(text);
  } catch {
    // The text is lost.
  }
}

process.stderr.on("error", () => {});

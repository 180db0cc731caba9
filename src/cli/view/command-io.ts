import { writeSync } from "node:fs";

/** What a command that looks at a running kubelet needs of the world. */
export interface ViewIo {
  /** Writes all of it before it returns. @throws ReaderGone when nobody reads any more */
  stdout: (data: string | Uint8Array) => void;
  stderr: (text: string) => void;
  now: () => Date;
  /** Minutes east of Greenwich at some time. */
  offsetMinutes: (at: Date) => number;
}

/** The pipe was closed at its other end (`| head -1`): there is nothing more to do, and nothing wrong. */
export class ReaderGone extends Error {}

/** A pipe takes only part of a big piece at once; this waits, which also holds back who would write faster than is read. */
export function writeAll(fd: number, data: string | Uint8Array): void {
  let bytes = typeof data === "string" ? Buffer.from(data, "utf8") : data;
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(writeSync(fd, bytes));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EPIPE") throw new ReaderGone("nobody reads any more");
      if (code !== "EAGAIN") throw error;
      Bun.sleepSync(1);
    }
  }
}

export const terminalIo: ViewIo = {
  stdout: (data) => writeAll(1, data),
  stderr: (text) => writeAll(2, text),
  now: () => new Date(),
  offsetMinutes: (at) => -at.getTimezoneOffset(),
};

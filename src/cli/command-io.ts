import { writeAll } from "../host/write-all.ts";

/** What a command that looks at a running kubelet needs of the world. */
export interface ViewIo {
  /** Writes all of it before it returns. @throws ReaderGone when nobody reads any more */
  stdout: (data: string | Uint8Array) => void;
  stderr: (text: string) => void;
  now: () => Date;
  /** Minutes east of Greenwich at some time. */
  offsetMinutes: (at: Date) => number;
}

export const terminalIo: ViewIo = {
  stdout: (data) => writeAll(1, data),
  stderr: (text) => writeAll(2, text),
  now: () => new Date(),
  offsetMinutes: (at) => -at.getTimezoneOffset(),
};

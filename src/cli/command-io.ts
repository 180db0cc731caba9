import { writeAll } from "../base/host/write-all.ts";

/**
 * Streams and clock of a command. Commands do not use consola: their output is kubectl's, byte for byte, and scripts parse
 * it. consola formats the log (daemon/logging.ts).
 */
export interface CommandIo {
  /** Writes everything before it returns. @throws BrokenPipeError when the reader has closed the pipe */
  stdout: (data: string | Uint8Array) => void;
  stderr: (text: string) => void;
  now: () => Date;
  /** Minutes east of Greenwich at some time. */
  offsetMinutes: (at: Date) => number;
}

/** Where a command writes text. */
export interface TextIo {
  stdout: (text: string) => void;
  stderr: (text: string) => void;
}

export const terminalIo: CommandIo = {
  stdout: (data) => writeAll(1, data),
  stderr: (text) => writeAll(2, text),
  now: () => new Date(),
  offsetMinutes: (at) => -at.getTimezoneOffset(),
};

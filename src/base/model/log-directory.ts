/** The machine's directory of logs, as far as it may be shown. */
export interface LogDirectory {
  /** The entry at a path below it ("" is itself); undefined when missing, outside, or neither directory nor file. */
  open(relative: string): Promise<LogEntry | undefined>;
}

export type LogEntry =
  | { kind: "directory"; modifiedAt: Date; entries: readonly { name: string; isDirectory: boolean }[] }
  | {
      kind: "file";
      modifiedAt: Date;
      sizeBytes: number;
      /** Its bytes up to the size. Read once, or `close`. */
      chunks(): AsyncIterable<Uint8Array>;
      close(): void;
    };

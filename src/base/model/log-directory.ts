/** The machine's directory of logs, as far as it may be shown. */
export interface LogDirectory {
  /**
   * The entry at a path below it; undefined when there is none, or it leads out of the directory, or it is neither directory nor
   * file. @param relative without a leading slash; "" is the directory itself
   */
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

/** The machine's directory of logs, as far as it may be shown. */
export interface LogDirectory {
  /**
   * What is at a path below it; undefined when nothing is, or what is there leads out of it, or is neither directory nor
   * file. @param relative without a leading slash; "" is the directory itself
   */
  look(relative: string): LogEntry | undefined;
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

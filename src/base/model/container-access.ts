import type { ContainerId } from "./pod-snapshot.ts";

/** Which part of a container's log. */
export interface LogSelection {
  follow: boolean;
  /** Number of last lines; undefined = all. */
  tailLines?: number;
  since?: Date;
  /** Each line begins with its time. */
  timestamps: boolean;
  /** Ends after this number of bytes, also within a line; undefined = no limit. */
  limitBytes?: number;
  stdout: boolean;
  stderr: boolean;
}

/** Streams to hold. */
export interface StreamSelection {
  stdin: boolean;
  stdout: boolean;
  /** Never with `tty`: a terminal has one output. */
  stderr: boolean;
  tty: boolean;
}

export interface TerminalSize {
  /** Columns. */
  width: number;
  /** Rows. */
  height: number;
}

/** One piece of a container's output. A chunk is not a line. */
export interface OutputChunk {
  stream: "stdout" | "stderr";
  data: Uint8Array;
}

/** A process in a container, held by its streams. */
export interface ProcessSession {
  /** Its output, in order, until it ends or `close`. May be read once. */
  output: AsyncIterable<OutputChunk>;
  /** Resolves when more may follow. */
  write(data: Uint8Array): Promise<void>;
  /** It reads the end of its input. */
  endInput(): void;
  resize(size: TerminalSize): Promise<void>;
  /** To be called after the end of `output`. undefined for the container's own process, which continues. */
  exitCode(): Promise<number | undefined>;
  /** Releases the streams. A command started for this session that still runs is killed; resolves when it is. Idempotent. */
  close(): Promise<void>;
}

export interface CommandOptions {
  /** After this the command is killed; absent = no limit. */
  timeoutMs?: number;
  /** Output beyond this is read and dropped. Default: 1 MiB. */
  maxOutputBytes?: number;
  /** Kills the command too; the call then rejects with the signal's reason. */
  signal: AbortSignal;
}

export interface CommandResult {
  /** undefined when `timedOut`, or when the engine does not report it. */
  exitCode: number | undefined;
  /** Standard output and standard error, interleaved as received. */
  output: string;
  stderr: string;
  timedOut: boolean;
  /** The command had ended when its time elapsed, but its output had not: what came later is missing. */
  isCut?: boolean;
}

/** Logs and commands of containers. The caller ensures that ids are those of our own containers. */
export interface ContainerAccess {
  /** Resolves when the engine has begun to respond; a terminal has stdout alone. The signal ends what is followed. */
  logs(id: ContainerId, selection: LogSelection, signal: AbortSignal): Promise<AsyncIterable<OutputChunk>>;
  /** Runs a command to its end. Rejects when it cannot be run at all, never for an exit code. */
  run(id: ContainerId, argv: readonly string[], options: CommandOptions): Promise<CommandResult>;
  exec(id: ContainerId, argv: readonly string[], streams: StreamSelection): Promise<ProcessSession>;
  attach(id: ContainerId, streams: StreamSelection): Promise<ProcessSession>;
}

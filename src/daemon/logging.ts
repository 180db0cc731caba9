import { closeSync, fstatSync, mkdirSync, openSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { type ConsolaInstance, createConsola, type LogObject } from "consola/core";
import type { LogFields, Logger } from "../base/model/logger.ts";
import { JOURNAL_PRIORITIES, type SendToJournal, toJournalEntry } from "./journal.ts";

export interface LoggerOptions {
  /** `--v`: debug lines from 2. */
  verbosity: number;
  format: "text" | "json" | "journald";
  /** For `journald`; absent where there is no journal. */
  journal?: SendToJournal | undefined;
  /** "" = no file. */
  logDir?: string;
  /** false: only to the file in `logDir`; without one it counts as true. */
  logToStderr?: boolean;
  /** Takes whole lines, line feed included. */
  writeStderr: (line: string) => void;
  /** See `wantsColor`. */
  color: boolean;
  now: () => Date;
}

const LEVELS = {
  error: { consola: 0, name: "ERROR", color: "\u001b[31m" },
  warn: { consola: 1, name: "WARN ", color: "\u001b[33m" },
  info: { consola: 3, name: "INFO ", color: "\u001b[36m" },
  debug: { consola: 4, name: "DEBUG", color: "\u001b[90m" },
} as const;
type Level = keyof typeof LEVELS;

/** A logger whose verbosity may change while it is used. */
export interface AppLogger extends Logger {
  /** @param verbosity as --v: debug lines from 2 */
  setVerbosity(verbosity: number): void;
}

const levelOf = (verbosity: number) => (verbosity >= 2 ? LEVELS.debug.consola : LEVELS.info.consola);

/** One line per fact on stderr and, with `logDir`, in `<logDir>/kubelet-ts.log`. Never throws, also when the disk is full. */
export function createLogger(options: LoggerOptions): AppLogger {
  const render = options.format === "json" ? renderJson : renderText;
  const reportError = (message: string) =>
    options.writeStderr(render("error", message, undefined, options.now(), options.color));
  const file = options.logDir ? new LogFile(options.logDir, reportError) : undefined;
  const toStderr = options.logToStderr !== false || file === undefined;
  const terminal: ConsolaInstance = createConsola({
    level: levelOf(options.verbosity),
    // Consola throttles equal lines by default; here every line is written with its time.
    throttle: 0,
    throttleMin: Number.POSITIVE_INFINITY,
    reporters: [
      {
        log: (entry: LogObject) => {
          const level = entry.type as Level;
          const [message, fields] = entry.args as [string, LogFields | undefined];
          const now = options.now();
          if (options.format === "journald") {
            file?.write(renderText(level, message, fields, now, false));
            const text = escapeControl(message);
            if (!toStderr || options.journal?.(toJournalEntry(level, text, fields))) return;
            // Without a journal, lines with the priority in front, as sd-daemon(3) and service managers read them.
            return options.writeStderr(`<${JOURNAL_PRIORITIES[level]}>${text}${renderFields(fields)}\n`);
          }
          // Entries that the file does not take go to stderr.
          const isInFile = file?.write(render(level, message, fields, now, false)) === true;
          if (toStderr || !isInFile) options.writeStderr(render(level, message, fields, now, options.color));
        },
      },
    ],
  });
  return {
    error: (message, fields) => terminal.error.raw(message, fields),
    warn: (message, fields) => terminal.warn.raw(message, fields),
    info: (message, fields) => terminal.info.raw(message, fields),
    debug: (message, fields) => terminal.debug.raw(message, fields),
    setVerbosity: (verbosity) => {
      terminal.level = levelOf(verbosity);
    },
  };
}

/** Colors are for users: only on a terminal, and not where NO_COLOR or TERM=dumb say otherwise. */
export function wantsColor(env: Readonly<Record<string, string | undefined>>, isTerminal: boolean): boolean {
  return isTerminal && !env.NO_COLOR && env.TERM !== "dumb";
}

function renderText(level: Level, message: string, fields: LogFields | undefined, now: Date, color: boolean): string {
  const { name, color: paint } = LEVELS[level];
  const time = now.toISOString();
  const shown = escapeControl(message) + renderFields(fields);
  return color ? `\u001b[90m${time}\u001b[0m ${paint}${name}\u001b[0m ${shown}\n` : `${time} ${name} ${shown}\n`;
}

function renderFields(fields: LogFields | undefined): string {
  if (!fields) return "";
  let text = "";
  for (const [key, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    const shown = typeof value === "string" && !/^[^\s"=\u0000-\u001f]+$/.test(value) ? JSON.stringify(value) : value;
    text += ` ${key}=${shown}`;
  }
  return text;
}

/** Escapes control characters: text from outside (engine, manifests) must not forge lines or move the cursor. */
export function escapeControl(message: string): string {
  return message.replace(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/g, (char) =>
    char === "\n" ? "\\n" : `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
}

function renderJson(level: Level, message: string, fields: LogFields | undefined, now: Date): string {
  const own = { ts: now.toISOString(), level, msg: message };
  // Twice: first for the order, then so that no field takes their place.
  return `${JSON.stringify({ ...own, ...fields, ...own })}\n`;
}

const MAX_BYTES = 10 * 1024 * 1024;
/** `kubelet-ts.log.1` is the newest of the old ones. */
const OLD_FILES = 4;

/** `<dir>/kubelet-ts.log`, rotated by size. A failing disk is reported once and never stops the program. */
export class LogFile {
  readonly #path: string;
  readonly #reportError: (message: string) => void;
  readonly #maxBytes: number;
  #fd: number | undefined;
  #bytes = 0;
  #failed = false;

  constructor(dir: string, reportError: (message: string) => void, maxBytes = MAX_BYTES) {
    this.#path = join(dir, "kubelet-ts.log");
    this.#reportError = reportError;
    this.#maxBytes = maxBytes;
    this.#try(() => {
      mkdirSync(dir, { recursive: true, mode: 0o755 });
      this.#open();
    });
  }

  /** @returns whether it was written */
  write(line: string): boolean {
    return this.#try(() => {
      if (this.#fd === undefined) this.#open();
      if (this.#bytes >= this.#maxBytes) this.#rotate();
      this.#bytes += writeSync(this.#fd!, line);
      this.#failed = false;
    });
  }

  #open(): void {
    this.#fd = openSync(this.#path, "a", 0o640);
    this.#bytes = fstatSync(this.#fd).size;
  }

  #rotate(): void {
    closeSync(this.#fd!);
    this.#fd = undefined;
    for (let n = OLD_FILES; n > 1; n--) {
      try {
        renameSync(`${this.#path}.${n - 1}`, `${this.#path}.${n}`);
      } catch {
        // Not that many yet.
      }
    }
    renameSync(this.#path, `${this.#path}.1`);
    this.#open();
  }

  #try(action: () => void): boolean {
    try {
      action();
      return true;
    } catch (error) {
      if (!this.#failed) this.#reportError(`Cannot write the log file "${this.#path}": ${(error as Error).message}`);
      this.#failed = true;
      return false;
    }
  }
}

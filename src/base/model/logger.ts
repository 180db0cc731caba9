/** Fields of a log message, e.g. `{ pod: "default/web-node1", attempt: 2 }`. Never a secret. */
export type LogFields = Record<string, string | number | boolean | undefined>;

/** One line per fact. `debug` shows from `--v=2`. */
export interface Logger {
  error(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
}

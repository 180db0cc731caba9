import type { LogFields, Logger } from "./logger.ts";

export type LogLevel = keyof Logger;

/** The oldest facts are forgotten beyond this; being logged twice is the only harm. */
const MAX_FACTS = 10_000;

/**
 * Logs what is found again at every look only when it is news: a key whose message stays the same is silent.
 * For findings in manifests, sources that do not answer, ports that are busy.
 */
export class ChangeLogger {
  readonly #logger: Logger;
  readonly #known = new Map<string, string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  log(key: string, level: LogLevel, message: string, fields?: LogFields): void {
    if (this.#known.get(key) === message) return;
    this.#known.delete(key);
    this.#known.set(key, message);
    if (this.#known.size > MAX_FACTS) this.#known.delete(this.#known.keys().next().value!);
    this.#logger[level](message, fields);
  }

  /** The fact is over; `message` is logged at info level if it had been said. */
  resolve(key: string, message: string, fields?: LogFields): void {
    if (this.#known.delete(key)) this.#logger.info(message, fields);
  }

  /** Forgets every key that starts with `prefix` and is not in `stillTrue`, silently. */
  prune(prefix: string, stillTrue: ReadonlySet<string>): void {
    for (const key of this.#known.keys()) {
      if (key.startsWith(prefix) && !stillTrue.has(key)) this.#known.delete(key);
    }
  }
}

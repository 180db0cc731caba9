import type { LogFields, Logger } from "../model/logger.ts";

type LogLevel = keyof Logger;

/** Beyond this the oldest facts are dropped; they may then be logged twice. */
const MAX_FACTS = 10_000;

/** Logs a repeatedly observed fact only when its message changes. */
export class ChangeLogger {
  readonly #logger: Logger;
  readonly #known = new Map<string, string>();
  readonly #groups = new Map<string, ReadonlySet<string>>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  log(key: string, level: LogLevel, message: string, fields?: LogFields): void {
    if (this.note(key, message)) this.#logger[level](message, fields);
  }

  /** Notes a fact that the caller reports. @returns whether it is another one than before */
  note(key: string, message: string): boolean {
    if (this.#known.get(key) === message) return false;
    this.#known.delete(key);
    this.#known.set(key, message);
    if (this.#known.size > MAX_FACTS) this.#known.delete(this.#known.keys().next().value!);
    return true;
  }

  /** Ends a fact; `message` is logged at info level if the fact was logged before. */
  resolve(key: string, message: string, fields?: LogFields): void {
    if (this.#known.delete(key)) this.#logger.info(message, fields);
  }

  /**
   * Drops, without a message, the facts that were `current` in the group at the last call and are not any more.
   * @param current keys of all facts of the group
   */
  prune(group: string, current: ReadonlySet<string>): void {
    for (const key of this.#groups.get(group) ?? []) if (!current.has(key)) this.#known.delete(key);
    if (current.size > 0) this.#groups.set(group, current);
    else this.#groups.delete(group);
  }
}

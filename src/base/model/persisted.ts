/** A value kept across restarts of the process, as src/base/host/state-file.ts stores it. */
export interface Persisted<T> {
  /** undefined when nothing was written yet or the stored value cannot be read. */
  read(): T | undefined;
  write(value: T): void;
}

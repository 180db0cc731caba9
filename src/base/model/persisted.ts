/** A value kept across restarts of the process, as src/base/host/state-file.ts stores it. */
export interface Persisted<T> {
  /** undefined when nothing was written yet or the stored value cannot be read. */
  read(): T | undefined;
  /**
   * A promise resolves when the value was written, or with `false` when it could not be; then it is tried again.
   * @param onWritten called when the value is written, if no newer one took its place and the result is a promise
   */
  write(value: T, onWritten?: () => void): unknown;
}

/** A map that survives restarts of the process. Changes of one turn of the event loop are one write. */
export class StoredMap<K, V, Stored> extends Map<K, V> {
  readonly #file: Persisted<Stored>;
  readonly #toStored: (entries: ReadonlyMap<K, V>) => Stored;
  #isWriteDue = false;
  #saved: Promise<unknown> | undefined;

  /**
   * @param toEntries reads the form in which the entries are stored; default: pairs of key and value
   * @param toStored the reverse
   */
  constructor(
    file: Persisted<Stored>,
    toEntries: (stored: Stored) => Iterable<readonly [K, V]> = (stored) => stored as Iterable<readonly [K, V]>,
    toStored: (entries: ReadonlyMap<K, V>) => Stored = (entries) => [...entries] as Stored,
  ) {
    super();
    this.#file = file;
    this.#toStored = toStored;
    const stored = file.read();
    if (stored !== undefined) for (const [key, value] of toEntries(stored)) super.set(key, value);
  }

  override set(key: K, value: V): this {
    super.set(key, value);
    this.#write();
    return this;
  }

  override delete(key: K): boolean {
    const isThere = super.delete(key);
    if (isThere) this.#write();
    return isThere;
  }

  /** Resolves when every change so far is in the file; with `false` when it could not be written. */
  async saved(): Promise<boolean> {
    return (await this.#saved) !== false;
  }

  #write(): void {
    if (this.#isWriteDue) return;
    this.#isWriteDue = true;
    this.#saved = Promise.resolve().then(() => {
      this.#isWriteDue = false;
      return this.#file.write(this.#toStored(this));
    });
  }
}

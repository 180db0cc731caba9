type Collection = Map<unknown, unknown> | Set<unknown>;

interface Kept {
  /** File of src that made it. */
  file: string;
  /** Process that made it; 0: it is loaded with its file. */
  process: number;
  collection: WeakRef<Collection>;
}

/** The program gets another one, which does nothing. */
const { gc } = Bun;
/** Smaller ones are not looked at: what only grows becomes larger. */
const LEAST_SIZE = 8;

/** Machines whose Maps and Sets are looked at: that costs time. */
export const hasCollections = (seed: number): boolean => seed % 8 === 3;

/** Maps and Sets of the program that hold more than a few entries. */
export class Collections {
  readonly #processOf: () => number;
  readonly #classes = new Map<string, object>();
  #kept: Kept[] = [];
  /** Entries of what had gone, by collection: a day later they, or the collection, may have gone as well. */
  #suspects = new WeakMap<Collection, string>();
  #hasSuspects = false;

  /** @param processOf the process that runs */
  constructor(processOf: () => number) {
    this.#processOf = processOf;
  }

  /** The text of a file of src, which makes its Maps and Sets here. */
  rewrite(text: string, file: string): string {
    const name = JSON.stringify(file);
    return text.replace(/\bnew (Map|Set)\b(?=[<(])/g, (_, kind) => `new (globalThis.simulated${kind}(${name}))`);
  }

  /** For {@link rewrite}. */
  readonly globals = {
    simulatedMap: (file: string) => this.#classOf("Map", file),
    simulatedSet: (file: string) => this.#classOf("Set", file),
  };

  /**
   * @param isGone whether an entry is of something that has gone for long
   * @returns an entry that was found the last time, too
   */
  findLeft(isGone: (key: string) => boolean): string | undefined {
    // It takes a tenth of a second. What is found for the first time may be garbage.
    if (this.#hasSuspects) gc(true);
    this.#hasSuspects = false;
    const current = this.#processOf();
    const suspects = new WeakMap<Collection, string>();
    let found: string | undefined;
    this.#kept = this.#kept.filter(({ collection }) => collection.deref() !== undefined);
    for (const { file, process, collection } of this.#kept) {
      const all = collection.deref();
      if (!all || (process !== 0 && process !== current)) continue;
      const earlier = this.#suspects.get(all);
      const isLeft = earlier !== undefined && all.has(earlier) && isGone(earlier);
      const key = isLeft ? earlier : all.keys().find((one) => typeof one === "string" && isGone(one));
      if (key === undefined) continue;
      suspects.set(all, key as string);
      this.#hasSuspects = true;
      if (isLeft) found ??= `${all.size} entries of src/${file}, and one is ${key}`;
    }
    this.#suspects = suspects;
    return found;
  }

  #classOf(kind: "Map" | "Set", file: string): object {
    const known = this.#classes.get(kind + file);
    if (known) return known;
    const keep = (collection: Collection) =>
      this.#kept.push({ file, process: this.#processOf(), collection: new WeakRef(collection) });
    const made = kind === "Map" ? countedMap(keep) : countedSet(keep);
    this.#classes.set(kind + file, made);
    return made;
  }
}

const countedMap = (keep: (collection: Collection) => void) =>
  class extends Map<unknown, unknown> {
    #isKept = false;

    override set(key: unknown, value: unknown): this {
      super.set(key, value);
      if (this.size > LEAST_SIZE && #isKept in this && !this.#isKept) {
        this.#isKept = true;
        keep(this);
      }
      return this;
    }
  };

const countedSet = (keep: (collection: Collection) => void) =>
  class extends Set<unknown> {
    #isKept = false;

    override add(value: unknown): this {
      super.add(value);
      if (this.size > LEAST_SIZE && #isKept in this && !this.#isKept) {
        this.#isKept = true;
        keep(this);
      }
      return this;
    }
  };

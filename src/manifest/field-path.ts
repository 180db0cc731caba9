/** Where in an object something stands, e.g. `spec.containers[0].name`. Cheap to extend: turned into text only when needed. */
export class FieldPath {
  readonly #parent: FieldPath | undefined;
  readonly #step: string | number;
  readonly #isKey: boolean;

  private constructor(parent: FieldPath | undefined, step: string | number, isKey = false) {
    this.#parent = parent;
    this.#step = step;
    this.#isKey = isKey;
  }

  static readonly root = new FieldPath(undefined, "");

  /** A field of a struct; dots reach deeper (`exec.command`). */
  child(name: string): FieldPath {
    return new FieldPath(this, name);
  }

  /** An item of a list. */
  index(index: number): FieldPath {
    return new FieldPath(this, index);
  }

  /** The value of a map under a key of the user's. */
  key(key: string): FieldPath {
    return new FieldPath(this, key, true);
  }

  toString(): string {
    const parent = this.#parent?.toString() ?? "";
    if (typeof this.#step === "number" || this.#isKey) return `${parent}[${this.#step}]`;
    return parent === "" ? this.#step : `${parent}.${this.#step}`;
  }

  /** The steps from the root, for the way back to the place in the text. */
  steps(): (string | number)[] {
    const steps = this.#parent?.steps() ?? [];
    if (this.#step === "") return steps;
    if (typeof this.#step === "number" || this.#isKey) steps.push(this.#step);
    else steps.push(...this.#step.split("."));
    return steps;
  }
}

/** Path of a field, e.g. `spec.containers[0].name`. Cheap to extend: converted to text on demand. */
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

  /** A field of a struct; dots separate several (`exec.command`). */
  child(name: string): FieldPath {
    return new FieldPath(this, name);
  }

  /** An item of a list. */
  index(index: number): FieldPath {
    return new FieldPath(this, index);
  }

  /** A value of a map with user-defined keys. */
  key(key: string): FieldPath {
    return new FieldPath(this, key, true);
  }

  toString(): string {
    const parent = this.#parent?.toString() ?? "";
    if (typeof this.#step === "number" || this.#isKey) return `${parent}[${this.#step}]`;
    return parent === "" ? this.#step : `${parent}.${this.#step}`;
  }

  /** The steps from the root. */
  steps(): (string | number)[] {
    const steps = this.#parent?.steps() ?? [];
    if (this.#step === "") return steps;
    if (typeof this.#step === "number" || this.#isKey) steps.push(this.#step);
    else steps.push(...this.#step.split("."));
    return steps;
  }
}

import { nearestName } from "../base/text/nearest-name.ts";

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

/** Words of Docker's restart policies, and kubectl's for access modes. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  no: "Never",
  "unless-stopped": "Always",
  rox: "ReadOnlyMany",
  rwo: "ReadWriteOnce",
  rwop: "ReadWriteOncePod",
  rwx: "ReadWriteMany",
};

/** The value that was meant: `on-failure:3` is OnFailure. */
function nearestValue(found: string, supported: readonly string[]): string | undefined {
  const [word = ""] = found.split(":", 1);
  const known = word.toLowerCase();
  const meant = Object.hasOwn(OTHER_WORDS, known) ? OTHER_WORDS[known]! : word;
  const toBare = (text: string) => text.toLowerCase().replace(/[-_ ]/g, "");
  return supported.find((name) => toBare(name) === toBare(meant)) ?? nearestName(meant, supported);
}

/** Upstream's error types. */
type FieldErrorType =
  | "FieldValueRequired"
  | "FieldValueInvalid"
  | "FieldValueNotSupported"
  | "FieldValueForbidden"
  | "FieldValueNotFound"
  | "FieldValueDuplicate"
  | "FieldValueTooLong";

export interface FieldError {
  /** Upstream's path, which programs compare. */
  path: FieldPath;
  type: FieldErrorType;
  message: string;
  /** Position in the text; differs from `path` where upstream omits an index or misspells a field. */
  at: FieldPath;
  /** Point at the key instead of its value. */
  atKey: boolean;
}

/** A field that is valid in Kubernetes but has no effect or is not possible on one node without an API server. */
export interface SupportNote {
  code: "unsupported" | "ignored";
  path: FieldPath;
  message: string;
}

type Member<T, K extends keyof NonNullable<T>> = NonNullable<T>[K] | (T extends undefined ? undefined : never);
type Item<T> = NonNullable<T> extends readonly (infer I)[] ? I : never;
type Entry<T> = NonNullable<T> extends Readonly<Record<string, infer V>> ? V : never;

/**
 * A field of an object that is validated: its value, which may be absent, and its path. Errors are collected, nothing is
 * thrown. Checks of a format, a range or a choice pass over absent values.
 */
export class Field<T = unknown> {
  constructor(
    readonly value: T,
    readonly path: FieldPath,
    /** Errors of the whole object. */
    readonly errors: FieldError[] = [],
    readonly at: FieldPath = path,
    readonly isKey = false,
  ) {}

  /** A field of a struct. */
  field<K extends keyof NonNullable<T> & string>(name: K): Field<Member<T, K>> {
    const value = (this.value as Record<string, unknown> | undefined)?.[name] as Member<T, K>;
    return this.#below(value, (path) => path.child(name));
  }

  /** The items of a list; none where it is absent. */
  items(): Field<Item<T>>[] {
    const list = (this.value ?? []) as readonly Item<T>[];
    return list.map((item, index) => this.#below(item, (path) => path.index(index)));
  }

  /** A value of a map with user-defined keys. */
  entry(key: string): Field<Entry<T>> {
    const value = (this.value as Record<string, Entry<T>>)[key]!;
    return this.#below(value, (path) => path.key(key));
  }

  #below<V>(value: V, step: (path: FieldPath) => FieldPath): Field<V> {
    const path = step(this.path);
    return new Field(value, path, this.errors, this.at === this.path ? path : step(this.at));
  }

  /** The values of a map with user-defined keys. */
  entries(): [key: string, value: Field<Entry<T>>][] {
    return Object.keys(this.value ?? {}).map((key) => [key, this.entry(key)]);
  }

  /** This field under the path with which upstream reports it. */
  as(path: FieldPath): Field<T> {
    return new Field(this.value, path, this.errors, this.at, this.isKey);
  }

  /** Another value at the same place. */
  with<V>(value: V): Field<V> {
    return new Field(value, this.path, this.errors, this.at, this.isKey);
  }

  /** The name of this field in place of its value. */
  key<V>(value: V): Field<V> {
    return new Field(value, this.path, this.errors, this.at, true);
  }

  /** A note for the author about what happens to this field here. */
  note(message: string, code: SupportNote["code"] = "ignored"): SupportNote {
    return { code, path: this.path, message };
  }

  required(detail = "is required"): void {
    this.#add("FieldValueRequired", detail);
  }

  invalid(detail: string): void {
    const { value } = this;
    this.#add("FieldValueInvalid", `${detail} (found ${show(value)})${describePlaceholder(value)}`);
  }

  /** A missing value that upstream reports as invalid: the message has nothing to show. */
  absent(detail: string): void {
    this.#add("FieldValueInvalid", detail);
  }

  notSupported(supported: readonly string[]): void {
    const values = supported.map((name) => JSON.stringify(name)).join(", ");
    const meant = nearestValue(String(this.value), supported);
    const advice = meant === undefined ? "" : `: write ${meant}`;
    this.#add("FieldValueNotSupported", `must be one of ${values} (found ${show(this.value)})${advice}`);
  }

  forbidden(detail: string): void {
    this.#add("FieldValueForbidden", detail);
  }

  notFound(what: string): void {
    this.#add("FieldValueNotFound", `${what} (found ${show(this.value)})`);
  }

  duplicate(): void {
    this.#add("FieldValueDuplicate", `occurs twice (found ${show(this.value)})`);
  }

  tooLong(limit: string): void {
    this.#add("FieldValueTooLong", `must have at most ${limit}`);
  }

  /** @param check one message for each rule that the value breaks */
  format(check: (value: NonNullable<T>) => readonly string[]): void {
    if (this.value !== undefined && this.value !== null) for (const detail of check(this.value)) this.invalid(detail);
  }

  /** A required text of a format. */
  requiredFormat(check: (value: NonNullable<T>) => readonly string[]): void {
    if (this.value === "") this.required();
    else this.format(check);
  }

  oneOf(supported: readonly string[]): void {
    if (this.value !== undefined && !supported.includes(this.value as string)) this.notSupported(supported);
  }

  /** A required text of several possible ones. */
  requiredOneOf(supported: readonly string[]): void {
    if (this.value === "") this.required();
    else this.oneOf(supported);
  }

  nonNegative(): void {
    if (this.value !== undefined && (this.value as number) < 0) this.invalid("must be 0 or more");
  }

  between(least: number, most: number): void {
    const value = this.value as number | undefined;
    if (value !== undefined && (value < least || value > most)) this.invalid(`must be between ${least} and ${most}`);
  }

  #add(type: FieldErrorType, message: string): void {
    this.errors.push({ path: this.path, type, message, at: this.at, atKey: this.isKey });
  }
}

function show(value: unknown): string {
  if (value === undefined) return '""';
  if (Array.isArray(value)) return `${value.length} items`;
  if (typeof value === "object" && value !== null) return "an object";
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 70)}…" of ${text.length - 2} characters` : text;
}

/** Placeholders in a text, and quotes of other languages, with what replaces them. Each kind follows ": " in a message. */
const PLACEHOLDERS: readonly [RegExp, string][] = [
  [/\{\{.*\}\}|\{%.*%\}/, "placeholders of templates are not replaced here, render the template first"],
  [/\$\{?[A-Za-z_]/, "variables are not replaced here, run `envsubst < FILE` first"],
  [/^<[^<>]+>$|%\{\w+\}%/, "replace the placeholder"],
  [/^https?:\/\//, "write it without http://, a host without a path too"],
  [/^(?:\*\.)?[\w-]+(?:\.[\w-]+)+:\d+$/, "write it without the port"],
  [/^[\u2018-\u201f\u00ab]/, "these are no quotes of YAML: write ' or \""],
];

/** Longer texts are no names. */
const MAX_PLACEHOLDER_LENGTH = 1024;

/** The next step for a value in which a placeholder was left, with ": " before it; "" for other values. */
export function describePlaceholder(value: unknown): string {
  if (typeof value !== "string" || value.length > MAX_PLACEHOLDER_LENGTH) return "";
  const kind = PLACEHOLDERS.find(([pattern]) => pattern.test(value));
  return kind ? `: ${kind[1]}` : "";
}

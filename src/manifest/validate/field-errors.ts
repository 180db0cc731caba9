import type { FieldPath } from "../field-path.ts";

/** Upstream's names of what can be wrong with a field. */
export type FieldErrorType =
  | "FieldValueRequired"
  | "FieldValueInvalid"
  | "FieldValueNotSupported"
  | "FieldValueForbidden"
  | "FieldValueNotFound"
  | "FieldValueDuplicate"
  | "FieldValueTooLong";

export interface FieldError {
  /** As upstream names it; programs compare it. */
  path: FieldPath;
  type: FieldErrorType;
  message: string;
  /** Where to point in the text when `path` is not a place there (upstream leaves out indices here and there). */
  at?: FieldPath | undefined;
  /** Point at the key, not at its value. */
  atKey?: boolean | undefined;
}

/** Place in the text, when it is not the path itself. */
export interface Place {
  at?: FieldPath;
  atKey?: boolean;
}

/** Collects everything wrong with an object; nothing is thrown. */
export class FieldErrors {
  readonly list: FieldError[] = [];

  /** Number of errors so far, to see later whether something added one. */
  get count(): number {
    return this.list.length;
  }

  required(path: FieldPath, detail = "", place?: Place): void {
    this.#add(path, "FieldValueRequired", detail === "" ? "is required" : detail, place);
  }

  invalid(path: FieldPath, value: unknown, detail: string, place?: Place): void {
    this.#add(path, "FieldValueInvalid", `${detail} (found ${show(value)})`, place);
  }

  /** As {@link invalid} once for every message of a format check. */
  invalidAll(path: FieldPath, value: unknown, details: readonly string[], place?: Place): void {
    for (const detail of details) this.invalid(path, value, detail, place);
  }

  notSupported(path: FieldPath, value: unknown, supported: readonly string[], place?: Place): void {
    const values = supported.map((name) => JSON.stringify(name)).join(", ");
    this.#add(path, "FieldValueNotSupported", `must be one of ${values} (found ${show(value)})`, place);
  }

  forbidden(path: FieldPath, detail: string, place?: Place): void {
    this.#add(path, "FieldValueForbidden", detail, place);
  }

  notFound(path: FieldPath, value: unknown, what: string, place?: Place): void {
    this.#add(path, "FieldValueNotFound", `${what} (found ${show(value)})`, place);
  }

  duplicate(path: FieldPath, value: unknown, place?: Place): void {
    this.#add(path, "FieldValueDuplicate", `occurs twice (found ${show(value)})`, place);
  }

  tooLong(path: FieldPath, limit: string, place?: Place): void {
    this.#add(path, "FieldValueTooLong", `must have at most ${limit}`, place);
  }

  #add(path: FieldPath, type: FieldErrorType, message: string, place?: Place): void {
    this.list.push({ path, type, message, at: place?.at, atKey: place?.atKey });
  }
}

function show(value: unknown): string {
  if (value === undefined) return '""';
  if (Array.isArray(value)) return `${value.length} items`;
  if (typeof value === "object" && value !== null) return "an object";
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 70)}…" of ${text.length - 2} characters` : text;
}

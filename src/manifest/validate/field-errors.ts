import type { FieldPath } from "../field-path.ts";
import { describePlaceholder } from "../placeholders.ts";

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
  /** Position in the text when it differs from `path` (upstream omits some indices). */
  at?: FieldPath | undefined;
  /** Point at the key instead of its value. */
  atKey?: boolean | undefined;
}

/** Position in the text when it differs from the path. */
export interface Position {
  at?: FieldPath;
  atKey?: boolean;
}

/** Collects the errors of an object; nothing is thrown. */
export class FieldErrors {
  readonly list: FieldError[] = [];

  /** Number of errors so far. */
  get count(): number {
    return this.list.length;
  }

  required(path: FieldPath, detail = "", position?: Position): void {
    this.#add(path, "FieldValueRequired", detail === "" ? "is required" : detail, position);
  }

  invalid(path: FieldPath, value: unknown, detail: string, position?: Position): void {
    this.#add(path, "FieldValueInvalid", `${detail} (found ${show(value)})${describePlaceholder(value)}`, position);
  }

  /** A missing value that upstream reports as invalid: the message has nothing to show. */
  absent(path: FieldPath, detail: string): void {
    this.#add(path, "FieldValueInvalid", detail);
  }

  /** {@link invalid} for every message of a format check. */
  invalidAll(path: FieldPath, value: unknown, details: readonly string[], position?: Position): void {
    for (const detail of details) this.invalid(path, value, detail, position);
  }

  notSupported(path: FieldPath, value: unknown, supported: readonly string[], position?: Position): void {
    const values = supported.map((name) => JSON.stringify(name)).join(", ");
    this.#add(path, "FieldValueNotSupported", `must be one of ${values} (found ${show(value)})`, position);
  }

  forbidden(path: FieldPath, detail: string, position?: Position): void {
    this.#add(path, "FieldValueForbidden", detail, position);
  }

  notFound(path: FieldPath, value: unknown, what: string, position?: Position): void {
    this.#add(path, "FieldValueNotFound", `${what} (found ${show(value)})`, position);
  }

  duplicate(path: FieldPath, value: unknown, position?: Position): void {
    this.#add(path, "FieldValueDuplicate", `occurs twice (found ${show(value)})`, position);
  }

  tooLong(path: FieldPath, limit: string, position?: Position): void {
    this.#add(path, "FieldValueTooLong", `must have at most ${limit}`, position);
  }

  #add(path: FieldPath, type: FieldErrorType, message: string, position?: Position): void {
    this.list.push({ path, type, message, at: position?.at, atKey: position?.atKey });
  }
}

function show(value: unknown): string {
  if (value === undefined) return '""';
  if (Array.isArray(value)) return `${value.length} items`;
  if (typeof value === "object" && value !== null) return "an object";
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 70)}…" of ${text.length - 2} characters` : text;
}

/** A parsed value, or a problem to be appended to the name of the flag or field. */
export type Parsed<T> = { value: T; warning?: string } | { problem: string };

/** Syntax of one kind of value: on the command line, in the configuration file, in the documentation. */
export interface ValueKind<T> {
  /** Placeholder in help and documentation, e.g. `duration`; "" for booleans, which need no value. */
  hint: string;
  fromText(text: string): Parsed<T>;
  /** Parses a JSON value of the configuration file. */
  fromField(field: unknown): Parsed<T>;
  /** Value shown by `/configz` and `kubelet-ts config`; secrets are masked. */
  toField(value: T): unknown;
  /** Value in the syntax of the flag. */
  toText(value: T): string;
  /** Combines the values of a repeated flag; without it the last one wins. */
  combine?(earlier: T, later: T): T;
  /** Maps of a later configuration file add to earlier ones; other values are replaced. */
  isMap?: boolean;
  choices?: readonly string[];
  completes?: "file" | "directory";
}

/** As JSON, for messages. */
export const quote = (value: unknown): string => JSON.stringify(value) ?? String(value);

/** A kind whose field is the same string as its flag. */
export function scalarKind<T extends string | number>(
  hint: string,
  fromText: (text: string) => Parsed<T>,
): ValueKind<T> {
  return {
    hint,
    fromText,
    fromField: (field) =>
      typeof field === "string" ? fromText(field) : { problem: `must be a string, got ${quote(field)}` },
    toField: (value) => value,
    toText: String,
  };
}

/** A string, or a number as one; "" for anything else. */
export const asText = (value: unknown): string =>
  typeof value === "string" ? value : typeof value === "number" ? String(value) : "";

/** The non-empty parts between commas. */
export const splitList = (value: string): string[] =>
  value
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);

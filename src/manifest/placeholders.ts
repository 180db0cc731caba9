/** Names of placeholders in a text, and what replaces them. Each kind follows ": " in a message. */
const KINDS: readonly [RegExp, string][] = [
  [/\{\{.*\}\}|\{%.*%\}/, "placeholders of templates are not replaced here, render the template first"],
  [/\$\{?[A-Za-z_]/, "variables are not replaced here, run `envsubst < FILE` first"],
  [/^<[^<>]+>$|%\{\w+\}%/, "replace the placeholder"],
];

/** The next step for a value in which a placeholder was left, with ": " before it; "" for other values. */
export function describePlaceholder(value: unknown): string {
  if (typeof value !== "string" || value.length > MAX_LENGTH) return "";
  const kind = KINDS.find(([pattern]) => pattern.test(value));
  return kind ? `: ${kind[1]}` : "";
}

/** Longer texts are no names. */
const MAX_LENGTH = 1024;

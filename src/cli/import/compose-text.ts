import { isRecord, type Json } from "../../base/text/json.ts";

/** The interpolation of a Compose file failed, e.g. `${NAME:?message}` without a value. */
export class InterpolationError extends Error {
  override readonly name = "InterpolationError";
}

const VARIABLE = /\$(?:\$|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:?[-?+])((?:[^{}]|\$\{[^{}]*\})*))?\})/g;

/**
 * Replaces `$NAME`, `${NAME}`, `${NAME:-default}`, `${NAME:?message}`, `${NAME:+other}`; `$$` is a dollar sign.
 * Source: compose specification, interpolation.
 * @param onMissing gets the name of each variable that has neither a value nor a default, and counts as empty
 * @throws InterpolationError
 */
function interpolate(
  text: string,
  variables: ReadonlyMap<string, string>,
  onMissing: (name: string) => void = () => {},
): string {
  return text.replace(VARIABLE, (whole, plain?: string, braced?: string, operator = "", argument = "") => {
    if (whole === "$$") return "$";
    const name = plain ?? braced ?? "";
    const value = variables.get(name);
    const isSet = value !== undefined && !(operator.startsWith(":") && value === "");
    if (operator.endsWith("-")) return isSet ? value : interpolate(argument, variables, onMissing);
    if (operator.endsWith("+")) return isSet ? interpolate(argument, variables, onMissing) : "";
    if (operator.endsWith("?") && !isSet) throw new InterpolationError(`${name}: ${argument || "must be set"}`);
    if (value === undefined) onMissing(name);
    return value ?? "";
  });
}

/** {@link interpolate} in all texts of a value. */
export function interpolateAll(
  value: Json,
  variables: ReadonlyMap<string, string>,
  onMissing: (name: string) => void,
): Json {
  const inside = (item: Json) => interpolateAll(item, variables, onMissing);
  if (typeof value === "string") return interpolate(value, variables, onMissing);
  if (Array.isArray(value)) return value.map(inside);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, inside(item)]));
}

/** Lines `NAME=value` of an env file; `#` begins a comment, quotes around a value are removed. */
export function parseEnvFile(text: string): Map<string, string> {
  const variables = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const match = /^\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*=(.*)$/.exec(line);
    if (!match) continue;
    const value = match[2]!.trim();
    const quoted = /^(["'])(.*)\1$/.exec(value);
    variables.set(match[1]!, quoted ? quoted[2]! : value.replace(/\s+#.*$/, ""));
  }
  return variables;
}

/** Splits a command as a shell does, without expansions. */
export function splitWords(text: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let index = 0; index < text.length; index++) {
    const character = text[index]!;
    if (quote !== "") {
      if (character === quote) quote = "";
      else if (character === "\\" && quote === '"' && /["\\$`]/.test(text[index + 1] ?? "")) word += text[++index]!;
      else word += character;
    } else if (character === "'" || character === '"') {
      quote = character;
      word ??= "";
    } else if (character === "\\" && index + 1 < text.length) word = (word ?? "") + text[++index]!;
    else if (/\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + character;
  }
  if (word !== undefined) words.push(word);
  return words;
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { us: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600 };

/** Whole seconds of a duration such as `1m30s`, at least 1; undefined when it is malformed. */
export function toSeconds(text: string): number | undefined {
  if (!/^(?:\d+(?:\.\d+)?(?:us|ms|s|m|h))+$/.test(text)) return undefined;
  let seconds = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(us|ms|s|m|h)/g)) {
    seconds += Number(amount) * UNIT_SECONDS[unit!]!;
  }
  return Math.max(1, Math.round(seconds));
}

const SIZE_SUFFIX: Readonly<Record<string, string>> = { "": "", b: "", k: "Ki", m: "Mi", g: "Gi", t: "Ti" };

/** A Compose size (`512m`, `1.5gb`, bytes) as a quantity; undefined when it is malformed. */
export function toQuantity(text: string): string | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*(?:([kmgt])i?b?|b)?$/i.exec(text.trim());
  return match ? `${match[1]}${SIZE_SUFFIX[(match[2] ?? "").toLowerCase()]}` : undefined;
}

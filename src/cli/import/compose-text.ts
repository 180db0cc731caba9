import { parseDuration } from "../../base/text/duration.ts";
import { isRecord, type Json } from "../../base/text/json.ts";
import { parseStream } from "../../manifest/yaml/parse-stream.ts";
import { isDeeperThan, type SourceNode } from "../../manifest/yaml/source-node.ts";

/** The file cannot be imported: it is no YAML, no Compose file, beyond a limit, or lacks the value of `${NAME:?message}`. */
export class ComposeError extends Error {
  /** `line:column:` of the mistake, if it is known. */
  readonly position: string;

  constructor(message: string, position = "") {
    super(message);
    this.position = position;
  }
}

const VARIABLE = /\$(?:\$|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:?[-?+])((?:[^{}]|\$\{[^{}]*\})*))?\})/g;
/** Values may be put into each other, again and again. Unit: characters that one interpolation puts in. */
const MAX_EXPANDED = 4 * 1024 * 1024;
const TOO_LONG = `the values of variables have more than ${MAX_EXPANDED} characters where they are used`;

/**
 * Replaces `$NAME`, `${NAME}`, `${NAME:-default}`, `${NAME:?message}`, `${NAME:+other}`; `$$` is a dollar sign.
 * Source: compose specification, interpolation.
 * @param onMissing gets the name of each variable that has neither a value nor a default, and counts as empty
 * @returns a function that throws ComposeError
 */
function interpolation(
  lookUp: (name: string) => string | undefined,
  onMissing: (name: string) => void = () => {},
): (text: string) => string {
  let left = MAX_EXPANDED;
  const interpolate = (text: string): string =>
    text.replace(VARIABLE, (whole, plain?: string, braced?: string, operator = "", argument = "") => {
      if (whole === "$$") return "$";
      const name = plain ?? braced ?? "";
      const value = lookUp(name);
      const isSet = value !== undefined && !(operator.startsWith(":") && value === "");
      if (operator.endsWith("-") && !isSet) return interpolate(argument);
      if (operator.endsWith("+")) return isSet ? interpolate(argument) : "";
      if (operator.endsWith("?") && !isSet) throw new ComposeError(`${name}: ${argument || "must be set"}`);
      if (value === undefined) onMissing(name);
      left -= value?.length ?? 0;
      if (left < 0) throw new ComposeError(TOO_LONG);
      return value ?? "";
    });
  return interpolate;
}

/** All texts of a value, interpolated. @throws ComposeError */
export function interpolateAll(
  value: Json,
  variables: ReadonlyMap<string, string>,
  onMissing: (name: string) => void,
): Json {
  const interpolate = interpolation((name) => variables.get(name), onMissing);
  const inside = (item: Json): Json => {
    if (typeof item === "string") return interpolate(item);
    if (Array.isArray(item)) return item.map(inside);
    if (!isRecord(item)) return item;
    return Object.fromEntries(Object.entries(item).map(([key, value]) => [key, inside(value)]));
  };
  return inside(value);
}

/** Also of a text, as `${NAME:-true}` and `yes` are. Source: compose-go's cast of booleans. */
export const isTrue = (value: unknown): boolean =>
  value === true || (typeof value === "string" && /^(?:true|yes|y|on|1)$/i.test(value));

const ENTRY =
  /^[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*[=:][ \t]*(?:'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|([^\r\n]*))/gm;
const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t" };

/**
 * An env file: `NAME=value`, quotes around a value, which may have several lines in them, escapes in double quotes, `#` behind
 * white space, and references to earlier variables but in single quotes. Source: the dotenv parser of Docker Compose.
 * @param outer variables of the process, which win in references
 */
export function parseEnvFile(text: string, outer: ReadonlyMap<string, string> = new Map()): Map<string, string> {
  const variables = new Map<string, string>();
  const interpolate = interpolation((name) => outer.get(name) ?? variables.get(name));
  const expand = (value: string) => {
    try {
      return interpolate(value);
    } catch (error) {
      if (error instanceof ComposeError && error.message !== TOO_LONG) return value;
      throw error;
    }
  };
  for (const [, name = "", single, double, plain = ""] of text.matchAll(ENTRY)) {
    if (single !== undefined) variables.set(name, single);
    else if (double === undefined) variables.set(name, expand(plain.replace(/(?:^|\s)#.*$/, "").trim()));
    else {
      const escaped = double.replace(/\\([\s\S])/g, (_, it: string) => (it === "$" ? "$$" : (ESCAPES[it] ?? it)));
      variables.set(name, expand(escaped));
    }
  }
  return variables;
}

const MAX_DEPTH = 100;
const MAX_KEY = 256;
const MAX_VALUES = 50_000;

/** A Compose file that was read. */
export interface ComposeText {
  file: Json;
  /** The line of a key, e.g. of `services.web.ports[0]`, or of the nearest one above it; undefined for other texts. */
  lineOf(path: string): number | undefined;
}

/**
 * A Compose file is YAML 1.2: `yes`, `off` and `N` are texts. Numbers that JavaScript would round stay texts.
 * @throws ComposeError
 */
export function parseCompose(text: string): ComposeText {
  const { documents, lines } = parseStream(Buffer.from(text));
  const fail = ({ message, offset }: { message: string; offset: number }) => {
    const { line, column } = lines.locate(offset);
    return new ComposeError(message, `${line}:${column}:`);
  };
  const [document] = documents;
  if (document?.kind === "error") throw fail(document.error);
  if (document?.kind !== "value") return { file: null, lineOf: () => undefined };
  const { root } = document;
  if (isDeeperThan(root, MAX_DEPTH)) throw new ComposeError("it is nested too deeply");
  let values = 0;
  const toJson = (node: SourceNode): Json => {
    if (++values > MAX_VALUES)
      throw fail({ message: `it has more than ${MAX_VALUES} values: split it`, offset: node.offset });
    if (node.kind === "list") return node.items.map(toJson);
    if (node.kind === "bool") return /^(?:true|false)$/i.test(node.source) ? node.value : node.source;
    if (node.kind === "number") return isRounded(node.json) ? node.json : Number(node.json);
    if (node.kind !== "map") return node.kind === "null" ? null : node.value;
    const entries = Array.from(node.entries, ([key, { keyOffset: offset, value, isRepeated }]) => {
      if (isRepeated) throw fail({ message: `the key ${key} is repeated`, offset });
      // As it is written: a key `no` is resolved as YAML 1.1 does.
      const name = /^[\w.+-]+(?=\s*:)/.exec(text.slice(offset, offset + MAX_KEY))?.[0] ?? key;
      return [name, toJson(value)] as const;
    });
    return Object.fromEntries(entries);
  };
  const lineOf = (path: string) => {
    const offset = offsetOf(root, path);
    return offset === undefined ? undefined : lines.locate(offset).line;
  };
  return { file: toJson(root), lineOf };
}

function offsetOf(node: SourceNode, path: string): number | undefined {
  if (node.kind === "list") {
    const [step = "", index] = /^\[(\d+)\]\.?/.exec(path) ?? [];
    const item = node.items[Number(index ?? -1)];
    return item && (offsetOf(item, path.slice(step.length)) ?? item.offset);
  }
  if (node.kind !== "map") return undefined;
  // Names may have dots: the longest that fits.
  for (let end = Math.min(path.length, 4 * MAX_KEY); end > 0; end--) {
    const entry = /^[.[]?$/.test(path[end] ?? "") ? node.entries.get(path.slice(0, end)) : undefined;
    if (entry) return offsetOf(entry.value, path.slice(end).replace(/^\./, "")) ?? entry.keyOffset;
  }
  return undefined;
}

const isRounded = (json: string): boolean => /^-?\d+$/.test(json) && !Number.isSafeInteger(Number(json));

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

/** Whole seconds of a duration such as `1m30s`, at least 1; undefined when it is malformed or has no unit. */
export function toSeconds(text: string): number | undefined {
  const ms = /^\d.*[a-z]$/.test(text) ? parseDuration(text) : undefined;
  return ms === undefined ? undefined : Math.max(1, Math.round(ms / 1000));
}

const SIZE_SUFFIX: Readonly<Record<string, string>> = { "": "", b: "", k: "Ki", m: "Mi", g: "Gi", t: "Ti" };

/** A Compose size (`512m`, `1.5gb`, bytes) as a quantity; undefined when it is malformed. */
export function toQuantity(text: string): string | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*(?:([kmgt])i?b?|b)?$/i.exec(text.trim());
  return match ? `${match[1]}${SIZE_SUFFIX[(match[2] ?? "").toLowerCase()]}` : undefined;
}

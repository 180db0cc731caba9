import { formatBytes } from "../../base/api/quantity.ts";
import { parseDuration } from "../../base/text/duration.ts";
import type { Json } from "../../base/text/json.ts";
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

const VARIABLE =
  /\$(?:\$|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:?[-?+])((?:[^{}]|\$\{(?:[^{}]|\$\{[^{}]*\})*\})*))?\}|\{)/g;
/** Values may be put into each other, again and again. Unit: characters that one interpolation puts in. */
const MAX_EXPANDED = 4 * 1024 * 1024;
const TOO_LONG = `the values of variables have more than ${MAX_EXPANDED} characters where they are used`;

/**
 * Replaces `$NAME`, `${NAME}`, `${NAME:-default}`, `${NAME:?message}`, `${NAME:+other}`; `$$` is a dollar sign.
 * Source: compose specification, interpolation.
 * @param onMissing gets the name of each variable that has neither a value nor a default, and counts as empty
 * @param isStrict `${` that begins none of these is an error, else a text
 * @returns a function that throws ComposeError
 */
export function interpolation(
  lookUp: (name: string) => string | undefined,
  onMissing: (name: string) => void = () => {},
  isStrict = false,
): (text: string) => string {
  let left = MAX_EXPANDED;
  const interpolate = (text: string): string =>
    text.replace(VARIABLE, (whole, plain?: string, braced?: string, operator = "", argument = "") => {
      if (whole === "${" && isStrict) throw new ComposeError('"${" begins no variable: write $${ for these characters');
      if (whole === "$$" || whole === "${") return whole === "$$" ? "$" : whole;
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

/** An env file of `docker run`: values as they are, without quotes, comments behind them and references. */
export function parseRawEnvFile(text: string, outer: ReadonlyMap<string, string>): Map<string, string> {
  const lines = text.split(/\r?\n/).map((line) => line.trimStart());
  const pairs = lines.flatMap((line): [string, string][] => {
    const [, name = "", value = outer.get(name)] = /^([^=#\s][^=\s]*)(?:=(.*))?$/.exec(line) ?? [];
    return name === "" || value === undefined ? [] : [[name, value]];
  });
  return new Map(pairs);
}

const MAX_DEPTH = 100;
const MAX_KEY = 256;
const MAX_VALUES = 50_000;

export type JsonMap = { readonly [name: string]: Json };

/** Where an entry of a map or a list is written (`compose.yaml:3`), and its tag of YAML (`!reset`). */
export interface Origin {
  at: string;
  tag?: string | undefined;
}

export type Entry = readonly [key: string, value: Json, origin: Origin | undefined];

/** Values stay plain: notes are few, and most values have no note. */
const origins = new WeakMap<object, ReadonlyMap<string, Origin | undefined>>();

/** The entries of a map or a list; none of other values. */
export function entriesOf(value: Json | undefined): Entry[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).map(([key, item]) => [key, item, origins.get(value)?.get(key)]);
}

/** A map, or a list, whose entries keep where they are written. */
export function withEntries(entries: readonly Entry[], isList = false): Json {
  const value = isList ? entries.map(([, item]) => item) : Object.fromEntries(entries);
  origins.set(value, new Map(entries.map(([key, , origin], index) => [isList ? String(index) : key, origin])));
  return value;
}

/** Where a key is written, e.g. `services.web.ports[0]`, or the nearest one above it. */
export function originOf(value: Json | undefined, path: string): Origin | undefined {
  const known = typeof value === "object" && value !== null ? origins.get(value) : undefined;
  const steps = path.replace(/\[(\d+)\]/g, ".$1").replace(/^\./, "");
  // Names may have dots: the longest that fits.
  for (let end = Math.min(steps.length, 4 * MAX_KEY); known && end > 0; end--) {
    const key = /^\.?$/.test(steps[end] ?? "") ? steps.slice(0, end) : "";
    if (known.has(key)) return originOf((value as JsonMap)[key], steps.slice(end + 1)) ?? known.get(key);
  }
  return undefined;
}

/**
 * A Compose file is YAML 1.2: `yes`, `off` and `N` are texts. Numbers that JavaScript would round stay texts.
 * @param name in the origins of its entries
 * @throws ComposeError
 */
export function parseCompose(text: string, name = ""): Json {
  const { documents, lines } = parseStream(Buffer.from(text));
  const fail = ({ message, offset }: { message: string; offset: number }) => {
    const { line, column } = lines.locate(offset);
    return new ComposeError(message, `${line}:${column}:`);
  };
  const [document] = documents;
  if (document?.kind === "error") throw fail(document.error);
  if (document?.kind !== "value") return null;
  if (isDeeperThan(document.root, MAX_DEPTH)) throw new ComposeError("it is nested too deeply");
  let values = 0;
  const atOf = (offset: number) => `${name}:${lines.locate(offset).line}`;
  const toJson = (node: SourceNode): Json => {
    if (++values > MAX_VALUES)
      throw fail({ message: `it has more than ${MAX_VALUES} values: split it`, offset: node.offset });
    if (node.kind === "list") {
      const items = node.items.map((item) => ["", toJson(item), { at: atOf(item.offset) }] as const);
      return withEntries(items, true);
    }
    if (node.kind === "bool") return /^(?:true|false)$/i.test(node.source) ? node.value : node.source;
    if (node.kind === "number") return isRounded(node.json) ? node.json : Number(node.json);
    if (node.kind !== "map") return node.kind === "null" ? null : node.value;
    const entries = Array.from(node.entries, ([key, { keyOffset: offset, value, isRepeated }]) => {
      if (isRepeated) throw fail({ message: `the key ${key} is repeated`, offset });
      // As it is written: a key `no` is resolved as YAML 1.1 does.
      const written = /^([\w.+-]+)\s*:(?:\s+(!reset|!override)(?!\S))?/.exec(text.slice(offset, offset + MAX_KEY));
      return [written?.[1] ?? key, toJson(value), { at: atOf(offset), tag: written?.[2] }] as const;
    });
    return withEntries(entries);
  };
  return toJson(document.root);
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

const SIZE_SUFFIX: Readonly<Record<string, string>> = { k: "Ki", m: "Mi", g: "Gi", t: "Ti" };

/** A Compose size (`512m`, `1.5gb`, bytes) as a quantity; undefined when it is malformed. */
export function toQuantity(text: string): string | undefined {
  const match = /^(\d{1,30}(?:\.\d+)?)\s*(?:([kmgt])i?b?|b)?$/i.exec(text.trim());
  if (!match) return undefined;
  return match[2] === undefined ? formatBytes(Number(match[1])) : `${match[1]}${SIZE_SUFFIX[match[2].toLowerCase()]}`;
}

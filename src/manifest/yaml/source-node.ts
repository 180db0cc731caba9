/**
 * A value of a document with its position: scalars are resolved, anchors and merges expanded, duplicate keys settled.
 * YAML and JSON have the same shape. An aliased value is one node shared by several parents.
 */
export type SourceNode = MapNode | ListNode | StringNode | NumberNode | BoolNode | (Located & { kind: "null" });

interface Located {
  /** Start of the value: UTF-16 offset into the text. */
  offset: number;
}

export interface MapNode extends Located {
  kind: "map";
  entries: Map<string, MapEntry>;
}
export interface MapEntry {
  keyOffset: number;
  value: SourceNode;
  /** The key occurs earlier in the same map; the last one counts. */
  isRepeated?: boolean;
  /** Comes from a YAML merge (`<<`); keys of the map itself override it. */
  isMerged?: boolean;
}
export interface ListNode extends Located {
  kind: "list";
  items: SourceNode[];
}
interface StringNode extends Located {
  kind: "string";
  value: string;
}
interface NumberNode extends Located {
  kind: "number";
  /** The number as JSON: `5`, `1.5`, `1e+21`; for YAML in the form Go prints. */
  json: string;
  /** The source text, e.g. `0x1F` or `1.10`; used where a string is expected. */
  source: string;
}
interface BoolNode extends Located {
  kind: "bool";
  value: boolean;
  /** The source text, e.g. `yes`; used in messages that advise to quote it. */
  source: string;
}

/** One document of a stream: its value, or the position and cause of an error. */
export type ParsedDocument =
  | { kind: "value"; root: SourceNode; offset: number }
  | { kind: "empty"; offset: number }
  | { kind: "error"; error: TextError };

/** The text is not valid YAML or JSON. Internal to this folder: `parseStream` returns it as data. */
export class TextError extends Error {
  constructor(
    message: string,
    /** UTF-16 offset into the text. */
    readonly offset: number,
  ) {
    super(message);
  }
}

/** The string at a path of map keys; undefined when there is none. */
export function stringAt(node: SourceNode, ...steps: readonly string[]): string | undefined {
  let current: SourceNode | undefined = node;
  for (const step of steps) current = current?.kind === "map" ? current.entries.get(step)?.value : undefined;
  return current?.kind === "string" ? current.value : undefined;
}

/** The value as `JSON.parse` returns it, except that maps have no prototype. Recursive: limit the depth before. */
export function toPlainValue(node: SourceNode): unknown {
  switch (node.kind) {
    case "map": {
      const object: Record<string, unknown> = Object.create(null);
      for (const [key, entry] of node.entries) object[key] = toPlainValue(entry.value);
      return object;
    }
    case "list":
      return node.items.map(toPlainValue);
    case "number":
      return Number(node.json);
    case "null":
      return null;
    default:
      return node.value;
  }
}

/** Levels and values that {@link toSourceNode} takes, as the parsers do. */
const MAX_DEPTH = 10_000;
const MAX_VALUES = 500_000;

/**
 * A value of JSON as nodes, so that it is decoded like a text; offsets count the values in their order.
 * @throws TextError when it is too large
 */
export function toSourceNode(value: unknown): SourceNode {
  let count = 0;
  const convert = (item: unknown, depth: number): SourceNode => {
    const offset = count++;
    if (count > MAX_VALUES) throw new TextError(`the document has more than ${MAX_VALUES} values`, offset);
    if (depth > MAX_DEPTH) throw new TextError(`more than ${MAX_DEPTH} levels of nesting`, offset);
    if (typeof item === "string") return { kind: "string", value: item, offset };
    if (typeof item === "boolean") return { kind: "bool", value: item, source: String(item), offset };
    if (typeof item === "number") {
      const json = JSON.stringify(item);
      return { kind: "number", json, source: json, offset };
    }
    if (Array.isArray(item)) return { kind: "list", items: item.map((it) => convert(it, depth + 1)), offset };
    if (typeof item !== "object" || item === null) return { kind: "null", offset };
    const entries = new Map<string, MapEntry>();
    for (const [key, member] of Object.entries(item)) {
      if (member !== undefined) entries.set(key, { keyOffset: count, value: convert(member, depth + 1) });
    }
    return { kind: "map", entries, offset };
  };
  return convert(value, 0);
}

/** Whether lists and maps are nested more than `levels` deep. Recursion ends at that level. */
export function isDeeperThan(node: SourceNode, levels: number): boolean {
  if (levels === 0) return true;
  if (node.kind === "list") return node.items.some((item) => isDeeperThan(item, levels - 1));
  return node.kind === "map" && node.entries.values().some((entry) => isDeeperThan(entry.value, levels - 1));
}

/** Characters between two offsets whose line is remembered: a table of all lines can be larger than the text. */
const BLOCK_LENGTH = 1024;

/** Maps UTF-16 offsets to lines and columns. */
export class LineTable {
  readonly #text: string;
  /** Where each block begins. */
  readonly #blocks = [{ line: 1, column: 1 }];

  constructor(text: string) {
    this.#text = text;
    for (let at = BLOCK_LENGTH; at <= text.length; at += BLOCK_LENGTH) this.#blocks.push(this.locate(at));
  }

  /** 1-based line, and 1-based column in characters. A byte order mark has no column. */
  locate(offset: number): { line: number; column: number } {
    const end = Math.min(offset, this.#text.length);
    const block = Math.min(Math.floor(end / BLOCK_LENGTH), this.#blocks.length - 1);
    let { line, column } = this.#blocks[block]!;
    for (let at = block * BLOCK_LENGTH; at < end; at++) {
      const code = this.#text.charCodeAt(at);
      if (this.#endsLine(at)) {
        line++;
        column = 1;
      } else if (code !== 0xfeff && (code & 0xfc00) !== 0xdc00) column++;
    }
    return { line, column };
  }

  #endsLine(at: number): boolean {
    const code = this.#text.charCodeAt(at);
    return code === 10 || (code === 13 && this.#text.charCodeAt(at + 1) !== 10);
  }

  /** Whether a pattern occurs anywhere in the text. */
  matches(pattern: RegExp): boolean {
    return pattern.test(this.#text);
  }

  /** The text of a 1-based line, without its line break. */
  lineText(line: number): string {
    const block = this.#blocks.findLastIndex((begin) => begin.line < line);
    let at = Math.max(0, block * BLOCK_LENGTH);
    for (let found = this.#blocks[block]?.line ?? line; found < line; at++) {
      if (at >= this.#text.length) return "";
      if (this.#endsLine(at)) found++;
    }
    return /[^\r\n]*/.exec(this.#text.slice(at))![0];
  }
}

import { type MapNode, type SourceNode, TextError } from "./source-node.ts";

/** Go's limit. */
const MAX_DEPTH = 10_000;
/** Limit per document, the same as for YAML. */
const MAX_VALUES = 500_000;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
/** Characters of a string that are themselves. */
const RUN = /[^"\\\x00-\x1f]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})/y;

/**
 * Parses strict JSON (RFC 8259) and keeps positions, which `JSON.parse` does not. Objects under a repeated key are
 * merged, because Go's decoder fills the same struct twice.
 * @throws TextError
 */
export function parseJson(text: string): SourceNode {
  return new JsonParser(text).parse();
}

class JsonParser {
  readonly #text: string;
  #position = 0;
  #depth = 0;
  #values = 0;

  constructor(text: string) {
    this.#text = text;
  }

  parse(): SourceNode {
    this.#skipSpace();
    const root = this.#value();
    this.#skipSpace();
    if (this.#position < this.#text.length) {
      const more =
        'unexpected text after the end of the JSON value: a file that begins with { is one JSON value; put several objects into {"apiVersion": "v1", "kind": "List", "items": []}';
      throw new TextError(more, this.#position);
    }
    return root;
  }

  #skipSpace(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#position);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.#position++;
    }
  }

  #fail(expected: string): never {
    const found = this.#text[this.#position];
    const what = found === undefined ? "the text ends" : `found ${JSON.stringify(found)}`;
    throw new TextError(`not JSON: ${expected} was expected, ${what}`, this.#position);
  }

  #value(): SourceNode {
    const offset = this.#position;
    if (++this.#values > MAX_VALUES) throw new TextError(`the document has more than ${MAX_VALUES} values`, offset);
    switch (this.#text[offset]) {
      case "{":
        return this.#object();
      case "[":
        return this.#array();
      case '"':
        return { kind: "string", value: this.#string(), offset };
      case "t":
        this.#word("true");
        return { kind: "bool", value: true, source: "true", offset };
      case "f":
        this.#word("false");
        return { kind: "bool", value: false, source: "false", offset };
      case "n":
        this.#word("null");
        return { kind: "null", offset };
    }
    NUMBER.lastIndex = offset;
    const json = NUMBER.exec(this.#text)?.[0];
    if (json === undefined) this.#fail("a value");
    this.#position += json.length;
    return { kind: "number", json, source: json, offset };
  }

  #word(word: string): void {
    if (!this.#text.startsWith(word, this.#position)) this.#fail("a value");
    this.#position += word.length;
  }

  #enter(): void {
    if (++this.#depth > MAX_DEPTH) throw new TextError(`more than ${MAX_DEPTH} levels of nesting`, this.#position);
    this.#position++;
    this.#skipSpace();
  }

  /** Reads the separator after an item; true when another item follows. */
  #continues(end: string): boolean {
    this.#skipSpace();
    const found = this.#text[this.#position];
    if (found !== "," && found !== end) this.#fail(`"," or "${end}"`);
    this.#position++;
    if (found === end) this.#depth--;
    else this.#skipSpace();
    return found === ",";
  }

  #array(): SourceNode {
    const offset = this.#position;
    const items: SourceNode[] = [];
    this.#enter();
    if (this.#text[this.#position] === "]") this.#continues("]");
    else {
      do items.push(this.#value());
      while (this.#continues("]"));
    }
    return { kind: "list", items, offset };
  }

  #object(): SourceNode {
    const map: MapNode = { kind: "map", entries: new Map(), offset: this.#position };
    this.#enter();
    if (this.#text[this.#position] === "}") this.#continues("}");
    else {
      do this.#member(map);
      while (this.#continues("}"));
    }
    return map;
  }

  #member(map: MapNode): void {
    const keyOffset = this.#position;
    if (this.#text[keyOffset] !== '"') this.#fail("a key in double quotes");
    const key = this.#string();
    this.#skipSpace();
    if (this.#text[this.#position] !== ":") this.#fail('":"');
    this.#position++;
    this.#skipSpace();
    const value = this.#value();
    const before = map.entries.get(key);
    if (before) map.entries.set(key, { keyOffset, value: fillAgain(before.value, value), isRepeated: true });
    else map.entries.set(key, { keyOffset, value });
  }

  #string(): string {
    const start = this.#position++;
    for (;;) {
      RUN.lastIndex = this.#position;
      this.#position += RUN.exec(this.#text)![0].length;
      const found = this.#text[this.#position];
      if (found === undefined) throw new TextError("not JSON: the string never ends", start);
      if (found === '"') break;
      ESCAPE.lastIndex = this.#position;
      const known = ESCAPE.exec(this.#text)?.[0];
      if (found !== "\\") this.#fail('an escape such as "\\n"');
      if (known === undefined) {
        this.#position++;
        this.#fail("an escape that JSON knows");
      }
      this.#position += known.length;
    }
    // Every escape in it is known.
    return (JSON.parse(this.#text.slice(start, ++this.#position)) as string).toWellFormed();
  }
}

/** Decodes a second value into a filled struct: fields are added, null changes nothing. */
function fillAgain(before: SourceNode, after: SourceNode): SourceNode {
  if (after.kind === "null") return before;
  if (before.kind !== "map" || after.kind !== "map") return after;
  const entries = new Map(before.entries);
  for (const [key, entry] of after.entries) {
    const old = entries.get(key);
    entries.set(key, old ? { keyOffset: entry.keyOffset, value: fillAgain(old.value, entry.value) } : entry);
  }
  return { kind: "map", entries, offset: after.offset };
}

import { type ListNode, type MapEntry, type MapNode, type SourceNode, TextError } from "./source-node.ts";
import { CORE_TAG, floatKey, resolveScalar, toJsonNumber, type YamlScalar } from "./yaml-scalars.ts";
import { TOKENS, type Token, type TokenType, YamlScanner } from "./yaml-scanner.ts";

/** A value that was read, with what it counts, and what a key or a merge needs to know. */
interface Composed<Node extends SourceNode = SourceNode> {
  node: Node;
  start: number;
  /** Values in it, counted again for every alias. */
  size: number;
  /** Characters of its scalars, counted again for every alias. */
  characters: number;
  /** A scalar before its resolution. */
  scalar?: YamlScalar;
  isAlias?: true;
}

/** Consumed tokens are dropped in blocks of this size. */
const READ_AHEAD = 4096;

const is = (token: Token, ...types: TokenType[]) => types.includes(token.type);

/**
 * Parses tokens into documents by libyaml's grammar, and makes values of them as go-yaml v2 and the conversion to JSON do:
 * resolves scalars, expands aliases and merges; the last of two equal keys wins. Aliased values are shared, so memory is
 * proportional to the text.
 */
export class YamlParser {
  readonly #scanner: YamlScanner;
  readonly #budget: AliasBudget;
  #next = 0;
  #first = true;
  /** The value is missing while it is being read. */
  #anchors = new Map<string, { value?: Composed }>();
  #tagHandles = new Map<string, string>();
  /** Values of the document, those that aliases add, and the first value that cannot be one of JSON. */
  #count = 0;
  #aliased = 0;
  #refusal: TextError | undefined;

  /** @param position offset to begin at: the start of a line. */
  constructor(text: string, budget: AliasBudget, position = 0) {
    this.#scanner = new YamlScanner(text);
    this.#budget = budget;
    this.#scanner.position = this.#scanner.lineStart = position;
  }

  /** Offset up to which the text was read. */
  get position(): number {
    return this.#scanner.position;
  }

  /**
   * The next document, or undefined at the end of the stream: its root, or the error of a text that has the form of YAML.
   * @throws TextError where the text is not YAML
   */
  nextDocument(): { root: SourceNode; start: number; isEmpty: boolean; error: TextError | undefined } | undefined {
    while (!this.#first && this.#peek().type === "document-end") this.#next++;
    const first = this.#peek();
    if (first.type === "stream-end") return undefined;
    this.#anchors = new Map();
    this.#count = this.#aliased = 0;
    this.#refusal = undefined;
    const explicit = !this.#first || is(first, "version-directive", "tag-directive", "document-start");
    this.#first = false;
    this.#readDirectives();
    if (explicit) {
      const token = this.#peek();
      if (token.type !== "document-start") {
        throw new TextError(
          'the document has ended here: only another one, begun with a "---" line, may follow',
          token.start,
        );
      }
      this.#next++;
    }
    const isBare = explicit && is(this.#peek(), ...DOCUMENT_ENDS);
    const { node, scalar } = isBare ? this.#scalar(emptyScalar(this.#peek().start)) : this.#parseNode([], true);
    if (this.#peek().type === "document-end") this.#next++;
    this.#scanner.resetCount();
    const isEmpty = scalar?.implicit === true && scalar.value === "";
    return { root: node, start: first.start, isEmpty, error: this.#refusal };
  }

  #peek(): Token {
    if (this.#next > READ_AHEAD) {
      // Consumed tokens are dropped, except the last one, whose end is used for empty values.
      this.#scanner.dropTokens(this.#next - 1);
      this.#next = 1;
    }
    const { tokens } = this.#scanner;
    // A token is final only when no key can be inserted before it.
    while (this.#next >= tokens.length || this.#scanner.mayInsertAt(this.#next)) this.#scanner.fetchToken();
    return tokens[this.#next]!;
  }

  #take(): Token {
    const token = this.#peek();
    this.#next++;
    return token;
  }

  #readDirectives(): void {
    this.#tagHandles = new Map([
      ["!", "!"],
      ["!!", CORE_TAG],
    ]);
    let versions = 0;
    const declared = new Set<string>();
    while (is(this.#peek(), "version-directive", "tag-directive")) {
      const token = this.#take();
      if (token.type === "version-directive" && ++versions > 1) throw new TextError("a second %YAML line", token.start);
      if (token.type === "version-directive" && token.value !== "1.1") {
        throw new TextError("only YAML 1.1 can be declared: remove the %YAML line", token.start);
      }
      if (token.type !== "tag-directive") continue;
      if (declared.has(token.handle)) throw new TextError("a second %TAG line for the same handle", token.start);
      declared.add(token.handle);
      this.#tagHandles.set(token.handle, token.value);
    }
  }

  /**
   * Reads a node, or takes an empty value when one of `ends` comes first. Calls in tail position: a level of nesting takes
   * the stack of one collection.
   * @param indentlessAllowed a list may begin in the column of its key
   */
  #parseNode(ends: readonly TokenType[], block: boolean, indentlessAllowed = false): Composed {
    const { type } = this.#peek();
    if (ends.includes(type)) return this.#empty();
    if (type === "alias") return this.#alias(this.#take());
    if (type === "anchor" || type === "tag") return this.#parseMarked(block, indentlessAllowed);
    return this.#parseContent("", block, indentlessAllowed);
  }

  /** A node with an anchor, a tag, or both. */
  #parseMarked(block: boolean, indentlessAllowed: boolean): Composed {
    const first = this.#peek();
    let anchor = "";
    let tag = "";
    for (const type of first.type === "tag" ? (["tag", "anchor"] as const) : (["anchor", "tag"] as const)) {
      if (this.#peek().type !== type) continue;
      const token = this.#take();
      if (type === "anchor") anchor = token.value;
      else tag = this.#resolveTag(token);
    }
    const anchored: { value?: Composed } = {};
    if (anchor !== "") this.#anchors.set(anchor, anchored);
    anchored.value = this.#parseContent(tag, block, indentlessAllowed, first);
    return anchored.value;
  }

  /** @param marked the anchor or tag before it: nothing needs to follow */
  #parseContent(tag: string, block: boolean, indentlessAllowed: boolean, marked?: Token): Composed {
    const token = this.#peek();
    const { type, start } = token;
    if (indentlessAllowed && type === "block-entry") return this.#blockList(start, ["key", "value"]);
    if (type === "flow-sequence-start") return this.#flowList(this.#take().start);
    if (type === "flow-mapping-start") return this.#flowMap(this.#take().start);
    if (block && type === "block-sequence-start") return this.#blockList(this.#take().start);
    if (block && type === "block-mapping-start") return this.#blockMap(this.#take().start);
    if (type === "scalar") {
      this.#next++;
      const implicit = (tag === "" && token.plain) || tag === "!";
      return this.#scalar({ start, value: token.value, implicit, tag });
    }
    if (!marked) throw new TextError(`a value was expected here, not ${describe(token)}`, start);
    return this.#scalar({ start: marked.start, value: "", implicit: tag === "", tag });
  }

  #resolveTag(token: Token): string {
    if (token.handle === "") return token.value;
    const prefix = this.#tagHandles.get(token.handle);
    if (prefix === undefined)
      throw new TextError("the handle of this tag is not declared: quote the value if no tag is meant", token.start);
    return prefix + token.value;
  }

  #empty(): Composed {
    const { tokens } = this.#scanner;
    return this.#scalar(emptyScalar(this.#next > 0 ? tokens[this.#next - 1]!.end : this.#peek().start));
  }

  /** @param outer tokens of the map around a list without indentation, which end it */
  #blockList(start: number, outer: TokenType[] = []): Composed {
    const list = this.#list(start);
    for (;;) {
      const token = this.#peek();
      if (token.type !== "block-entry" && outer.length > 0) return list;
      this.#next++;
      if (token.type === "block-end") return list;
      if (token.type !== "block-entry") {
        throw new TextError(
          `the next "- item" of the list was expected here, not ${describe(token)}: check the indentation`,
          token.start,
        );
      }
      addItem(list, this.#parseNode(["block-entry", ...outer, "block-end"], true));
    }
  }

  #blockMap(start: number): Composed {
    const ends: TokenType[] = ["key", "value", "block-end"];
    const map = this.#map(start);
    for (;;) {
      const token = this.#take();
      if (token.type === "block-end") return map;
      if (token.type !== "key") {
        if (token.value.startsWith("---")) {
          throw new TextError('a line "---" between two objects begins in the first column', token.start);
        }
        throw new TextError(
          `the next "key: value" was expected here, not ${describe(token)}: check the indentation`,
          token.start,
        );
      }
      this.#addEntry(map, this.#parseNode(ends, true, true), () => this.#valueUnless(ends, true));
    }
  }

  /** Reads what follows the ":" of an entry. */
  #valueUnless(ends: TokenType[], block: boolean): Composed {
    if (this.#peek().type !== "value") return this.#empty();
    this.#next++;
    return this.#parseNode(ends, block, block);
  }

  #flowList(start: number): Composed {
    const list = this.#list(start);
    for (let isFirst = true; this.#peek().type !== "flow-sequence-end"; isFirst = false) {
      if (!isFirst) this.#takeComma('"," or "]"');
      const token = this.#peek();
      if (token.type === "flow-sequence-end") break;
      if (token.type === "key") {
        const pair = this.#map(this.#take().start);
        this.#flowEntry(pair, "flow-sequence-end");
        addItem(list, pair);
      } else addItem(list, this.#parseNode([], false));
    }
    this.#next++;
    return list;
  }

  #flowMap(start: number): Composed {
    const map = this.#map(start);
    for (let isFirst = true; this.#peek().type !== "flow-mapping-end"; isFirst = false) {
      if (!isFirst) this.#takeComma('"," or "}"');
      const token = this.#peek();
      if (token.type === "flow-mapping-end") break;
      if (token.type === "key") {
        this.#next++;
        this.#flowEntry(map, "flow-mapping-end");
        // A lone value is a key with an empty value.
      } else this.#addEntry(map, this.#parseNode([], false), () => this.#empty());
    }
    this.#next++;
    return map;
  }

  #flowEntry(map: Composed<MapNode>, end: TokenType): void {
    const key = this.#parseNode(["value", "flow-entry", end], false);
    this.#addEntry(map, key, () => this.#valueUnless(["flow-entry", end], false));
  }

  #takeComma(what: string): void {
    const token = this.#take();
    if (token.type !== "flow-entry")
      throw new TextError(`${what} was expected here, not ${describe(token)}`, token.start);
  }

  #list(start: number): Composed<ListNode> {
    this.#count++;
    return { node: { kind: "list", items: [], offset: start }, start, size: 1, characters: 0 };
  }

  #map(start: number): Composed<MapNode> {
    this.#count++;
    return { node: { kind: "map", entries: new Map(), offset: start }, start, size: 1, characters: 0 };
  }

  #scalar(scalar: YamlScalar): Composed {
    this.#count++;
    const { start, value } = scalar;
    const node = this.#attempt(() => composeScalar(scalar)) ?? { kind: "null", offset: start };
    return { node, start, size: 1, characters: value.length, scalar };
  }

  /** Keeps the first error: the text is read on, to where the next document begins. */
  #attempt<T>(compose: () => T): T | undefined {
    try {
      return compose();
    } catch (error) {
      if (!(error instanceof TextError)) throw error;
      this.#refusal ??= error;
      return undefined;
    }
  }

  /** @throws TextError where no anchor of the name comes before */
  #alias({ value: name, start }: Token): Composed {
    const anchored = this.#anchors.get(name);
    if (!anchored)
      throw new TextError('no anchor of that name comes before this "*": quote the value if no alias is meant', start);
    this.#count++;
    const { value } = anchored;
    if (!value) this.#refusal ??= new TextError("the value behind this alias contains itself", start);
    if (!value || this.#refusal) return { ...this.#scalar(emptyScalar(start)), isAlias: true };
    this.#count += value.size;
    this.#aliased += value.size;
    this.#attempt(() => {
      this.#refuseBombs(start);
      this.#budget.spend(value.size, value.characters, start);
    });
    return { ...value, start, size: value.size + 1, isAlias: true };
  }

  /** go-yaml's defence: small texts may be nearly all aliases, texts that expand to millions of values hardly any. */
  #refuseBombs(offset: number): void {
    if (this.#aliased <= 100 || this.#count <= 1000) return;
    const part = Math.min(1, Math.max(0, (this.#count - 400_000) / 3_600_000));
    if (this.#aliased / this.#count > 0.99 - 0.89 * part) {
      throw new TextError("aliases make the document grow beyond measure", offset);
    }
  }

  #addEntry(map: Composed<MapNode>, key: Composed, readValue: () => Composed): void {
    const { scalar, isAlias } = key;
    const isMerge = scalar?.value === "<<" && !isAlias && (scalar.implicit || scalar.tag === `${CORE_TAG}merge`);
    const name = isMerge ? undefined : this.#attempt(() => keyName(key));
    const value = readValue();
    map.size += value.size;
    map.characters += value.characters;
    if (isMerge) return void this.#attempt(() => merge(map.node, value));
    if (name === undefined) return;
    map.size += key.size;
    map.characters += key.characters;
    const entry: MapEntry = { keyOffset: key.start, value: value.node };
    const before = map.node.entries.get(name);
    if (before && !before.isMerged) entry.isRepeated = true;
    map.node.entries.set(name, entry);
  }
}

const DOCUMENT_ENDS: TokenType[] = [
  "version-directive",
  "tag-directive",
  "document-start",
  "document-end",
  "stream-end",
];

function addItem(list: Composed<ListNode>, item: Composed): void {
  list.node.items.push(item.node);
  list.size += item.size;
  list.characters += item.characters;
}

/** `<<` overrides earlier keys of the map; later keys override it. @throws TextError */
function merge({ entries }: MapNode, { node, start, isAlias }: Composed): void {
  // In reverse order, because the first of several sources wins.
  const sources = node.kind === "list" && !isAlias ? node.items.toReversed() : [node];
  for (const source of sources) {
    if (source.kind !== "map") {
      throw new TextError('"<<" takes a map, or a list of maps', source === node ? start : source.offset);
    }
    for (const [key, entry] of source.entries) entries.set(key, { ...entry, isMerged: true });
  }
}

const emptyScalar = (start: number): YamlScalar => ({ start, value: "", implicit: true, tag: "" });

const describe = ({ type }: Token): string => TOKENS[type];

/** Limits of what aliases add to all documents of a file; values are copied when pods are processed. */
const MAX_ALIASED_VALUES = 500_000;
const MAX_ALIASED_CHARACTERS = 10 * 1024 * 1024;

/** Allowance of values and characters that aliases add to the documents of one file. */
export class AliasBudget {
  #values = MAX_ALIASED_VALUES;
  #characters = MAX_ALIASED_CHARACTERS;

  /** @throws TextError when the budget is exceeded; then nothing is left for later documents either. */
  spend(values: number, characters: number, offset: number): void {
    this.#values -= values;
    this.#characters -= characters;
    if (this.#values < 0) {
      throw new TextError(`aliases add more than ${MAX_ALIASED_VALUES} values to the file`, offset);
    }
    if (this.#characters < 0) throw new TextError("aliases add more than 10 MiB to the file", offset);
  }
}

function composeScalar(node: YamlScalar): SourceNode {
  const resolved = resolveScalar(node);
  const offset = node.start;
  if (resolved.kind === "string" || resolved.kind === "null") return { ...resolved, offset };
  if (resolved.kind === "bool") return { ...resolved, source: node.value, offset };
  if (resolved.kind === "float" && !Number.isFinite(resolved.value)) {
    throw new TextError(`${node.value} is not a number JSON knows`, offset);
  }
  return { kind: "number", json: toJsonNumber(resolved.value), source: node.value, offset };
}

/** The key as JSON's string. @throws TextError */
function keyName({ node, start, scalar }: Composed): string {
  switch (node.kind) {
    case "string":
      return node.value;
    case "bool":
      return node.value ? "true" : "false";
    case "number": {
      const resolved = resolveScalar(scalar!);
      if (resolved.kind === "float") return floatKey(resolved.value);
      if (resolved.kind === "int" && resolved.value > 2n ** 63n - 1n) {
        throw new TextError("a number beyond 64 bits cannot be a key: quote it", start);
      }
      return node.json;
    }
    case "null":
      throw new TextError("a key is missing before the colon (or it is null: quote it)", start);
    default:
      throw new TextError(`a ${node.kind} cannot be a key`, start);
  }
}

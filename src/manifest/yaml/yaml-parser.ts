import { type MapEntry, type MapNode, type SourceNode, TextError } from "./source-node.ts";
import { CORE_TAG, floatKey, resolveScalar, toJsonNumber, type YamlScalar } from "./yaml-scalars.ts";
import { type Token, type TokenType, YamlScanner } from "./yaml-scanner.ts";

/** A node before resolution: scalars are text, aliases point at their target. */
type YamlNode = YamlScalar | YamlSequence | YamlMapping | YamlAlias;

interface YamlSequence {
  kind: "sequence";
  start: number;
  items: YamlNode[];
}
interface YamlMapping {
  kind: "mapping";
  start: number;
  /** Keys and values alternate. */
  items: YamlNode[];
}
interface YamlAlias {
  kind: "alias";
  start: number;
  name: string;
  target: YamlNode;
}

interface Frame {
  kind: "block-sequence" | "indentless-sequence" | "block-mapping" | "flow-sequence" | "flow-mapping" | "flow-pair";
  items: YamlNode[];
  start: number;
  /** Before the first entry (flow collections). */
  first: boolean;
}

/** Consumed tokens are dropped in blocks of this size. */
const READ_AHEAD = 4096;

const is = (token: Token, ...types: TokenType[]) => types.includes(token.type);

/** Parses tokens into documents by libyaml's grammar, with an explicit stack instead of recursion. */
export class YamlParser {
  readonly #scanner: YamlScanner;
  #next = 0;
  #first = true;
  #anchors = new Map<string, YamlNode>();
  #tagHandles = new Map<string, string>();
  #frames: Frame[] = [];

  /** @param position offset to begin at: the start of a line. */
  constructor(text: string, position = 0) {
    this.#scanner = new YamlScanner(text);
    this.#scanner.position = this.#scanner.lineStart = position;
  }

  /** Offset up to which the text was read. */
  get position(): number {
    return this.#scanner.position;
  }

  /** The next document's root, or undefined at the end of the stream. @throws TextError */
  nextDocument(): { root: YamlNode; start: number } | undefined {
    while (!this.#first && this.#peek().type === "document-end") this.#next++;
    const first = this.#peek();
    if (first.type === "stream-end") return undefined;
    this.#anchors = new Map();
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
    const root = this.#parseRoot(explicit);
    if (this.#peek().type === "document-end") this.#next++;
    this.#scanner.resetCount();
    return { root, start: first.start };
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

  #parseRoot(explicit: boolean): YamlNode {
    const holder: YamlNode[] = [];
    const ends: TokenType[] = ["version-directive", "tag-directive", "document-start", "document-end", "stream-end"];
    if (explicit && is(this.#peek(), ...ends)) return emptyScalar(this.#peek().start);
    this.#parseNode(holder, true, false);
    for (let frame = this.#frames.at(-1); frame !== undefined; frame = this.#frames.at(-1)) this.#step(frame);
    return holder[0]!;
  }

  /** Reads one node into `into`. A collection is only opened here; its frame reads the entries. */
  #parseNode(into: YamlNode[], block: boolean, indentlessAllowed: boolean): void {
    const first = this.#peek();
    if (first.type === "alias") {
      this.#next++;
      const target = this.#anchors.get(first.value);
      if (!target)
        throw new TextError(
          'no anchor of that name comes before this "*": quote the value if no alias is meant',
          first.start,
        );
      into.push({ kind: "alias", start: first.start, name: first.value, target });
      return;
    }
    let anchor = "";
    let tag = "";
    for (const type of first.type === "tag" ? (["tag", "anchor"] as const) : (["anchor", "tag"] as const)) {
      if (this.#peek().type !== type) continue;
      const token = this.#take();
      if (type === "anchor") anchor = token.value;
      else tag = this.#resolveTag(token);
    }
    const token = this.#peek();
    const start = token.start;
    const open = (kind: Frame["kind"], node: YamlSequence | YamlMapping, consume: boolean) => {
      if (consume) this.#next++;
      into.push(node);
      if (anchor) this.#anchors.set(anchor, node);
      this.#frames.push({ kind, items: node.items, start, first: true });
    };
    if (indentlessAllowed && token.type === "block-entry") {
      return open("indentless-sequence", { kind: "sequence", start, items: [] }, false);
    }
    if (token.type === "flow-sequence-start")
      return open("flow-sequence", { kind: "sequence", start, items: [] }, true);
    if (token.type === "flow-mapping-start") return open("flow-mapping", { kind: "mapping", start, items: [] }, true);
    if (block && token.type === "block-sequence-start") {
      return open("block-sequence", { kind: "sequence", start, items: [] }, true);
    }
    if (block && token.type === "block-mapping-start") {
      return open("block-mapping", { kind: "mapping", start, items: [] }, true);
    }
    let scalar: YamlScalar;
    if (token.type === "scalar") {
      this.#next++;
      const implicit = (tag === "" && token.plain) || tag === "!";
      scalar = { kind: "scalar", start, value: token.value, implicit, tag };
    } else if (anchor !== "" || tag !== "") {
      scalar = { kind: "scalar", start: first.start, value: "", implicit: tag === "", tag };
    } else throw new TextError(`a value was expected here, not ${describe(token)}`, start);
    into.push(scalar);
    if (anchor) this.#anchors.set(anchor, scalar);
  }

  #resolveTag(token: Token): string {
    if (token.handle === "") return token.value;
    const prefix = this.#tagHandles.get(token.handle);
    if (prefix === undefined)
      throw new TextError("the handle of this tag is not declared: quote the value if no tag is meant", token.start);
    return prefix + token.value;
  }

  #empty(frame: Frame): void {
    const { tokens } = this.#scanner;
    frame.items.push(emptyScalar(this.#next > 0 ? tokens[this.#next - 1]!.end : this.#peek().start));
  }

  /** Reads a node, or adds an empty value when one of `ends` comes first. */
  #nodeUnless(frame: Frame, ends: TokenType[], block: boolean, indentlessAllowed = false): void {
    if (is(this.#peek(), ...ends)) this.#empty(frame);
    else this.#parseNode(frame.items, block, indentlessAllowed);
  }

  #step(frame: Frame): void {
    switch (frame.kind) {
      case "block-sequence":
        return this.#stepBlockSequence(frame);
      case "indentless-sequence":
        if (this.#peek().type !== "block-entry") return void this.#frames.pop();
        this.#next++;
        return this.#nodeUnless(frame, ["block-entry", "key", "value", "block-end"], true);
      case "block-mapping":
        return this.#stepBlockMapping(frame);
      case "flow-sequence":
        return this.#stepFlowSequence(frame);
      case "flow-mapping":
        return this.#stepFlowMapping(frame);
      case "flow-pair":
        return this.#stepFlowPair(frame);
    }
  }

  #stepBlockSequence(frame: Frame): void {
    const token = this.#take();
    if (token.type === "block-entry") return this.#nodeUnless(frame, ["block-entry", "block-end"], true);
    if (token.type !== "block-end") {
      throw new TextError(
        `the next "- item" of the list was expected here, not ${describe(token)}: check the indentation`,
        token.start,
      );
    }
    this.#frames.pop();
  }

  #stepBlockMapping(frame: Frame): void {
    const ends: TokenType[] = ["key", "value", "block-end"];
    if (frame.items.length % 2 === 1) {
      if (this.#peek().type !== "value") return this.#empty(frame);
      this.#next++;
      return this.#nodeUnless(frame, ends, true, true);
    }
    const token = this.#take();
    if (token.type === "key") return this.#nodeUnless(frame, ends, true, true);
    if (token.type !== "block-end") {
      throw new TextError(
        `the next "key: value" was expected here, not ${describe(token)}: check the indentation`,
        token.start,
      );
    }
    this.#frames.pop();
  }

  #stepFlowSequence(frame: Frame): void {
    if (this.#peek().type !== "flow-sequence-end") {
      if (!frame.first) this.#takeComma('"," or "]"');
      frame.first = false;
      const token = this.#peek();
      if (token.type === "key") {
        this.#next++;
        const pair: YamlMapping = { kind: "mapping", start: token.start, items: [] };
        frame.items.push(pair);
        this.#frames.push({ kind: "flow-pair", items: pair.items, start: token.start, first: true });
        return;
      }
      if (token.type !== "flow-sequence-end") return this.#parseNode(frame.items, false, false);
    }
    this.#next++;
    this.#frames.pop();
  }

  #stepFlowPair(frame: Frame): void {
    const ends: TokenType[] = ["flow-entry", "flow-sequence-end"];
    if (frame.items.length === 2) return void this.#frames.pop();
    if (frame.items.length === 0) return this.#nodeUnless(frame, ["value", ...ends], false);
    if (this.#peek().type !== "value") return this.#empty(frame);
    this.#next++;
    this.#nodeUnless(frame, ends, false);
  }

  #stepFlowMapping(frame: Frame): void {
    const ends: TokenType[] = ["flow-entry", "flow-mapping-end"];
    if (frame.items.length % 2 === 1) {
      if (this.#peek().type !== "value") return this.#empty(frame);
      this.#next++;
      return this.#nodeUnless(frame, ends, false);
    }
    if (this.#peek().type !== "flow-mapping-end") {
      if (!frame.first) this.#takeComma('"," or "}"');
      frame.first = false;
      if (this.#peek().type === "key") {
        this.#next++;
        return this.#nodeUnless(frame, ["value", ...ends], false);
      }
      if (this.#peek().type !== "flow-mapping-end") {
        // A lone value is a key with an empty value.
        this.#parseNode(frame.items, false, false);
        return this.#empty(frame);
      }
    }
    this.#next++;
    this.#frames.pop();
  }

  #takeComma(what: string): void {
    const token = this.#take();
    if (token.type !== "flow-entry")
      throw new TextError(`${what} was expected here, not ${describe(token)}`, token.start);
  }
}

const emptyScalar = (start: number): YamlScalar => ({ kind: "scalar", start, value: "", implicit: true, tag: "" });

/** Names of tokens for authors of manifests; the others are shown by their type. */
const DESCRIPTIONS: Partial<Record<TokenType, string>> = {
  "stream-end": "the end of the text",
  "block-end": "less indentation",
  "block-mapping-start": "a key",
  key: "a key",
  "block-sequence-start": '"-"',
  "block-entry": '"-"',
  value: '":"',
  "flow-entry": '","',
  "flow-sequence-start": '"["',
  "flow-sequence-end": '"]"',
  "flow-mapping-start": '"{"',
  "flow-mapping-end": '"}"',
  "document-start": "the end of the document",
  "document-end": "the end of the document",
  scalar: "a value",
};
const describe = ({ type }: Token): string => DESCRIPTIONS[type] ?? `a ${type}`;

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

interface Composed {
  node: SourceNode;
  /** Values in it, counted again for every alias. */
  size: number;
  /** Characters of its scalars, counted again for every alias. */
  characters: number;
}

/**
 * Converts YAML nodes to values as go-yaml v2 and the conversion to JSON do: resolves scalars, expands aliases and
 * merges; the last of two equal keys wins. Aliased values are shared, so memory is proportional to the text.
 * @throws TextError
 */
export function composeDocument(root: YamlNode, budget: AliasBudget): SourceNode {
  return new Composer(budget).compose(root).node;
}

class Composer {
  readonly #done = new Map<YamlNode, Composed>();
  readonly #open = new Set<YamlNode>();
  #count = 0;
  #aliased = 0;
  #aliasDepth = 0;
  readonly #budget: AliasBudget;

  constructor(budget: AliasBudget) {
    this.#budget = budget;
  }

  compose(node: YamlNode): Composed {
    const done = this.#done.get(node);
    if (done) return done;
    if (this.#aliasDepth === 0) this.#count++;
    switch (node.kind) {
      case "scalar":
        return { node: composeScalar(node), size: 1, characters: node.value.length };
      case "alias":
        return this.#composeAlias(node);
      case "sequence": {
        let size = 1;
        let characters = 0;
        const items: SourceNode[] = [];
        this.#open.add(node);
        for (const item of node.items) {
          const composed = this.compose(item);
          items.push(composed.node);
          size += composed.size;
          characters += composed.characters;
        }
        return this.#finish(node, { node: { kind: "list", items, offset: node.start }, size, characters });
      }
      case "mapping": {
        const total = { size: 1, characters: 0 };
        const map: MapNode = { kind: "map", entries: new Map(), offset: node.start };
        this.#open.add(node);
        for (let i = 0; i + 1 < node.items.length; i += 2) {
          const { size, characters } = this.#addEntry(map, node.items[i]!, node.items[i + 1]!);
          total.size += size;
          total.characters += characters;
        }
        return this.#finish(node, { node: map, ...total });
      }
    }
  }

  #finish(node: YamlNode, composed: Composed): Composed {
    this.#open.delete(node);
    this.#done.set(node, composed);
    return composed;
  }

  #composeAlias(alias: YamlAlias): Composed {
    if (this.#open.has(alias.target)) throw new TextError("the value behind this alias contains itself", alias.start);
    this.#aliasDepth++;
    const target = this.compose(alias.target);
    this.#aliasDepth--;
    if (this.#aliasDepth === 0) {
      this.#count += target.size;
      this.#aliased += target.size;
      this.#refuseBombs(alias);
      this.#budget.spend(target.size, target.characters, alias.start);
    }
    return { ...target, size: target.size + 1 };
  }

  /** go-yaml's defence: small texts may be nearly all aliases, texts that expand to millions of values hardly any. */
  #refuseBombs(alias: YamlAlias): void {
    if (this.#aliased <= 100 || this.#count <= 1000) return;
    const allowed =
      this.#count <= 400_000
        ? 0.99
        : this.#count >= 4_000_000
          ? 0.1
          : 0.99 - (0.89 * (this.#count - 400_000)) / 3_600_000;
    if (this.#aliased / this.#count > allowed) {
      throw new TextError("aliases make the document grow beyond measure", alias.start);
    }
  }

  #addEntry(map: MapNode, key: YamlNode, value: YamlNode): Omit<Composed, "node"> {
    if (key.kind === "scalar" && key.value === "<<" && (key.implicit || key.tag === `${CORE_TAG}merge`)) {
      return this.#merge(map, value);
    }
    const composedKey = this.compose(key);
    const name = keyName(composedKey.node, key);
    const composed = this.compose(value);
    const before = map.entries.get(name);
    const entry: MapEntry = { keyOffset: key.start, value: composed.node };
    if (before && !before.isMerged) entry.isRepeated = true;
    map.entries.set(name, entry);
    return {
      size: composedKey.size + composed.size,
      characters: composedKey.characters + composed.characters,
    };
  }

  /** `<<` overrides earlier keys of the map; later keys override it. */
  #merge(map: MapNode, value: YamlNode): Omit<Composed, "node"> {
    const sources = value.kind === "sequence" ? value.items : [value];
    const total = { size: 0, characters: 0 };
    // In reverse order, because the first of several sources wins.
    for (let i = sources.length - 1; i >= 0; i--) {
      const source = sources[i]!;
      if ((source.kind === "alias" ? source.target : source).kind !== "mapping") {
        throw new TextError('"<<" takes a map, or a list of maps', source.start);
      }
      const composed = this.compose(source);
      total.size += composed.size;
      total.characters += composed.characters;
      for (const [key, entry] of (composed.node as MapNode).entries) map.entries.set(key, { ...entry, isMerged: true });
    }
    return total;
  }
}

function composeScalar(node: YamlScalar): SourceNode {
  const resolved = resolveScalar(node);
  const offset = node.start;
  switch (resolved.kind) {
    case "string":
      return { kind: "string", value: resolved.value, offset };
    case "bool":
      return { kind: "bool", value: resolved.value, source: node.value, offset };
    case "null":
      return { kind: "null", offset };
    case "int":
      return { kind: "number", json: toJsonNumber(resolved.value), source: node.value, offset };
    case "float":
      if (!Number.isFinite(resolved.value)) throw new TextError(`${node.value} is not a number JSON knows`, offset);
      return { kind: "number", json: toJsonNumber(resolved.value), source: node.value, offset };
  }
}

/** The key as JSON's string. */
function keyName(node: SourceNode, key: YamlNode): string {
  switch (node.kind) {
    case "string":
      return node.value;
    case "bool":
      return node.value ? "true" : "false";
    case "number":
      return numberKey(key, node.json);
    case "null":
      throw new TextError("a key is missing before the colon (or it is null: quote it)", key.start);
    default:
      throw new TextError(`a ${node.kind} cannot be a key`, key.start);
  }
}

function numberKey(key: YamlNode, json: string): string {
  const scalar = key.kind === "alias" ? key.target : key;
  const resolved = scalar.kind === "scalar" ? resolveScalar(scalar) : undefined;
  if (resolved?.kind === "float") return floatKey(resolved.value);
  if (resolved?.kind === "int" && resolved.value > 2n ** 63n - 1n) {
    throw new TextError("a number beyond 64 bits cannot be a key: quote it", key.start);
  }
  return json;
}

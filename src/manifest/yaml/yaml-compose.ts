import { type MapEntry, type MapNode, type SourceNode, TextError } from "./source-node.ts";
import type { YamlAlias, YamlNode } from "./yaml-parser.ts";
import { floatKey, resolveScalar, toJsonNumber } from "./yaml-resolve.ts";

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
    if (key.kind === "scalar" && key.value === "<<" && (key.implicit || key.tag === "tag:yaml.org,2002:merge")) {
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

function composeScalar(node: YamlNode & { kind: "scalar" }): SourceNode {
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

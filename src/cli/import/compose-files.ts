import { posix } from "node:path";
import { isRecord, type Json } from "../../base/text/json.ts";
import {
  ComposeError,
  type Entry,
  entriesOf,
  interpolation,
  type JsonMap,
  originOf,
  parseCompose,
  parseEnvFile,
  withEntries,
} from "./compose-text.ts";
import { type ComposeInput, fileTargetOf, targetOf } from "./compose-volumes.ts";
import { pairsOf, textOf, textsOf } from "./pod-parts.ts";

export const NO_SERVICES = "this is not a Compose file: it has no map `services`";
/** Compose files that belong to one import. */
const MAX_FILES = 50;
/** Services that extend each other. */
const MAX_CHAIN = 50;
/** A file may be used again and again. Unit: characters of all that is read and merged. */
const MAX_MERGED = 16 * 2 ** 20;

/** Keys of a service that a later file replaces. Source: compose specification, merge. */
const REPLACED = ["command", "entrypoint", "healthcheck.test"];
/** Maps that may be lists of `NAME=value`. */
const PAIRS = ["annotations", "environment", "labels", "sysctls"];
/** Maps that may be lists of names, with the value of a name in a list. */
const NAMED: JsonMap = { depends_on: { condition: "service_started" }, models: null, networks: null };
const textKey = (item: Json) => textOf(isRecord(item) ? item.path : item) ?? JSON.stringify(item);
/** Lists with unique entries, by what tells them apart; each may be a single text. */
const UNIQUE: Readonly<Record<string, (item: Json) => string>> = {
  ...Object.fromEntries(
    "cap_add cap_drop dns dns_opt dns_search env_file expose extra_hosts label_file links profiles"
      .split(" ")
      .map((key) => [key, textKey]),
  ),
  configs: (file) => fileTargetOf("configs", file),
  devices: targetOf,
  ports: (port) => {
    const { host_ip, published, target, protocol } = partsOfPort(port);
    return [textOf(host_ip) ?? "0.0.0.0", textOf(published), textOf(target), textOf(protocol) ?? "tcp"].join();
  },
  secrets: (file) => fileTargetOf("secrets", file),
  tmpfs: (text) => textKey(text).split(":", 1)[0]!,
  volumes: targetOf,
};

/** A port as a map: `[[ip:]published:]target[/protocol]`. */
export function partsOfPort(port: Json): JsonMap {
  if (isRecord(port)) return port;
  const [address = "", protocol = null] = (textOf(port) ?? "").split("/");
  const match = /^(?:(?:(.*):)?([^:]*):)?([^:]+)$/.exec(address);
  const [host_ip, published, target] = [1, 2, 3].map((index) => match?.[index] ?? null);
  return { host_ip: host_ip?.replace(/^\[|\]$/g, "") ?? null, published: published!, target: target!, protocol };
}

/** A map of `extra_hosts` as `name=address`; a name may have several. */
function hostsOf(hosts: JsonMap): string[] {
  return Object.entries(hosts).flatMap(([name, addresses]) =>
    textsOf(addresses).map((address) => `${name}=${address}`),
  );
}

/** Entries of a list; a single text counts as a list of one, and `extra_hosts` may be a map. */
function itemsOf(value: Json): Entry[] {
  if (Array.isArray(value)) return entriesOf(value);
  return (isRecord(value) ? hostsOf(value) : [value]).map((item) => ["", item, undefined]);
}

/** Entries of a map, which may be written as a list. */
function membersOf(value: Json | undefined, rule: string): Entry[] {
  const isOfNames = [...PAIRS, "depends_on", "networks"].includes(rule);
  if (isOfNames && textOf(value) !== undefined) throw new ComposeError(`${rule} is a text: write a list or a map`);
  if (!Array.isArray(value)) return entriesOf(value);
  return entriesOf(value).flatMap(([, item, origin]): Entry[] => {
    if (Object.hasOwn(NAMED, rule)) return [[textOf(item) ?? "", NAMED[rule]!, origin]];
    if (isRecord(item))
      throw new ComposeError(
        `${rule}: an item is a map: write NAME=value, or no "-" before it`,
        `${origin?.at ?? ""}:`,
      );
    return pairsOf([item]).map(([name, text]) => [name, text ?? null, origin]);
  });
}

/**
 * A value, and what a later file, or the service that extends it, says of it. Source: compose specification, merge.
 * @param steps keys above it, e.g. `services`, `web`, `ports`
 */
export function mergeCompose(base: Json | undefined, over: Json, steps: readonly string[] = []): Json {
  const rule = steps[0] === "services" ? steps.slice(2).join(".") : "";
  if (over === null && (base === undefined || typeof base === "object")) return base ?? null;
  if (REPLACED.includes(rule)) return over;
  const [driver, other] = [base, over].map((value) => (isRecord(value) ? value.driver : undefined));
  if (rule === "logging" && driver !== undefined && other !== undefined && driver !== other) return over;
  const keyOf = Object.hasOwn(UNIQUE, rule) ? UNIQUE[rule] : undefined;
  const isMap = isRecord(over) || PAIRS.includes(rule) || Object.hasOwn(NAMED, rule);
  if (keyOf !== undefined || (!isMap && Array.isArray(base) && Array.isArray(over))) {
    const items = [base ?? [], over].flatMap((value) => itemsOf(value));
    const unique = new Map(items.map((item, index) => [keyOf ? keyOf(item[1]) : index, item]));
    return withEntries([...unique.values()], true);
  }
  if (!isMap) return over;
  const members = new Map(membersOf(base, rule).map((entry) => [entry[0], entry]));
  for (const [key, value, origin] of membersOf(over, rule)) {
    const below = origin?.tag === "!override" ? undefined : members.get(key)?.[1];
    if (origin?.tag === "!reset") members.delete(key);
    else members.set(key, [key, mergeCompose(below, value, [...steps, key]), origin && { at: origin.at }]);
  }
  return withEntries([...members.values()]);
}

/** Keys whose values are paths, and those whose values may be names. */
const PATHS =
  /^\.(?:services\.[^.]*\.(?:(?:pre_start\.)?(?:env_file(?:\.path)?|label_file|volumes\.bind\.source)|extends\.file)|(?:configs|secrets)\.[^.]*\.file)$/;
const MAYBE_PATHS = /^\.(?:services\.[^.]*\.(?:pre_start\.)?volumes(?:\.source)?|volumes\.[^.]*\.driver_opts\.device)$/;

/** A path of a file, absolute; other texts as they are. @param keys above the text, e.g. `.services.web.env_file` */
function resolvePath(text: string, keys: string, { directory, environment }: Model): string {
  if (!PATHS.test(keys) && !(MAYBE_PATHS.test(keys) && /^[./~]/.test(text))) return text;
  const path = text.replace(/^~(?=[/:]|$)/, environment.get("HOME") ?? "~");
  return path.replace(/^[^:]*/, (source) => posix.resolve(directory, source));
}

/** A value with other texts. */
function mapTexts(value: Json, change: (text: string, keys: string, at: string) => string, keys = "", at = ""): Json {
  if (typeof value === "string") return change(value, keys, at);
  if (typeof value !== "object" || value === null) return value;
  const isList = Array.isArray(value);
  const above = isRecord(value) && value.type === "bind" ? `${keys}.bind` : keys;
  const below = (key: string) => (isList ? keys : `${above}.${key.replaceAll(".", "_")}`);
  const entries = entriesOf(value);
  return withEntries(
    entries.map(([key, item, origin]) => [key, mapTexts(item, change, below(key), origin?.at), origin]),
    isList,
  );
}

/** Files that are one model: those of the command line, or of an entry of `include`. */
interface Model {
  /** Base of relative paths. */
  directory: string;
  environment: ReadonlyMap<string, string>;
  /** Includes that lead to it, from the outermost: `compose.yaml:3 includes b.yaml`. */
  included: readonly string[];
  /** Files that were read, by directory and path. */
  read: Map<string, JsonMap>;
}

const byKey = (value: Json | undefined) => new Map(entriesOf(value).map((entry) => [entry[0], entry]));

/** Reads Compose files with those they extend and include. */
export class ComposeFiles {
  /** Variables that have no value. */
  readonly missing = new Set<string>();
  readonly #input: ComposeInput;
  #filesLeft = MAX_FILES;
  #charactersLeft = MAX_MERGED;

  constructor(input: ComposeInput) {
    this.#input = input;
  }

  /** All files as one. @throws ComposeError */
  load(
    files = this.#input.files,
    { directory, environment, included }: Omit<Model, "read"> = { ...this.#input, included: [] },
  ): JsonMap {
    const model = { directory, environment, included, read: new Map() };
    let all: Json = {};
    for (const path of files) {
      const file = this.#file(path, model, included.at(-1)?.split(" ", 1)[0]);
      const services = entriesOf(file.services).map(
        ([name, , origin]): Entry => [name, this.#extended(name, file, model, []), origin],
      );
      const extended = isRecord(file.services) ? withEntries(services) : file.services!;
      const entries = entriesOf(file).map(
        ([key, value, at]): Entry => [key, key === "services" ? extended : value, at],
      );
      all = this.#spend(mergeCompose(all, withEntries(entries)));
    }
    const content = byKey(all);
    for (const [, entry, origin] of entriesOf(content.get("include")?.[1])) {
      const at = origin?.at ?? "";
      const other = this.#included(entry, at, model);
      for (const key of ["services", "networks", "volumes", "configs", "secrets"]) {
        const members = byKey(content.get(key)?.[1]);
        for (const member of entriesOf(other[key])) {
          const [name, value] = member;
          const known = members.get(name);
          const message = `${key}.${name} is at ${member[2]?.at} and at ${known?.[2]?.at}: included names must differ`;
          if (known && JSON.stringify(known[1]) !== JSON.stringify(value)) throw new ComposeError(message, `${at}:`);
          members.set(name, member);
        }
        if (members.size > 0) content.set(key, [key, withEntries([...members.values()]), content.get(key)?.[2]]);
      }
    }
    content.delete("include");
    return withEntries([...content.values()]) as JsonMap;
  }

  #included(entry: Json, at: string, model: Model): JsonMap {
    const { path, project_directory, env_file } = isRecord(entry) ? entry : { path: entry };
    const absolute = (one: string) => posix.resolve(model.directory, one);
    const files = textsOf(path).map(absolute);
    const step = `${at} includes ${files.join(", ")}`;
    if (model.included.includes(step))
      throw new ComposeError(`files include each other in a circle: ${model.included.join("; ")}`, `${at}:`);
    const own = textOf(project_directory);
    const directory = own === undefined ? posix.dirname(files[0] ?? "/") : absolute(own);
    const named = textsOf(env_file).map(absolute);
    const defaults = (named.length > 0 ? named : [posix.join(directory, ".env")]).flatMap((file) => {
      const text = this.#input.readFile(file, true);
      if (text === undefined && named.length > 0) throw new ComposeError(`"${file}" cannot be read`, `${at}:`);
      return [...parseEnvFile(text ?? "", model.environment)];
    });
    const environment = new Map([...defaults, ...model.environment]);
    return this.load(files, { directory, environment, included: [...model.included, step] });
  }

  /** A service with what it extends. @param chain the services that lead to it */
  #extended(name: string, file: JsonMap, model: Model, chain: readonly string[]): Json {
    const service = isRecord(file.services) ? (file.services[name] ?? null) : null;
    if (!isRecord(service) || service.extends === undefined) return service;
    const from = isRecord(service.extends) ? service.extends : { service: service.extends };
    const other = textOf(from.service) ?? "";
    const at = originOf(service, "extends")?.at ?? "";
    const step = `${at} ${name} extends ${other}`;
    if (chain.includes(step) || chain.length >= MAX_CHAIN) {
      const how = chain.includes(step) ? "in a circle" : `over more than ${MAX_CHAIN} steps`;
      throw new ComposeError(`services extend each other ${how}: ${chain.join("; ")}`, `${at}:`);
    }
    const path = textOf(from.file) && posix.resolve(model.directory, textOf(from.file)!);
    const base = path === undefined ? model : { ...model, directory: posix.dirname(path) };
    const source = path === undefined ? file : this.#file(path, base, at);
    if (!isRecord(source.services) || !isRecord(source.services[other]))
      throw new ComposeError(`${name} extends "${other}": ${path ?? "this file"} has no such service`, `${at}:`);
    const extended = mergeCompose(undefined, this.#extended(other, source, base, [...chain, step]));
    const members = entriesOf(service).filter(([key]) => key !== "extends");
    return this.#spend(mergeCompose(extended, withEntries(members), ["services", name]));
  }

  /** @param by where it is named */
  #file(path: string, model: Model, by?: string): JsonMap {
    const { directory, environment, read } = model;
    const known = read.get(`${directory}:${path}`);
    if (known) return known;
    const position = by === undefined ? `${path}:` : `${by}:`;
    if (--this.#filesLeft < 0) throw new ComposeError(`there are more than ${MAX_FILES} files`, position);
    const text = this.#input.readFile(path);
    const missing = `${by === undefined ? "" : `"${path}" `}is not there, cannot be read or has more than 1 MiB`;
    if (text === undefined) throw new ComposeError(missing, position);
    let line = "";
    try {
      const interpolate = interpolation(
        (name) => environment.get(name),
        (name) => this.missing.add(name),
        true,
      );
      const change = (one: string, keys: string, at: string) => {
        line = `${at.slice(at.lastIndexOf(":") + 1)}:`;
        return resolvePath(interpolate(one), keys, model);
      };
      const file = mapTexts(parseCompose(text, posix.relative(this.#input.directory, path)), change);
      if (!isRecord(file)) throw new ComposeError(NO_SERVICES);
      read.set(`${directory}:${path}`, file);
      return this.#spend(file);
    } catch (error) {
      if (error instanceof ComposeError) throw new ComposeError(error.message, `${path}:${error.position || line}`);
      throw error;
    }
  }

  /** Counts a value that was made, which may be used again and again. */
  #spend<T extends Json>(value: T): T {
    this.#charactersLeft -= JSON.stringify(value).length;
    if (this.#charactersLeft < 0)
      throw new ComposeError(`the files and what they extend have more than ${MAX_MERGED} characters`);
    return value;
  }
}

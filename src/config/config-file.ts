import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  type ParsedNode,
  parseAllDocuments,
  type YAMLMap,
} from "yaml";
import { DEFAULT_KUBELET_OPTIONS } from "../model/kubelet-options.ts";
import { nearestName } from "../text/nearest-name.ts";
import { CONFIG_API_VERSION, CONFIG_KIND } from "./effective-config.ts";
import type { Setting } from "./flags.ts";
import { asksForNothing, type OptionRow } from "./option-row.ts";
import { OPTION_TABLE, ROW_BY_FIELD } from "./option-table.ts";

/** Settings of one configuration file. Messages start with `file:line:column:`. */
export interface ConfigFile {
  settings: Setting[];
  warnings: string[];
  errors: string[];
}

/** Kind of a file given by --config. */
export type FileNature = "configuration" | "manifest" | "unknown";

/** Distinguishes a KubeletConfiguration from a manifest, also when the text has syntax errors. */
export function detectKind(text: string): FileNature {
  if (/^\s*"?kind"?\s*:\s*["']?KubeletConfiguration\b/m.test(text)) return "configuration";
  if (/"kind"\s*:\s*"KubeletConfiguration"/.test(text)) return "configuration";
  if (/^\s*"?apiVersion"?\s*:\s*["']?kubelet\.config\.k8s\.io\//m.test(text)) return "configuration";
  return /(^|[{,\s"])kind"?\s*:/.test(text) ? "manifest" : "unknown";
}

/**
 * Reads a KubeletConfiguration (YAML or JSON). Unknown fields and fields without effect warn; values of a wrong kind are
 * errors. Other documents of kubeadm in the same file are skipped.
 */
export function parseConfigFile(text: string, file: string): ConfigFile {
  const result: ConfigFile = { settings: [], warnings: [], errors: [] };
  const lines = new LineCounter();
  const place = (offset: number | undefined): string => {
    const { line, col } = lines.linePos(offset ?? 0);
    return `${file}:${Math.max(line, 1)}:${Math.max(col, 1)}`;
  };
  const documents = parseAllDocuments<ParsedNode>(text.replace(/^\uFEFF/, ""), {
    lineCounter: lines,
    version: "1.1",
    prettyErrors: false,
    logLevel: "error",
  });
  const list = "empty" in documents ? [] : documents;
  let found = false;
  for (const document of list) {
    for (const error of document.errors) result.errors.push(`${place(error.pos[0])}: ${error.message}`);
    if (document.errors.length > 0 || document.contents === null) continue;
    const root = document.contents as Node;
    if (!isMap(root)) {
      result.errors.push(`${place(start(root))}: must be a map with kind: ${CONFIG_KIND}`);
      continue;
    }
    const kind = root.get("kind");
    const apiVersion = root.get("apiVersion");
    if (typeof apiVersion === "string" && apiVersion.startsWith("kubeadm.k8s.io/")) continue;
    if (kind !== CONFIG_KIND) {
      result.errors.push(`${place(start(root))}: kind must be ${CONFIG_KIND}, found ${JSON.stringify(kind ?? null)}`);
      continue;
    }
    if (apiVersion !== CONFIG_API_VERSION) {
      result.errors.push(
        `${place(start(root))}: apiVersion must be ${CONFIG_API_VERSION}, found ${JSON.stringify(apiVersion ?? null)}`,
      );
      continue;
    }
    if (found) {
      result.errors.push(`${place(start(root))}: a second ${CONFIG_KIND} in one file`);
      continue;
    }
    found = true;
    readMap(root, "", { place, result, file, document });
  }
  if (!found && result.errors.length === 0) result.errors.push(`${file}: has no ${CONFIG_KIND}`);
  return result;
}

interface Walk {
  place: (offset: number | undefined) => string;
  result: ConfigFile;
  file: string;
  /** Knows what aliases stand for. */
  document: Document<Node>;
}

const start = (node: unknown): number | undefined => (node as Node | null)?.range?.[0];

function readMap(map: YAMLMap, path: string, walk: Walk): void {
  for (const pair of pairsOf(map, walk)) {
    const name = nameOf(pair);
    if (path === "" && (name === "kind" || name === "apiVersion")) continue;
    const field = path === "" ? name : `${path}.${name}`;
    const at = walk.place(start(pair.key));
    const row = ROW_BY_FIELD.get(field);
    const node = resolved(pair.value, walk);
    const value = toValue(node, at, walk);
    // Absent, as for every Go decoder; also what `resolvConf:` with nothing behind it means.
    if (value === null || value === undefined) continue;
    if (!row) {
      if (!isSection(field)) walk.result.warnings.push(`${at}: ${unknownField(field, path)}`);
      else if (isMap(node)) readMap(node, field, walk);
      else walk.result.errors.push(`${walk.place(start(pair.value))}: ${field}: must be a map`);
      continue;
    }
    switch (row.is) {
      case "option":
        readOption(row, field, value, walk.place(start(pair.value)), walk);
        break;
      case "inapplicable":
        if (!isZero(value) && !row.silent?.includes(String(value))) {
          walk.result.warnings.push(`${at}: ${field} has no effect: ${row.why}`);
        }
        break;
      case "refused":
        if (!isZero(value) && !row.allowed.includes(String(value))) {
          walk.result.errors.push(`${at}: ${field}: ${row.why}`);
        }
        break;
      case "command":
        break;
      default:
        row satisfies never;
    }
  }
}

const nameOf = ({ key }: Pair): string =>
  isScalar(key) ? (typeof key.value === "symbol" ? MERGE : String(key.value)) : String(key);

const MERGE = "<<";

const resolved = (node: unknown, { document }: Walk): unknown => (isAlias(node) ? node.resolve(document) : node);

/** With what `<<` brings: what the map says itself counts before it, of several maps the first. */
function pairsOf(map: YAMLMap, walk: Walk): Pair[] {
  const pairs = (map.items as Pair[]).filter((pair) => nameOf(pair) !== MERGE);
  const names = new Set(pairs.map(nameOf));
  for (const { value } of (map.items as Pair[]).filter((pair) => nameOf(pair) === MERGE)) {
    const node = resolved(value, walk);
    const sources = isSeq(node) ? node.items.map((item) => resolved(item, walk)) : [node];
    for (const pair of sources.flatMap((source) => (isMap(source) && source !== map ? (source.items as Pair[]) : []))) {
      if (names.has(nameOf(pair)) || nameOf(pair) === MERGE) continue;
      names.add(nameOf(pair));
      pairs.push(pair);
    }
  }
  return pairs;
}

/** undefined: nothing, or something that cannot be unfolded. */
function toValue(node: unknown, at: string, { document, result }: Walk): unknown {
  try {
    return (node as Node | null | undefined)?.toJS(document);
  } catch (error) {
    result.errors.push(`${at}: ${(error as Error).message}`);
    return undefined;
  }
}

function readOption(row: OptionRow, field: string, value: unknown, at: string, walk: Walk): void {
  const counts = row.zeroCounts || field.startsWith("kubeletTs.");
  if (!counts && isZero(value)) return;
  const parsed = row.kind.fromField(value);
  if ("problem" in parsed) {
    walk.result.errors.push(`${at}: ${field}: ${parsed.problem}`);
    return;
  }
  if (row.notYet && !asksForNothing(parsed.value) && !isDefault(row, parsed.value)) {
    walk.result.warnings.push(`${at}: ${field} has no effect yet: ${row.notYet}`);
  }
  if (parsed.warning) walk.result.warnings.push(`${at}: ${field}: ${parsed.warning}`);
  walk.result.settings.push({ row, value: parsed.value, origin: at.replace(/:\d+$/, "") });
}

/** Files written by programs name every field: only values that differ from the default are reported. */
const isDefault = (row: OptionRow, value: unknown): boolean =>
  row.kind.toText(value) === row.kind.toText(DEFAULT_KUBELET_OPTIONS[row.option]);

/** Go's zero value of an unset field. Booleans are excluded: those that default to true are pointers upstream. */
function isZero(value: unknown): boolean {
  if (value === "" || value === 0 || value === "0" || value === "0s") return true;
  if (Array.isArray(value)) return value.length === 0;
  return typeof value === "object" && value !== null && Object.values(value).every(isZero);
}

const SECTIONS: ReadonlySet<string> = new Set(
  OPTION_TABLE.flatMap((row) => {
    const parts = row.field?.split(".") ?? [];
    return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join("."));
  }),
);

const isSection = (field: string): boolean => SECTIONS.has(field);

function unknownField(field: string, path: string): string {
  const prefix = path === "" ? "" : `${path}.`;
  const siblings = new Set<string>();
  for (const known of ROW_BY_FIELD.keys()) {
    if (known.startsWith(prefix)) siblings.add(known.slice(prefix.length).split(".", 1)[0]!);
  }
  const name = field.slice(prefix.length);
  const nearest = nearestName(name, siblings) ?? nameOfFlag(name);
  return `${field}: no such field${nearest ? `; did you mean ${prefix}${nearest}?` : ""}`;
}

/** Field of a flag whose name was written into the file: `pod-manifest-path`, `podManifestPath`. */
function nameOfFlag(name: string): string | undefined {
  const flag = name.replace(/[A-Z]+/g, (letters) => `-${letters.toLowerCase()}`).replaceAll("_", "-");
  return OPTION_TABLE.find((row) => row.flag === flag && row.field !== undefined)?.field;
}

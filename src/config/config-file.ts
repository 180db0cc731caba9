import { nearestName } from "../base/text/nearest-name.ts";
import { parseStream } from "../manifest/yaml/parse-stream.ts";
import { isDeeperThan, type MapNode, type SourceNode, toPlainValue } from "../manifest/yaml/source-node.ts";
import { CONFIG_API_VERSION, CONFIG_KIND } from "./effective-config.ts";
import type { CommandLine } from "./flags.ts";
import { OPTION_TABLE, type OptionRow, ROW_BY_FIELD } from "./option-table.ts";

/** Settings of one configuration file. Messages start with `file:line:column:`. */
interface ConfigFile extends Pick<CommandLine, "settings" | "warnings" | "errors"> {
  /** Unknown fields; `--validate` decides whether they are errors. */
  unknown: string[];
}

/** Fields have at most five levels; values are processed recursively. */
const MAX_DEPTH = 100;

/** Distinguishes a KubeletConfiguration from a manifest, also when the text has syntax errors. */
export function detectKind(text: string): "configuration" | "manifest" | "unknown" {
  if (/^\s*"?kind"?\s*:\s*["']?KubeletConfiguration\b/m.test(text)) return "configuration";
  if (/"kind"\s*:\s*"KubeletConfiguration"/.test(text)) return "configuration";
  if (/^\s*"?apiVersion"?\s*:\s*["']?kubelet\.config\.k8s\.io\//m.test(text)) return "configuration";
  return /(^|[{,\s"])kind"?\s*:/.test(text) ? "manifest" : "unknown";
}

/**
 * Reads a KubeletConfiguration (YAML or JSON). Fields without effect warn; values of a wrong kind are errors. Other documents of kubeadm in the same file are skipped.
 */
export function parseConfigFile(text: string, file: string): ConfigFile {
  const result: ConfigFile = { settings: [], warnings: [], errors: [], unknown: [] };
  const { documents, lines } = parseStream(Buffer.from(text, "utf8"));
  const positionOf = (offset: number): string => {
    const { line, column } = lines.locate(offset);
    return `${file}:${line}:${column}`;
  };
  let found = false;
  for (const document of documents) {
    if (document.kind === "error")
      result.errors.push(`${positionOf(document.error.offset)}: ${document.error.message}`);
    if (document.kind !== "value" || document.root.kind === "null") continue;
    const { root } = document;
    const at = positionOf(root.offset);
    if (isDeeperThan(root, MAX_DEPTH)) {
      result.errors.push(`${at}: more than ${MAX_DEPTH} levels of nesting`);
      continue;
    }
    if (root.kind !== "map") {
      result.errors.push(`${at}: must be a map with kind: ${CONFIG_KIND}`);
      continue;
    }
    const kind = memberOf(root, "kind");
    const apiVersion = memberOf(root, "apiVersion");
    if (typeof apiVersion === "string" && apiVersion.startsWith("kubeadm.k8s.io/")) continue;
    if (kind !== CONFIG_KIND) {
      result.errors.push(`${at}: kind must be ${CONFIG_KIND}, found ${JSON.stringify(kind)}`);
    } else if (apiVersion !== CONFIG_API_VERSION) {
      result.errors.push(`${at}: apiVersion must be ${CONFIG_API_VERSION}, found ${JSON.stringify(apiVersion)}`);
    } else if (found) result.errors.push(`${at}: a second ${CONFIG_KIND} in one file`);
    else {
      found = true;
      readMap(root, "", { positionOf, result });
    }
  }
  if (!found && result.errors.length === 0) result.errors.push(`${file}: has no ${CONFIG_KIND}`);
  return result;
}

const memberOf = (map: MapNode, name: string): unknown => {
  const entry = map.entries.get(name);
  return entry ? toPlainValue(entry.value) : null;
};

interface Walk {
  positionOf: (offset: number) => string;
  result: ConfigFile;
}

function readMap(map: MapNode, path: string, walk: Walk): void {
  for (const [name, { keyOffset, value: node, isRepeated }] of map.entries) {
    if (path === "" && (name === "kind" || name === "apiVersion")) continue;
    const field = path === "" ? name : `${path}.${name}`;
    const at = walk.positionOf(keyOffset);
    if (isRepeated) {
      walk.result.errors.push(`${at}: ${field}: occurs twice`);
      continue;
    }
    // null is the same as absent, as for Go's decoder: `resolvConf:` without a value.
    if (node.kind === "null") continue;
    const row = ROW_BY_FIELD.get(field);
    if (!row) {
      if (!SECTIONS.has(field)) walk.result.unknown.push(`${at}: ${unknownField(field, path)}`);
      else if (node.kind === "map") readMap(node, field, walk);
      else walk.result.errors.push(`${walk.positionOf(node.offset)}: ${field}: must be a map`);
      continue;
    }
    if (row.is === "option") readOption(row, field, node, walk);
    else if (row.is !== "command") {
      const value = toPlainValue(node);
      if (isZero(value) || row.accepted.includes(asFlag(value))) continue;
      if (row.is === "refused") walk.result.errors.push(`${at}: ${field}: ${row.why}`);
      else walk.result.warnings.push(`${at}: ${field} has no effect: ${row.why}`);
    }
  }
}

function readOption(row: OptionRow, field: string, node: SourceNode, walk: Walk): void {
  const at = walk.positionOf(node.offset);
  const value = toPlainValue(node);
  if (!row.zeroCounts && !field.startsWith("kubeletTs.") && isZero(value)) return;
  const parsed = row.kind.fromField(value);
  if ("problem" in parsed) walk.result.errors.push(`${at}: ${field}: ${parsed.problem}`);
  else walk.result.settings.push({ row, value: parsed.value, origin: at.replace(/:\d+$/, "") });
}

/** A scalar or a list of scalars as the value of a flag. Maps have no text: without a prototype, `String` throws. */
const asFlag = (value: unknown): string =>
  [value]
    .flat()
    .map((item) => (typeof item === "object" ? "{}" : item))
    .join(",");

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

function unknownField(field: string, path: string): string {
  const prefix = path === "" ? "" : `${path}.`;
  const siblings = new Set<string>();
  for (const known of ROW_BY_FIELD.keys()) {
    if (known.startsWith(prefix)) siblings.add(known.slice(prefix.length).split(".", 1)[0]!);
  }
  const name = field.slice(prefix.length);
  // The name of a flag may have been written: `pod-manifest-path`, `podManifestPath`.
  const flag = name.replace(/[A-Z]+/g, (letters) => `-${letters.toLowerCase()}`).replaceAll("_", "-");
  const ofFlag = OPTION_TABLE.find((row) => row.flag === flag && row.field !== undefined)?.field;
  const nearest = nearestName(name, siblings) ?? ofFlag;
  return `${field}: no such field${nearest ? `; did you mean ${prefix}${nearest}?` : ""}`;
}

import type { FieldPath } from "../field-path.ts";
import type { MapNode, SourceNode } from "../yaml/source-node.ts";
import { type DecodeIssue, decodeObject } from "./decode.ts";
import type { ObjectShape, Shape } from "./shape.ts";

/** A field whose name is written with other capitals. */
export interface MiscasedField {
  path: FieldPath;
  name: string;
}

interface CaseReading {
  decoded: object;
  miscased: readonly MiscasedField[];
}

type Decode = (node: SourceNode, shape: ObjectShape, path: FieldPath, issues: DecodeIssue[]) => CaseReading;

/** Decodes an object whose field names have the capitals that Kubernetes gives them. */
export const decodeExactly: Decode = (...input) => ({ decoded: decodeObject(...input), miscased: [] });

/**
 * Decodes an object whose field names may have other capitals, as encoding/json and so podman reads them: `readonly` for
 * `readOnly`. A name that is also written correctly is left to be reported as unknown.
 */
export const decodeAnyCase: Decode = (node, shape, path, issues) => {
  const before = issues.length;
  const decoded = decodeObject(node, shape, path, issues);
  const isMiscased = ({ kind, nearest, path: at }: DecodeIssue) =>
    kind === "unknown" && nearest?.toLowerCase() === String(at.steps().at(-1)).toLowerCase();
  if (!issues.slice(before).some(isMiscased)) return { decoded, miscased: [] };
  issues.length = before;
  const miscased: MiscasedField[] = [];
  const corrected = correct(node, shape, path, miscased);
  return { decoded: decodeObject(corrected, shape, path, issues), miscased };
};

function correct(node: SourceNode, shape: Shape, path: FieldPath, miscased: MiscasedField[]): SourceNode {
  if (shape.kind === "object" && node.kind === "map") return correctFields(node, shape, path, miscased);
  if (shape.kind === "list" && node.kind === "list") {
    return { ...node, items: node.items.map((item, index) => correct(item, shape.item, path.index(index), miscased)) };
  }
  return node;
}

function correctFields(node: MapNode, shape: ObjectShape, path: FieldPath, miscased: MiscasedField[]): MapNode {
  const byLowerCase = new Map([...shape.names.keys()].map((name) => [name.toLowerCase(), name]));
  const entries: MapNode["entries"] = new Map();
  for (const [key, entry] of node.entries) {
    const known = shape.names.has(key) ? key : byLowerCase.get(key.toLowerCase());
    const isFree = known !== undefined && (known === key || !(node.entries.has(known) || entries.has(known)));
    const name = isFree ? known : key;
    if (name !== key) miscased.push({ path: path.child(key), name });
    const field = shape.names.get(name);
    const value = field ? correct(entry.value, field.shape, path.child(key), miscased) : entry.value;
    entries.set(name, { ...entry, value });
  }
  return { ...node, entries };
}

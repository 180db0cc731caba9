import type { SourceNode } from "../yaml/source-node.ts";
import type { FieldPath } from "./field-path.ts";

/**
 * Where a field stands in the text: its value, or, when there is none, the nearest thing around it.
 * @param atKey the key instead of the value.
 * @returns UTF-16 offset.
 */
export function locateField(root: SourceNode, path: FieldPath, atKey = false): number {
  let node = root;
  let keyOffset = root.offset;
  let viaKey = false;
  for (const step of path.steps()) {
    const entry = node.kind === "map" ? node.entries.get(String(step)) : undefined;
    const item = node.kind === "list" && typeof step === "number" ? node.items[step] : undefined;
    const next = entry?.value ?? item;
    if (!next) return viaKey ? keyOffset : node.offset;
    viaKey = entry !== undefined;
    keyOffset = entry?.keyOffset ?? next.offset;
    node = next;
  }
  return atKey ? keyOffset : node.offset;
}

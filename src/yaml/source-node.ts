/**
 * A value of a document with the place where it stands, after all that is text is done: scalars resolved, anchors and
 * merges expanded, duplicate keys settled. YAML and JSON end up in the same shape. An aliased value is one node that
 * several parents share.
 */
export type SourceNode = MapNode | ListNode | StringNode | NumberNode | BoolNode | NullNode;

interface Located {
  /** Where the value starts: UTF-16 offset into the text. */
  offset: number;
}

export interface MapNode extends Located {
  kind: "map";
  entries: Map<string, MapEntry>;
}
export interface MapEntry {
  keyOffset: number;
  value: SourceNode;
  /** The same key stands in the map before: the last one counts. */
  isRepeated?: boolean;
  /** Comes from a YAML merge (`<<`), which own keys may override. */
  isMerged?: boolean;
}
export interface ListNode extends Located {
  kind: "list";
  items: SourceNode[];
}
export interface StringNode extends Located {
  kind: "string";
  value: string;
}
export interface NumberNode extends Located {
  kind: "number";
  /** The number as JSON: `5`, `1.5`, `1e+21`. For YAML already in the form Go would print. */
  json: string;
}
export interface BoolNode extends Located {
  kind: "bool";
  value: boolean;
  /** As written, e.g. `yes`, for the message that tells to quote it. */
  source: string;
}
export interface NullNode extends Located {
  kind: "null";
}

/** One document of a stream: its value, or where and why it cannot be read. */
export type ParsedDocument =
  | { kind: "value"; root: SourceNode; offset: number }
  | { kind: "empty"; offset: number }
  | { kind: "error"; error: TextError };

/** Text that is not YAML or JSON. Thrown inside the text layer only; it never leaves `parseStream`. */
export class TextError extends Error {
  override name = "TextError";
  constructor(
    message: string,
    /** UTF-16 offset into the text. */
    readonly offset: number,
  ) {
    super(message);
  }
}

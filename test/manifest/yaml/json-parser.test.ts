import { expect, test } from "bun:test";
import { parseJson } from "../../../src/manifest/yaml/json-parser.ts";
import { LineTable } from "../../../src/manifest/yaml/parse-stream.ts";
import type { MapNode, SourceNode } from "../../../src/manifest/yaml/source-node.ts";

const at = (node: SourceNode, ...keys: string[]): SourceNode =>
  keys.reduce<SourceNode>((current, key) => (current as MapNode).entries.get(key)!.value, node);

test.each([
  ['{"a": 1,}', "a key in double quotes"],
  ["{'a': 1}", "a key in double quotes"],
  ["{a: 1}", "a key in double quotes"],
  ['{"a": 01}', '"," or "}"'],
  ['{"a": .5}', "a value"],
  ['{"a": tru}', "a value"],
  ['{"a": "\n"}', "an escape"],
  ['{"a": "\\x41"}', "an escape that JSON knows"],
  ['{"a": "x}', "never ends"],
  ['{"a": 1} # comment', "after the end of the JSON value"],
  ['{"a": 1}\n---\n{}', "after the end of the JSON value"],
  ['{"a" 1}', '":"'],
  ['{"a": [1 2]}', '"," or "]"'],
])("not JSON: %j", (text, says) => expect(() => parseJson(text)).toThrow(says));

test("values keep their places", () => {
  const text = '{\n  "a": [true, {"b": "x"}]\n}';
  const list = at(parseJson(text), "a");
  const lines = new LineTable(text);
  expect(list.kind === "list" && list.items.map((item) => lines.locate(item.offset))).toEqual([
    { line: 2, column: 9 },
    { line: 2, column: 15 },
  ]);
});

test("escapes, surrogate pairs and halves of them", () => {
  const node = at(parseJson('{"a": "\\u0041\\/\\ud83d\\ude00\\ud83d"}'), "a");
  expect(node).toMatchObject({ kind: "string", value: "A/😀\ufffd" });
});

test("numbers stay as written", () => {
  expect(at(parseJson('{"a": 1e3}'), "a")).toMatchObject({ kind: "number", json: "1e3" });
});

test("an object that occurs twice is filled twice; null changes nothing", () => {
  const root = parseJson('{"m": {"a": 1, "b": {"c": 1}}, "m": {"b": {"d": 2}}, "m": null}');
  expect([...(at(root, "m") as MapNode).entries.keys()]).toEqual(["a", "b"]);
  expect([...(at(root, "m", "b") as MapNode).entries.keys()]).toEqual(["c", "d"]);
});

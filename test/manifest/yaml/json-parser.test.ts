import { expect, test } from "bun:test";
import { parseJson } from "../../../src/manifest/yaml/json-parser.ts";
import type { MapNode, SourceNode } from "../../../src/manifest/yaml/source-node.ts";
import { LineTable } from "../../../src/manifest/yaml/source-node.ts";

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

test("places of a long text are those of a walk from its start", () => {
  const text = "a\nbc\r\n\ufeffd\re😀f\n".repeat(300) + "x".repeat(3_000) + "\n\n".repeat(1_000);
  const lines = new LineTable(text);
  let [line, column] = [1, 1];
  for (let at = 0; at <= text.length; at++) {
    expect(lines.locate(at)).toEqual({ line, column });
    const isEnd = text[at] === "\n" || (text[at] === "\r" && text[at + 1] !== "\n");
    column = isEnd ? 1 : column + (/[\ufeff\udc00-\udfff]/.test(text[at] ?? "") ? 0 : 1);
    if (isEnd) line++;
  }
  expect([1_199, 1_200, 1_201, 3_202].map((number) => lines.lineText(number))).toEqual([
    "\ufeffd",
    "e😀f",
    "x".repeat(3_000),
    "",
  ]);
});

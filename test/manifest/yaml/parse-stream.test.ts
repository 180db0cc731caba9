import { describe, expect, test } from "bun:test";
import { parseStream } from "../../../src/manifest/yaml/parse-stream.ts";
import { toPlainValue } from "../../../src/manifest/yaml/source-node.ts";

/** The values of all documents; of a broken one its message. */
function read(text: string | Uint8Array): unknown[] {
  const bytes = typeof text === "string" ? Buffer.from(text) : text;
  return parseStream(bytes).documents.map((document) =>
    document.kind === "value" ? toPlainValue(document.root) : document.kind === "empty" ? "(empty)" : document.error,
  );
}

const errorOf = (text: string | Uint8Array) => {
  const error = read(text).find((value) => value instanceof Error) as Error | undefined;
  return error?.message ?? "no error";
};

test.each<[string, unknown]>([
  ["yes", true],
  ["On", true],
  ["N", false],
  ["tRue", "tRue"],
  ["0644", 420],
  ["0o644", 420],
  ["0x1A4", 420],
  ["0b1", 1],
  ["1_000", 1000],
  ["+5", 5],
  ["08", 8],
  ["5.0", 5],
  ["1e3", 1000],
  [".5", 0.5],
  ["12:30", "12:30"],
  ["2001-01-01", "2001-01-01"],
  ["1e400", "1e400"],
  ["<<", "<<"],
  ["~", null],
  ["Null", null],
  ["nULL", "nULL"],
  ["-0", 0],
  ["18446744073709551615", 2 ** 64],
  ["18446744073709551616", 2 ** 64],
  ["'5'", "5"],
  ['"yes"', "yes"],
  ["!!str 5", "5"],
  ["!!int 5", 5],
  ["!!float 5", 5],
  ["! 5", "5"],
  ["!custom 5", "5"],
  ["!!binary aGk=", "hi"],
  ["-", [null]],
  ["--", "--"],
])("scalars as go-yaml v2 reads them: %s", (text, want) =>
  expect(read(`v: ${text}`.replace("v: -\n", "v:\n-\n"))[0]).toEqual(text === "-" ? expect.anything() : { v: want }),
);

describe("refused", () => {
  test.each([
    ["v: .inf", "not a number JSON knows"],
    ["v: !!int x", "tagged !!int"],
    ["~: x", "key is missing"],
    ["[a]: x", "cannot be a key"],
    ["a: b: c", 'a second ":"'],
    ["a: 'x", "never ends"],
    ['a: "\\ud83d\\ude00"', "half a character"],
    ['a: "\\/"', "not an escape"],
    ["a: *x", "no anchor"],
    ["a: &x [*x]", "contains itself"],
    ["<<:", "takes a map"],
    ["%YAML 1.2\n---\na: 1", "only YAML 1.1"],
    ["%FOO\n---\na: 1", "must be a %YAML or %TAG"],
    ["%TAG ! tag`:x,2000:\n---\na: 1", "must be a %YAML or %TAG"],
    ["a: 1\n\ufeff", "key: value"],
    ["a:\n\tb: 1", "tab"],
    ["a: @x", "cannot begin with"],
    ["a: `x", "cannot begin with"],
    ["a: {b: 1", '"," or "}"'],
    ["a: [1", '"," or "]"'],
    ["a: |x\n  y", "nothing may follow"],
    ["a: |0\n  y", "cannot be 0"],
    ["- a\nb: 1", "- item"],
    ["a: 1\n- b", "key: value"],
    ["a: x\u0007", "U+0007"],
    ["# \u007f", "U+007F"],
  ])("%j", (text, says) => expect(errorOf(text)).toContain(says));
});

describe("structure", () => {
  test.each<[string, string, unknown]>([
    ["the last of two equal keys wins", "a: 1\na: 2", { a: 2 }],
    ["merge yields to later keys", "b: &b {x: 1}\na:\n  <<: *b\n  x: 2", { b: { x: 1 }, a: { x: 2 } }],
    ["merge overrides earlier keys", "b: &b {x: 1}\na:\n  x: 2\n  <<: *b", { b: { x: 1 }, a: { x: 1 } }],
    ["the first of several merged maps wins", "a:\n  <<: [{x: 1}, {x: 2, z: 3}]", { a: { x: 1, z: 3 } }],
    ["a quoted << is a key", "'<<': 1", { "<<": 1 }],
    ["a list needs no indentation", "a:\n- 1\n- 2\nb: 3", { a: [1, 2], b: 3 }],
    ["escapes", 'a: "\\x41\\u00e9\\U0001F600\\n\\t\\0\\_"', { a: "Aé😀\n\t\0\u00a0" }],
    ["an escaped line break joins", 'a: "one \\\n  two"', { a: "one two" }],
    ["keys without values", "a: {b, c: }", { a: { b: null, c: null } }],
    ["complex keys with scalars", "? a\n: 1", { a: 1 }],
    ["float keys", "1.10: x\n1.0: w\n1e6: z", { "1.1": "x", "1": "w", "1e+06": "z" }],
    ["boolean keys", "on: 1\ny: 2", { true: 2 }],
    ["__proto__ is a key like any other", "__proto__: {a: 1}", JSON.parse('{"__proto__": {"a": 1}}')],
    ["a byte order mark", "\ufeffa: 1", { a: 1 }],
    ["a byte order mark that is not the first character is a letter", "a: 1\n\ufeffb: 2\n", { a: 1, "\ufeffb": 2 }],
    ["CR LF", "a: 1\r\nb:\r\n  c: 2\r\n", { a: 1, b: { c: 2 } }],
    ["tabs after a colon and before a comment", "a:\t1\t# x", { a: 1 }],
  ])("%s", (_, text, want) => expect(read(text)).toEqual([want]));

  test("UTF-16 with a byte order mark", () => {
    const utf16 = Buffer.from("\ufeffa: é\n", "utf16le");
    expect(read(utf16)).toEqual([{ a: "é" }]);
    expect(read(utf16.subarray(0, -1))[0]).toBeInstanceOf(Error);
    expect(read(Buffer.from(utf16).swap16())).toEqual([{ a: "é" }]);
  });

  test("bytes that are not UTF-8 make the document an error", () => {
    expect(errorOf(Buffer.from([0x61, 0x3a, 0x20, 0xff]))).toContain("invalid UTF-8");
    expect(errorOf(Buffer.concat([Buffer.from("a: 1 # "), Buffer.from([0xed, 0xa0, 0x80])]))).toContain(
      "invalid UTF-8",
    );
  });
});

describe("documents", () => {
  test("several in one stream", () =>
    expect(read("a: 1\n---\nb: 2\n...\n---\n--- c\n")).toEqual([{ a: 1 }, { b: 2 }, "(empty)", "c"]));
  test("a broken one does not hide the next", () => {
    const [first, second] = read("a: b: c\n---\nd: 1\n");
    expect(first).toBeInstanceOf(Error);
    expect(second).toEqual({ d: 1 });
  });
  test("only another document may follow the end of one", () => {
    expect(errorOf("--- {a: 1}\nb: 2")).toContain("the document has ended here");
  });
});

describe("limits", () => {
  test("aliases that multiply are refused", () => {
    const levels = Array.from({ length: 9 }, (_, i) => `a${i + 1}: &a${i + 1} [${Array(9).fill(`*a${i}`).join(",")}]`);
    expect(errorOf(`a0: &a0 [x]\n${levels.join("\n")}`)).toContain("aliases make the document grow");
  });
  test("a few aliases are fine", () => expect(read("a: &a [1]\nb: [*a, *a]")).toEqual([{ a: [1], b: [[1], [1]] }]));
  test("nesting is bounded, in YAML and in JSON", () => {
    expect(errorOf(`${"[".repeat(20_000)}`)).toContain("nest");
    expect(errorOf(`{"a": ${"[".repeat(20_000)}`)).toContain("nest");
  });
  test("as many levels as go-yaml has are read, also by code that the engine has compiled meanwhile", () => {
    const deep = Buffer.from(`a: ${"[".repeat(9_990)}${"]".repeat(9_990)}`);
    for (let count = 0; count < 20; count++) expect(parseStream(deep).documents[0]?.kind).toBe("value");
  });
  test("10 MiB is too long", () => expect(errorOf(Buffer.alloc(10 * 1024 * 1024, "#"))).toContain("10 MiB"));
});

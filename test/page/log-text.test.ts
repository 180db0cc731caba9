import { describe, expect, test } from "bun:test";
import {
  byContainer,
  LineSplitter,
  MAX_SHOWN_LINE,
  MAX_SPANS,
  plainText,
  splitMatches,
  splitStamp,
  toLocalTime,
  toPattern,
  toSpans,
  withVisibleMarks,
} from "../../src/page/log-text.ts";

describe("spans of a line", () => {
  test.each([
    ["plain", [["plain", 0, false]]],
    [
      "\x1b[31mred\x1b[0m rest",
      [
        ["red", 2, false],
        [" rest", 0, false],
      ],
    ],
    ["\x1b[1;92mok", [["ok", 11, true]]],
    ["\x1b[2J\x1b[Hcleared", [["cleared", 0, false]]],
    ["\x1b]0;title\x07after", [["after", 0, false]]],
    ["\x1b]8;;https://example.com\x1b\\link", [["link", 0, false]]],
    ["a\u202eb\u2066c\x07d\x9be", [["abcde", 0, false]]],
    ["\x1b[38;5;1mpalette", [["palette", 2, false]]],
    ["\x1b[38;5;196mcube", [["cube", 2, false]]],
    ["\x1b[38;5;240mgrey", [["grey", 0, false]]],
    [
      "\x1b[38;2;1;200;32mrgb \x1b[48;5;1mback",
      [
        ["rgb ", 3, false],
        ["back", 3, false],
      ],
    ],
    ["\x1b[38mcut", [["cut", 0, false]]],
    ["\x1b[38:2::255:0:0mred\x1b[0m", [["red", 2, false]]],
    ["\x1b[38:5:2mgreen", [["green", 3, false]]],
    [
      "\x1b[1mbold\x1b(B\x1b[m plain",
      [
        ["bold", 0, true],
        [" plain", 0, false],
      ],
    ],
    ["\x1b7\x1b[?25l\x1b[>4;1m\x1b[ q\x1b=\x1b>\x1bcend\x1b8", [["end", 0, false]]],
    [
      "a\x1bPq#0;2;0;0;0\x1b\\b\x1b_apc\x1b\\c",
      [
        ["a", 0, false],
        ["b", 0, false],
        ["c", 0, false],
      ],
    ],
    ["10 %\r20 %\r", [["10 % 20 %", 0, false]]],
    ["<img src=x onerror=alert(1)>", [["<img src=x onerror=alert(1)>", 0, false]]],
    ["", []],
  ] as const)("%j", (line, spans) => {
    expect(toSpans(line).map(({ text, color, bold }) => [text, color, bold])).toEqual(spans as never);
  });

  test("a long line is cut, and the cut is named", () => {
    const spans = toSpans("x".repeat(1 << 20));
    expect(spans.map(({ text }) => text.length)).toEqual([MAX_SHOWN_LINE, spans[1]!.text.length]);
    expect(spans[1]?.text).toContain("the line is longer");
  });
});

test("a line that is cut within an escape shows nothing of it", () => {
  for (const code of ["\x1b[31m", "\x1b]0;title\x07"]) {
    for (let length = 1; length < code.length; length++) {
      const start = "x".repeat(MAX_SHOWN_LINE - length);
      expect(toSpans(`${start}${code}rest`)[0]?.text).toBe(start);
    }
  }
});

test("a line of a manifest shows what would move or hide its parts", () => {
  expect(withVisibleMarks("image: a\u202eb\u2066 # \x1b[31m\r")).toBe("image: a\\u202eb\\u2066 # \\u001b[31m");
  expect(withVisibleMarks("\tname: עברית 👨‍👩‍👧")).toBe("\tname: עברית 👨‍👩‍👧");
});

test("a line of carriage returns takes no time", () => {
  const line = "\r".repeat(1 << 20);
  expect(plainText(line)).toBe("");
  expect(plainText(`a${line}b`)).toBe("a b");
  expect(toSpans(line).length).toBe(1);
});

test("a line with more colors than anyone can tell apart has the last of them to its end", () => {
  const line = Array.from({ length: 600 }, (_, index) => `\x1b[3${index % 8}m${index % 10}`).join("");
  const spans = toSpans(line);
  expect(spans.length).toBeLessThanOrEqual(MAX_SPANS + 1);
  expect(spans.map(({ text }) => text).join("")).toBe(plainText(line));
});

test("the search sees what the reader sees", () => {
  expect(plainText("one\rtwo\r")).toBe("one two");
  expect(plainText("\x1b[31mer\x1b[1mror\x1b[0m\u202e")).toBe("error");
});

test("lines are complete however their text arrives", () => {
  const splitter = new LineSplitter();
  expect(splitter.push("one\ntw")).toEqual(["one"]);
  expect(splitter.push("o\nthree")).toEqual(["two"]);
  expect(splitter.push("\n\n")).toEqual(["three", ""]);
  const [long = ""] = splitter.push(`2026-11-22T12:53:10.123456789Z ${"y".repeat(1 << 20)}`);
  expect(splitStamp(long).text).toBe("y".repeat(16_384));
  expect(splitter.end()).toEqual([]);
  expect(splitter.push("no line end")).toEqual([]);
  expect(splitter.end()).toEqual(["no line end"]);
  expect(splitter.end()).toEqual([]);
});

describe("search", () => {
  const found = (line: string, text: string) =>
    splitMatches(toSpans(line), toPattern(text)).map((pieces) =>
      pieces.map((piece) => (piece.isMatch ? `[${piece.text}]` : piece.text)).join(""),
    );
  test.each([
    ["an Error, an error", "error", ["an [Error], an [error]"]],
    ["a.b*c (d) [e] {f} $^|\\/?+-", "(d) [e] {f} $^|\\/?+-", ["a.b*c [(d) [e] {f} $^|\\/?+-]"]],
    ["aXb", "a.b", ["aXb"]],
    ["pl\x1b[31main \x1b[32mred", "AIN R", ["pl", "[ain ]", "[r]ed"]],
    ["\u0130stanbul", "stan", ["\u0130[stan]bul"]],
    ["aaaa", "aa", ["[aa][aa]"]],
    ["", "x", []],
    ["all of it", "", ["all of it"]],
    ["all of it", "all of it", ["[all of it]"]],
  ])("%j: %j", (line, text, pieces) => {
    expect(found(line, text)).toEqual(pieces);
  });
});

test("merged lines are reported apart by container, in their order", () => {
  expect(byContainer(["a\t1", "a\t2\tx", "b\t3", "a\t4"])).toEqual([
    ["a", ["1", "2\tx"]],
    ["b", ["3"]],
    ["a", ["4"]],
  ]);
});

test("the time with which the engine begins a line is the reader's", () => {
  const { stamp, text } = splitStamp("2026-11-22T12:53:10.123456789Z GET 2026-11-22T12:53:10Z");
  expect({ stamp, text }).toEqual({ stamp: "2026-11-22T12:53:10.123456789Z", text: "GET 2026-11-22T12:53:10Z" });
  expect(toLocalTime(stamp)).toMatch(/^2026-11-2[123] \d\d:\d\d:10\.123$/);
  expect(new Date(toLocalTime(stamp)).toISOString()).toBe("2026-11-22T12:53:10.123Z");
  expect(toLocalTime("2026-13-45T99:99:99Z")).toBe("2026-13-45T99:99:99Z");
  expect(splitStamp("no time 2026-11-22T12:53:10Z ")).toEqual({ stamp: "", text: "no time 2026-11-22T12:53:10Z " });
  expect(splitStamp("2026-11-22T12:53:10.000000000Z ")).toEqual({ stamp: "2026-11-22T12:53:10.000000000Z", text: "" });
});

import { describe, expect, test } from "bun:test";
import { LineBuffer, type LogLine, ResumePoint } from "../../src/page/line-buffer.ts";

const at = (milliseconds: number, text = String(milliseconds), container = "app"): LogLine => ({
  container,
  stamp: milliseconds < 0 ? "" : `${new Date(milliseconds).toISOString().slice(0, 23)}000000Z`,
  text,
});
const texts = (lines: readonly LogLine[]) => lines.map(({ text }) => text);

describe("lines that are kept", () => {
  test("wait while the log is held, and are counted", () => {
    const buffer = new LineBuffer(false);
    buffer.add([at(1), at(2)]);
    buffer.release();
    buffer.add([at(3)]);
    expect([texts(buffer.lines), buffer.waiting]).toEqual([["1", "2"], 1]);
    buffer.release();
    expect([texts(buffer.lines), buffer.waiting, buffer.dropped]).toEqual([["1", "2", "3"], 0, 0]);
  });

  test("are the newest 5000, however many wait", () => {
    const buffer = new LineBuffer(false);
    buffer.add([at(1)]);
    buffer.release();
    for (let piece = 0; piece < 20; piece++) buffer.add(Array.from({ length: 6000 }, (_, i) => at(2, `${piece} ${i}`)));
    expect([texts(buffer.lines), buffer.waiting]).toEqual([["1"], 120_000]);
    buffer.release();
    expect([buffer.lines.length, buffer.dropped, buffer.lines.at(-1)?.text]).toEqual([5000, 115_001, "19 5999"]);
  });

  test("of several containers are in the order of their times; the rest of a split line stays behind its start", () => {
    const buffer = new LineBuffer(true);
    buffer.add([at(5, "a5", "a"), at(9, "a9", "a"), at(2, "b2", "b"), at(-1, "b2 rest", "b"), at(7, "b7", "b")]);
    buffer.release();
    buffer.add([at(6, "a6", "a")]);
    buffer.release();
    expect(texts(buffer.lines)).toEqual(["b2", "b2 rest", "a5", "a6", "b7", "a9"]);
  });
});

describe("after a break of the connection", () => {
  test("a log continues after the last line, without one twice", () => {
    const resume = new ResumePoint();
    expect(resume.begin(1)).toBe("");
    expect(texts(resume.take([at(1000), at(1500, "1500 a"), at(1500, "1500 b")]))).toEqual([
      "1000",
      "1500 a",
      "1500 b",
    ]);
    expect(resume.begin(1)).toBe("1970-01-01T00:00:01.500Z");
    expect(texts(resume.take([at(1500), at(1600), at(1600, "same time")]))).toEqual(["1600", "same time"]);
  });

  test("each of several containers continues where it was", () => {
    const resume = new ResumePoint();
    resume.begin(2);
    resume.take([at(60_000, "a", "a"), at(58_000, "b", "b")]);
    expect(resume.begin(2)).toBe("1970-01-01T00:00:55.000Z");
    const again = [at(60_000, "a", "a"), at(58_000, "b", "b"), at(59_000, "late b", "b"), at(57_000, "c", "c")];
    expect(texts(resume.take(again))).toEqual(["late b", "c"]);
  });

  test("a clock that was set back hides nothing", () => {
    const resume = new ResumePoint();
    resume.begin(1);
    resume.take([at(3_600_000)]);
    resume.begin(1);
    expect(texts(resume.take([at(5000)]))).toEqual(["5000"]);
  });
});

import { expect, test } from "bun:test";
import { checkConfigKey, checkIp, checkQualifiedName, hasSpaceAround } from "../../../src/manifest/validate/names.ts";

// The corpus of recorded verdicts (read-manifest-oracle-corpus.test.ts) covers the other checks, and most of these.

const GOOD = ["1.2.3.4", "::1", "2001:db8::ffff", "::1.2.3.4", "::"];
const BAD = ["1.2.3", "01.2.3.4", "1.2.3.256", "::ffff:1.2.3.4", ":::", "1::2::3", "a", "", "1:2:3:4:5:6:7:8:9"];

test.each([...GOOD, ...BAD, "fe80::1%eth0"])("the IP address %j", (text) =>
  expect(checkIp(text)).toHaveLength(GOOD.includes(text) ? 0 : 1),
);

test.each([
  [checkConfigKey, ["..a", ".", "..", "", "a/b"]],
  [checkQualifiedName, ["/a", "a/b/c", "A.b/c", "_a"]],
])("%p refuses each of %j with one message", (check, texts) =>
  expect(texts.map((text) => check(text).length)).toEqual(texts.map(() => 1)),
);

test.each([
  ["a", false],
  ["a b", false],
  [" a", true],
  ["a\n", true],
  ["a\x85", true],
  ["\u2028a", true],
  ["\ufeffa", false],
  ["a\ufeff", false],
])("white space around %j: %p", (text, want) => expect(hasSpaceAround(text)).toBe(want));

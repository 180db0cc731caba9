import { describe, expect, test } from "bun:test";
import {
  checkConfigKey,
  checkDnsLabel,
  checkDnsSubdomain,
  checkDnsSubdomainPrefix,
  checkEnvName,
  checkHttpHeaderName,
  checkId,
  checkIp,
  checkLabelValue,
  checkPortName,
  checkPortNumber,
  checkQualifiedName,
  checkSearchDomain,
  hasSpaceAround,
} from "../../../src/manifest/validate/names.ts";

/** A check, values that break no rule, and others with the number of rules they break. */
const TABLE: Record<string, [check: (value: never) => string[], good: unknown[], bad: [unknown, number][]]> = {
  "DNS label": [
    checkDnsLabel,
    ["a", "a-1", "a".repeat(63)],
    [...["a".repeat(64), "", "A", "a.b", "-a"].map(once), ["A".repeat(64), 2]],
  ],
  "DNS subdomain": [checkDnsSubdomain, ["a.b", "1"], ["a..b", "a-.b", "a.", "a".repeat(254)].map(once)],
  "prefix of a name": [checkDnsSubdomainPrefix, ["a-", "a--"], ["-", "AA-"].map(once)],
  "search domain": [checkSearchDomain, ["_a.b_c"], [["a..b", 1]]],
  "qualified name": [
    checkQualifiedName,
    ["a", "a.b/c_d"],
    [...["/a", "a/b/c", "A.b/c", "_a", "a".repeat(64)].map(once), ["a/", 2]],
  ],
  "label value": [checkLabelValue, ["", "a.B_c"], [...["a b", "-"].map(once), ["é".repeat(32), 2]]],
  "variable name": [checkEnvName, ["A", "a b:c.d-e"], ["", "a=b", "é", "a\tb"].map(once)],
  "config key": [checkConfigKey, ["a.B-_"], ["..a", ".", "..", "", "a/b"].map(once)],
  "port number": [checkPortNumber, [1, 65535], [0, 65536, -1].map(once)],
  "port name": [checkPortName, ["http-1"], [...["80", "a--b", "-a", "a".repeat(16)].map(once), ["A", 2], ["", 2]]],
  id: [checkId, [0, 2147483647], [-1, 2147483648].map(once)],
  "header name": [checkHttpHeaderName, ["X-A"], ["X_A", ""].map(once)],
  "IP address": [
    checkIp,
    ["1.2.3.4", "::1", "2001:db8::ffff", "::1.2.3.4", "::"],
    [
      ...["1.2.3", "01.2.3.4", "1.2.3.256", "::ffff:1.2.3.4", ":::", "1::2::3", "a", "", "fe80::1%eth0"].map(once),
      ["1:2:3:4:5:6:7:8:9", 1],
    ],
  ],
};

function once(value: unknown): [unknown, number] {
  return [value, 1];
}

for (const [name, [check, good, bad]] of Object.entries(TABLE)) {
  describe(name, () => {
    test.each([...good.map((value): [unknown, number] => [value, 0]), ...bad])("%j breaks %d rules", (value, count) =>
      expect(check(value as never)).toHaveLength(count),
    );
  });
}

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

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

/** How many rules each value breaks. */
const TABLE: Record<string, [check: (value: never) => string[], ...cases: [unknown, number][]]> = {
  "DNS label": [
    checkDnsLabel,
    ["a", 0],
    ["a-1", 0],
    ["a".repeat(63), 0],
    ["a".repeat(64), 1],
    ["", 1],
    ["A", 1],
    ["a.b", 1],
    ["-a", 1],
    [`${"A".repeat(64)}`, 2],
  ],
  "DNS subdomain": [checkDnsSubdomain, ["a.b", 0], ["1", 0], ["a..b", 1], ["a-.b", 1], ["a.", 1], ["a".repeat(254), 1]],
  "prefix of a name": [checkDnsSubdomainPrefix, ["a-", 0], ["a--", 0], ["-", 1], ["AA-", 1]],
  "search domain": [checkSearchDomain, ["_a.b_c", 0], ["a..b", 1]],
  "qualified name": [
    checkQualifiedName,
    ["a", 0],
    ["a.b/c_d", 0],
    ["/a", 1],
    ["a/", 2],
    ["a/b/c", 1],
    ["A.b/c", 1],
    ["_a", 1],
    ["a".repeat(64), 1],
  ],
  "label value": [checkLabelValue, ["", 0], ["a.B_c", 0], ["a b", 1], ["é".repeat(32), 2], ["-", 1]],
  "variable name": [checkEnvName, ["A", 0], ["a b:c.d-e", 0], ["", 1], ["a=b", 1], ["é", 1], ["a\tb", 1]],
  "config key": [checkConfigKey, ["a.B-_", 0], ["..a", 1], [".", 1], ["..", 1], ["", 1], ["a/b", 1]],
  "port number": [checkPortNumber, [1, 0], [65535, 0], [0, 1], [65536, 1], [-1, 1]],
  "port name": [
    checkPortName,
    ["http-1", 0],
    ["80", 1],
    ["a--b", 1],
    ["-a", 1],
    ["A", 2],
    ["a".repeat(16), 1],
    ["", 2],
  ],
  id: [checkId, [0, 0], [2147483647, 0], [-1, 1], [2147483648, 1]],
  "header name": [checkHttpHeaderName, ["X-A", 0], ["X_A", 1], ["", 1]],
  "IP address": [
    checkIp,
    ["1.2.3.4", 0],
    ["::1", 0],
    ["2001:db8::ffff", 0],
    ["::1.2.3.4", 0],
    ["::", 0],
    ["1.2.3", 1],
    ["01.2.3.4", 1],
    ["1.2.3.256", 1],
    ["::ffff:1.2.3.4", 1],
    [":::", 1],
    ["1::2::3", 1],
    ["a", 1],
    ["", 1],
    ["1:2:3:4:5:6:7:8:9", 1],
    ["fe80::1%eth0", 1],
  ],
};

for (const [name, [check, ...cases]] of Object.entries(TABLE)) {
  describe(name, () => {
    test.each(cases)("%j breaks %d rules", (value, count) => expect(check(value as never)).toHaveLength(count));
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

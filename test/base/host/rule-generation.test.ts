import { expect, test } from "bun:test";
import { parseRuleGeneration } from "../../../src/base/host/rule-generation.ts";

/** Response of Linux 6.18 to NFT_MSG_GETGEN: the number, the process that raised it, its name. */
const RESPONSE = "2c0000000f0a000000000000d36b000000001cbf0800010000001cbf0800020000006bd30800030062756e00";

test("the number of the kernel's set of rules is read from its response", () => {
  expect(parseRuleGeneration(Buffer.from(RESPONSE, "hex"))).toBe(7359);
});

test.each(["", RESPONSE.slice(0, 30), RESPONSE.replace("0f0a", "0200"), RESPONSE.slice(0, 48)])(
  "%s has none",
  (hex) => {
    expect(parseRuleGeneration(Buffer.from(hex, "hex"))).toBeUndefined();
  },
);

import { expect, test } from "bun:test";
import { nearestName } from "../../src/text/nearest-name.ts";

const NAMES = ["manifest-url", "max-pods", "root-dir", "v", "config", "config-dir", "port"];

test.each([
  ["manfest-url", "manifest-url"],
  ["manifest-ulr", "manifest-url"],
  ["MAX-PODS", "max-pods"],
  ["maxpods", "max-pods"],
  ["rootdir", "root-dir"],
  ["confg", "config"],
  ["config-dri", "config-dir"],
  ["prot", "port"],
  ["completely-else", undefined],
  ["", undefined],
  ["x", undefined],
] as const)("%p means %p", (written, want) => {
  expect(nearestName(written, NAMES)).toBe(want as string);
});

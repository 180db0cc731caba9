import { expect, test } from "bun:test";
import { nearestByBeginning, nearestByWords, nearestName } from "../../../src/base/text/nearest-name.ts";

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

test.each([
  ["fsNonRoot", ["runAsNonRoot", "runAsUser", "fsGroup"], "runAsNonRoot"],
  ["strategy", ["updateStrategy", "replicas"], "updateStrategy"],
  ["name", ["nodeName", "hostName"], undefined],
  ["fsNonRoot", ["runAsRoot"], undefined],
] as const)("%p ends with the words of one of %p", (written, candidates, want) => {
  expect(nearestByWords(written, candidates)).toBe(want as string);
});

test.each([
  ["root-directory", "root-dir"],
  ["config-directory", "config-dir"],
  ["manifest", "manifest-url"],
  ["root-path", undefined],
  ["root-", undefined],
  ["directory-root", undefined],
  ["volume", undefined],
] as const)("the flag %p means %p", (written, want) => {
  expect(nearestByBeginning(written, NAMES)).toBe(want as string);
});

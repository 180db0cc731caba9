import { expect, test } from "bun:test";
import { compareOptions } from "../../src/config/live-options.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";

test("a change is live or needs a restart; equal lists are not a change", () => {
  const next = {
    ...DEFAULT_KUBELET_OPTIONS,
    verbosity: 4,
    readOnlyPort: 1,
    nodeLabels: structuredClone(DEFAULT_KUBELET_OPTIONS.nodeLabels),
    evictionHard: structuredClone(DEFAULT_KUBELET_OPTIONS.evictionHard),
  };
  expect(compareOptions(DEFAULT_KUBELET_OPTIONS, next)).toEqual({ live: ["verbosity"], needRestart: ["readOnlyPort"] });
});

import { expect, test } from "bun:test";
import type { Pod } from "../../../src/base/api/pod.ts";
import { apiAtLeast } from "../../../src/base/text/api-version.ts";
import { mountOptions } from "../../../src/kubelet/volumes/own-volumes.ts";
import { aContainer, aPod } from "../../support/builders.ts";

const HUGE = aPod({ containers: [aContainer({ resources: { limits: { "hugepages-2Mi": "4Mi" } } })] });
const TWO = aPod({
  containers: [aContainer({ resources: { limits: { "hugepages-2Mi": "4Mi" }, requests: { "hugepages-1Gi": "1Gi" } } })],
});
const limited = aContainer({ resources: { limits: { memory: "32Mi" } } });
const BOUNDED = aPod({ containers: [limited] });
const HALF_BOUNDED = aPod({ containers: [limited, aContainer()] });

test.each<[string, string | undefined, Pod, ReturnType<typeof mountOptions>]>([
  ["", "1Gi", aPod(), undefined],
  ["Memory", undefined, aPod(), { type: "tmpfs", options: ["mode=1777"] }],
  ["Memory", "0", aPod(), { type: "tmpfs", options: ["mode=1777"] }],
  ["Memory", "10Mi", aPod(), { type: "tmpfs", options: ["size=10485760", "mode=1777"] }],
  ["Memory", "1500m", aPod(), { type: "tmpfs", options: ["size=2", "mode=1777"] }],
  ["Memory", undefined, BOUNDED, { type: "tmpfs", options: ["size=33554432", "mode=1777"] }],
  ["Memory", "1Mi", BOUNDED, { type: "tmpfs", options: ["size=1048576", "mode=1777"] }],
  ["Memory", "1Gi", BOUNDED, { type: "tmpfs", options: ["size=33554432", "mode=1777"] }],
  ["Memory", undefined, HALF_BOUNDED, { type: "tmpfs", options: ["mode=1777"] }],
  ["HugePages", undefined, HUGE, { type: "hugetlbfs", options: ["pagesize=2097152"] }],
  ["HugePages-1Gi", "2Gi", aPod(), { type: "hugetlbfs", options: ["pagesize=1073741824", "size=2147483648"] }],
])("medium %p with limit %p", (medium, sizeLimit, pod, want) => {
  expect(mountOptions(medium, sizeLimit, pod)).toEqual(want);
});

test.each<[string, Pod, string]>([
  ["Disk", aPod(), 'unknown storage medium "Disk"'],
  ["HugePages", aPod(), "medium HugePages needs exactly one hugepages-<size>"],
  ["HugePages", TWO, "medium HugePages needs exactly one hugepages-<size>"],
])("medium %p is refused", (medium, pod, want) => {
  expect(() => mountOptions(medium, undefined, pod)).toThrow(want);
});

test.each([
  ["1.41", "1.48", false],
  ["1.48", "1.48", true],
  ["1.52", "1.48", true],
  ["1.9", "1.45", false],
  ["2.0", "1.48", true],
] as const)("API %s is at least %s: %p", (version, wanted, want) => expect(apiAtLeast(version, wanted)).toBe(want));

import { expect, test } from "bun:test";
import { mayReload, overviewAddress, parseView, podAddress, readToken } from "../../src/page/router.ts";
import { DEFAULT_FILTER } from "../../src/page/store.ts";

test.each([
  ["", { kind: "overview", filter: DEFAULT_FILTER }],
  ["#/", { kind: "overview", filter: DEFAULT_FILTER }],
  ["#/nothing/here", { kind: "overview", filter: DEFAULT_FILTER }],
  ["#/pods/default", { kind: "overview", filter: DEFAULT_FILTER }],
  ["#/node", { kind: "node" }],
  ["#/apply", { kind: "apply" }],
  ["#/pods/default/web", { kind: "pod", namespace: "default", name: "web", tab: "overview" }],
  ["#/pods/default/web/logs", { kind: "pod", namespace: "default", name: "web", tab: "logs" }],
  ["#/pods/default/web/nothing", { kind: "pod", namespace: "default", name: "web", tab: "overview" }],
  ["#/pods/default/%E0%A4%A", { kind: "pod", namespace: "default", name: "%E0%A4%A", tab: "overview" }],
])("the address %s", (address, view) => {
  expect(parseView(address)).toEqual(view as ReturnType<typeof parseView>);
});

test.each([
  DEFAULT_FILTER,
  { text: "a&b=c", onlyNotReady: true, isGrouped: true, sort: "memory", descending: true },
  { text: "", onlyNotReady: false, isGrouped: false, sort: "name", descending: true },
] as const)("a filter and its address", (filter) => {
  expect(parseView(overviewAddress(filter))).toEqual({ kind: "overview", filter });
});

test.each([
  ["#token=1.a..b-c", "1.a..b-c"],
  ["#token%3D1.a..b-c", "1.a..b-c"],
  ["#/token=1", "1"],
  ["#token=", ""],
  ["#/?filter=token=1", undefined],
  ["#/pods/default/token", undefined],
  ["", undefined],
])("the token of %s: %p", (hash, token) => {
  expect(readToken(hash)).toBe(token);
});

test("a pod and its address", () => {
  const pod = { namespace: "default", name: "web.example-edge" };
  const odd = { namespace: "a b", name: "c/d?e#f%" };
  expect(parseView(podAddress(odd, "logs"))).toEqual({ kind: "pod", ...odd, tab: "logs" });
  expect(parseView(podAddress(pod, "shell"))).toEqual({ kind: "pod", ...pod, tab: "shell" });
});

test.each([
  ["#/?filter=crash", true],
  ["#/node", true],
  ["#/pods/default/web", true],
  ["#/pods/default/web/events", true],
  ["#/pods/default/web/logs", false],
  ["#/pods/default/web/shell", false],
  ["#/pods/default/web/manifest", false],
  ["#/apply", false],
] as const)("%s is loaded again without a question: %p", (hash, want) => {
  expect(mayReload(parseView(hash))).toBe(want);
});

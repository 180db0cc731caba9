import { expect, test } from "bun:test";
import { mergeSources } from "../../src/sources/desired-state-feed.ts";
import type { SourceSet } from "../../src/sources/source-set.ts";
import { manifest, readFile } from "./source-harness.ts";

function setOf(...texts: [file: string, text: string][]): SourceSet {
  const results = texts.map(([file, text]) => readFile(Buffer.from(text), file));
  return {
    pods: results.flatMap(({ pods }) => pods),
    configMaps: results.flatMap(({ configMaps }) => configMaps),
    secrets: results.flatMap(({ secrets }) => secrets),
    findings: results.flatMap(({ findings }) => findings),
    stale: new Map(),
    isComplete: true,
  };
}

const inNamespace = (namespace: string, name: string) =>
  manifest(name).replace("metadata:", `metadata:\n  namespace: ${namespace}`);
const object = (kind: string, name: string, value: string) =>
  `apiVersion: v1\nkind: ${kind}\nmetadata:\n  name: ${name}\n${kind === "Secret" ? "stringData" : "data"}:\n  key: ${value}\n`;

test("pods of all sources, by namespace and name", () => {
  const { state, duplicates, isComplete } = mergeSources([
    setOf(["b.yaml", manifest("b")], ["z.yaml", inNamespace("a", "z")]),
    setOf(["u", inNamespace("a-b", "c")], ["v", manifest("a")]),
  ]);
  expect(state.pods.map(({ pod }) => `${pod.metadata.namespace}/${pod.metadata.name}`)).toEqual([
    "a/z-node1",
    "a-b/c-node1",
    "default/a-node1",
    "default/b-node1",
  ]);
  expect({ duplicates, isComplete }).toEqual({ duplicates: [], isComplete: true });
  expect(state.notices).toBeUndefined();
});

test("of two texts for one pod the first counts, and the winner carries a notice", () => {
  const { state, duplicates } = mergeSources([
    setOf(["a.yaml", manifest("x", "busybox:a")], ["b.yaml", manifest("x", "busybox:b")]),
    setOf(["http://h/", manifest("x", "busybox:c")]),
  ]);
  expect(state.pods.map(({ pod }) => pod.spec.containers[0]!.image)).toEqual(["busybox:a"]);
  expect(duplicates).toEqual([
    'b.yaml: ignored, pod "default/x-node1" is described by a.yaml already',
    'http://h/: ignored, pod "default/x-node1" is described by a.yaml already',
  ]);
  expect(state.notices?.get(state.pods[0]!.pod.metadata.uid!)?.map(({ reason }) => reason)).toEqual([
    "DuplicateManifest",
    "DuplicateManifest",
  ]);
});

test("a name that only collides by its suffix is another pod", () => {
  const { state } = mergeSources([setOf(["a.yaml", manifest("x-node1")], ["b.yaml", manifest("x")])]);
  expect(state.pods.map(({ pod }) => pod.metadata.name)).toEqual(["x-node1", "x-node1-node1"]);
});

test("two pods with one fixed uid: the second is reported", () => {
  const fixed = (name: string) => manifest(name).replace("metadata:", "metadata:\n  uid: one-and-the-same");
  const { state, duplicates } = mergeSources([setOf(["a.yaml", fixed("a")], ["b.yaml", fixed("b")])]);
  expect(state.pods.map(({ pod }) => pod.metadata.name)).toEqual(["a-node1"]);
  expect(duplicates).toEqual(["b.yaml: ignored, a pod with the uid one-and-the-same is described by a.yaml already"]);
});

test("ConfigMaps and Secrets are indexed; the first of a name counts", () => {
  const { state, duplicates } = mergeSources([
    setOf(["a.yaml", object("ConfigMap", "c", "one")], ["b.yaml", object("ConfigMap", "c", "two")]),
    setOf(["s.yaml", object("Secret", "c", "three")]),
  ]);
  expect(state.configMaps.get("default/c")?.data).toEqual({ key: "one" });
  expect(state.secrets.get("default/c")?.data).toEqual({ key: btoa("three") });
  expect(duplicates).toEqual(['ConfigMap "default/c" is described more than once; the first text counts']);
});

test("a pod that runs by an older text says why", () => {
  const set = { ...setOf(["a.yaml", manifest("x")]), stale: new Map([["default/x-node1" as const, "a.yaml:3:1: no"]]) };
  const { state } = mergeSources([set]);
  expect([...state.notices!.values()]).toEqual([
    [{ reason: "InvalidManifest", message: "runs by an older text: a.yaml:3:1: no" }],
  ]);
});

test.each([
  { what: "a source that was not read yet", sets: [setOf(["a", manifest("a")]), undefined], want: false },
  { what: "a text that is unknown", sets: [{ ...setOf(), isComplete: false }], want: false },
  { what: "no source at all", sets: [], want: true },
])("$what: complete is $want", ({ sets, want }) => {
  expect(mergeSources(sets).isComplete).toBe(want);
});
